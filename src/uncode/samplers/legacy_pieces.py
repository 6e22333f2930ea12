"""The pieces of published quirks, bit-exact. Each names what it reproduces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from ..core.belief import Proposed
from ..core.denoiser import Facts
from ..core.errors import require
from ..core.noise import Draw
from ..core.pieces.piece import Table
from ..core.pieces.propose import Sample
from ..core.pieces.remask import Remasker
from ..core.pieces.score import Score
from ..core.pieces.select import Factor, Selector, Threshold
from ..core.view import Count, Ranking, View


@dataclass(frozen=True)
class _ReleasedScore(Score):
    """What the two released calibrations share: min(-p * log(f + 1e-9), clip) on a linear scale, offsets counted
    from the block, the logarithm in float32."""

    kind: ClassVar[bool] = True
    _log_frequency: ClassVar[Tensor | None] = None

    table: Table
    rate: float
    clip: float

    def check(self) -> None:
        require(self.rate >= 0, f"rate must be 0 or more, not {self.rate}.")
        require(self.clip > 0, f"clip must be above 0, not {self.clip}.")

    def bind(self, facts: Facts) -> Self:
        surprisal = facts.surprisal(self.table)
        return self.holding(_log_frequency=((-surprisal).exp().float() + 1e-9).log().to(facts.device))

    def weighed(self, view: View, tokens: Tensor) -> Tensor:
        assert self._log_frequency is not None
        return (-view.belief.logp.exp() * self._log_frequency[tokens]).clamp(max=self.clip)


@dataclass(frozen=True)
class ReleasedUncode(_ReleasedScore):
    """Uncode as released (src/generate.py, pc_sampler_function): the clip is on the product p * S, not on S, and the
    positional factor underflows to 0 in float32 (from offset 416 on at rate 0.25), where all positions tie."""

    def __call__(self, view: View) -> Tensor:
        offset_in_block = (view.offsets - view.block_start).float()
        return (-self.rate * offset_in_block).exp() * self.weighed(view, view.belief.token)


@dataclass(frozen=True)
class ReleasedLinear(_ReleasedScore):
    """The linear ablation as released (linear_position): scaled to [0, 1] over the whole block, filled positions
    included, and blended with a falling line."""

    reads_committed: ClassVar[bool] = True

    def __call__(self, view: View) -> Tensor:
        tokens = torch.where(view.eligible, view.belief.token, view.tokens)
        weighed = self.weighed(view, tokens)
        offset_in_block, length = view.places - view.block_start, view.block_length
        outside = (offset_in_block < 0) | (offset_in_block >= length)
        least = weighed.masked_fill(outside, torch.inf).amin(-1, keepdim=True)
        most = weighed.masked_fill(outside, -torch.inf).amax(-1, keepdim=True)
        line = ((length - offset_in_block) / length).float()
        return (1 - self.rate) * (weighed - least) / (most - least).clamp(min=1e-9) + self.rate * line


@dataclass(frozen=True)
class FactorOffByOne(Factor):
    """Factor decoding as released (get_transfer_index_dynamic): when all but the last candidate pass, the last is
    committed unchecked, so the last two tokens of a block always go together."""

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        count, candidates = self.count(ranking, view), ranking.candidates.sum(-1, keepdim=True)
        return ranking.top(torch.where(count >= candidates - 1, candidates, count))


@dataclass(frozen=True)
class FirstThenThreshold(Threshold):
    """Fast-dLLM's blocks for Dream (generation_utils_block.py): the forward that opens a block commits its first
    position alone, whatever its confidence, because shifted logits are wrong for that one under its caches."""

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        opening = torch.as_tensor(view.block_step == 0, device=ranking.score.device)
        first = Ranking(-view.places.expand_as(ranking.score), ranking.candidates).top(1)
        return torch.where(opening, first, super().__call__(ranking, view))


@dataclass(frozen=True)
class SuppressAfterDraw(Sample):
    """LLaDA's confidence_eos_eot_inf as published (generate.py; ML-GSAI/LLaDA#137): EOS tokens are removed after the
    draw, both of them at temperature 0 but only the second above it."""

    _after: ClassVar[Tensor | None] = None

    def bind(self, facts: Facts) -> Self:
        removed = facts.eos_ids if self.temperature == 0 else facts.eos_ids[1:]
        bar = torch.zeros(facts.vocab_size, device=facts.device)
        bar[list(removed)] = float("-inf")
        return super().bind(facts).holding(_after=bar)

    def propose(self, logits: Tensor, view: View) -> tuple[Proposed, Tensor]:
        assert self._after is not None
        proposed, believed = super().propose(logits, view)
        token = proposed(logits) if isinstance(proposed, Draw) else proposed
        return token, believed + self._after


@dataclass(frozen=True)
class Loops:
    """The three phases of the released ReMDM: fill a part, then loop (look, take back, fill), then fill the rest."""

    ratio: float
    count: int
    loops: int

    def phase(self, view: View) -> tuple[Count, Count]:
        """Steps of the first phase, and steps since the second began (negative before it)."""
        part = view.block_masked * self.ratio / self.count
        first = int(part) if isinstance(part, float) else part.long()
        return first, view.block_step - first

    def looking(self, view: View) -> Tensor | bool:
        """Whether this forward only looks, to take tokens back."""
        _, step = self.phase(view)
        return (step >= 0) & (step < 2 * self.loops) & (step % 2 == 0)


def _check_loops(ratio: float, count: int, loops: int) -> None:
    require(0 < ratio <= 1, f"ratio must be in (0, 1], not {ratio}.")
    require(count >= 1 and loops >= 0, f"count must be at least 1 and loops at least 0, not {count} and {loops}.")


@dataclass(frozen=True)
class AlternatingCommit(Selector):
    """The commits of the released ReMDM (generate_with_remdm): `count` a step, none while it only looks."""

    ratio: float = 0.875
    count: int = 1
    loops: int = 32

    def check(self) -> None:
        _check_loops(self.ratio, self.count, self.loops)

    @property
    def may_wait(self) -> bool:
        return True

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        looking = Loops(self.ratio, self.count, self.loops).looking(view)
        return ranking.top(self.count) & ~torch.as_tensor(looking, device=ranking.score.device)


@dataclass(frozen=True)
class LeastLikelyNow(Remasker):
    """The erasures of the released ReMDM: the standing tokens the model now finds least likely, at the price of a
    separate forward."""

    needs_standing: ClassVar[bool] = True

    ratio: float = 0.875
    count: int = 1
    loops: int = 32

    def check(self) -> None:
        _check_loops(self.ratio, self.count, self.loops)

    def __call__(self, view: View) -> Tensor:
        looking = Loops(self.ratio, self.count, self.loops).looking(view)
        least = Ranking(-view.belief.standing, view.own).top(self.count)
        return least & torch.as_tensor(looking, device=least.device)

    def pending(self, view: View) -> Tensor | bool:
        _, step = Loops(self.ratio, self.count, self.loops).phase(view)
        return torch.as_tensor(step < 2 * self.loops - 1, device=view.tokens.device)
