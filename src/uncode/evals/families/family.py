"""A benchmark in miniature: problems are drawn, and each has answers in several styles to learn from."""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any, ClassVar, TypeVar

from ...core.errors import require
from ...files import read_text
from ..data import Source, parse
from ..task import Example, Grade, Task
from ..tasks import find_task

E = TypeVar("E", bound=Example)
TESTED, UNLABELLED = 256, 64
"""Problems of each family in the package's files."""
HELD_OUT = 8
"""One problem of so many is never trained on."""


class Family(Task[E]):
    """A task whose problems are made here. Its graders are those of the paper's benchmark it stands for."""

    like: ClassVar[str]
    """The benchmark of the paper."""
    form: ClassVar[str]
    """The prompt, with the same placeholders as the benchmark's."""
    styles: ClassVar[tuple[tuple[str, int], ...]]
    """Ways to answer, from the answer alone to a verbose solution, and how often each is taken."""
    problem: ClassVar[type[Example]]
    length: ClassVar[int]
    """Tokens to generate; longer than the answers, as in the paper."""

    def __init_subclass__(cls) -> None:
        cls.source = Source(f"{cls.name}.jsonl")

    @abstractmethod
    def draw(self, random: Random) -> E:
        """A problem; the same for the same state of `random`."""

    @abstractmethod
    def response(self, example: E, style: str) -> str:
        """A right answer in one of the styles."""

    def read(self, row: Mapping[str, Any], number: int) -> E:
        values = {name: _tuples(value) for name, value in row.items()}
        return self.problem(**values | {"id": f"{self.name}/{number}"})  # type: ignore[return-value]

    def examples(self, data: str | Path | None = None) -> list[E]:
        """The problems to test with: a file of the package, so that all runs have the same."""
        return self._held_out(data)[:TESTED]

    def unlabelled(self, data: str | Path | None = None) -> list[E]:
        """Other problems of the same kind, for choices that may not look at the answers of the tested ones."""
        return self._held_out(data)[TESTED:]

    def _held_out(self, data: str | Path | None) -> list[E]:
        folder = resources.files(__package__) / "held_out" if data is None else Path(data)
        file = folder / f"{self.name}.jsonl"
        require(file.is_file(), f"there is no file '{file}': give a folder with {file.name}.")
        return self.read_all(parse(read_text(file), file.name))

    @cached_property
    def real(self) -> Task[Any]:
        return find_task(self.like)

    @property
    def template(self) -> str:
        return self.form

    def blanks(self, example: E) -> dict[str, str]:
        return self.real.blanks(example)

    def ours(self, example: E, text: str) -> Grade:
        return self.real.ours(example, text)

    def paper(self, example: E, text: str) -> Grade:
        return self.real.paper(example, text)

    def key(self, example: E) -> str:
        """What makes two problems one: by default their text, whatever its blanks and case."""
        return re.sub(r"\s+", " ", self.prompt(example)).strip().lower()

    def divides(self, example: E) -> str:
        """What training and testing may not share: by default the problem."""
        return self.key(example)

    def held_out(self, example: E) -> bool:
        """Whether a problem is for testing: decided by its content, so that no seed can mix the two."""
        return number_of(self.divides(example)) % HELD_OUT == 0

    def tested(self, example: E) -> bool:
        """Whether this family is tested with it; a family that shares its problems with another takes some of them."""
        return self.held_out(example)

    def problems(self, count: int, seed: int, testing: bool) -> list[E]:
        """So many different problems, of one side of the split."""
        random, found = Random(f"{self.name} {seed}"), dict[str, E]()
        while len(found) < count:
            example = self.draw(random)
            if self.tested(example) if testing else not self.held_out(example):
                found.setdefault(self.key(example), example)
        return list(found.values())

    def style(self, random: Random) -> str:
        names, shares = zip(*self.styles, strict=True)
        return str(random.choices(names, shares)[0])


def number_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def _tuples(value: Any) -> Any:
    """JSON's lists as the tuples they were."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
