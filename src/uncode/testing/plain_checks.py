"""Pieces that see no view: schedules, blocks, stop rules and cache policies."""

from __future__ import annotations

import numpy as np
import torch

from ..core.denoiser import Facts
from ..core.pieces.blocks import BlockSchedule
from ..core.pieces.cache import NEVER, CachePolicy, Place, Span
from ..core.pieces.select import Schedule
from ..core.pieces.stop import Stop
from .contract import expect
from .hash_model import HashDenoiser

_MASKED = np.array([[4, 3, 0], [1, 5, 2], [6, 0, 0]])


def check_schedule(piece: Schedule) -> None:
    """It shares its steps among the blocks, each row by itself"""
    name, shares = type(piece).__name__, np.asarray(piece.shares(_MASKED))
    expect(shares.shape == _MASKED.shape, f"{name}.shares must return one number per block, [B, blocks].")
    expect(np.issubdtype(shares.dtype, np.integer), f"{name}.shares must return whole numbers, not {shares.dtype}.")
    if piece.has_schedule:
        expect(bool((shares[_MASKED > 0] > 0).all()), f"{name}.shares gives a block with masks no step.")
        expect(bool((shares[_MASKED == 0] == 0).all()), f"{name}.shares gives a block without masks a step.")
    for row in range(len(_MASKED)):
        same = np.array_equal(piece.shares(_MASKED[row : row + 1])[0], shares[row])
        expect(same, f"{name}.shares gives a row other steps alone than in a batch.")
    least = np.asarray(piece.min_steps(_MASKED[:, 0], shares[:, 0]))
    expect(least.shape == (len(_MASKED),), f"{name}.min_steps must return one number per row, [B].")


def check_blocks(piece: BlockSchedule) -> None:
    """Its blocks cover each row from the first offset to the last"""
    name, lengths = type(piece).__name__, np.array([12, 7, 1])
    if piece.sees_beliefs:
        widest = np.asarray(piece.widest(lengths))
        fits = widest.shape == lengths.shape and np.issubdtype(widest.dtype, np.integer) and bool((widest > 0).all())
        expect(fits, f"{name}.widest must return a whole number of columns for each row, [B].")
        return
    ends = np.asarray(piece(lengths))
    expect(ends.ndim == 2 and len(ends) == len(lengths), f"{name} must return the ends of blocks, [B, blocks].")
    expect(np.issubdtype(ends.dtype, np.integer), f"{name} must return whole numbers, not {ends.dtype}.")
    rising = bool((np.diff(ends, prepend=0) >= 0).all() and (ends[:, 0] > 0).all())
    expect(rising, f"{name} returns ends that do not rise: {ends.tolist()}.")
    covers = np.array_equal(ends[:, -1], lengths)
    expect(covers, f"{name} returns last ends {ends[:, -1].tolist()} for rows of {lengths.tolist()} tokens.")
    for row, length in enumerate(lengths):
        alone = np.unique(np.asarray(piece(np.array([length])))[0])
        same = np.array_equal(alone, np.unique(ends[row]))
        expect(same, f"{name} gives a row of {length} tokens other blocks alone than in a batch.")


def check_stop(piece: Stop, model: HashDenoiser) -> None:
    """It fills masks alone, with tokens, each row by itself"""
    facts, name = Facts.of(model), type(piece).__name__
    rule, mask, end = piece.bind(facts), model.mask_id, model.eos_ids[0]
    rows = [[3, end, mask, mask, mask, 1], [mask, end, mask, 2, 2, 1], [4, 5, 6, end, mask, 1]]
    tokens = torch.tensor(rows)
    own = torch.ones_like(tokens, dtype=torch.bool)
    own[:, -1] = False  # padding counts as given
    fill = rule(tokens.clone(), tokens == mask, own)
    shaped = fill.shape == tokens.shape and not fill.is_floating_point() and fill.dtype != torch.bool
    expect(shaped, f"{name} must return a token id per position, [B, S], and -1 where nothing is filled.")
    expect(not bool(((fill >= 0) & ~own).any()), f"{name} fills positions that are not the decoder's own.")
    named = (fill == -1) | ((fill >= 0) & (fill < facts.vocab_size) & (fill != mask))
    expect(bool(named.all()), f"{name} fills with ids that are no token to write.")
    for row in range(len(rows)):
        alone = rule(tokens[row : row + 1, :-1], tokens[row : row + 1, :-1] == mask, own[row : row + 1, :-1])
        expect(torch.equal(alone[0], fill[row, :-1]), f"{name} ends a row otherwise alone than in a batch.")


def check_cache(piece: CachePolicy) -> None:
    """Its plans compute the first mask of the open block, reuse only what was kept, and change when it says so"""
    name, length, width = type(piece).__name__, 400, 320
    block = Span(np.array([6, 10, 40]), np.array([10, 17, 40 + width]))  # narrow blocks, and one that is wide
    wanted, stored = Span(block.start, block.start + width), np.zeros((3, length), dtype=bool)
    before, refreshed, last = None, np.full(3, -NEVER), block.start
    for step in range(6):
        age, first_mask = np.full(3, step), block.start + (block.stop - block.start - 1) * step // 5
        since = first_mask - refreshed
        plan = piece(Place(block, age, wanted, length, first_mask, last, since, since, start=int(block.start.min())))
        refreshed, last = np.where(plan.reuse.stop == 0, first_mask, refreshed), first_mask
        spans = [plan.window, plan.wanted, plan.store, plan.reuse]
        window, asked, keep, reuse = (span.mask(length) for span in spans)
        expect(
            bool(window[np.arange(3), first_mask].all()),
            f"{name} does not compute the first mask of an open block, so its row cannot go on: compute the whole "
            "block, or set follows_masks = True and compute from place.first_mask on.",
        )
        expect(bool((asked == wanted.mask(length)).all()), f"{name} asks for other columns than place.wanted.")
        expect(not bool((keep & ~window).any()), f"{name} keeps columns that it does not compute.")
        missing = bool((reuse & ~window & ~stored).any())
        expect(not missing, f"{name} reuses columns that no forward since the block opened has kept.")
        if not piece.needs_kv_cache:
            expect(bool(window.all()), f"{name} leaves columns out, so its needs_kv_cache must be True.")
        from_first_mask = Span(first_mask, np.full(3, length)).mask(length)
        sees_all = bool((window | ~from_first_mask).all())
        expect(sees_all or not piece.sees_span, f"{name} leaves masks out, so its sees_span must be False.")
        stored = (stored & ~window) | keep
        plans = [mask.tobytes() for mask in (window, keep, reuse)]
        asks_again = piece.follows_masks or before is None or piece.changes(age)
        expect(
            asks_again or plans == before,
            f"{name} changes its plan at step {step} of a block, and its changes() is False there.",
        )
        before = plans
