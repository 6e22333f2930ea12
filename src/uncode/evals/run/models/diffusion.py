"""Masked diffusion models under evaluation, decoded on the engine."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch

from ....analysis.measures.order import order_of
from ....backbones.loading.load import OwnTable
from ....constraints.constraint import TextConstraint
from ....core.canvas import Canvas
from ....core.constraint import Constraint
from ....core.denoiser import Denoiser
from ....core.errors import UncodeError, require
from ....core.pieces.policy import Sampler
from ....core.pieces.stop import AfterEos
from ....core.pieces.tables import Table
from ....engine import Engine, FinishedRow, Request, Result
from ....generation.prompt import Prompt, encode
from ....samplers.interventions import reject_trivial, trivial_ids
from ....samplers.resolve import require_table, resolve
from ...task import TaskSettings
from ...tasks import find_task
from ..config import AUTOREGRESSIVE, LABEL_FREE, EvalConfig, SamplerEntry
from ..sample import Answer
from .model import EvaluatedModel, PreparedSampler, Question, SamplerRefused, TracedAnswer, weights_fingerprint

PACKAGE = __name__.partition(".")[0]
FINGERPRINTED = ("guidance", "revision", "tokenizer")
"""Of what a denoiser says about itself, this decides its answers. A folder's name does not."""


class DiffusionModel(EvaluatedModel):
    """A denoiser under evaluation. `frequency` replaces the tables that the config names.

    A sampler that lacks its table is refused, because a row of a report is what its label says. If `allows_fallback`,
    a sampler that can do without one runs without informativeness.
    """

    def __init__(
        self, name: str, denoiser: Denoiser, frequency: Table | None = None, allows_fallback: bool = False
    ) -> None:
        require(denoiser.tokenizer is not None, f"'{name}' has no tokenizer, which an evaluation needs.")
        self.name, self.denoiser, self.frequency, self.allows_fallback = name, denoiser, frequency, allows_fallback
        self.tokenizer = denoiser.tokenizer
        about = {key: value for key, value in denoiser.about.items() if key in FINGERPRINTED}
        self.fingerprint = weights_fingerprint(denoiser.weights(), about | {"dtype": denoiser.dtype})

    @cached_property
    def _trivial(self) -> tuple[int, ...]:
        return trivial_ids(self.denoiser.tokenizer)

    def encode(self, prompt: str, chat: bool) -> tuple[int, ...]:
        before, _ = self.denoiser.frame
        ids = encode(self.denoiser, [{"role": "user", "content": prompt}] if chat else prompt)
        require(self.denoiser.mask_id not in ids, "the prompt contains the mask token, which only decoding may write.")
        return (*before, *ids)

    def anchor_id(self, text: str) -> int:
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        require(len(ids) == 1, f"an anchor is one token, and '{self.name}' reads '{text}' as {len(ids)}: give another.")
        return int(ids[0])

    def prepare(self, entry: SamplerEntry, settings: TaskSettings, options: Mapping[str, Any]) -> PreparedSampler:
        require(
            entry.preset != AUTOREGRESSIVE,
            f"'{self.name}' is a masked diffusion model, and '{entry.label}' is for autoregressive ones.",
        )
        try:
            wanted = entry.options_for(settings) | dict(options)
            fallback = self.allows_fallback
            sampler = resolve(entry.preset, self.denoiser, self.frequency, wanted, allows_fallback=fallback)
        except UncodeError as error:
            raise SamplerRefused(str(error)) from error
        if entry.reject_trivial:
            sampler = reject_trivial(sampler, self._trivial, entry.reject_trivial)
        if entry.stop_at_eos and self.denoiser.eos_ids:
            sampler = sampler.stopping(AfterEos())
        code, rule = own_code(sampler), None if entry.constraint is None else TextConstraint.from_dict(entry.constraint)
        definition = sampler.to_dict() | ({"code": code} if code else {})
        definition |= {} if rule is None else {"constraint": rule.to_dict()}
        return PreparedSampler(entry, sampler, definition, rule)

    def answers(
        self, sampler: PreparedSampler, questions: Sequence[Question], batch: int, observe: bool = False
    ) -> Iterator[tuple[Question, Answer]]:
        engine = Engine[Question](self.denoiser, max_rows=batch, observe="span" if observe else "open")
        longest_first = sorted(questions, key=lambda one: -(len(one.prompt_ids) + one.length))
        for result in engine.run(self.request(one, sampler.sampler, sampler.constraint) for one in longest_first):
            question = result.request.key
            if result.row is None:
                raise SamplerRefused(f"{question.example.id}, {sampler.entry.label}: {result.error}")
            yield question, self._answer(question, result, result.row, sampler.entry, observe)

    def request(self, question: Question, sampler: Sampler, constraint: Constraint | None = None) -> Request[Question]:
        """The row of a question, for the engine."""
        mask_id, after = self.denoiser.mask_id, self.denoiser.frame[1]
        answer = [mask_id] * question.length
        if question.anchor is not None:
            answer[question.anchor[0]] = question.anchor[1]
        tokens = torch.tensor([[*question.prompt_ids, *answer, *after]])
        # what Canvas.infill makes of the same ids, which are known to be a prompt's and need no check one by one
        canvas = Canvas(tokens, torch.ones_like(tokens, dtype=torch.bool), mask_id, start=len(question.prompt_ids))
        return Request(canvas, sampler, question.seed, constraint, key=question)

    def _answer(
        self, question: Question, result: Result[Question], found: FinishedRow, entry: SamplerEntry, observe: bool
    ) -> TracedAnswer:
        start = len(question.prompt_ids)
        span = slice(start, start + question.length)
        row = found.tokens.tolist()
        generated, eos_ids = row[span], self.denoiser.eos_ids
        tokens = next((at for at, token in enumerate(generated) if token in eos_ids), len(generated))
        return TracedAnswer(
            text=Prompt(row, [(span.start, span.stop)]).answer(self.denoiser, row),
            token_ids=tuple(generated[: tokens + 1]),
            forwards=found.forwards,
            tokens=tokens,
            seconds=round(result.share_seconds, 6),
            first_eos_step=_first_eos_step(found, eos_ids),
            columns=found.columns,
            entropy=float(found.trace().sequence_entropy[0]) if observe else None,
            order=order_of(found.generated, found.commit_step, self._trivial, eos_ids) if entry.measure_order else None,
            result=result,
        )


