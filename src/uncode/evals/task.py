"""The contract of a benchmark: examples, prompt, grade. No model, no sampler."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from ..core.errors import UncodeError, require, suggest
from .data import Source, rows_of

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

    def examples(self, data: Path | None = None) -> list[E]:
        """All problems, from the hub or from the folder `data`."""
        found = []
        for number, row in enumerate(rows_of(self.source, data)):
            try:
                found.append(self.read(row, number))
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                told = f"no field {error}" if isinstance(error, KeyError) else str(error)
                raise UncodeError(f"row {number + 1} of {self.title}'s data is not as expected: {told}.") from error
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
        require(metric in graders, f"{self.title} has no metric '{metric}': {suggest(metric, graders)}")
        return graders[metric](example, self.answer(text))

    def answer(self, text: str) -> str:
        """The text up to where the model goes on with another problem: the first stop behind something said."""
        ends = [at for stop in self.stops if (at := text.find(stop, len(text) - len(text.lstrip()) + 1)) > 0]
        return text[: min(ends)] if ends else text


def fill(template: str, blanks: Mapping[str, str]) -> str:
    """The template with every {{name}} replaced; an unknown name is an error, and so is leaving all of them out."""
    names = re.findall(r"\{\{(\w+)\}\}", template)
    for name in names:
        require(name in blanks, f"the prompt has a placeholder {{{{{name}}}}}: {suggest(name, blanks)}")
    wanted = ", ".join("{{" + name + "}}" for name in blanks)
    require(bool(names), f"the prompt has no placeholder for the problem: it needs {wanted}.")
    filled = re.sub(r"\{\{(\w+)\}\}", lambda found: blanks[found[1]], template)
    return filled.removesuffix("\n")
