"""A decode from its first step to its trace."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Unpack

import numpy as np

from ..canvas import Canvas
from ..denoiser import Denoiser
from ..support.reprs import counted
from ..trace.row_record import RowRecord
from ..trace.trace import Trace, header_of
from .advance import Step, advance
from .constraints import Constraints
from .failures import check_beliefs
from .requests import DecodeOptions, Samplers, Seeds
from .state import State

OPTION_PARAMETERS = [p for p in signature(State).parameters.values() if p.name in DecodeOptions.__annotations__]
"""The options of `steps` and `decode` that :class:`State` takes."""


class Steps:
    """A decode in progress: iterate over it for its steps, then ask for its trace. `uncode.steps` makes one."""

    def __init__(
        self,
        denoiser: Denoiser,
        canvas: Canvas,
        sampler: Samplers,
        seed: Seeds = 0,
        constraint: Constraints = None,
        **options: Unpack[DecodeOptions],
    ) -> None:
        self.state, self._canvas = State(denoiser, **options), canvas
        self.state.add(canvas, sampler, seed, constraint)
        self._rows: dict[int, RowRecord] = {}

    def __repr__(self) -> str:
        state = self.state
        return f"Steps({counted(len(state.rows), 'row')} in decoding, {counted(state.clock, 'forward')} so far)"

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        self.collect_finished()
        if not len(self.state.rows):
            raise StopIteration
        return advance(self.state)

    def collect_finished(self) -> None:
        """Rows that have finished leave the batch."""
        state = self.state
        if state.any_finished:
            rows = np.flatnonzero(state.rows.finished)
            found = state.read_rows(rows)
            for at, row in enumerate(rows.tolist()):
                record = self._rows[int(state.rows.ids[row])] = found.record(at)
                check_beliefs(state, row, record)
            state.keep(np.flatnonzero(~state.rows.finished))

    def trace(self) -> Trace:
        """What happened, once every row has finished."""
        for _ in self:
            pass
        return Trace.of(
            self._canvas,
            [self._rows[row] for row in sorted(self._rows)],
            header_of(self.state.denoiser, self.state.observe),
        )