def check_samplers(config: EvalConfig, given: Table | None, own: OwnTable) -> None:
    """Raise for a sampler of a config that cannot be built, or lacks a frequency table, before weights are read."""
    for entry in config.samplers:
        for task in (task for task in config.tasks if entry.runs_on(task)):
            options = entry.options_for(entry.settings_for(find_task(task).settings))
            if options.get("rate") == LABEL_FREE:
                del options["rate"]
            try:
                made = resolve(entry.preset, None, given, options, own=own.table)
                require_table(made, own.released, allows_fallback=False)
            except UncodeError as error:
                raise SamplerRefused(f"{entry.label}: {error}") from error


def _first_eos_step(row: FinishedRow, eos_ids: tuple[int, ...]) -> int | None:
    """The forward that wrote the first EOS; None if none did."""
    pairs = zip(row.generated.tolist(), row.commit_step.tolist(), strict=True)  # few numbers: quicker than arrays
    first = min((step for token, step in pairs if token in eos_ids and step >= 0), default=None)
    return None if first is None else row.forwards_before(first)


def own_code(sampler: Sampler) -> dict[str, str]:
    """For each piece from outside the package, by its class, the fingerprint of the module that defines it.

    A run folder tells samplers apart by their definition. The code of a piece of one's own changes while it is being
    written, so it belongs to that: answers of the former code are not taken for those of the new one.
    """
    parts = (sampler.policy, sampler.propose, sampler.cache)
    classes = {type(piece) for part in parts for piece in part.pieces()}
    outside = [kind for kind in classes if kind.__module__.partition(".")[0] != PACKAGE]
    found = {}
    for kind in sorted(outside, key=lambda kind: kind.__name__):
        try:
            source = inspect.getsource(sys.modules[kind.__module__])
            found[kind.__name__] = hashlib.sha256(source.encode()).hexdigest()[:16]
        except (OSError, TypeError, KeyError):  # typed into a console
            found[kind.__name__] = "unknown"
    return found
