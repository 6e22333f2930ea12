"""What the mini-suite needs of the samples in a run folder, read by several processes.

A full run has 230,000 samples. One process takes 16 s to read them with their texts and tokens.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from ..run.folder import RunFolder, garbage_collection_paused, last_answers, once, read_samples
from ..run.sample import CellName, RunSample

MIN_BYTES = 2**25
"""Smaller folders are read in this process: starting others would take longer."""


class Outcome(NamedTuple):
    """A sample without its text and its tokens."""

    key: str
    cell: CellName
    id: str
    is_right: bool | None
    """None for answers without grades, from which a rate is chosen."""
    is_sound: bool | None
    """Whether the reasoning is sound; None for families whose answers are not equations."""
    forwards: int
    tokens: int
    seconds: float
    first_eos_step: int | None
    columns: int | None
    entropy: float | None
    order: Mapping[str, Any] | None

    @classmethod
    def of(cls, sample: RunSample) -> Outcome:
        grade, reasoning = sample.grades.get("correct"), sample.grades.get("sound")
        return cls(
            key=sample.key,
            cell=sample.cell,
            id=sample.id,
            is_right=None if grade is None else grade.correct,
            is_sound=None if reasoning is None else reasoning.correct,
            forwards=sample.forwards,
            tokens=sample.tokens,
            seconds=sample.seconds,
            first_eos_step=sample.first_eos_step,
            columns=sample.columns,
            entropy=sample.entropy,
            order=sample.order,
        )


def read_outcomes(folder: RunFolder) -> dict[tuple[str, str], list[Outcome]]:
    """The outcomes of all samples, by task and sampler. Of several answers to an example the last one counts."""
    found = dict[tuple[str, str], list[Outcome]]()
    with garbage_collection_paused():
        for outcome in last_answers(once(_read(folder.files()))):
            _, task, sampler = outcome.cell
            found.setdefault((task, sampler), []).append(outcome)
    return found


def _read(files: Sequence[Path]) -> Iterable[Outcome]:
    processes = min(len(files), os.cpu_count() or 1)
    if processes < 2 or sum(file.stat().st_size for file in files) < MIN_BYTES:
        return [outcome for file in files for outcome in _outcomes_in(file)]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        return [outcome for part in pool.map(_outcomes_in, files) for outcome in part]


def _outcomes_in(file: Path) -> list[Outcome]:
    return [Outcome.of(sample) for sample in read_samples(file)]
