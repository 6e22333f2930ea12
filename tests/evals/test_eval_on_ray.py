"""`uncode eval --ray`: the run folder of one machine, also where a worker is killed on the way."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from tests.evals.test_eval import EchoModel, config, lines, runner
from tests.local_ray import local_ray
from uncode import UncodeError
from uncode.evals.run.folder import RunFolder
from uncode.evals.run.models.model import PreparedSampler, Question
from uncode.evals.run.on_ray import _run_part, run_on_ray
from uncode.evals.run.options import RunOptions, RunProgress
from uncode.evals.run.runner import Runner
from uncode.evals.run.sample import Answer
from uncode.sandbox import NoJail

pytest.importorskip("ray", reason="ray is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


class MortalModel(EchoModel):
    """Kills its process at its third answer, once."""

    def __init__(self, death: Path) -> None:
        super().__init__()
        self.death = death

    def answers(
        self, sampler: PreparedSampler, questions: Sequence[Question], batch: int, observe: bool = False
    ) -> Iterator[tuple[Question, Answer]]:
        for answer in super().answers(sampler, questions, 1, observe):
            if self.answered == 3 and not self.death.exists():
                self.death.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield answer


def mortal(death: Path, name: str) -> MortalModel:
    return MortalModel(death)


def part(number: int, count: int) -> RunOptions:
    return RunOptions(batch=2, limit=5, process=number, processes=count)


def test_the_parts_of_the_workers_are_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, without Ray."""
    monkeypatch.chdir(tmp_path)
    assert runner(tmp_path / "alone", EchoModel(), config()).run()
    for number in range(3):
        assert _run_part(str(tmp_path), config(), Path("run"), lambda name: EchoModel(), part(number, 3)) == ("", set())
    assert runner(tmp_path / "run", EchoModel(), config()).merge_if_complete(RunFolder(tmp_path / "run"))
    assert lines(tmp_path / "run") == lines(tmp_path / "alone")
    fault, _ = _run_part(str(tmp_path / "none"), config(), Path("run"), lambda name: EchoModel(), part(0, 1))
    assert fault.startswith("a node of the cluster does not see '") and fault.endswith("that all nodes share.")


def test_what_a_worker_refuses_or_warns_of_is_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def load(name: str) -> EchoModel:
        warnings.warn("no walls", NoJail, stacklevel=1)
        warnings.warn("something else", UserWarning, stacklevel=1)
        return EchoModel()

    assert _run_part(str(tmp_path), config(), Path("run"), load, part(0, 1)) == ("", {"no walls"})

    def refuse(name: str) -> EchoModel:
        raise UncodeError("no such model.")

    assert _run_part(str(tmp_path), config(), Path("other"), refuse, part(0, 1)) == ("no such model.", set())


@pytest.mark.parametrize(
    ("words", "environment", "message"),
    [
        (("--workers", "2"), {}, "--workers is for --ray"),
        (("--ray",), {"RANK": "0", "WORLD_SIZE": "2"}, "--ray starts its own workers: leave out --ray or the launcher"),
    ],
)
def test_options_that_do_not_fit(
    words: tuple[str, ...], environment: Mapping[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = run("eval", "mini", *words)
    assert done.returncode == 2 and message in done.stderr, done.stderr


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with local_ray(2):
        yield


@pytest.mark.slow
def test_a_worker_is_killed_and_its_answers_stay(cluster: None, tmp_path: Path) -> None:
    assert runner(tmp_path / "alone", EchoModel(), config()).run()
    death, seen = tmp_path / "death", list[RunProgress]()
    load = partial(mortal, death)
    on_ray = Runner(config(), tmp_path / "run", load, RunOptions(batch=2, limit=5), on_progress=seen.append)
    assert run_on_ray(on_ray, "", 2)
    assert death.exists() and lines(tmp_path / "run") == lines(tmp_path / "alone")
    assert seen[-1].done == seen[-1].total == 10 and seen[-1].cell == "2 workers"
    assert [file.name for file in RunFolder(tmp_path / "run").files()] == ["samples.jsonl"]
    with pytest.raises(UncodeError, match="no sampler named 'nothing'"):
        run_on_ray(Runner(config(), tmp_path / "other", _refuse, RunOptions(batch=2, limit=5)), "", 2)


def _refuse(name: str) -> Any:
    raise UncodeError("there is no sampler named 'nothing'.")


@pytest.mark.slow
def test_the_command_gives_the_run_of_one_machine(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("eval", "mini", "--tasks", "mini_choice", "--samplers", "confidence", "--limit", "4", "--batch", "2")
    alone, on_ray = run(*words, "--out", "alone"), run(*words, "--ray", "--workers", "2", "--out", "ray", "--json")
    assert alone.returncode == 0, alone.stderr
    assert on_ray.returncode == 0 and '"samples": 4' in on_ray.stdout, on_ray.stderr
    assert lines(tmp_path / "ray") == lines(tmp_path / "alone")
