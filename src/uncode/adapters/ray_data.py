"""uncode in Ray Data: a callable class that answers the prompts of a data set, for `map_batches`.

ds.map_batches(Decoder, fn_constructor_kwargs={"model": "tiny"}, concurrency=4, num_gpus=1, batch_size=256)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..backbones.guidance import Guided
from ..backbones.loading.load import load
from ..constraints.constraint import TextConstraint
from ..core.errors import UncodeError, require
from ..core.support.arguments import checks_arguments, whole_number
from ..engine import Engine, Request
from ..frequency import as_table
from ..generation.gap_constraints import constraints_of
from ..generation.generate import sampler_for
from ..generation.prompt import Messages, Prompt, answer_texts, canvas_of, has_gaps, read_prompts
from ..models import table_of
from ..samplers.options import DEFAULT_SAMPLER
from ..samplers.resolve import resolve


class Answer(NamedTuple):
    """The answer to a prompt."""

    text: str
    forwards: int
    seed: int


class PromptError(UncodeError):
    """A prompt of a batch that cannot be answered."""

    def __init__(self, at: int, why: object) -> None:
        super().__init__(f"prompt {at} of the batch: {why}")
        self.at, self.why = at, str(why)


class Decoder:
    """Answers prompts as `uncode decode --input` does. Each actor loads the model once.

    A batch has a column `prompt` of texts, or `messages`, and may have `length` and `seed`; it comes back with `text`,
    `forwards` and `seed`. An answer depends on its prompt and its seed alone. Rows without a seed have `seed`. `batch`
    rows are decoded at a time. `constraint` is what :func:`uncode.constraint` takes, as data: `{"regex": ...}`,
    `{"choices": [...]}`, `{"json_schema": {...}}` or "json".
    """

    @checks_arguments()
    def __init__(
        self,
        model: str = "tiny",
        *,
        sampler: str = DEFAULT_SAMPLER,
        options: Mapping[str, Any] | None = None,
        frequency: str | None = None,
        length: int | None = None,
        seed: int = 0,
        chat: bool = False,
        stop_at_eos: bool = True,
        constraint: Mapping[str, Any] | str | None = None,
        batch: int = 32,
        guidance: float = 0.0,
        device: str | None = None,
        dtype: str | None = None,
        weights: str | None = None,
        revision: str | None = None,
    ) -> None:
        self.constraint = None if constraint is None else TextConstraint.from_dict(constraint)
        plain = load(model, device=device, dtype=dtype, weights=weights, revision=revision)
        self.denoiser = Guided(plain, guidance) if guidance else plain
        table = as_table(table_of(frequency) or frequency) if frequency else None
        self.sampler = resolve(sampler, plain, table, options)
        self.length, self.chat, self.stop_at_eos = length, chat, stop_at_eos
        self.seed, self.batch = whole_number(seed, "seed", -(2**63)), batch

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """A batch of Ray Data in its format `numpy`, with the answers."""
        column = next((name for name in ("prompt", "messages") if name in batch), "")
        require(bool(column), f"a batch needs a column prompt or messages, and has {', '.join(batch) or 'none'}.")
        prompts = [one if isinstance(one, str) else [dict(message) for message in one] for one in batch[column]]
        empty = [None] * len(prompts)
        lengths, seeds = (_whole(batch.get(name, empty)) for name in ("length", "seed"))
        found = self.answers(prompts, lengths, [self.seed if seed is None else seed for seed in seeds])
        return batch | {name: np.array([getattr(answer, name) for answer in found]) for name in Answer._fields}

    def answers(
        self, prompts: Sequence[str | Messages], lengths: Sequence[int | None], seeds: Sequence[int]
    ) -> list[Answer]:
        """The answers to some prompts, in their order."""
        rows = [self._row(at, *given) for at, given in enumerate(zip(prompts, lengths, strict=True))]
        order = sorted(range(len(rows)), key=lambda at: (len(rows[at].ids), rows[at].gaps[0][0]), reverse=True)
        # the longest first: rows of similar length need little padding
        requests = (self._request(at, rows[at], seeds[at]) for at in order)
        found: dict[int, Answer] = {}
        for result in Engine[int](self.denoiser, max_rows=self.batch).run(requests):
            at = result.request.key
            if result.trace is None:
                raise PromptError(at, result.error)
            text = answer_texts(self.denoiser, [rows[at]], result.trace)[0]
            found[at] = Answer(text, len(result.trace), result.request.seed)
        return [found[at] for at in range(len(rows))]

    def _request(self, at: int, row: Prompt, seed: int) -> Request[int]:
        sampler = sampler_for(self.denoiser, row, self.sampler, self.stop_at_eos)
        rule = constraints_of(self.denoiser, [row], self.constraint)[0]
        return Request(canvas_of(self.denoiser, [row]), sampler, seed, rule, key=at)

    def _row(self, at: int, prompt: str | Messages, length: int | None) -> Prompt:
        """A prompt as a row. A text with gaps has no length of its own."""
        if isinstance(prompt, str) and self.chat:
            prompt = [{"role": "user", "content": prompt}]
        gaps = isinstance(prompt, str) and has_gaps(self.denoiser, prompt)
        try:
            return read_prompts(self.denoiser, [prompt], self.length if length is None and not gaps else length)[0]
        except UncodeError as error:
            raise PromptError(at, error) from error


def _whole(values: Sequence[Any]) -> list[int | None]:
    """Whole numbers. Where a row has none, Ray gives None, or NaN in a column of floats."""
    return [None if one is None or np.isnan(one) else int(one) for one in values]
