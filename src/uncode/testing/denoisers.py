"""`check_denoiser`: every promise of `Denoiser` and `Session`, on short rows of random tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from ..core.canvas import Canvas
from ..core.denoiser import Denoiser, Facts, Layout, Session
from ..core.errors import UncodeError
from ..core.logits_check import model_name
from ..core.pieces.cache import Plan, Span
from .contract import BrokenPromise, Check, expect, run_checks

_PROMPTS, _LENGTHS = (6, 3, 4), (5, 7, 4)
"""Tokens of the three rows before the generated span, and in it."""


@torch.inference_mode()
def check_denoiser(denoiser: Denoiser, *, tolerance: float | None = None) -> None:
    """Raise :class:`ContractError` unless the model keeps every promise that the stepper relies on.

    It runs about twenty forwards over rows of at most 13 random tokens. Logits that should agree may differ by
    `tolerance` times the largest of them (None: 0.02 in 16-bit types, else 0.0001).
    """
    name = model_name(denoiser) if isinstance(denoiser, Denoiser) else type(denoiser).__name__
    Facts.of(denoiser)
    trial = _Trial(denoiser, name, tolerance)
    run_checks((name, check) for check in trial.checks())


class _Trial:
    """A model on trial: rows of tokens, and what it says of them."""

    def __init__(self, denoiser: Denoiser, name: str, tolerance: float | None) -> None:
        self.denoiser, self.name = denoiser, name
        usual = 0.02 if denoiser.dtype.itemsize == 2 else 1e-4
        self.tolerance = usual if tolerance is None else tolerance
        self.lengths = _LENGTHS if denoiser.sees_padding else None
        """Of the answers, where rows may differ in length."""

    def checks(self) -> Iterator[Check]:
        yield from (self.has_sound_ids, self.returns_logits, self.leaves_its_input_alone, self.repeats_itself)
        yield from (self.returns_what_is_wanted, self.keeps_rows_apart, self.lets_rows_leave, self.lets_rows_join)
        yield self.handles_padding
        if self.denoiser.block_length is not None:
            yield self.sees_no_later_block
        if self.denoiser.has_kv_cache:
            yield from (self.reuses_its_cache, self.moves_its_cache, self.grows_its_cache)
            if self.denoiser.copies_kv_cache:
                yield self.copies_its_cache

    # -- inputs ----------------------------------------------------------------------------------

    def canvas(self, rows: list[int], lengths: tuple[int, ...] | None = None) -> Canvas:
        """Rows of random tokens with masks after them; equally long where `lengths` is None."""
        generator = torch.Generator().manual_seed(5)
        special = {self.denoiser.mask_id, *self.denoiser.eos_ids}
        usual = torch.tensor([i for i in range(min(self.denoiser.vocab_size, 5000)) if i not in special])
        expect(len(usual) > 0, f"{self.name} has no token but its mask and EOS tokens: vocab_size is wrong.")
        drawn = [usual[torch.randint(len(usual), (max(_PROMPTS),), generator=generator)] for _ in _PROMPTS]
        sizes = [_PROMPTS[row] if lengths else _PROMPTS[0] for row in rows]
        prompts = [drawn[row][:size].tolist() for row, size in zip(rows, sizes, strict=True)]
        spans = [lengths[row] if lengths else _LENGTHS[0] for row in rows]
        canvas = Canvas.after_prompt(prompts, length=spans, mask_id=self.denoiser.mask_id)
        return canvas.to(self.denoiser.device)

    def run(self, canvas: Canvas, session: Session | None = None, version: int = 0) -> Tensor:
        """Logits of the whole generated span, `[B, S, V]`, in float64."""
        opened = self.denoiser.open(*canvas.tokens.shape) if session is None else session
        layout = Layout(canvas.valid, canvas.given, version)
        return opened.logits(canvas.tokens.clone(), layout, _plan(canvas)).double().clone()

    def agree(self, one: Tensor, other: Tensor, sentence: str) -> None:
        """Raise unless two tensors of logits are the same but for rounding."""
        expect(one.shape == other.shape, sentence)
        finite = one.isfinite() & other.isfinite()
        scale = float(one[finite].abs().max()) if bool(finite.any()) else 1.0
        near = bool(((one - other).abs()[finite] <= self.tolerance * max(scale, 1e-6)).all())
        same = torch.equal(one == -torch.inf, other == -torch.inf) and torch.equal(one.isnan(), other.isnan())
        expect(near and same, sentence)

    # -- promises --------------------------------------------------------------------------------

    def has_sound_ids(self) -> None:
        """Its ids lie inside its vocabulary"""
        den, size = self.denoiser, self.denoiser.vocab_size
        expect(0 <= den.mask_id < size, f"{self.name}: mask_id {den.mask_id} is outside the vocabulary of {size}.")
        outside = [i for i in den.eos_ids if not 0 <= i < size]
        expect(not outside, f"{self.name}: eos_ids {outside} are outside the vocabulary of {size}.")
        expect(den.mask_id not in den.eos_ids, f"{self.name}: the mask token is among eos_ids.")

    def returns_logits(self) -> None:
        """It returns logits [B, W, V] of the wanted columns, -inf for the mask token"""
        canvas, den = self.canvas([0, 1]), self.denoiser
        session, layout = den.open(*canvas.tokens.shape), Layout(canvas.valid, canvas.given)
        logits = session.logits(canvas.tokens, layout, _plan(canvas))
        expect(isinstance(logits, Tensor), f"{self.name} must return a tensor of logits, not {type(logits).__name__}.")
        expected, shape = (2, canvas.span, den.vocab_size), tuple(logits.shape)
        advice = ": return the columns of plan.wanted alone" if shape[1:2] == (canvas.tokens.shape[1],) else ""
        expect(shape == expected, f"{self.name} returns logits of shape {shape}, not {expected}{advice}.")
        expect(logits.is_floating_point(), f"{self.name} returns logits of type {logits.dtype}.")
        there, stated = logits.device.type, torch.device(den.device).type
        expect(there == stated, f"{self.name} returns logits on {there}, and its device is {stated}.")
        expect(bool(logits.amax(-1).isfinite().all()), f"{self.name} returns NaN or infinite logits.")
        barred = bool((logits[..., den.mask_id] == -torch.inf).all())
        expect(barred, f"{self.name} gives the mask token a probability: set its logit to -inf at every position.")

    def leaves_its_input_alone(self) -> None:
        """It never writes into tokens or the layout"""
        canvas = self.canvas([0, 1])
        tokens, layout = canvas.tokens.clone(), Layout(canvas.valid.clone(), canvas.given.clone())
        self.denoiser.open(*tokens.shape).logits(tokens, layout, _plan(canvas))
        expect(
            torch.equal(tokens, canvas.tokens),
            f"{self.name} writes into the tokens that it is given: clone them first.",
        )
        same = torch.equal(layout.valid, canvas.valid) and torch.equal(layout.given, canvas.given)
        expect(same, f"{self.name} writes into the layout that it is given: clone it first.")

    def repeats_itself(self) -> None:
        """The same tokens give the same logits, whatever the caller did to the last ones"""
        canvas = self.canvas([0, 1])
        session, layout = self.denoiser.open(*canvas.tokens.shape), Layout(canvas.valid, canvas.given)
        plan = _plan(canvas)
        first = session.logits(canvas.tokens, layout, plan)
        before = first.double().clone()
        first.zero_()
        after = session.logits(canvas.tokens, layout, plan).double()
        sentence = "returns other logits for the same tokens: switch dropout off, and return a tensor of your own"
        self.agree(before, after, f"{self.name} {sentence}.")

    def sees_no_later_block(self) -> None:
        """With a `block_length`, a position sees no later block than its own"""
        canvas, length = self.canvas([0, 0]), self.denoiser.block_length or 1
        canvas.tokens[1, -1] = canvas.tokens[1, 0]
        blocks = torch.arange(canvas.start, canvas.start + canvas.span) // length
        one, other = self.run(canvas)[:, (blocks < blocks[-1]).to(self.denoiser.device)]
        sentence = f"sees later blocks than a position's own, which its block_length of {length} rules out"
        self.agree(one, other, f"{self.name} {sentence}.")

    def returns_what_is_wanted(self) -> None:
        """The logits of some columns are those of all columns, cut"""
        canvas = self.canvas([0, 1])
        whole, layout = self.run(canvas), Layout(canvas.valid, canvas.given)
        start = np.array([canvas.start + 1, canvas.start + 2])
        plan = _plan(canvas, Span(start, start + 2))
        partial = self.denoiser.open(*canvas.tokens.shape).logits(canvas.tokens.clone(), layout, plan).double()
        expected = torch.stack([whole[0, 1:3], whole[1, 2:4]])
        self.agree(
            partial, expected, f"{self.name} returns other columns than plan.wanted, which may differ between rows."
        )

    def keeps_rows_apart(self) -> None:
        """A row has the same logits alone and in a batch"""
        both, alone = self.run(self.canvas([0, 1])), self.run(self.canvas([1]))
        self.agree(both[1:], alone, f"{self.name} gives a row other logits alone than in a batch.")

    def lets_rows_leave(self) -> None:
        """After keep, the rows that stay have the logits they have alone"""
        canvas = self.canvas([0, 1, 2])
        session = self.denoiser.open(*canvas.tokens.shape)
        self.run(canvas, session)
        session.keep(torch.tensor([2, 0], device=canvas.tokens.device))
        self.agree(
            self.run(self.canvas([2, 0]), session, version=1),
            self.run(self.canvas([2, 0])),
            f"{self.name}: after keep() the rows that stay have other logits than alone.",
        )

    def lets_rows_join(self) -> None:
        """After add, all rows have the logits they have alone"""
        canvas = self.canvas([0])
        session = self.denoiser.open(*canvas.tokens.shape)
        self.run(canvas, session)
        session.add(2, 0, 0)
        self.agree(
            self.run(self.canvas([0, 1, 2]), session, version=1),
            self.run(self.canvas([0, 1, 2])),
            f"{self.name}: after add() the rows have other logits than alone.",
        )

    def handles_padding(self) -> None:
        """It ignores padding, or refuses it"""
        canvas = self.canvas([0, 1, 2], _LENGTHS)
        if not self.denoiser.sees_padding:
            expect(_refuses(lambda: self.run(canvas)), f"{self.name} ignores padding in silence: {_PADDING}.")
            return
        together = self.run(canvas)
        for row, length in enumerate(_LENGTHS):
            alone = self.run(self.canvas([row], _LENGTHS))
            sentence = f"{self.name} gives a row other logits beside a longer one: {_MASKING}."
            self.agree(together[row : row + 1, :length], alone, sentence)

    def reuses_its_cache(self) -> None:
        """With cached keys and values of unchanged tokens, the logits are those of a full forward"""
        canvas = self.canvas([0, 1])
        full, layout = self.run(canvas), Layout(canvas.valid, canvas.given)
        session, tokens = self.denoiser.open(*canvas.tokens.shape), canvas.tokens.clone()
        session.logits(tokens, layout, _plan(canvas, stores=True))
        cached = session.logits(tokens, layout, _plan(canvas, reuses=True)).double()
        sentence = "gives other logits with its KV cache, although no token has changed: set has_kv_cache to False"
        self.agree(cached, full, f"{self.name} {sentence}, or store and reuse what the plan says.")

    def moves_its_cache(self) -> None:
        """After keep, the cached keys and values are those of the rows that stay"""
        session, canvas = self._filled([0, 1, 2])
        rows = torch.tensor([2, 0], device=canvas.tokens.device)
        session.keep(rows)
        layout = Layout(canvas.valid[rows], canvas.given[rows], 1)
        plan = _plan(canvas, reuses=True).take(np.array([2, 0]))
        cached = session.logits(canvas.tokens[rows], layout, plan).double()
        self._agree_by_row(cached, [2, 0], "after keep() its KV cache holds other rows than those that stayed")

    def copies_its_cache(self) -> None:
        """After copy_rows, another session has the keys and values of the rows that were named"""
        session, canvas = self._filled([0, 1])
        rows = torch.tensor([1, 1, 0], device=canvas.tokens.device)
        other = self.denoiser.open(3, canvas.tokens.shape[1])
        other.copy_rows(session, rows)  # type: ignore[attr-defined]  # `copies_kv_cache` says so
        plan = _plan(canvas, reuses=True).take(np.array([1, 1, 0]))
        cached = other.logits(canvas.tokens[rows], Layout(canvas.valid[rows], canvas.given[rows]), plan).double()
        self._agree_by_row(cached, [1, 1, 0], "after copy_rows() its KV cache holds other rows than those named")

    def grows_its_cache(self) -> None:
        """After add, the cached keys and values are in the columns where the rows' tokens are now"""
        session, small = self._filled([2])
        canvas = self.canvas([2, 0, 1], self.lengths)
        session.add(2, canvas.start - small.start, canvas.span - small.span)
        layout, length = Layout(canvas.valid, canvas.given, 1), canvas.tokens.shape[1]
        window = Span(np.array([canvas.start, 0, 0]), np.full(3, length))  # the first row reuses, the others are new
        reuse, wanted = Span(np.zeros(3, dtype=np.int64), np.array([length, 0, 0])), _span(3, canvas.start, length)
        plan = Plan(window, wanted, store=_span(3, 0, 0), reuse=reuse)
        cached = session.logits(canvas.tokens.clone(), layout, plan).double()
        self._agree_by_row(cached, [2, 0, 1], "after add() its KV cache is in other columns or rows than the tokens")

    def _filled(self, rows: list[int]) -> tuple[Session, Canvas]:
        """A session that has stored the keys and values of all columns of these rows."""
        canvas = self.canvas(rows, self.lengths)
        session = self.denoiser.open(*canvas.tokens.shape)
        session.logits(canvas.tokens.clone(), Layout(canvas.valid, canvas.given), _plan(canvas, stores=True))
        return session, canvas

    def _agree_by_row(self, cached: Tensor, rows: list[int], fault: str) -> None:
        """Raise unless each row of `cached` has the logits of the row alone, without a cache."""
        for at, row in enumerate(rows):
            alone = self.run(self.canvas([row], self.lengths))
            self.agree(cached[at : at + 1, : alone.shape[1]], alone, f"{self.name}: {fault}.")


_PADDING = "raise an error for rows of unequal length, or mask the padding and set sees_padding to True"
_MASKING = "hide the columns outside layout.valid and count positions from a row's first valid column"


def _refuses(run: Callable[[], object]) -> bool:
    try:
        run()
    except UncodeError:
        return True
    except Exception as error:
        raise BrokenPromise(f"padding raises {type(error).__name__} ({error}): {_PADDING}.") from error
    return False


def _span(rows: int, start: int, stop: int) -> Span:
    return Span(np.full(rows, start), np.full(rows, stop))


def _plan(canvas: Canvas, wanted: Span | None = None, *, stores: bool = False, reuses: bool = False) -> Plan:
    """A forward that returns the wanted columns, or the whole generated span.

    It `stores` the keys and values of all columns, or it `reuses` them and computes the generated span alone.
    """
    rows, length = canvas.tokens.shape
    everything, nothing, generated = (_span(rows, *ends) for ends in ((0, length), (0, 0), (canvas.start, length)))
    return Plan(
        window=generated if reuses else everything,
        wanted=generated if wanted is None else wanted,
        store=everything if stores else nothing,
        reuse=everything if reuses else nothing,
    )
