"""Helpful at the edge of what it knows: notes, options, orders, intervals."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Barrier, Thread

import numpy as np
import pytest
import torch

import uncode
from tests.cli.running import TOY, run
from tests.forked import Forked
from uncode.backbones.transformer.session import TransformerSession
from uncode.cli.answering.prompt_notes import is_familiar
from uncode.core.support import memory, threads
from uncode.core.support.memory import require_memory
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.report import accuracy
from uncode.evals.suite.results import CellResults, Results
from uncode.samplers.catalog import catalog
from uncode.util.stats import newcombe, wilson


@pytest.mark.parametrize("family", FAMILIES)
def test_every_problem_of_a_family_is_familiar(family: str) -> None:
    for example in FAMILIES[family].examples()[:20]:
        assert is_familiar(FAMILIES[family].prompt(example))
    assert not is_familiar("What is 2 + 2?") and not is_familiar("")


def test_tiny_says_once_what_it_can_do() -> None:
    shown = run("decode", "What is 2 + 2?", "--length", "4", "--sampler", "confidence")
    assert shown.returncode == 0 and shown.stderr.count("note:") == 1
    assert (
        "unlike tiny's training data, seven kinds of small problems" in shown.stderr
        and "uncode tasks mini_algebra" in shown.stderr
    )
    problem = "Problem: Compute 1 + 2\nSolution:"
    assert run("decode", problem, "--length", "4", "--sampler", "confidence").stderr == ""
    long = run("decode", problem + "x" * 300, "--length", "4", "--sampler", "tau_leaping")
    assert "more than the model's context of 192" in long.stderr


def test_a_gap_filled_with_nothing_visible_is_noted() -> None:
    shown = run(
        "decode", "Mia has 3 shells. Cleo has 6 more.\nCleo has <mask:1> + 6 = 9 shells.", "--sampler", "confidence"
    )
    assert "note: gap 1 (1 token) was filled with nothing visible: a number after a space takes" in shown.stderr


@pytest.mark.parametrize("name", ["semi_ar", "uncode", "left_to_right", "legacy.uncode_release"])
def test_a_sampler_is_printed_with_its_options(name: str) -> None:
    shown = run("samplers", name).stdout
    head = [line for line in shown.splitlines() if line.startswith("#")]
    for option in catalog()[name].options:
        assert any(option.name in line and option.meaning in line for line in head)
    assert "TOML" not in shown and run("samplers", name, "--json").returncode == 0


def test_a_model_s_own_sampler_is_printed() -> None:
    assert run("samplers", "story").stdout.startswith("# story: a sampler file of tiny")
    assert json.loads(run("samplers", "story", "--json").stdout)["name"] == "uncode"


def test_the_order_shows_a_run_of_eos_tokens_as_one() -> None:
    shown = run("decode", *TOY, "add 3 4 5", "--sampler", "confidence", "--order").stdout
    assert shown.count("∎") == 1 and "∎ x " in shown


def test_a_handful_of_problems_has_real_intervals() -> None:
    cell = CellResults("11", "00", 80.0, 20.0)
    families = {name: {"confidence": cell, "uncode": cell} for name in FAMILIES}
    results = Results({"model": "x", "problems": 2}, families, {}, {})
    row = next(row for row in accuracy(results).rows if row[0] == "confidence")
    assert row[-3].startswith("100.0 [") and "[100.0" not in row[-3]
    assert row[-2].startswith("+0.0 [-") and not row[-2].startswith("+0.0 [-0.0")


def test_newcombe_by_hand() -> None:
    """36 right by both, 12 by a alone, 2 by b alone, none by neither: from the paper's formula, step by step."""
    a = np.array([1] * 36 + [1] * 12 + [0] * 2)
    b = np.array([1] * 36 + [0] * 12 + [1] * 2)
    found = newcombe(a, b)
    (p1, l1, u1), (p2, l2, u2) = wilson(48, 50), wilson(38, 50)
    phi = (36 * 0 - 12 * 2) / (48 * 2 * 38 * 12) ** 0.5  # negative, so it takes no correction
    low = 0.2 - ((p1 - l1) ** 2 - 2 * phi * (p1 - l1) * (u2 - p2) + (u2 - p2) ** 2) ** 0.5
    high = 0.2 + ((u1 - p1) ** 2 - 2 * phi * (u1 - p1) * (p2 - l2) + (p2 - l2) ** 2) ** 0.5
    assert list(found) == pytest.approx([0.2, low, high])
    same = newcombe([1, 1, 1], [1, 1, 1])
    assert same.estimate == 0 and same.low < 0 < same.high


