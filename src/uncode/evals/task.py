"""The contract of a benchmark: examples, prompt, grade. No model, no sampler."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from ..core.errors import UncodeError, require, suggest
from .data import Row, Source, rows_of

Span = tuple[int, int]


class Grade(NamedTuple):
    """What a grader says of an answer."""

    correct: bool
    span: Span | None
    """The characters that were taken for the answer; None where there is none."""
    why: str


@dataclass(frozen=True)
class Settings:
    """How the paper evaluates a task (its Appendix on implementation details)."""

    shots: int
    length: int
    rate: float
    """Uncode's positional rate."""
    chat: bool
    """Through the model's chat template, or the raw prompt."""
    block_length: int
    """Of Fast-dLLM."""


@dataclass(frozen=True)
class Example:
    """One problem; each task adds its own fields."""

    id: str


E = TypeVar("E", bound=Example)
Grader = Callable[[E, str], Grade]


class Task(ABC, Generic[E]):
    """A benchmark. Subclasses are final: one file in `tasks/` each, with its prompt in `prompts/`."""

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[Source]
    settings: ClassVar[Settings]
    stops: ClassVar[tuple[str, ...]] = ()
    """Where an answer ends, in a raw prompt whose shots the model may go on with."""
    paper_stops: ClassVar[tuple[str, ...]] = ()
    """Where the released code ends it."""

    @abstractmethod
    def read(self, row: Mapping[str, Any], number: int) -> E:
        """An example from a row of the data."""

    @abstractmethod
    def blanks(self, example: E) -> dict[str, str]:
        """What the placeholders of the prompt stand for."""

    @abstractmethod
    def ours(self, example: E, text: str) -> Grade:
        """Whether the answer is right."""

    @abstractmethod
    def paper(self, example: E, text: str) -> Grade:
        """Whether the released code counts the answer as right, which is another question."""

    @property
    def graders(self) -> dict[str, Grader[E]]:
        """By the name of the metric; the first is the one to report."""
        return {"correct": self.ours, "paper": self.paper}

    def examples(self, data: str | Path | None = None) -> list[E]:
        """All problems, from the hub or from the folder `data`."""
        return self.read_all(rows_of(self.source, None if data is None else Path(data)))

    def read_all(self, rows: Iterable[Row]) -> list[E]:
        """The examples of all rows; an error names the line or row."""
        found = []
        for number, (place, row) in enumerate(rows):
            try:
                found.append(self.read(row, number))
            except (LookupError, ValueError, TypeError, AttributeError) as error:
                reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
                raise UncodeError(f"{place} of {self.title}'s data is not as expected: {reason}.") from error
        require(len(found) > 0, f"{self.title}'s data has no rows.")
        return found

    def prompt(self, example: E, template: str | None = None) -> str:
        """The text to give to the model; `template` replaces ours."""
        return fill(self.template if template is None else template, self.blanks(example))

    @property
    def template(self) -> str:
        return (resources.files(__package__) / "prompts" / f"{self.name}.txt").read_text(encoding="utf-8")

    def grade(self, example: E, text: str, metric: str = "correct") -> Grade:
        """The grade of an answer, which ends where the task says it ends."""
        graders = self.graders
        if metric not in graders:
            raise UncodeError(f"{self.title} has no metric '{metric}': {suggest(metric, graders)}")
        return graders[metric](example, self.answer(text, metric))

    def answer(self, text: str, metric: str = "correct") -> str:
        """The text up to where the model goes on with another problem.

        For us, the first stop behind something said; for the released code, the first.
        """
        released = metric.startswith("paper")
        begin = 0 if released else len(text) - len(text.lstrip()) + 1
        stops = self.paper_stops if released else self.stops
        return text[: min((at for stop in stops if (at := text.find(stop, begin)) >= 0), default=len(text))]


def fill(template: str, blanks: Mapping[str, str]) -> str:
    """The template with every {{name}} replaced; a name that is not known is an error, and so is one left out."""
    placeholder = re.compile(r"\{\{\s*(\w+)\s*\}\}")
    names = placeholder.findall(template)
    for name in names:
        require(name in blanks, f"the prompt has a placeholder {{{{{name}}}}}: {suggest(name, blanks)}")
    missing = ", ".join("{{" + name + "}}" for name in blanks if name not in names)
    require(not missing, f"the prompt has no placeholder {missing}: the model would not see the whole problem.")
    return placeholder.sub(lambda found: blanks[found[1]], template).removesuffix("\n")
