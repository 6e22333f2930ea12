"""`uncode decode`: a file of prompts becomes a file of answers, whatever interrupts it."""

from __future__ import annotations

import io
import itertools
import json
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import uncode
from tests.backbones.test_tokenizers import llada_tokenizer
from tests.checkpoints import checkpoint
from tests.cli.running import TOY, call, run, start_apart
from uncode import UncodeError
from uncode.cli.answering import answer_file, choices, drawing
from uncode.engine import Engine, Request, Result
from uncode.generation.generate import start_decode
from uncode.generation.prompt import read_prompts
from uncode.util.files import Journal

ROOT = Path(__file__).parents[2]
DRAWN = ["--sampler", "tau_leaping", "--set", "tau=12"]
"""A sampler that draws at random, so that seeds show."""


def prompts(path: Path, count: int) -> Path:
    sums = itertools.islice(itertools.product(range(1, 10), repeat=3), count)
    path.write_text("".join(json.dumps({"prompt": "add {} {} {}".format(*abc)}) + "\n" for abc in sums))
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_of_every_kind_are_answered_in_order(tmp_path: Path) -> None:
    source, out = tmp_path / "prompts.jsonl", tmp_path / "answers.jsonl"
    written = [
        "add 3 4 5",
        {"prompt": "add 1 3 4", "id": "second", "length": 12},
        {"prompt": "add 3 4 5 first 3 + 4 = <mask:1> , then <mask:3>", "id": 7, "seed": -3},
    ]
    source.write_text("\n\n".join(map(json.dumps, written)))
    shown = call("decode", *TOY, "--input", str(source), "--out", str(out), "--sampler", "left_to_right", "--seed", "5")
    assert shown.stdout.startswith(f"{out}: 3 answers; 37 forwards;")
    found = lines(out)
    assert [(row["id"], row["seed"], row["forwards"]) for row in found] == [(0, 5, 21), ("second", 6, 12), (7, -3, 4)]
    assert found[0]["prompt"] == "add 3 4 5" and found[0]["text"].endswith("so the answer is 12 .")
    assert found[2]["text"] == "add 3 4 5 first 3 + 4 = 7 , then 7 + 5"


def test_a_prompt_is_answered_in_a_batch_as_alone(tmp_path: Path) -> None:
    source = prompts(tmp_path / "prompts.jsonl", 7)
    found = []
    for size in ("1", "3", "16"):
        out = tmp_path / f"{size}.jsonl"
        call("decode", *TOY, "--input", str(source), "--out", str(out), *DRAWN, "--batch", size, "--seed", "40")
        found.append(lines(out))
    assert found[0] == found[1] == found[2]
    model, sampler = uncode.load("toy"), uncode.presets.tau_leaping(tau=12)
    for number, row in enumerate(found[0]):
        assert row["text"] == uncode.generate(model, row["prompt"], sampler=sampler, length=24, seed=40 + number)


def test_rows_of_unequal_length_are_padded_and_messages_answered(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "llada", "llada", 0)
    llada_tokenizer().save_pretrained(folder)
    asked: list[Any] = [
        "2 + 3",
        {"prompt": "What is 2 + 3", "length": 9},
        {"messages": [{"role": "user", "content": "2"}]},
        "2",
    ]
    source = tmp_path / "prompts.jsonl"
    source.write_text("\n".join(map(json.dumps, asked)))
    words = ["--model", str(folder), "--sampler", "confidence", "--length", "6", "--dtype", "float64", "--whole"]
    for size in ("1", "4"):
        call("decode", *TOY, *words, "--input", str(source), "--out", str(tmp_path / size), "--batch", size)
    found = lines(tmp_path / "1")
    assert found == lines(tmp_path / "4") and [row["forwards"] for row in found] == [6, 9, 6, 6]
    assert found[2]["messages"] == asked[2]["messages"] and "prompt" not in found[2]


def forwards(line: str) -> int:
    return int(json.loads(line)["forwards"])


