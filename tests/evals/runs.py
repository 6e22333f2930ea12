"""Run folders made by hand, through `RunFolder`, for the tests of reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from uncode.evals.run.folder import RunCell, RunFolder, RunInfo
from uncode.evals.run.sample import RunSample
from uncode.evals.task import Grade

Marks = str
"""For each example 1 if it is right, 0 if it is wrong, and . if it has not been answered."""


def make_run(
    path: Path,
    marks: Mapping[tuple[str, str, str], Marks | tuple[Marks, Marks]],
    baseline: str = "confidence",
    paper: str = "",
    costs: Mapping[str, tuple[int, int, float]] | None = None,
) -> Path:
    """A run with the cells (model, task, sampler). Two marks: by our grader, and by the released rule.

    `costs` are the forwards, tokens and seconds of an answer by sampler.
    """
    cells = [RunCell(*name, "weights", {"policy": {}}, 8, 0) for name in marks]
    folder = RunFolder.create(path, RunInfo("hand", "By hand", tuple(cells), baseline, paper, {"uncode": "0"}))
    with folder.writing(0) as lines:
        for name, given in marks.items():
            ours, theirs = given if isinstance(given, tuple) else (given, given)
            cost = (costs or {}).get(name[2], (8, 4, 0.5))
            pairs = [pair for pair in enumerate(zip(ours, theirs, strict=True)) if "." not in pair[1]]
            for n, pair in pairs:
                lines.add(sample(name, n, [mark == "1" for mark in pair], cost).as_row())
    return path


def sample(
    name: tuple[str, str, str], number: int, right: Sequence[bool], cost: tuple[int, int, float] = (8, 4, 0.5)
) -> RunSample:
    model, task, sampler = name
    ours, theirs = (Grade(value, None, "") for value in right)
    forwards, tokens, seconds = cost
    grades = {"correct": ours, "paper": theirs}
    key = f"{model}/{task}/{sampler}/{number}"
    return RunSample(
        text="",
        token_ids=(),
        forwards=forwards,
        tokens=tokens,
        seconds=seconds,
        key=key,
        model=model,
        task=task,
        sampler=sampler,
        id=f"{task}/{number}",
        prompt_sha256="",
        seed=number,
        grades=grades,
    )
