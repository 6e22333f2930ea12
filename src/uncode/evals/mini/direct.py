"""Answers without reasons: the marks of a model that was forced to answer at once (`direct.json`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import UncodeError, require
from .results import Results

DIRECT_FILE = "direct.json"


@dataclass(frozen=True)
class DirectAnswers:
    """For each family and each of its problems, 1 if the direct answer was right, else 0. The problems are those of the
    results, in the same order."""

    right: dict[str, str]

    @classmethod
    def load(cls, path: Path) -> DirectAnswers:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            right = {str(name): str(of["right"]) for name, of in data.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise UncodeError(f"'{path}' is not a file of direct answers ({error}).") from error
        bad = next((name for name, marks in right.items() if not marks or set(marks) - {"0", "1"}), None)
        require(bad is None, f"'{path}' is not a file of direct answers: the marks of {bad} are not 0s and 1s.")
        return cls(right)

    def check(self, results: Results) -> None:
        """Raise unless these are answers to the problems of the results."""
        for name, marks in self.right.items():
            require(name in results.cells, f"{DIRECT_FILE} has {name}, which is not in the results: make it again.")
            [wanted] = results.sizes([name])
            require(
                len(marks) == wanted,
                f"{DIRECT_FILE} has {len(marks)} answers to {name}, but the results have {wanted}: make it again.",
            )
