"""`check_piece`: a piece alone, on the views of real steps, and in whole decodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ..core.errors import require, shown
from ..core.pieces.blocks import BlockSchedule
from ..core.pieces.cache import CachePolicy
from ..core.pieces.piece import Piece
from ..core.pieces.policy import Policy, Sampler
from ..core.pieces.propose import Proposal
from ..core.pieces.remask import Editor, Remasker
from ..core.pieces.score import Confidence, Score
from ..core.pieces.select import Quota, Schedule, Selector, Threshold, TopK
from ..core.pieces.stop import Stop
from .contract import Check, run_checks
from .copies import check_data, tables_in
from .decode_checks import decode_checks
from .hash_model import HashDenoiser
from .plain_checks import check_blocks, check_cache, check_schedule, check_stop
from .view_checks import SEES_VIEWS, view_checks

_VOCAB_SIZE = 32
_PARTS: dict[type[Piece], str] = {
    Score: "score",
    Selector: "select",
    BlockSchedule: "blocks",
    Remasker: "remask",
    Editor: "edit",
    Stop: "stop",
}
"""The parts of a policy, by their kinds."""


def check_piece(piece: Piece, *, vocab_size: int | None = None) -> None:
    """Raise :class:`ContractError` unless the piece keeps every promise of its kind.

    The piece is a score, a selector, a quota, a block schedule, a remasker, a stop rule, a proposal or a cache policy;
    or a whole `Policy` or `Sampler`, whose parts are checked one by one and together. A piece that works only beside
    another one, as a remasker with its own quota, is checked as such a policy.

    It runs on a small model with `vocab_size` tokens (None: as many as the piece's frequency table has, else 32). The
    last three ids are two EOS tokens and the mask.
    """
    require(isinstance(piece, Piece), f"check_piece takes a piece, Confidence() say, not {shown(piece)}.")
    model = _model_for(piece, vocab_size)
    run_checks(_part_checks(piece, model))
    # Whole decodes come last: a part that breaks a promise would fail in them too, less clearly.
    run_checks((type(piece).__name__, check) for check in decode_checks(partial(_sampler_with, piece), model))


def _model_for(piece: Piece, vocab_size: int | None) -> HashDenoiser:
    tables = tables_in(piece)
    if tables:
        return HashDenoiser(vocab_size or len(tables[0].surprisal()), tables[0].fingerprint)
    return HashDenoiser(vocab_size or _VOCAB_SIZE)


def _part_checks(piece: Piece, model: HashDenoiser) -> Iterator[tuple[str, Check]]:
    """Every check of a single piece, with the name of the piece."""
    for part in _parts(piece):
        name = type(part).__name__
        yield name, partial(check_data, part)
        if isinstance(part, SEES_VIEWS):
            yield from ((name, check) for check in view_checks(part, model))
        if isinstance(part, Schedule):
            yield name, partial(check_schedule, part)
        if isinstance(part, BlockSchedule):
            yield name, partial(check_blocks, part)
        if isinstance(part, Stop):
            yield name, partial(check_stop, part, model)
        if isinstance(part, CachePolicy):
            yield name, partial(check_cache, part)


def _parts(piece: Piece) -> list[Piece]:
    if isinstance(piece, Sampler):
        return [*_parts(piece.policy), piece.propose, piece.cache]
    if isinstance(piece, Policy):
        parts = [piece.score, piece.select, piece.blocks, piece.remask, piece.stop]
        return parts if piece.edit is None else [*parts, piece.edit]
    return [piece]


def _sampler_with(piece: Piece) -> Sampler:
    """A sampler of usual pieces and this one."""
    if isinstance(piece, Sampler):
        return piece
    plain = Sampler(Policy(Confidence()))
    if isinstance(piece, Policy):
        return replace(plain, policy=piece)
    if isinstance(piece, Proposal):
        return replace(plain, propose=piece)
    if isinstance(piece, CachePolicy):
        return replace(plain, cache=piece)
    if isinstance(piece, Quota):
        piece = TopK(piece)
    policy = plain.policy
    if isinstance(piece, BlockSchedule) and piece.sees_beliefs:
        policy = replace(policy, select=Threshold(0.6))
    part = next(part for kind, part in _PARTS.items() if isinstance(piece, kind))
    return replace(plain, policy=replace(policy, **{part: piece}))  # type: ignore[arg-type]
