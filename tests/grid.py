"""Every piece, once. Adding a piece is one line here; the invariants then hold it to account."""

from __future__ import annotations

import torch

from tests.toy import EOS, VOCAB
from uncode import FrequencyTable
from uncode.core.pieces.blocks import (
    Blocks,
    DelimitedBlocks,
    GrowingBlocks,
    OverlappingBlocks,
    SeededBlocks,
    SlidingWindow,
)
from uncode.core.pieces.branches import LeastUncertainNext, Lookahead
from uncode.core.pieces.cache import DualCache, NoCache, PrefixCache, WindowCache
from uncode.core.pieces.piece import Piece
from uncode.core.pieces.propose import Adjust, Credit, Greedy, Sample
from uncode.core.pieces.remask import LargestDrops, LeastConfident, LoopQuota, Never, Overwrite, OverwriteBrittle
from uncode.core.pieces.score import (
    CertaintyDensity,
    Confidence,
    Defer,
    EarlyDiscount,
    EndsInTurn,
    EntropyGate,
    Exp,
    ExponentialPosition,
    Gumbel,
    Informativeness,
    Margin,
    NegEntropy,
    Score,
    Uniform,
)
from uncode.core.pieces.select import (
    AboveMeanAtCommit,
    AroundAnchors,
    BestOfRuns,
    Certain,
    Decay,
    EntropyBudget,
    EntropyThreshold,
    Even,
    Exactly,
    Factor,
    Selector,
    StableOrQuota,
    TauLeap,
    Threshold,
    ThresholdOrQuota,
    TopK,
)
from uncode.core.pieces.stop import AfterEos, AtTheEnd, EitherStop, FromFirstEos, WhenAnswerIsClear
from uncode.samplers.interventions import RejectTrivial
from uncode.samplers.legacy_pieces import (
    AlternatingCommit,
    FactorOffByOne,
    FirstThenThreshold,
    LeastLikelyNow,
    ReleasedLinear,
    ReleasedUncode,
    SuppressAfterDraw,
)

TABLE = FrequencyTable(torch.tensor([int(10000 / (1 + (5 * v) % 32)) for v in range(VOCAB)]), "grid", (EOS,))


def fits(piece: object, select: Selector | None) -> bool:
    """Whether a policy takes a piece beside a selector: some need its schedule. None is any selector."""
    needs = isinstance(piece, Piece) and any(part.needs_schedule for part in piece.pieces())
    return select is None or select.has_schedule or not needs


SCORES = [
    Confidence(),
    NegEntropy(),
    Margin(),
    Uniform(),
    ExponentialPosition(1.0),
    Confidence() + ExponentialPosition(0.25),
    Confidence() + Informativeness(TABLE) + ExponentialPosition(0.25, origin="block"),
    NegEntropy() + Informativeness(TABLE, clip=3.0, special="neutral"),
    Margin() + Informativeness(TABLE, clip=None, special="counted"),
    Exp(Confidence()) + Gumbel(0.3),
    Confidence() + Defer(("ends",)),
    Confidence() + EarlyDiscount(("ends",), 0.3),
    Confidence() + EndsInTurn(),
    Confidence() + EndsInTurn(0.9),
    Confidence() + EntropyGate(2.0),
    Confidence() + CertaintyDensity(3.0),
    ReleasedUncode(TABLE, 0.25, 3.0),
    ReleasedLinear(TABLE, 0.25, 3.0),
]

SELECTORS = [
    TopK(),
    TopK(Even(7)),
    TopK(Exactly(3)),
    TopK(Decay(6)),
    Threshold(0.5),
    Threshold(0.3, of="score"),
    Factor(1.0),
    FactorOffByOne(1.0),
    FirstThenThreshold(0.4),
    EntropyBudget(0.5),
    TauLeap(Decay(6)),
    EntropyThreshold(1.0),
    EntropyThreshold(1.0, 4),
    EntropyThreshold(1.0, 4, best=False),
    Certain(0.7),
    BestOfRuns(0.7, 0.3),
    ThresholdOrQuota(Even(5), 0.5),
    AroundAnchors(Even(8), 0.5, 0.3, 2),
    StableOrQuota(Even(6), 0.4, 0.5, 1),
    AboveMeanAtCommit(2),
    LeastUncertainNext(3, 0.3, 0.6),
    LeastUncertainNext(4, 1.0, 0.9, 2, immediate=False),
    Lookahead(3, 0.5),
    RejectTrivial(TopK(Even(5)), (1, 2, 3, 20, 21), 0.7),
]

SCORED_SELECTORS = [(score, select) for score in SCORES for select in SELECTORS if fits(score, select)]
"""Every score with every selector that a policy takes beside it."""


def short_name(piece: Score | Selector) -> str:
    """The name of a test of it."""
    return "+".join(type(term).__name__ for term in piece.terms) if isinstance(piece, Score) else type(piece).__name__


BLOCKS = [
    Blocks(),
    Blocks(count=3),
    Blocks(length=5),
    SeededBlocks(3, 6),
    GrowingBlocks(length=4),
    DelimitedBlocks((2, 5, 9, 14, 20), 0.2, 3),
    SlidingWindow(4),
    SlidingWindow(6, columns=5),
    OverlappingBlocks(4, 0.5),
]

CACHES = [
    NoCache(),
    PrefixCache(),
    DualCache(),
    PrefixCache(refresh=2),
    DualCache(refresh=3),
    WindowCache(),
    WindowCache(margin=1, every=4, prompt_every=6),
    WindowCache(margin=0, every=None, prompt_every=None, suffix=2),
]

REMASKERS = [
    (Never(), None),
    (LeastConfident(1, 0.5), TopK(LoopQuota(None, 1, 0.5))),
    (LeastConfident(2, 0.75), TopK(LoopQuota(6, 2, 0.75))),
    (LargestDrops(2), None),
    (LargestDrops(3), AboveMeanAtCommit(3)),
    (LeastLikelyNow(0.5, 1, 3), AlternatingCommit(0.5, 1, 3)),
    (LeastLikelyNow(1.0, 2, 2), AlternatingCommit(1.0, 2, 2)),
]
"""A remasker and the selector that goes with it; None leaves the choice free."""

PROPOSALS = [
    Greedy(),
    Greedy(("eos", 4)),
    Sample((), 0.7),
    Credit((), 0.7, 0.8, 0.2),
    Sample((), 0.5, 5, 0.9, "drawn"),
    SuppressAfterDraw((), 0.5),
]

ADJUSTMENTS = [Adjust(), Adjust(), Adjust((3, 4), (2.0, -4.0), 0.5, 0.7, 1.3), Adjust(presence_penalty=-1.0)]

EDITORS = [None, None, Overwrite(0.3, 2), OverwriteBrittle(3, 2, 1, 0.1, 0.2, 0.9, 1)]

STOPS = [
    AtTheEnd(),
    AfterEos(),
    FromFirstEos(),
    WhenAnswerIsClear(4, 3, 3.0, 2.0, 1.0, None, AfterEos()),
    EitherStop(WhenAnswerIsClear(None, 3, 3.0, 2.0, 1.0), AfterEos()),
]
