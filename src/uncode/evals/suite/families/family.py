"""The base class of the mini families: generated problems with answers in several styles."""

from __future__ import annotations

import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import cached_property
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any, ClassVar, TypeVar

from ....core.errors import require
from ....util.files import read_text
from ...data import DataSource, parse
from ...task import Example, Grade, Grader, Task, TaskSettings
from ...tasks.benchmarks import TASKS

E = TypeVar("E", bound=Example)
TESTED, UNLABELLED = 1024, 64
"""Problems per family in the package's files: for testing, and for choices without labels."""
COUNT = TESTED + UNLABELLED
BLOCKS = 8
"""Blocks of block-wise samplers, as in the paper (256 tokens in blocks of 32)."""
HELD_OUT_EVERY = 8
"""One problem in eight is never trained on."""


class Family(Task[E]):
    """A task with generated problems. Its graders are those of one of the paper's benchmarks."""

    benchmark: ClassVar[str]
    """The name of the benchmark."""
    prompt_template: ClassVar[str]
    """The prompt template, with the placeholders of the benchmark."""
    styles: ClassVar[tuple[tuple[str, int], ...]]
    """Styles of answers, from the answer alone to a verbose solution, with their weights."""
    problem: ClassVar[type[Example]]
    length: ClassVar[int]
    """Tokens to generate. It is longer than the answers, as in the paper."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.source = DataSource(f"{cls.name}.jsonl")
        cls.format = TASKS[cls.benchmark].format
        rate = TASKS[cls.benchmark].settings.rate
        block_length = -(-cls.length // BLOCKS)
        cls.settings = TaskSettings(shots=0, length=cls.length, rate=rate, chat=False, block_length=block_length)

    @abstractmethod
    def draw(self, random: Random) -> E:
        """Generate a problem. The same state of `random` gives the same problem."""

    @abstractmethod
    def response(self, example: E, style: str) -> str:
        """A correct answer in one of the styles."""

    def read(self, row: Mapping[str, Any], number: int) -> E:
        values = {name: _tuples(value) for name, value in row.items()}
        return self.problem(**values | {"id": f"{self.name}/{number}"})  # type: ignore[return-value]

    def examples(self, data: str | Path | None = None) -> list[E]:
        """The test problems, from a file of the package, so that all runs use the same."""
        return self._held_out(data)[:TESTED]

    def unlabelled(self, data: str | Path | None = None) -> list[E]:
        """Other held-out problems, for choices without labels, such as Uncode's rate."""
        return self._held_out(data)[TESTED:]

    def _held_out(self, data: str | Path | None) -> list[E]:
        folder = resources.files(__package__) / "held_out" if data is None else Path(data)
        file = folder / f"{self.name}.jsonl"
        require(file.is_file(), f"there is no file '{file}': give a folder with {file.name}.")
        return self.read_all(parse(read_text(file), file.name))

    @cached_property
    def benchmark_task(self) -> Task[Any]:
        return TASKS[self.benchmark]()

    @property
    def template(self) -> str:
        return self.prompt_template

    def placeholders(self, example: E) -> dict[str, str]:
        return self.benchmark_task.placeholders(example)

    @property
    def graders(self) -> dict[str, Grader[E]]:
        """Our rule alone. The released rules belong to the paper's benchmarks, and each program would run once more."""
        return {"correct": self.grade_ours}

    def grade_ours(self, example: E, text: str) -> Grade:
        return self.benchmark_task.grade_ours(example, text)

    def grade_as_released(self, example: E, text: str) -> Grade:
        return self.benchmark_task.grade_as_released(example, text)

    def key(self, example: E) -> str:
        """Problems with equal keys are the same problem. By default the key is the prompt, without case and blanks."""
        return re.sub(r"\s+", " ", self.prompt(example)).strip().lower()

    def split_key(self, example: E) -> str:
        """Training and test problems never share a split key. By default it is the key."""
        return self.key(example)

    def held_out(self, example: E) -> bool:
        """Whether a problem is held out from training. A hash of its content decides, so no seed can mix the splits."""
        return hash_number(self.split_key(example)) % HELD_OUT_EVERY == 0

    def may_be_tested(self, example: E) -> bool:
        """Whether a problem may be a test problem of this family. Families with shared problems divide them."""
        return self.held_out(example)

    def is_fair_test(self, example: E) -> bool:
        """Whether a held-out problem tests something: no training example of `tiny` asks the same in other words, and
        wrong answers cannot pass. By default the split key sees to that."""
        return True

    def problems(self, count: int, seed: int, testing: bool) -> list[E]:
        """`count` different problems of the training split or of the test split."""
        return self._drawn(count, seed, self._is_test if testing else lambda one: not self.held_out(one))

    def fresh_problems(self, count: int, seed: int) -> list[E]:
        """A new draw: test problems that are not in the published files."""
        published = {self.key(example) for example in self._held_out(None)}
        return self._drawn(count, seed, lambda one: self.key(one) not in published and self._is_test(one))

    def _is_test(self, example: E) -> bool:
        return self.may_be_tested(example) and self.is_fair_test(example)

    def _drawn(self, count: int, seed: int, accepts: Callable[[E], bool]) -> list[E]:
        random, found = Random(f"{self.name} {seed}"), dict[str, E]()
        while len(found) < count:
            example = self.draw(random)
            if accepts(example):
                found.setdefault(self.key(example), example)
        return list(found.values())

    def style(self, random: Random) -> str:
        names, shares = zip(*self.styles, strict=True)
        return str(random.choices(names, shares)[0])


def hash_number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def json_lines(problems: Iterable[Example]) -> str:
    """Problems as the lines of a file that :meth:`Family.read` reads. The id is the number of the line."""
    rows = ({key: value for key, value in asdict(one).items() if key != "id"} for one in problems)
    return "".join(json.dumps(row) + "\n" for row in rows)


def _tuples(value: Any) -> Any:
    """The value with all JSON lists turned into tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
