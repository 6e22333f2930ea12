"""Samples of prompts as tensors: tokens, the step map, and the log-probabilities under which they were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from ..core.canvas import Canvas
from ..core.denoiser import Denoiser
from ..core.errors import UncodeError, require, shown
from ..core.pieces.policy import Sampler
from ..core.support.reprs import counted
from ..core.trace.row_record import GIVEN
from ..engine import FinishedRow


class Row(NamedTuple):
    """One sample, without padding."""

    prompt: int
    seed: int
    forwards: int
    before: Tensor
    """The tokens before the generated span, `[P]`."""
    generated: Tensor
    """`[S]`, as the other two."""
    step_map: Tensor
    logp: Tensor

    @classmethod
    def of(cls, row: FinishedRow, prompt: int, seed: int) -> Row:
        steps = torch.from_numpy(row.commit_step.copy())
        logp = torch.from_numpy(row.drawn_logp.copy()).where(steps >= 0, 0.0)
        tokens = torch.from_numpy(row.tokens.copy())
        start = row.canvas.start
        return cls(prompt, seed, row.forwards, tokens[:start], tokens[start:], steps, logp)


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """What is recorded of N samples; see :class:`.rollout.Rollout`."""

    canvas: Canvas
    """As it was before the first step: the prompts are padded on the left."""
    tokens: Tensor
    """`[N, L]`, after the last one."""
    step_map: Tensor
    """The sample's own forward that committed each token of the span, `[N, S]`; -1 given or padding, -2 filled by the
    stop rule. A trace calls it `commit_step`."""
    logp: Tensor
    """The log-probability of each token when it was drawn, under the temperature, `[N, S]`; 0 where none was drawn."""
    prompt: Tensor
    """The number of each sample's prompt, `[N]`."""
    seeds: Tensor
    forwards: Tensor
    """Forwards of each sample, `[N]`, probes included."""
    temperature: float
    sampler: dict[str, Any]
    """The sampler as plain data, as `Sampler.to_dict` writes it."""
    model: dict[str, Any]
    """What the model says of itself."""

    @classmethod
    def of(cls, rows: Sequence[Row], sampler: Sampler, denoiser: Denoiser) -> Self:
        exact = denoiser.dtype if denoiser.dtype == torch.float64 else torch.float32
        return cls.assemble(rows, denoiser.mask_id, exact, sampler.to_dict(), dict(denoiser.about))

    @classmethod
    def assemble(
        cls, rows: Sequence[Row], mask_id: int, dtype: torch.dtype, sampler: dict[str, Any], model: dict[str, Any]
    ) -> Self:
        """The samples in one batch, padded."""
        heads = [row.before for row in rows]
        open_spans = [torch.where(row.step_map == GIVEN, row.generated, mask_id) for row in rows]
        canvas = Canvas._assemble(heads, open_spans, mask_id, None)
        filled = Canvas._assemble(heads, [row.generated for row in rows], mask_id, None)
        return cls(
            canvas=canvas,
            tokens=filled.tokens,
            step_map=_stack([row.step_map for row in rows], canvas.span, GIVEN),
            logp=_stack([row.logp for row in rows], canvas.span, 0.0).to(dtype),
            prompt=torch.tensor([row.prompt for row in rows]),
            seeds=torch.tensor([row.seed for row in rows]),
            forwards=torch.tensor([row.forwards for row in rows]),
            temperature=float(sampler["propose"]["temperature"]),
            sampler=sampler,
            model=model,
        )

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        prompts = counted(len(set(self.prompt.tolist())), "prompt")
        drawn = counted(int(self.drawn.sum()), "drawn token")
        name, samples = type(self).__name__, counted(len(self), "sample")
        return f"{name}({samples} of {prompts}, {drawn}, {self.sampler.get('name', 'custom')})"

    def __getitem__(self, samples: slice | Sequence[int] | Tensor) -> Self:
        """Some of the samples, in this order."""
        numbers = self._numbers(samples)
        require(len(numbers) > 0, "none of the samples was chosen: give at least one.")
        canvas = Canvas(self.canvas.tokens[numbers], self.canvas.valid[numbers], self.canvas.mask_id, self.canvas.start)
        names = ("tokens", "step_map", "logp", "prompt", "seeds", "forwards")
        parts = {name: getattr(self, name)[numbers] for name in names}
        return type(self)(canvas, **parts, temperature=self.temperature, sampler=self.sampler, model=self.model)

    def _numbers(self, samples: slice | Sequence[int] | Tensor) -> Tensor:
        numbers = torch.arange(len(self))
        if isinstance(samples, slice):
            return numbers[samples]
        try:
            chosen = torch.as_tensor(samples).cpu() if isinstance(samples, list | Tensor) else None
            if chosen is not None and chosen.dim() == 1:
                return numbers[chosen]
        except (IndexError, TypeError, ValueError, RuntimeError):  # not there, or no numbers
            pass
        raise UncodeError(
            f"samples are chosen by a slice, or by a list or a tensor of numbers from 0 to {len(self) - 1}, not "
            f"{shown(samples)}."
        )

    @property
    def generated(self) -> Tensor:
        """The tokens of the generated span, `[N, S]`."""
        return self.tokens[:, self.canvas.start :]

    @property
    def given(self) -> Tensor:
        """Which tokens of the span were given, `[N, S]`."""
        return (self.step_map == GIVEN) & self.canvas.valid[:, self.canvas.start :]

    @property
    def drawn(self) -> Tensor:
        """Which tokens of the span the model drew, `[N, S]`: neither given, nor padding, nor filled by the stop
        rule."""
        return self.step_map >= 0

    def rows(self) -> list[Row]:
        """The samples without padding."""
        facts = (self.prompt.tolist(), self.seeds.tolist(), self.forwards.tolist())
        start, found = self.canvas.start, []
        for at, (prompt, seed, forwards) in enumerate(zip(*facts, strict=True)):
            valid = self.canvas.valid[at]
            inside = valid[start:]
            parts = (self.tokens[at, :start][valid[:start]], self.generated[at][inside])
            found.append(Row(prompt, seed, forwards, *parts, self.step_map[at][inside], self.logp[at][inside]))
        return found

    def texts(self, denoiser: Denoiser) -> list[str]:
        """The text of each sample's span, up to its first EOS token; all of it where tokens of the span were given."""
        require(denoiser.tokenizer is not None, "this model has no tokenizer: read `generated` instead.")
        found = []
        for row in self.rows():
            given, framed = int((row.step_map == GIVEN).sum()), len(denoiser.frame[1])
            ends = (row.step_map >= 0) & torch.isin(row.generated, torch.tensor(denoiser.eos_ids or (-1,)))
            stop = int(ends.long().argmax()) if given <= framed and bool(ends.any()) else len(row.generated)
            found.append(str(denoiser.tokenizer.decode(row.generated[:stop].tolist(), skip_special_tokens=True)))
        return found


def _stack(values: Sequence[Tensor], length: int, fill: float) -> Tensor:
    return torch.stack([torch.nn.functional.pad(one, (0, length - len(one)), value=fill) for one in values])