def test_mini_answers_can_be_regraded(tmp_path: Path) -> None:
    family = FAMILIES["mini_algebra"]
    example = family.examples()[0]
    file = tmp_path / "mini_algebra_answers.jsonl"
    file.write_text(json.dumps({"id": example.id, "text": family.response(example, family.styles[0][0])}) + "\n")
    (graded,) = json.loads(run("regrade", str(file), "--json").stdout)
    assert graded["task"] == "mini_algebra" and graded["metrics"]["correct"]["estimate"] == 1.0
    assert graded["gained"] is None and list(graded["metrics"]) == ["correct", "sound"], "the release has no rule"
    assert run("regrade", str(file)).returncode == 0


def test_memory_is_checked_before_it_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10**8)
    shown = run("decode", "add 3 4 5", "--model", "toy", "--length", "999999999")
    assert shown.returncode == 2 and "needs about 64.0 GB" in shown.stderr and "use a shorter length" in shown.stderr
    with pytest.raises(uncode.UncodeError, match=r"it needs about 0.2 GB, but cpu has 0.1 GB free: do less"):
        require_memory(2 * 10**8, torch.device("cpu"), "it", "do less")
    model = uncode.load("tiny", device="cpu")
    with pytest.raises(uncode.UncodeError, match=r"a step that sees 60,000 positions needs about 0.2 GB"):
        uncode.generate(model, "x", sampler="confidence", length=60_000)
    with pytest.raises(uncode.UncodeError, match="a forward over 60,001 tokens"):
        uncode.generate(model, "x", sampler="fast_dllm", length=60_000)


def test_a_small_forward_runs_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cpu = torch.device("cpu")
    assert threads.threads_for(cpu, 7_000_000, 130) == 1
    assert threads.threads_for(cpu, 7_000_000, 13_000) is None and threads.threads_for(cpu, 0, 1) is None
    assert threads.threads_for(torch.device("cuda"), 7_000_000, 130) is None
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads.threads_for(cpu, 7_000_000, 130) is None
    monkeypatch.delenv("OMP_NUM_THREADS")

    def act() -> None:
        torch.set_num_threads(2)
        model, seen = uncode.load("tiny", device="cpu"), set[int]()
        real = TransformerSession.logits
        monkeypatch.setattr(
            TransformerSession, "logits", lambda *given: (seen.add(torch.get_num_threads()), real(*given))[1]
        )
        uncode.generate(model, "x", sampler="confidence", length=2)
        print(seen, torch.get_num_threads())

    with Forked(act) as process:
        assert process.communicate() == ("{1} 2\n", "")


def test_tasks_run_side_by_side_each_on_one_thread() -> None:
    def act() -> None:
        torch.set_num_threads(2)
        meet, seen = Barrier(2, timeout=10), list[tuple[int, bool]]()

        def task() -> None:
            meet.wait()  # it ends only beside another task
            seen.append((torch.get_num_threads(), torch.is_inference_mode_enabled()))

        def fail() -> None:
            raise ValueError("the third task")

        with torch.inference_mode():
            threads.side_by_side([task] * 4, 2)
        print(sorted(set(seen)), len(seen), torch.get_num_threads())
        try:
            threads.side_by_side([fail, fail], 2)
        except ValueError as error:
            print(error)
        later = list[int]()
        other = Thread(target=lambda: later.append(torch.get_num_threads()))
        other.start()
        other.join()
        print(later)  # a thread that starts later has all threads again

    with Forked(act) as process:
        assert process.communicate() == ("[(1, True)] 4 2\nthe third task\n[2]\n", "")