def test_a_finished_file_needs_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = prompts(tmp_path / "prompts.jsonl", 3), tmp_path / "answers.jsonl"
    words = ["decode", *TOY, "--input", str(source), "--out", str(out), *DRAWN]
    call(*words)
    monkeypatch.setattr(choices, "load", lambda *_, **__: pytest.fail("the model was loaded"))
    result = json.loads(call(*words, "--json").stdout)
    assert (result["answers"], result["resumed"], result["forwards"]) == (3, 3, 0)
    for change in (["--seed", "1"], ["--dtype", "float64"]):
        with pytest.raises(pytest.fail.Exception):
            call(*words, *change)
    source.write_text('"add 9 9 9"')
    with pytest.raises(pytest.fail.Exception):
        call(*words)


def test_other_weights_are_another_job(tmp_path: Path) -> None:
    source, out = prompts(tmp_path / "prompts.jsonl", 1), tmp_path / "answers.jsonl"
    words = ["decode", "--model", "tiny", "--device", "cpu", "--input", str(source), "--out", str(out), "--length", "4"]
    trace = tmp_path / "traces.jsonl"
    call(*words, "--weights", "int8", "--trace", str(trace))
    assert lines(trace)[0]["weights"] == "int8" and lines(trace)[0]["dtype"] == "float32"
    for other in (["--weights", "fp8"], []):
        with pytest.raises(UncodeError, match="int8"):
            call(*words, *other)
    assert json.loads(call(*words, "--weights", "int8", "--json").stdout)["resumed"] == 1


def test_force_replaces_a_file_that_is_no_journal(tmp_path: Path) -> None:
    source, out = prompts(tmp_path / "prompts.jsonl", 2), tmp_path / "answers.jsonl"
    words = ["decode", *TOY, "--input", str(source), "--out", str(out), *DRAWN, "--force"]
    out.write_text("mine\n")
    call(*words)
    assert len(lines(out)) == 2
    with pytest.raises(UncodeError, match="begun with seed 0, now 1"):
        call(*words, "--seed", "1")
    assert len(lines(out)) == 2


def test_a_file_of_prompts_has_a_trace_and_a_page(tmp_path: Path) -> None:
    source, out = prompts(tmp_path / "prompts.jsonl", 5), tmp_path / "answers.jsonl"
    trace, page = tmp_path / "traces.jsonl", tmp_path / "page.html"
    words = ["decode", *TOY, "--input", str(source), "--out", str(out), *DRAWN, "--trace", str(trace)]
    shown = call(*words, "--view", str(page))
    assert f"{page}: 5 traces" in shown.stderr and "5 prompts, tau_leaping" in page.read_text()
    found = lines(trace)
    assert [row["id"] for row in found] == [0, 1, 2, 3, 4]
    assert [row["text"] for row in found] == [row["text"] for row in lines(out)]
    assert len(uncode.Trace.load(trace).tokens) == 5
    viewed = call("view", str(trace), "--out", str(tmp_path / "viewed.html"))
    assert viewed.stdout.endswith("5 traces, to be replayed in a browser.\n")
    whole = trace.read_text(), out.read_text(), page.read_text()
    trace.write_text("".join(trace.read_text().splitlines(keepends=True)[1:3]))  # as a kill may leave them
    out.write_text("".join(out.read_text().splitlines(keepends=True)[:2]))
    result = json.loads(call(*words, "--view", str(page), "--json").stdout)
    assert result["resumed"] == 2 and (trace.read_text(), out.read_text(), page.read_text()) == whole
    assert json.loads(call(*words, "--json").stdout)["forwards"] == 0
    with pytest.raises(UncodeError, match="begun with seed 0, now 1"):
        call(*words, "--seed", "1")


def test_a_page_of_answers_that_are_there_already(tmp_path: Path) -> None:
    source, out, page = prompts(tmp_path / "prompts.jsonl", 3), tmp_path / "answers.jsonl", tmp_path / "page.html"
    words = ["decode", *TOY, "--input", str(source), "--out", str(out), *DRAWN]
    call(*words)
    before = out.read_text()
    assert "3 traces" in call(*words, "--view", str(page)).stderr and out.read_text() == before


