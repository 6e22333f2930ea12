"""Pieces that see a view (scores, selectors, quotas, remaskers, proposals): checked on the views of real steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import torch
from torch import Tensor

from ..core.denoiser import Facts
from ..core.noise import Draw, PhiloxNoise
from ..core.pieces.piece import Piece
from ..core.pieces.propose import Proposal
from ..core.pieces.remask import Editor, Remasker
from ..core.pieces.score import Score
from ..core.pieces.select import Quota, Selector
from ..core.stepper.lanes.memory import blank
from ..core.view import Ranking, View
from .contract import BrokenPromise, Check, expect
from .copies import fresh_copy
from .hash_model import HashDenoiser
from .recorded_steps import RecordedStep, recorded_steps, recorded_steps_alone

SEES_VIEWS = (Score, Selector, Quota, Remasker, Editor, Proposal)


def view_checks(piece: Piece, model: HashDenoiser) -> Iterator[Check]:
    """The promises of a piece that sees a view."""
    name, facts = type(piece).__name__, Facts.of(model)
    together, alone = recorded_steps(model), recorded_steps_alone(model)

    def fresh() -> Piece:
        return fresh_copy(piece).bind(facts)

    def has_the_right_form() -> None:
        """It returns the documented shapes and types, whatever the undefined columns hold"""
        for step in together:
            _result(fresh(), step, facts)

    def is_deterministic() -> None:
        """It gives one result for one view"""
        for step in together[:3]:
            if _differ(_result(fresh(), step, facts), _result(fresh(), step, facts)):
                raise BrokenPromise(f"{name} gives two results for the same view: draw random numbers from view.noise.")

    def remembers_nothing() -> None:
        """It is a function of its view"""
        is_deterministic()  # a random result would look like a memory
        used = fresh()
        for step in together:
            if _differ(_result(used, step, facts), _result(fresh(), step, facts)):
                raise BrokenPromise(
                    f"{name} remembers earlier steps: its result differs from that of a new {name} for the same view. "
                    "Compute it from the view alone, or declare buffers: rows leave and blocks open between two steps."
                )

    def writes_nothing() -> None:
        """It never changes its view or the logits"""
        for step in together[:3]:
            _check_writes(fresh(), step, facts)

    def ignores_neighbours() -> None:
        """A row has the same result alone and beside rows with wider blocks"""
        for step in together:
            together_result = _result(fresh(), step, facts)
            for at, (row, forwards) in enumerate(zip(step.rows, step.forwards, strict=True)):
                single = alone[row, forwards]
                pair = zip(together_result, _result(fresh(), single, facts), strict=True)
                if any(not _equal(_own(ours, step, at), _own(theirs, single, 0)) for ours, theirs in pair):
                    raise BrokenPromise(
                        f"{name} gives row {row} another result alone than beside a row with wider blocks: use only "
                        "the columns of the row's open block, and formulas that hold for numbers and [B, 1] tensors."
                    )

    def states_its_needs() -> None:
        """It reads the steps of a schedule only if it says so"""
        if piece.needs_schedule or isinstance(piece, Quota | Selector | Proposal):
            return
        for step in together:
            without = replace(step, has_schedule=False)
            if _differ(_result(fresh(), step, facts), _result(fresh(), without, facts)):
                raise BrokenPromise(f"{name} reads view.block_steps: set needs_schedule = True on its class.")

    def states_that_it_draws() -> None:
        """It reads the noise only if it says so"""
        if any(part.draws for part in piece.pieces()):
            return
        for step in together[:3]:
            assert isinstance(step.view.noise, PhiloxNoise)
            noise = PhiloxNoise(step.view.noise.seeds + 1, step.view.noise.steps)
            other = replace(step, view=step.view.having(noise=noise))
            if _differ(_result(fresh(), step, facts), _result(fresh(), other, facts)):
                raise BrokenPromise(f"{name} reads view.noise: define its property draws, which returns True.")

    yield from (has_the_right_form, is_deterministic, remembers_nothing, writes_nothing, ignores_neighbours)
    yield from (states_its_needs, states_that_it_draws)


def _result(piece: Piece, step: RecordedStep, facts: Facts) -> list[Tensor]:
    """What the piece returns for this step, after checks of its form: tensors `[B, W]`, `[B, 1]` or `[B, W, V]`."""
    name, (rows, width) = type(piece).__name__, step.view.tokens.shape
    if isinstance(piece, Proposal):
        return [*_proposal(piece, step, facts), *_remembered(piece, step, facts)]
    view = _view(piece, step, facts)
    if isinstance(piece, Score):
        score = piece(view)
        _check_tensor(score, f"{name} must return a score", ((rows, width), (1, width)))
        real = not score.dtype.is_complex and score.dtype != torch.bool
        expect(real, f"{name} must return real numbers, not {score.dtype}.")
        score = score.expand(rows, width)
        nan = bool(score[view.eligible].isnan().any())
        expect(not nan, f"{name} scores an eligible position NaN: return a number, or -inf for never.")
        return [torch.where(view.eligible, score.double(), 0.0), *_remembered(piece, step, facts)]
    if isinstance(piece, Selector):
        return [_selection(piece, view), *_remembered(piece, step, facts)]
    if isinstance(piece, Quota):
        return [_count(piece, view)]
    assert isinstance(piece, Remasker | Editor)
    return [*_erasure(piece, view), *_remembered(piece, step, facts)]


def _view(piece: Piece, step: RecordedStep, facts: Facts) -> View:
    """What the piece sees at this step, with blank buffers; the entropy stands for the drift."""
    view = step.fresh_view(remasking=isinstance(piece, Remasker | Editor))
    rows, width = view.tokens.shape
    memory = {b.name: blank(b, rows, width, facts) for part in piece.pieces() for b in part.buffers()}
    return replace(view, memory=memory, belief=replace(view.belief, moved=view.belief.entropy))


def _remembered(piece: Piece, step: RecordedStep, facts: Facts) -> list[Tensor]:
    """What the piece and its parts remember of this step."""
    name, view = type(piece).__name__, _view(piece, step, facts)
    view = replace(view, chosen=Ranking(view.belief.logp, view.eligible).top(1))
    found = {n: value for part in piece.pieces() for n, value in part.remember(view, step.logits.clone()).items()}
    wanted = {n: tuple(value.shape) for n, value in view.memory.items()}
    shapes = {n: tuple(value.shape) for n, value in found.items()}
    expect(shapes == wanted, f"{name}.remember must return its buffers {wanted}, not {shapes}.")
    return [value for _, value in sorted(found.items())]


def _selection(piece: Selector, view: View) -> Tensor:
    name, ranking = type(piece).__name__, Ranking(view.belief.logp, view.eligible)
    chosen = piece(ranking, view)
    _check_flags(chosen, f"{name} must return which positions it selects", view.tokens.shape)
    stray = bool((chosen & ~view.eligible).any())
    expect(not stray, f"{name} selects positions that are no candidates: choose among ranking.candidates.")
    waits = bool((view.eligible.any(-1) & ~chosen.any(-1)).any())
    expect(piece.may_wait or not waits, f"{name} selects nothing while masks are left, and its may_wait is False.")
    return chosen


def _count(piece: Quota, view: View) -> Tensor:
    name, rows, count = type(piece).__name__, len(view.tokens), piece(view)
    fits = isinstance(count, int) or (isinstance(count, Tensor) and tuple(count.shape) in ((rows, 1), (1, 1), ()))
    expect(fits, f"{name} must return a whole number or one per row, [B, 1], not {count!r}.")
    counts = torch.as_tensor(count)
    whole = not counts.dtype.is_floating_point and counts.dtype != torch.bool
    expect(whole, f"{name} must return whole numbers, not {counts.dtype}.")
    expect(bool((counts >= 0).all()), f"{name} returns a negative number of tokens.")
    return counts.expand(rows, 1)


def _erasure(piece: Remasker | Editor, view: View) -> list[Tensor]:
    name, rows, own = type(piece).__name__, len(view.tokens), view.own
    erased, pending = piece(view), torch.as_tensor(piece.pending(view))
    if isinstance(piece, Remasker) and not piece.erases:
        expect(not bool(erased.any()), f"{name} erases, and its erases is False.")
    does = "erases" if isinstance(piece, Remasker) else "overwrites"
    _check_flags(erased, f"{name} must return which positions it {does}", view.tokens.shape)
    expect(not bool((erased & ~own).any()), f"{name} {does} positions outside view.own: the decoder wrote only those.")
    fits = pending.dtype == torch.bool and tuple(pending.shape) in ((rows, 1), (1, 1), ())
    expect(fits, f"{name}.pending must return True, False or a boolean per row, [B, 1].")
    return [erased, pending.expand(rows, 1)]


def _proposal(piece: Proposal, step: RecordedStep, facts: Facts) -> list[Tensor]:
    name, view, logits = type(piece).__name__, _view(piece, step, facts), step.logits.clone()
    proposed, believed = piece(logits, view)
    shape = tuple(logits.shape)
    _check_tensor(believed, f"{name} must return logits for the belief", (shape,))
    token = proposed(logits) if isinstance(proposed, Draw) else believed.argmax(-1) if proposed is None else proposed
    _check_tensor(token, f"{name} must propose a token per position", (shape[:2],))
    expect(token.dtype == torch.int64, f"{name} must propose token ids in int64, not {token.dtype}.")
    here = token[view.eligible]
    inside = bool(((here >= 0) & (here < facts.vocab_size)).all())
    expect(inside, f"{name} proposes a token outside the vocabulary of {facts.vocab_size}.")
    expect(not bool((here == facts.mask_id).any()), f"{name} proposes the mask token.")
    return [torch.where(view.eligible, token, -1), torch.where(view.eligible[:, :, None], believed, 0.0)]


def _check_writes(piece: Piece, step: RecordedStep, facts: Facts) -> None:
    name = type(piece).__name__
    view, before, logits = _view(piece, step, facts), _view(piece, step, facts), step.logits.clone()
    if isinstance(piece, Proposal):
        piece(logits, view)
    elif isinstance(piece, Selector):
        ranking, untouched = (Ranking(v.belief.logp, v.eligible) for v in (view, before))
        piece(ranking, view)
        expect(_equal(ranking.score, untouched.score), f"{name} writes into ranking.score: copy it first.")
    elif isinstance(piece, Score | Quota | Remasker | Editor):
        piece(view)
    for field in (f.name for f in fields(view) if isinstance(getattr(view, f.name), Tensor)):
        same = _equal(getattr(view, field), getattr(before, field))
        expect(same, f"{name} writes into view.{field}: copy the tensor first.")
    for buffer in view.memory:
        same = _equal(view.memory[buffer], before.memory[buffer])
        expect(same, f"{name} writes into view.memory['{buffer}']: return its next value from remember.")
    for field in ("token", "logp", "entropy"):
        same = _equal(getattr(view.belief, field), getattr(before.belief, field))
        expect(same, f"{name} writes into view.belief.{field}: copy the tensor first.")
    expect(_equal(logits, step.logits), f"{name} writes into the logits: copy them first.")


def _check_tensor(value: object, what: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    expect(isinstance(value, Tensor), f"{what} as a tensor, not {type(value).__name__}.")
    assert isinstance(value, Tensor)
    wanted = " or ".join(str(list(shape)) for shape in shapes)
    expect(tuple(value.shape) in shapes, f"{what} of shape {wanted}, not {list(value.shape)}.")


def _check_flags(value: object, what: str, shape: torch.Size) -> None:
    _check_tensor(value, what, (tuple(shape),))
    assert isinstance(value, Tensor)
    expect(value.dtype == torch.bool, f"{what} as booleans, not {value.dtype}.")


def _own(values: Tensor, step: RecordedStep, at: int) -> Tensor:
    """A row's values at the columns of its open block, or its one value."""
    return values[at] if values.shape[1] == 1 else values[at, step.columns(at)]


def _differ(ours: list[Tensor], theirs: list[Tensor]) -> bool:
    return any(not _equal(one, other) for one, other in zip(ours, theirs, strict=True))


def _equal(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers; NaN equals NaN."""
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())
