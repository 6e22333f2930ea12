"""The interface of a benchmark: examples, prompts and grades. It knows no model and no sampler."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from ..core.errors import UncodeError, require, suggest
from .data import DataSource, Fields, Row, rows_of
from .stop_strings import NO_STOPS, StopStrings

Span = tuple[int, int]


class Grade(NamedTuple):
    """The verdict of a grader on an answer."""

    correct: bool
    span: Span | None
    """The characters that the grader took for the answer; None if it found none."""
    why: str


@dataclass(frozen=True)
class TaskSettings:
    """The paper's settings of a task (from its appendix on implementation details)."""

    shots: int
    length: int
    rate: float
    """Uncode's positional rate."""
    chat: bool
    """Whether the prompt goes through the chat template."""
    block_length: int
    """The block length of Fast-dLLM."""


@dataclass(frozen=True)
class Example:
    """One problem. Each task adds its own fields."""

    id: str


E = TypeVar("E", bound=Example)
Grader = Callable[[E, str], Grade]


class Task(ABC, Generic[E]):
    """A benchmark. Each subclass is final and has one file in `tasks/` and its prompt in `prompts/`."""

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[DataSource]
    settings: ClassVar[TaskSettings]
    stops: ClassVar[StopStrings] = NO_STOPS
    """Strings that end an answer. After a raw prompt with shots, the model may continue with another problem."""
    format: ClassVar[str] = ""
    """A regular expression that a whole answer in the form of the prompt's shots matches; empty where there is none."""
    direct: ClassVar[str] = ""
    """How an answer without reasoning begins, up to the result; empty where there is no such answer."""
    grades_in_processes: ClassVar[bool] = False
    """Whether the grader starts a process, such as the sandbox, so that several answers can be graded at a time."""

    def __init_subclass__(cls) -> None:
        """Raise if a task has no name. A class with abstract methods, such as a family of tasks, needs none."""
        members = (getattr(cls, member, None) for member in dir(cls))
        is_base = any(getattr(member, "__isabstractmethod__", False) for member in members)
        advice = f'set `name = "{cls.__name__.lower()}"` in its class.'
        require(is_base or hasattr(cls, "name"), f"the task {cls.__name__} needs a name: {advice}")

    def check_packages(self) -> None:
        """Raise if an optional package that grading needs is missing. It is called before anything is decoded."""

    @abstractmethod
    def read(self, row: Fields, number: int) -> E:
        """Build an example from a row of the data."""

    @abstractmethod
    def placeholders(self, example: E) -> dict[str, str]:
        """The values of the prompt's placeholders."""

    @abstractmethod
    def grade_ours(self, example: E, text: str) -> Grade:
        """Grade an answer by our rule."""

    @abstractmethod
    def grade_as_released(self, example: E, text: str) -> Grade:
        """Grade an answer by the rule of the released code. Where there is none, this is our grade, and `graders` holds
        `correct` alone."""

    @property
    def graders(self) -> dict[str, Grader[E]]:
        """The graders by the name of their metric. The first metric is the one to report."""
        return {"correct": self.grade_ours, "paper": self.grade_as_released}

    def examples(self, data: str | Path | None = None) -> list[E]:
        """All problems, from the hub or from the folder `data`."""
        return self.read_all(rows_of(self.source, None if data is None else Path(data)))

    def read_all(self, rows: Iterable[Row]) -> list[E]:
        """The examples of all rows. An error names the line or row."""
        found = []
        for number, (place, row) in enumerate(rows):
            try:
                found.append(self.read(row, number))
            except (LookupError, ValueError, TypeError, AttributeError) as error:
                reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
                raise UncodeError(f"{place} of {self.title}'s data is not as expected: {reason}.") from error
        require(len(found) > 0, f"{self.title}'s data has no rows: check the file.")
        return found

    def prompt(self, example: E, template: str | None = None) -> str:
        """The prompt of an example. `template` replaces ours."""
        return fill(self.template if template is None else template, self.placeholders(example))

    @property
    def template(self) -> str:
        file = resources.files(__package__) / "prompts" / f"{self.name}.txt"
        require(file.is_file(), f"the task '{self.name}' has no prompt: write '{file}'.")
        return file.read_text(encoding="utf-8")

    def grade(self, example: E, text: str, metric: str = "correct") -> Grade:
        """Grade an answer by a metric. The answer is cut at the task's stop strings first."""
        graders = self.graders
        if metric not in graders:
            raise UncodeError(f"{self.title} has no metric '{metric}': {suggest(metric, graders)}")
        return graders[metric](example, self.answer(text, metric))

    def answer(self, text: str, metric: str = "correct") -> str:
        """The text up to a stop string, where the model continues with another problem."""
        return self.stops.cut(text, released=metric.startswith("paper"))


AnyTask = Task[Any]
"""A benchmark, whatever its examples are."""


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace every {{name}} in the template. Unknown and missing names are errors."""
    placeholder = re.compile(r"\{\{\s*(\w+)\s*\}\}")
    names = placeholder.findall(template)
    for name in names:
        require(name in values, f"the prompt has a placeholder {{{{{name}}}}}: {suggest(name, values)}")
    missing = ", ".join("{{" + name + "}}" for name in values if name not in names)
    require(not missing, f"the prompt has no placeholder {missing}: the model would not see the whole problem.")
    return placeholder.sub(lambda found: values[found[1]], template).removesuffix("\n")
