"""The interface of a model under evaluation: it reads prompts, and answers them in any order."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ....core.constraint import Constraint
from ....core.errors import UncodeError
from ....core.trace.trace import Trace
from ....engine import Result
from ...stop_strings import StopStrings
from ...task import AnyTask, Example, TaskSettings
from ..config import SamplerEntry
from ..sample import Answer, digest

NUMBERS_PER_PARAMETER = 1024
"""A fingerprint reads this many numbers of each parameter, evenly spread."""


@dataclass(frozen=True)
class Question:
    """An example of a task as a model reads it."""

    example: Example
    prompt_ids: tuple[int, ...]
    length: int
    """Tokens to generate."""
    seed: int
    given: str = ""
    """The text with which the answer begins. It is part of `prompt_ids`, and it is graded with the answer."""
    anchor: tuple[int, int] | None = None
    """The offset and the id of a token that is given inside the answer."""

    @cached_property
    def prompt_sha256(self) -> str:
        return hashlib.sha256(" ".join(map(str, self.prompt_ids)).encode()).hexdigest()

    def request(self, task: str) -> dict[str, Any]:
        """What is asked, for the key of a sample."""
        asked = {"task": task, "id": self.example.id, "prompt": self.prompt_sha256, "length": self.length}
        return asked if self.anchor is None else asked | {"anchor": list(self.anchor)}


@dataclass(frozen=True, kw_only=True)
class TracedAnswer(Answer):
    """An answer with the trace of its decode, which is made when it is first asked for."""

    result: Result[Question]

    @property
    def trace(self) -> Trace:
        assert self.result.trace is not None, "only a row that was decoded has an answer"
        return self.result.trace


class SamplerRefused(UncodeError):
    """A sampler that a model cannot be decoded with, such as one that needs a table the model does not have."""


@dataclass(frozen=True)
class PreparedSampler:
    """A sampler of the config, ready for one model and one task."""

    entry: SamplerEntry
    sampler: Any
    """Whatever the model's `answers` takes."""
    definition: Mapping[str, Any]
    """The sampler as data, with its constraint."""
    constraint: Constraint | None = None


class EvaluatedModel(ABC):
    """A model under evaluation."""

    name: str
    """As the config names it."""
    fingerprint: str
    """Of its weights and their dtype."""
    tokenizer: Any = None
    """Reads the tokens of its traces, if it makes any."""

    @abstractmethod
    def encode(self, prompt: str, chat: bool) -> tuple[int, ...]:
        """The token ids of a prompt; with `chat` it is a user message, through the chat template."""

    def questions(
        self,
        task: AnyTask,
        examples: Iterable[tuple[int, Example]],
        seed: int,
        given: str = "",
        anchor: tuple[int, int] | None = None,
        settings: TaskSettings | None = None,
    ) -> list[Question]:
        """Examples of a task with their numbers, as the model reads them. Example n has the seed `seed` plus n.
        `settings` replace those of the task."""
        asked = settings or task.settings
        return [
            Question(one, self.encode(task.prompt(one) + given, asked.chat), asked.length, seed + number, given, anchor)
            for number, one in examples
        ]

    def anchor_id(self, text: str) -> int:
        """The id of a token that is given inside the answers. An autoregressive model cannot have one."""
        raise UncodeError(f"'{self.name}' writes from left to right, so no token can be given inside its answers.")

    @abstractmethod
    def prepare(self, entry: SamplerEntry, settings: TaskSettings, options: Mapping[str, Any]) -> PreparedSampler:
        """The sampler of a row of the table. `options` replace those of the entry."""

    def with_stop_strings(self, sampler: PreparedSampler, stops: StopStrings) -> PreparedSampler:
        """The sampler that ends a row at the stop strings of a task, if the model can; by default the same sampler.

        A diffusion model cannot: it writes in no fixed order, so a stop string may come before the text in front of it.
        """
        return sampler

    @abstractmethod
    def answers(
        self, sampler: PreparedSampler, questions: Sequence[Question], batch: int, observe: bool = False
    ) -> Iterator[tuple[Question, Answer]]:
        """The answers, in the order in which they are finished. `observe` records the mean predictive entropy."""


def weights_fingerprint(weights: Iterable[tuple[str, Tensor]], about: Mapping[str, Any]) -> str:
    """A fingerprint of a model: names, shapes, dtypes and evenly spread numbers of all parameters.

    Training changes every number of a parameter that it changes at all, so reading a part of each is enough.
    """
    found = hashlib.sha256(digest({name: str(value) for name, value in about.items()}).encode())
    for name, tensor in weights:
        flat = tensor.detach().reshape(-1)
        step = max(1, flat.numel() // NUMBERS_PER_PARAMETER)
        part = flat[::step].contiguous().cpu()
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        found.update(part.view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:32]