def test_only_what_the_page_shows_is_decoded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out, page = prompts(tmp_path / "prompts.jsonl", 5), tmp_path / "answers.jsonl", tmp_path / "page.html"
    words, asked, real = ["decode", *TOY, "--input", str(source), "--out", str(out), *DRAWN], list[int](), Engine.run

    def watched(engine: Engine, requests: Iterable[Request]) -> Iterator[Result]:
        for result in real(engine, requests):
            asked.append(result.request.key.line.id)
            yield result

    monkeypatch.setattr(Engine, "run", watched)
    monkeypatch.setattr(answer_file, "MAX_ROWS", 2)
    first = call(*words, "--view", str(page)).stderr
    assert sorted(asked) == [0, 1, 2, 3, 4] and "2 traces" in first and "3 are not" in first
    before, shown = out.read_text(), page.read_text()
    asked.clear()
    call(*words, "--view", str(page))
    assert sorted(asked) == [0, 1] and (out.read_text(), page.read_text()) == (before, shown)


def test_each_line_of_a_text_file_is_a_prompt(tmp_path: Path) -> None:
    source, out = tmp_path / "prompts.txt", tmp_path / "answers.jsonl"
    source.write_text("add 3 4 5\n\nadd 1 3 4\r\n")
    call("decode", *TOY, "--input", str(source), "--out", str(out))
    assert [(row["id"], row["prompt"]) for row in lines(out)] == [(0, "add 3 4 5"), (1, "add 1 3 4")]


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_damaged_job_file_is_named_and_the_answers_stay(tmp_path: Path, text: str) -> None:
    source, out = prompts(tmp_path / "prompts.jsonl", 1), tmp_path / "answers.jsonl"
    words = ["decode", *TOY, "--input", str(source), "--out", str(out), *DRAWN]
    call(*words)
    before = out.read_text()
    (tmp_path / "answers.jsonl.job").write_text(text)
    with pytest.raises(UncodeError, match=r"answers.jsonl.job' is damaged, .* restore it, or choose another `out=`"):
        call(*words)
    assert out.read_text() == before


def test_a_second_run_finishes_what_is_missing(tmp_path: Path) -> None:
    source, out = prompts(tmp_path / "prompts.jsonl", 6), tmp_path / "answers.jsonl"
    words = ["decode", *TOY, "--input", str(source), "--out", str(out), *DRAWN]
    call(*words)
    whole = out.read_text()
    first, *others = whole.splitlines(keepends=True)
    out.write_text("".join(others[2:4]) + first[:20])  # as a batch out of order and half a line would leave it
    result = json.loads(call(*words, "--batch", "4", "--json").stdout)
    assert (result["answers"], result["resumed"]) == (6, 2) and out.read_text() == whole
    assert result["forwards"] == sum(row["forwards"] for row in lines(out)) - sum(map(forwards, others[2:4]))
    assert call(*words).stdout.startswith(f"{out}: 6 answers, 6 of them of an earlier run; 0 forwards;")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.jsonl", "answers.jsonl.job", "prompts.jsonl"]


