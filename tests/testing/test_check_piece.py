"""`check_piece`: every piece of the library passes, and every planted fault is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from tests import grid
from uncode import Policy, Sampler, UncodeError, presets
from uncode.core.belief import Proposed
from uncode.core.pieces.blocks import BlockSchedule
from uncode.core.pieces.cache import CachePolicy, DualCache, NoCache, Place, Plan, Span
from uncode.core.pieces.piece import Buffer, Piece
from uncode.core.pieces.propose import Proposal
from uncode.core.pieces.remask import Remasker
from uncode.core.pieces.score import Confidence, Exp, Score, Uniform
from uncode.core.pieces.select import Even, Quota, Selector, TopK
from uncode.core.pieces.stop import Stop
from uncode.core.support.arrays import Ints
from uncode.core.view import Count, Ranking, View
from uncode.samplers.legacy_pieces import SuppressAfterDraw
from uncode.testing import ContractError, check_piece

PIECES: list[Piece] = [
    *(score for score in grid.SCORES),
    *(select for select in grid.SELECTORS),
    *(blocks for blocks in grid.BLOCKS),
    *(cache for cache in grid.CACHES),
    *(p for p in grid.PROPOSALS if not isinstance(p, SuppressAfterDraw)),
    *(Sampler(Policy(Exp(Confidence())), p) for p in grid.PROPOSALS if isinstance(p, SuppressAfterDraw)),
    *(stop for stop in grid.STOPS),
    *(edit for edit in grid.EDITORS if edit is not None),
    *(remask if select is None else Policy(Confidence(), select, remask=remask) for remask, select in grid.REMASKERS),
]


@pytest.mark.parametrize("piece", PIECES, ids=repr)
def test_all_our_pieces_pass(piece: Piece) -> None:
    check_piece(piece)


def test_a_whole_sampler_is_checked() -> None:
    check_piece(presets.uncode(frequency=grid.TABLE).caching(DualCache()))


def test_only_pieces_are_checked() -> None:
    with pytest.raises(UncodeError, match=r"takes a piece, Confidence\(\) say, not 3"):
        check_piece(3)  # type: ignore[arg-type]


class Plain(Score):
    """A score whose author forgot the decorator."""

    weight: float = 2.0

    def __call__(self, view: View) -> Tensor:
        return view.belief.logp * self.weight


@dataclass(frozen=True)
class Undefined(Score):
    """Entropy of what is left, summed over columns that the model did not compute."""

    def __call__(self, view: View) -> Tensor:
        left = (view.belief.entropy * view.eligible).sum(-1, keepdim=True)
        return view.belief.logp - left


@dataclass(frozen=True)
class KeepsRows(Score):
    """A running mean that is not re-indexed when rows leave."""

    def __call__(self, view: View) -> Tensor:
        before: Tensor | None = self.__dict__.get("_mean")
        now = view.eligible.double().sum(-1, keepdim=True)
        mean = now if before is None else (before[: len(now)] + now) / 2
        object.__setattr__(self, "_mean", mean)
        return view.belief.logp * (1 + mean)


@dataclass(frozen=True)
class KeepsBlocks(Score):
    """A count of its calls that is not cleared when a block opens."""

    def __call__(self, view: View) -> Tensor:
        count = self.__dict__.get("_count", 0) + 1
        object.__setattr__(self, "_count", count)
        return view.belief.logp - count * view.places


@dataclass(frozen=True)
class ForgetsToRemember(Score):
    """It declares a buffer and never fills it."""

    def buffers(self) -> tuple[Buffer, ...]:
        return (Buffer("seen"),)

    def __call__(self, view: View) -> Tensor:
        return view.belief.logp - view.memory["seen"]


@dataclass(frozen=True)
class CountsInPlace(Score):
    """It writes into its buffer."""

    def buffers(self) -> tuple[Buffer, ...]:
        return (Buffer("seen"),)

    def __call__(self, view: View) -> Tensor:
        return view.belief.logp - view.memory["seen"].add_(1)

    def remember(self, view: View, logits: Tensor) -> dict[str, Tensor]:
        return {"seen": view.memory["seen"]}


@dataclass(frozen=True)
class Rolls(Score):
    """Random numbers from a generator."""

    def __call__(self, view: View) -> Tensor:
        return torch.rand_like(view.places.expand(view.tokens.shape))


@dataclass(frozen=True)
class DrawsInSilence(Uniform):
    """It reads the noise and does not say so."""

    draws = False  # type: ignore[assignment]


@dataclass(frozen=True)
class LooksAround(Score):
    """It counts what stands in the whole window."""

    def __call__(self, view: View) -> Tensor:
        settled = (view.tokens != 31).sum(-1, keepdim=True)
        return view.places * -settled


@dataclass(frozen=True)
class OneStepForAll(Score):
    """A formula for plain numbers alone."""

    def __call__(self, view: View) -> Tensor:
        return view.belief.logp if view.block_step == 0 else -view.belief.entropy


@dataclass(frozen=True)
class Flat(Score):
    """One number per row."""

    def __call__(self, view: View) -> Tensor:
        return view.belief.logp[:, 0]


@dataclass(frozen=True)
class Scribbles(Score):
    """It works in place."""

    def __call__(self, view: View) -> Tensor:
        return view.belief.logp.sub_(1.0)


@dataclass(frozen=True)
class Greedier(Selector):
    """It selects settled positions too."""

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        return torch.ones_like(view.eligible)


@dataclass(frozen=True)
class Shy(Selector):
    """It waits, and does not say so."""

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        return ranking.top(1) & (view.belief.logp > -0.5)


@dataclass(frozen=True)
class Numbers(Selector):
    """Zeros and ones."""

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        return ranking.top(1).long()


@dataclass(frozen=True)
class EveryOther(Selector):
    """It tells columns of the window apart by their number."""

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        even = torch.arange(view.tokens.shape[1]) % 2 == 0
        chosen = ranking.top(3) & even
        return torch.where(chosen.any(-1, keepdim=True), chosen, ranking.top(1))


@dataclass(frozen=True)
class Reorders(Selector):
    """It works in the ranking's own score."""

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        chosen = ranking.top(1)
        ranking.score.mul_(2.0)
        return chosen


