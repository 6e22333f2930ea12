"""Samples: one decoded and graded answer each, and one line of a run's journal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..task import Grade

Grades = Mapping[str, Grade]
"""The grades of an answer, by metric. `correct` is our grader, `paper` the rule of the released code."""
CellName = tuple[str, str, str]
"""The model, the task and the sampler's label."""
KEY_CHARACTERS = 32
"""Length of a key, in hexadecimal digits."""


def digest(value: object) -> str:
    """A fingerprint of JSON data. Equal data have equal fingerprints, in whatever order their names come."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:KEY_CHARACTERS]


def sample_key(request: Mapping[str, object], model: str, sampler: Mapping[str, object], seed: int) -> str:
    """The identity of a sample: what was asked, of which weights, with which sampler and seed.

    It knows no process, no folder and no label. So work is never repeated, and never mistaken for other work.
    """
    return digest([dict(request), model, dict(sampler), seed])


@dataclass(frozen=True)
class Answer:
    """What a model answered, and what it took."""

    text: str
    token_ids: tuple[int, ...]
    """The generated tokens, up to and including the first EOS."""
    forwards: int
    tokens: int
    """Generated tokens before the first EOS."""
    seconds: float
    """Its share of the time: of each forward, the seconds divided by the rows in it. Shares add up to the whole."""
    first_eos_step: int | None = None
    """The forward that wrote the first EOS, counted from 0; None if none was written."""
    columns: int | None = None
    """The columns that its forwards computed, without probes and drafts; None where that is not known."""
    entropy: float | None = None
    """The mean predictive entropy (the paper's H_seq), for answers that are decoded with `observe`."""
    order: Mapping[str, Any] | None = None
    """Measures of the decoding order, for samplers that are run with `measure_order`."""


ANSWER_FIELDS = frozenset(one.name for one in fields(Answer))


@dataclass(frozen=True, kw_only=True)
class RunSample(Answer):
    """One answer of a model to one example, with its grades."""

    key: str
    model: str
    """The model's name in the config."""
    task: str
    sampler: str
    """The sampler's label in the config."""
    id: str
    """The example's id."""
    prompt_sha256: str
    """Of the prompt's token ids."""
    seed: int
    grades: Grades

    @property
    def cell(self) -> CellName:
        return self.model, self.task, self.sampler

    def as_row(self) -> dict[str, object]:
        """The sample as a line of the journal. Values that were not measured are left out."""
        row = {name: value for name, value in vars(self).items() if value is not None or name == "first_eos_step"}
        return row | {"token_ids": list(self.token_ids), "grades": grades_row(self.grades)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> RunSample:
        """The sample of a line."""
        return cls(**{**row, "token_ids": tuple(row["token_ids"]), "grades": grades_from_row(row["grades"])})


def grades_row(grades: Grades) -> dict[str, dict[str, object]]:
    """The grades as JSON data."""
    return {metric: grade._asdict() for metric, grade in grades.items()}


def grades_from_row(row: Mapping[str, Mapping[str, Any]]) -> Grades:
    return {
        metric: Grade(grade["correct"], grade["span"] and (grade["span"][0], grade["span"][1]), grade["why"])
        for metric, grade in row.items()
    }