@pytest.mark.parametrize(
    ("change", "other"),
    [
        (["--seed", "1"], "seed 0, now 1:"),
        (["--length", "20"], "length 24, now 20:"),
        ([*DRAWN[:3], "tau=8"], r"sampler.policy.select.quota.count 12, now 8:"),
        (["--whole"], "options.whole false, now true:"),
        (["--guidance", "1"], "model.guidance none, now 1.0:"),
    ],
)
def test_another_job_does_not_touch_the_answers(tmp_path: Path, change: list[str], other: str) -> None:
    source, out = prompts(tmp_path / "prompts.jsonl", 1), tmp_path / "answers.jsonl"
    words = ["decode", *TOY, "--input", str(source), "--out", str(out)]
    call(*words, *DRAWN)
    before = out.read_text()
    with pytest.raises(UncodeError, match=f"begun with {other} finish it with those settings, choose another `out=`"):
        call(*words, *([] if "--sampler" in change else DRAWN), *change)
    assert out.read_text() == before


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    source, out = prompts(tmp_path / "prompts.jsonl", 1), tmp_path / "answers.jsonl"
    words = ["decode", *TOY, "--input", str(source), "--out", str(out), *DRAWN]
    out.write_text("mine\n")
    with pytest.raises(
        UncodeError,
        match=r"was not written by this command .*job' beside it.*`force=True`",
    ):
        call(*words)
    out.unlink()
    call(*words)
    source.write_text('"add 9 9 9"')
    with pytest.raises(UncodeError, match="begun with other input"):
        call(*words)
    prompts(source, 1)
    out.write_text('{"id": "strange"}\n')
    with pytest.raises(UncodeError, match="was changed"):
        call(*words)
    out.write_text("no JSON\n")
    with pytest.raises(UncodeError, match="is not JSON"):
        call(*words)
    out.unlink()
    with Journal.of_job(out, {}), pytest.raises(UncodeError, match="another process is writing into"):
        call(*words)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 of '.*' is not JSON"),
        ("3", "line 2 of '.*' is no prompt"),
        ("{}", "needs a prompt or messages"),
        ('{"prompt": "add 1 1 1", "messages": []}', "and not both"),
        ('{"prompt": 3}', "its prompt is not a text"),
        ('{"prompt": "\\ud800"}', "its prompt is not a text"),
        ('{"messages": [{"role": "user"}]}', "its messages are not a list of"),
        ('{"messages": [{"role": "user", "content": "add 1 1 1"}]}', "line 2 of '.*': this model has no chat template"),
        ('{"prompt": "add 1 1 1", "lenght": 3}', "line 2 of '.*' has an unknown key 'lenght': did you mean 'length'?"),
        ('{"prompt": "add 1 1 1", "length": 0}', "its length is not a whole number above 0"),
        ('{"prompt": "add 1 1 1", "length": true}', "its length is not"),
        ('{"prompt": "add 1 1 1", "seed": 0.5}', "its seed is not a whole number"),
        ('{"prompt": "add 1 1 1", "id": null}', "its id is neither"),
        ('{"prompt": "add 1 1 1", "id": 0}', "line 2 of '.*' has the id 0 of line 1"),
        ('{"prompt": " "}', "line 2 of '.*': the prompt is empty"),
        ('"multiply 1 2"', "line 2 of '.*': the toy model does not know the word 'multiply'"),
        ('{"prompt": "add <mask:2>", "length": 3}', "line 2 of '.*': a text with gaps has no answer length"),
    ],
)
def test_an_invalid_line_is_reported_before_anything_is_decoded(
    tmp_path: Path, line: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_file, "Engine", lambda *_, **__: pytest.fail("something was decoded"))
    source, out = tmp_path / "prompts.jsonl", tmp_path / "answers.jsonl"
    source.write_text(f'"add 1 2 3"\n{line}\n')
    with pytest.raises(UncodeError, match=message):
        call("decode", *TOY, "--input", str(source), "--out", str(out))
    assert list(tmp_path.iterdir()) == [source]


def test_gaps_alone_take_no_length(tmp_path: Path) -> None:
    source = tmp_path / "prompts.jsonl"
    source.write_text('"add 1 <mask:1> 3"\n')
    with pytest.raises(UncodeError, match="leave --length out"):
        call("decode", *TOY[:2], "--input", str(source), "--out", str(tmp_path / "x"), "--length", "4")


def test_ctrl_c_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = prompts(tmp_path / "prompts.jsonl", 5), tmp_path / "answers.jsonl"
    words = ["decode", *TOY, "--input", str(source), "--out", str(out), *DRAWN, "--batch", "2"]
    real = answer_file._results

    def interrupted(*given: Any) -> Any:
        yield from itertools.islice(real(*given), 2)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(answer_file, "_results", interrupted)
        shown = call(*words)
    assert "stopped after 2 of 5 answers; the same command resumes there" in shown.stderr
    assert shown.exit_code != 0 and len(lines(out)) == 2
    assert ", 2 of them of an earlier run" in call(*words).stdout
    assert [row["id"] for row in lines(out)] == [0, 1, 2, 3, 4]


def test_a_killed_run_resumes(tmp_path: Path) -> None:
    source, out, again = prompts(tmp_path / "prompts.jsonl", 80), tmp_path / "killed.jsonl", tmp_path / "whole.jsonl"
    words = ["decode", *TOY, "--input", str(source), *DRAWN, "--batch", "2"]
    with start_apart(*words, "--out", str(out)) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None and not (out.exists() and out.stat().st_size):
            time.sleep(0.002)
        process.kill()
        assert process.wait() == -9
    kept = out.read_text()
    assert 0 < kept.count("\n") < 80
    result = json.loads(call(*words, "--out", str(out), "--json").stdout)
    assert result["resumed"] == kept.count("\n")
    call(*words, "--out", str(again))
    assert out.read_text() == again.read_text() and [row["id"] for row in lines(out)] == [*range(80)]