@dataclass(frozen=True)
class ReadsSteps(Score):
    """It reads the steps of a schedule, and does not say so."""

    def __call__(self, view: View) -> Tensor:
        return view.places * (1.0 + view.block_steps)


@dataclass(frozen=True)
class ErasesForEver(Remasker):
    """It takes the best token back at every step."""

    def __call__(self, view: View) -> Tensor:
        assert view.logp_at_commit is not None
        return Ranking(view.logp_at_commit, view.own).top(1)


@dataclass(frozen=True)
class Slow(TopK):
    """It is done sooner than it says."""

    def min_steps(self, masked: Ints, steps: Ints) -> Ints:
        return masked * 2


@dataclass(frozen=True)
class Half(Quota):
    """Half of what is left, not as a whole number."""

    def __call__(self, view: View) -> Count:
        return view.eligible.sum(-1, keepdim=True) / 2


@dataclass(frozen=True)
class Unshared(Even):
    """Blocks with masks and no steps."""

    def shares(self, masked: Ints) -> Ints:
        return masked // 2


@dataclass(frozen=True)
class ErasesAll(Remasker):
    """Given tokens too."""

    def __call__(self, view: View) -> Tensor:
        return ~view.eligible


@dataclass(frozen=True)
class Unready(Remasker):
    """`pending` is a number."""

    def __call__(self, view: View) -> Tensor:
        return torch.zeros_like(view.eligible)

    def pending(self, view: View) -> Any:
        return 0


@dataclass(frozen=True)
class Short(BlockSchedule):
    """The last tokens belong to no block."""

    def __call__(self, lengths: Ints) -> Ints:
        return np.maximum(lengths - 1, 1)[:, None]


