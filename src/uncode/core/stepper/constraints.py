"""The constraints of a batch's rows: which tokens they leave to the belief, and which writes they let through.

A row with a constraint takes part in a step like any other. Two things are added. Before the belief is formed, tokens
that stand in no accepted completion get the logit -inf (:meth:`RowConstraints.edit`). Before a step is written, its
writes are taken one after the other, in the order of the ranking; one that would leave no completion waits
(:meth:`RowConstraints.veto`). So it does not matter which piece wants to write.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..canvas import Canvas
from ..constraint import Automaton, Completions, Constraint
from ..denoiser import Facts
from ..errors import UncodeError, require, shown
from ..pieces.policy import Sampler
from ..support.arrays import Ints
from ..support.reprs import counted
from ..support.transfer import upload
from ..support.triton_support import use_triton
from ..view import View
from .record import Decision

CALM_STEPS = 32
"""After a refusal, so many steps are checked before the next forward is launched. A wasted forward costs more than the
wait for many checks."""
Constraints = Constraint | None | Sequence[Constraint | None]


def each_constraint(constraints: Constraints, count: int, of: str = "row") -> list[Constraint | None]:
    """One constraint or None per row (or whatever it is `of`), from one for all or a list."""
    one = constraints is None or isinstance(constraints, Constraint)
    each = [constraints] * count if one else constraints
    fits = isinstance(each, Sequence) and all(each is None or isinstance(each, Constraint) for each in each)
    require(
        fits, f"a constraint is made by uncode.constraint(...), one for all {of}s or one per {of}, not {shown(each)}."
    )
    assert isinstance(each, Sequence)
    count_is = f"{counted(len(each), 'constraint')} for {counted(count, of)}: give one for each, None where none is."
    require(len(each) == count, count_is)
    return list(each)  # type: ignore[arg-type]


class RowConstraints:
    """One entry per row of the batch."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.given = list[Constraint | None]()
        """As the callers gave them."""
        self.completions = list[Completions | None]()
        self.any = False
        """Whether a row has one. Where none has, the stepper asks for nothing."""
        self._is_known = False
        """Whether the completions are those of the canvas as it is now."""
        self._since_refusal = CALM_STEPS
        self._length = list[int]()
        """The columns of each row that its constraint is about: up to its last mask."""
        self._tables = dict[tuple[Automaton | None, ...], tuple[Tensor, Tensor]]()

    # -- rows ------------------------------------------------------------------------------------

    def bind(
        self, canvas: Canvas, samplers: Sequence[Sampler], given: Sequence[Constraint | None]
    ) -> list[Completions | None]:
        """The completions of new rows. Raises where a row has none."""
        if not any(given):
            return [None] * len(given)
        found = list[Completions | None]()
        spans = canvas.tokens[:, canvas.start :].cpu().numpy()
        for row, (constraint, sampler) in enumerate(zip(given, samplers, strict=True)):
            if constraint is None:
                found.append(None)
                continue
            span = spans[row]
            length = int(np.flatnonzero(span == canvas.mask_id)[-1]) + 1
            automaton = constraint.bind(self._facts, self._facts.resolve(sampler.propose.ban))
            found.append(automaton.open(span[:length]))
            if not found[-1].exist:  # type: ignore[union-attr]
                raise UncodeError(_no_completion(row, length, automaton.shortest()))
        return found

    def add(self, canvas: Canvas, given: Sequence[Constraint | None], found: Sequence[Completions | None]) -> None:
        """Rows join."""
        masked = canvas.masked[:, canvas.start :]
        columns = torch.arange(1, masked.shape[1] + 1, device=masked.device)
        self._length += (masked * columns).amax(-1).tolist() if any(given) else [0] * len(given)
        self.given += given
        self.completions += found
        self._regroup()

    def keep(self, rows: Sequence[int]) -> None:
        """Only these rows stay, in this order."""
        self.given, self._length = [self.given[row] for row in rows], [self._length[row] for row in rows]
        self.completions = [self.completions[row] for row in rows]
        self._regroup()

    def _regroup(self) -> None:
        self.any, self._is_known, self._tables = any(self.completions), False, {}

    def read(self, spans: Tensor) -> None:
        """The generated span of every row, `[B, S]`, as it is now, where that is not known. On a GPU, call it before a
        forward is launched: the copy to the host then waits for the last step only."""
        if not self._is_known:
            self._read(spans.cpu().numpy())
            self._is_known = True

    def accept(self, spans: Ints) -> bool:
        """The same after a step has been written. Returns whether every row has a completion; if not, take the step
        back."""
        self._is_known = self._read(spans)
        self._since_refusal = self._since_refusal + 1 if self._is_known else 0
        return self._is_known

    def _read(self, spans: Ints) -> bool:
        rows = [(one, spans[row, : self._length[row]]) for row, one in enumerate(self.completions) if one is not None]
        for one, span in rows:
            one.read(span)
        return all(one.exist for one, _ in rows)

    @property
    def accepts_mostly(self) -> bool:
        """Whether it pays to launch the next forward before the writes of a step are checked: where they are refused,
        that forward is wasted."""
        return self._since_refusal >= CALM_STEPS

    def of(self, members: Ints, view: View) -> list[Completions | None]:
        """The completions of a lane's rows; with draft steps, of each of their canvases, which the view has."""
        own = [self.completions[row] for row in members.tolist()]
        copies = len(view.tokens) // len(own)
        if copies == 1 or not any(own):
            return own * copies
        rows, spans = members.repeat(copies).tolist(), view.span.cpu().numpy()
        pairs = zip(rows, spans, strict=True)
        return [
            None if (one := self.completions[row]) is None else one.automaton.open(span[: self._length[row]])
            for row, span in pairs
        ]

    def _on_host(self, values: Tensor, index: list[int]) -> Ints:
        found: Ints = (values if len(index) == len(values) else values[index]).cpu().numpy()
        return found

    # -- before the belief -----------------------------------------------------------------------

    def edit(self, logits: Tensor, completions: Sequence[Completions | None], first: Ints) -> Tensor:
        """The logits `[b, W, V]` with -inf for tokens that stand in no completion. Row r's window begins at the offset
        `first[r]`. Rows without a constraint, and columns that none is about, stay as they are."""
        index = [row for row, one in enumerate(completions) if one is not None]
        if not index:
            return logits
        mine = [completions[row] for row in index]
        width, most = logits.shape[1], max(one.automaton.count for one in mine if one)
        flags = np.ones((len(index), width, most), dtype=bool)
        for at, (row, one) in enumerate(zip(index, mine, strict=True)):
            assert one is not None
            if one.exist:  # a draft may be a canvas without any: it is not taken over, whatever it believes
                found = one.allowed(int(first[row]), int(first[row]) + width)
                flags[at, : len(found), : found.shape[1]] = found
        classes, places = self._tables_of(completions)
        sent = upload(flags, logits.device)
        if use_triton(logits):
            from .constraints_triton import barred

            return barred(logits, classes, places, sent)
        if len(classes) == 1:
            allowed = sent.flatten(0, 1).index_select(1, classes[0]).view(*sent.shape[:2], -1)
        else:
            own = classes[places[places[:, 1] >= 0, 0]].long()
            allowed = sent.gather(2, own[:, None].expand(-1, sent.shape[1], -1))
        if len(index) == len(logits):
            return logits.masked_fill(~allowed, -torch.inf)
        edited = logits.clone()
        edited[index] = logits[index].masked_fill(~allowed, -torch.inf)
        return edited

    def _tables_of(self, completions: Sequence[Completions | None]) -> tuple[Tensor, Tensor]:
        """The classes of tokens, `[A, V]`, and per row `[b, 2]` which of them are its own, and which flags."""
        automata = tuple(None if one is None else one.automaton for one in completions)
        if automata not in self._tables:
            each = list(dict.fromkeys(one for one in automata if one is not None))
            own = np.cumsum([one is not None for one in automata]) - 1
            pairs = [(-1, -1) if one is None else (each.index(one), own[row]) for row, one in enumerate(automata)]
            classes = torch.stack([one.classes for one in each])
            self._tables[automata] = classes, upload(np.array(pairs), classes.device)
        return self._tables[automata]

    # -- before the step is written --------------------------------------------------------------

    def veto(self, decision: Decision, completions: Sequence[Completions | None], first: Ints) -> None:
        """Drop those writes of a step after which no completion would be left: they are taken in the order of the
        ranking, and then those that it does not have, from left to right."""
        self._is_known = False
        index = [row for row, one in enumerate(completions) if one is not None]
        if not index:
            return
        rows = upload(np.array(index), decision.chosen.device)
        chosen, token = torch.stack([decision.chosen.long(), decision.belief.token])[:, rows].cpu().numpy()
        score = decision.score[rows].cpu().numpy() if (chosen.sum(-1) > 1).any() else None
        dropped = False
        for at, row in enumerate(index):
            columns = np.flatnonzero(chosen[at])
            if score is not None:
                columns = columns[np.argsort(-np.nan_to_num(score[at, columns], nan=-np.inf), kind="stable")]
            one = completions[row]
            assert one is not None
            for column in columns.tolist():
                if not one.write(int(first[row]) + column, int(token[at, column])):
                    chosen[at, column], dropped = 0, True
        if dropped:
            kept = decision.chosen.clone()
            kept[rows] = upload(chosen > 0, kept.device)
            decision.chosen = kept
            decision.edited = None if decision.edited is None else decision.edited & kept

    def veto_fill(self, members: Ints, here: Tensor, fill: Tensor) -> Tensor:
        """What a stop rule wants to write into rows `here` `[b, S]`, -1 where nothing: all of it for rows in which a
        completion is left then, and for the others nothing."""
        own = [self.completions[row] for row in members.tolist()]
        index = [at for at, one in enumerate(own) if one is not None]
        if not index:
            return fill
        wanted = self._on_host(fill, index)
        if (wanted < 0).all():
            return fill
        tokens, refused = self._on_host(here, index), list[int]()
        for at, span, filled in zip(index, tokens, wanted, strict=True):
            one, length = own[at], self._length[int(members[at])]
            assert one is not None
            if (filled[:length] >= 0).any():
                one.read(np.where(filled >= 0, filled, span)[:length])
                refused += [] if one.exist else [at]
        return fill.index_fill(0, upload(np.array(refused), fill.device), -1) if refused else fill


def _no_completion(row: int, length: int, shortest: int | None) -> str:
    """The sentence for a row that cannot be completed."""
    if shortest is None:
        return f"the constraint of row {row} accepts no text that this model can write: change it."
    if shortest > length:
        room = counted(length, "token")
        return f"no text of row {row} that its constraint accepts fits into {room}: it takes at least {shortest}."
    return (
        f"no text of row {row} that its constraint accepts has {counted(length, 'token')} and the given ones in their "
        "place: change the length, the given tokens or the constraint."
    )
