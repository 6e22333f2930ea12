"""What all autoregressive models under evaluation share: prompts, the sampler's options, and answers cut at EOS."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ....core.errors import require, shown
from ....generation.prompt import added_text
from ...stop_strings import NO_STOPS, StopStrings
from ...task import TaskSettings
from ..config import AUTOREGRESSIVE, SamplerEntry
from ..sample import Answer
from .model import EvaluatedModel, PreparedSampler, Question


@dataclass(frozen=True)
class LeftToRight:
    """How an autoregressive model chooses its tokens. Nothing else changes its answers: penalties and top-p are off."""

    temperature: float = 0.0
    """0 takes the most likely token; above 0, tokens are drawn from softmax(logits / temperature)."""
    stop_at_eos: bool = True
    stops: StopStrings = NO_STOPS
    """A row ends where no further text can change what is graded; empty: only an EOS ends it."""

    def as_data(self) -> dict[str, Any]:
        """The options as JSON data, for the key of a sample. Without stop strings there is no entry for them."""
        found: dict[str, Any] = {"temperature": self.temperature, "stop_at_eos": self.stop_at_eos}
        if not self.stops.can_end_decoding:
            return found
        return found | {"stops": {rule: list(strings) for rule, strings in asdict(self.stops).items()}}

    @classmethod
    def of(cls, entry: SamplerEntry, options: Mapping[str, Any]) -> LeftToRight:
        """From a sampler of the config."""
        value = options.get("temperature", 0.0)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        good = is_number and value >= 0 and math.isfinite(value)
        require(good, f"the temperature of '{entry.label}' must be a number from 0 up, not {shown(value)}.")
        reason = "an autoregressive model writes from left to right: leave measure_order out"
        require(not entry.measure_order, f"'{entry.label}' has no order to measure, because {reason}.")
        return cls(float(value), entry.stop_at_eos)


class CausalModel(EvaluatedModel):
    """An autoregressive model. A subclass sets the attributes and generates token ids for batches."""

    tokenizer: Any
    eos_ids: tuple[int, ...]
    context: int | None = None
    """Tokens that the model sees at most; None if its configuration names no limit."""
    rows_per_call: int = 1
    """Rows of one call of `generate`, where a batch has fewer."""

    @abstractmethod
    def generate(self, questions: Sequence[Question], how: LeftToRight) -> list[list[int]]:
        """The generated ids of a batch of rows. Ids after the first EOS or past the row's length are ignored."""

    def encode(self, prompt: str, chat: bool) -> tuple[int, ...]:
        """With `chat`, the chat template writes all special tokens; a raw prompt gets the tokenizer's own BOS."""
        if chat:
            template = getattr(self.tokenizer, "chat_template", None)
            require(bool(template), f"'{self.name}' has no chat template, which this task needs: take a chat model.")
            messages = [{"role": "user", "content": prompt}]
            text = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            return tuple(self.tokenizer.encode(text, add_special_tokens=False))
        ids = tuple(self.tokenizer.encode(prompt))
        return ids[:-1] if len(ids) > 1 and ids[-1] in self.eos_ids else ids  # an EOS would end the prompt

    def prepare(self, entry: SamplerEntry, settings: TaskSettings, options: Mapping[str, Any]) -> PreparedSampler:
        require(
            entry.preset == AUTOREGRESSIVE,
            f"'{self.name}' is an autoregressive model, and '{entry.label}' is for masked diffusion ones.",
        )
        require(entry.constraint is None, f"'{self.name}' is an autoregressive model, which takes no constraint here.")
        how = LeftToRight.of(entry, entry.options_for(settings) | dict(options))
        return PreparedSampler(entry, how, {"preset": AUTOREGRESSIVE} | how.as_data())

    def answers(
        self, sampler: PreparedSampler, questions: Sequence[Question], batch: int, observe: bool = False
    ) -> Iterator[tuple[Question, Answer]]:
        """Batches of similar prompt length, the longest first."""
        require(not observe, "an autoregressive model has no predictive entropy of masked positions to observe.")
        self._check_lengths(questions)
        longest_first = sorted(questions, key=lambda one: -len(one.prompt_ids))
        rows = max(batch, self.rows_per_call)
        for at in range(0, len(longest_first), rows):
            some = longest_first[at : at + rows]
            start = time.perf_counter()
            generated = self.generate(some, sampler.sampler)
            seconds = time.perf_counter() - start
            ids = [row[: one.length] for one, row in zip(some, generated, strict=True)]
            ends = [self._end(row) for row in ids]
            forwards = [  # one for each generated token, the EOS included; a finished row's padding is not counted
                end + 1 if end is not None and sampler.sampler.stop_at_eos else len(row)
                for row, end in zip(ids, ends, strict=True)
            ]
            for question, row, end, count in zip(some, ids, ends, forwards, strict=True):
                tokens = len(row) if end is None else end
                yield (
                    question,
                    Answer(
                        text=self.text(question, row),
                        token_ids=tuple(row[: tokens + 1]),
                        forwards=count,
                        tokens=tokens,
                        seconds=seconds * count / sum(forwards),
                        first_eos_step=end,
                    ),
                )

    def _check_lengths(self, questions: Sequence[Question]) -> None:
        for one in questions:
            total = len(one.prompt_ids) + one.length
            require(
                self.context is None or total <= self.context,
                f"prompt and answer of {one.example.id} have {total} tokens, and '{self.name}' sees {self.context} at "
                "most: take another model.",
            )

    def _end(self, ids: Sequence[int]) -> int | None:
        """Where the first EOS is."""
        return next((at for at, token in enumerate(ids) if token in self.eos_ids), None)

    def text(self, question: Question, ids: Sequence[int]) -> str:
        """The text that generated ids add to the prompt, up to the first EOS."""
        return added_text(self.tokenizer.decode, list(question.prompt_ids), list(ids[: self._end(ids)]))


def eos_ids_of(generation: Any, config: Any, tokenizer: Any) -> tuple[int, ...]:
    """The ids that end an answer: those of the generation config, else of the configuration, else of the tokenizer."""
    for owner in (generation, config, tokenizer):
        found = getattr(owner, "eos_token_id", None)
        if found is not None:
            return tuple(int(one) for one in (found if isinstance(found, list | tuple) else [found]))
    return ()


def context_of(config: Any) -> int | None:
    """The tokens that a model sees at most, by its configuration."""
    found = getattr(config, "max_position_embeddings", None)
    return found if isinstance(found, int) and found > 0 else None