@dataclass(frozen=True)
class Shared(BlockSchedule):
    """Blocks by the longest row of the batch."""

    def __call__(self, lengths: Ints) -> Ints:
        width = -(-int(lengths.max()) // 2)
        return np.stack([np.minimum(width, lengths), lengths], 1)


@dataclass(frozen=True)
class Overwrites(Stop):
    """It fills what is settled."""

    def __call__(self, tokens: Tensor, masked: Tensor, own: Tensor) -> Tensor:
        return torch.full_like(tokens, 3)


@dataclass(frozen=True)
class ProposesMask(Proposal):
    """The mask token."""

    def propose(self, logits: Tensor, view: View) -> tuple[Proposed, Tensor]:
        return torch.full_like(view.tokens, logits.shape[-1] - 1), logits


@dataclass(frozen=True)
class InPlace(Proposal):
    """It cools the model's own logits."""

    def propose(self, logits: Tensor, view: View) -> tuple[Proposed, Tensor]:
        return None, logits.div_(0.5)


@dataclass(frozen=True)
class NeverKept(CachePolicy):
    """It reuses what nobody stored."""

    def __call__(self, place: Place) -> Plan:
        nothing, everything = place.span(0, 0), place.span(0, place.length)
        return Plan(window=place.block, wanted=place.wanted, store=nothing, reuse=everything)


@dataclass(frozen=True)
class ChangesInSilence(DualCache):
    """The stepper would use the first plan for the whole block."""

    def changes(self, block_step: Ints) -> bool:
        return False


@dataclass(frozen=True)
class Miser(NoCache):
    """It leaves columns out without a KV cache."""

    needs_nothing: ClassVar[bool] = True

    def __call__(self, place: Place) -> Plan:
        nothing = place.span(0, 0)
        return Plan(window=place.block, wanted=place.wanted, store=nothing, reuse=nothing)


@dataclass(frozen=True)
class FirstColumns(DualCache):
    """A window of 32 columns, which a longer block outgrows."""

    def _window(self, place: Place) -> Span:
        return place.span(place.block.start, np.minimum(place.block.start + 32, place.block.stop))


@dataclass(frozen=True)
class ClaimsTheSpan(DualCache):
    """It computes the open block alone."""

    sees_span: ClassVar[bool] = True


FAULTS: list[tuple[Piece, str]] = [
    (Plain(), "Plain.weight is no setting: decorate the class"),
    (Undefined(), "Undefined scores an eligible position NaN"),
    (KeepsRows(), "KeepsRows remembers earlier steps"),
    (KeepsBlocks(), "KeepsBlocks remembers earlier steps"),
    (ForgetsToRemember(), "ForgetsToRemember.remember must return its buffers"),
    (CountsInPlace(), r"CountsInPlace writes into view.memory\['seen'\]"),
    (Rolls(), "Rolls gives two results for the same view: draw random numbers from view.noise"),
    (DrawsInSilence(), "DrawsInSilence reads view.noise: define its property draws, which returns True"),
    (LooksAround(), "LooksAround gives row 0 another result alone"),
    (OneStepForAll(), "OneStepForAll raised RuntimeError in __call__"),
    (Flat(), r"Flat must return a score of shape \[3, 14\] or \[1, 14\], not \[3\]"),
    (Scribbles(), "Scribbles writes into view.belief.logp: copy the tensor first"),
    (Greedier(), "Greedier selects positions that are no candidates"),
    (Shy(), "Shy selects nothing while masks are left, and its may_wait is False"),
    (Numbers(), "Numbers must return which positions it selects as booleans, not torch.int64"),
    (Slow(), "Slow.min_steps says 24 for a block that it fills in 12 steps"),
    (EveryOther(), "EveryOther gives row [0-2] another result alone"),
    (Reorders(), "Reorders writes into ranking.score: copy it first"),
    (ReadsSteps(), "ReadsSteps reads view.block_steps: set needs_schedule = True"),
    (ErasesForEver(), r"the limit of sampler 'custom' \(ErasesForEver\)"),
    (Half(), "Half must return whole numbers, not torch.float32"),
    (Unshared(), "Unshared.shares gives a block with masks no step"),
    (ErasesAll(), "ErasesAll erases positions outside view.own"),
    (Unready(), "Unready.pending must return True, False or a boolean per row"),
    (Short(), r"Short returns last ends \[11, 6, 1\] for rows of \[12, 7, 1\] tokens"),
    (Shared(), "Shared gives a row of 7 tokens other blocks alone than in a batch"),
    (Overwrites(), "Overwrites fills positions that are not the decoder's own"),
    (ProposesMask(), "ProposesMask proposes the mask token"),
    (InPlace(), "InPlace writes into the logits: copy them first"),
    (NeverKept(), "NeverKept reuses columns that no forward since the block opened has kept"),
    (ChangesInSilence(), "ChangesInSilence changes its plan at step 1 of a block, and its changes"),
    (Miser(), "Miser leaves columns out, so its needs_kv_cache must be True"),
    (FirstColumns(), "FirstColumns does not compute the first mask of an open block"),
    (ClaimsTheSpan(), "ClaimsTheSpan leaves masks out, so its sees_span must be False"),
]


@pytest.mark.parametrize(("piece", "sentence"), FAULTS, ids=lambda value: type(value).__name__)
def test_a_planted_fault_is_named(piece: Piece, sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence) as caught:
        check_piece(piece)
    assert all(fault.endswith(".") and "\n" not in fault for fault in caught.value.faults)
    assert str(caught.value).splitlines() == list(caught.value.faults)


def test_an_error_in_a_policy_names_the_piece() -> None:
    with pytest.raises(ContractError, match=r"^Shy selects nothing"):
        check_piece(Policy(Confidence(), Shy()))