def watched(prompt: str, sampler: uncode.Sampler, length: int | None = 24) -> tuple[list[str], uncode.Trace]:
    """The pictures of a decode in a terminal, one for each step, and its trace."""
    model = uncode.load("toy")
    rows = read_prompts(model, [prompt], length)
    console = Console(file=io.StringIO(), force_terminal=True, width=90, record=True)
    trace = drawing.show_live(
        start_decode(model, rows, sampler, 0, True), model, sampler.name, rows[0].is_continued, console
    )
    return re.split(rf"(?={sampler.name}  \d+ forwards?\b)", console.export_text())[1:], trace


def test_the_live_view_shows_masks_drafts_and_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MIN_FRAME_SECONDS", 0.0)
    pictures, trace = watched("add 3 4 5", uncode.presets.semi_ar(blocks=3))
    assert pictures[2].startswith("semi_ar  3 forwards, 21 masks left")
    assert pictures[2].count("·") == 16 + 1, "masks outside the open block have no draft; one more in the legend"
    assert "committed early middle late   draft   · masked" in pictures[2]
    assert len(pictures) >= len(trace) == 16
    assert pictures[-1].startswith("semi_ar  16 forwards\n") and "∎" in pictures[-1]
    assert "draft" not in pictures[-1] and "·" not in pictures[-1]


def test_the_live_view_shows_the_text_around_gaps_and_what_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MIN_FRAME_SECONDS", 0.0)
    pictures, _ = watched("add 3 4 5 first 3 + 4 = <mask:1> , then <mask:1> +", uncode.presets.confidence(), None)
    assert "add 3 4 5 first 3 + 4 = 7 , then 7 +" in pictures[-1]
    pictures, trace = watched("add 3 4 5", uncode.presets.remdm())
    assert any(token == -1 for _, _, token in trace.events[0])
    words = uncode.load("toy").tokenizer.decode(trace.generated[0], skip_special_tokens=True)
    assert words in " ".join(pictures[-1].split()), "the last picture is the last state"


def test_a_frame_is_not_drawn_for_every_step() -> None:
    pictures, trace = watched("add 3 4 5", uncode.presets.left_to_right())
    assert len(pictures) < len(trace) and "left_to_right  21 forwards\n" in pictures[-1]


def test_answers_fulfil_a_constraint(tmp_path: Path) -> None:
    """One prompt and a file of prompts; a file of other constraints is another job."""
    schema = tmp_path / "schema.json"
    schema.write_text('{"enum": [7, 12]}')
    toy = ("--model", "toy", "--length", "6")
    assert run("decode", "add 3 4 5", *toy, "--regex", "[0-9]+ [.]").stdout == "12 .\n"
    assert run("decode", "add 3 4 5", *toy, "--choice", "7", "--choice", "then").stdout in ("7\n", "then\n")
    assert run("decode", "add 3 4 5", *toy, "--json-schema", str(schema)).stdout in ("7\n", "12\n")
    source, out = prompts(tmp_path / "prompts.jsonl", 2), tmp_path / "out.jsonl"
    files = ("--input", str(source), "--out", str(out))
    assert run("decode", *files, *toy, "--regex", "[0-9]+ [.]").returncode == 0
    assert all(line["text"].endswith(" .") for line in lines(out))
    assert "another" in run("decode", *files, *toy, "--regex", "[0-9]+").stderr
    refused = run("decode", "add 3 4 5", *toy, "--json-schema", str(source))
    assert "cannot be read" in refused.stderr
    assert "an answer has one" in run("decode", "add 3", *toy, "--regex", "a", "--choice", "b").stderr
    gaps = run("decode", "add 3 4 5 first 3 + 4 = <mask:1> , then <mask:2>", "--model", "toy", "--regex", "[0-9 ]+")
    assert re.fullmatch(r"add 3 4 5 first 3 \+ 4 = [0-9 ]+, then [0-9 ]+\n", gaps.stdout), gaps
