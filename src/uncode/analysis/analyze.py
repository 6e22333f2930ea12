"""Makes the arrays of a figure from traces: rows are read once, and added to the measure of their group."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import require
from ..util.stats import Interval
from . import choose
from .kinds import RELATIVE, SWEEPS, check_choices
from .measures.anchors import AnchorRanks
from .measures.answer_timing import AnswerTiming
from .measures.heat_map import HeatMap
from .measures.outcomes import Outcomes
from .measures.step_entropy import StepEntropy
from .measures.trivial_share import TrivialShare, reference_share
from .read_traces import Group, OnBytes, Source, TraceRow, trace_rows

_MEASURES: dict[str, Any] = {
    "heatmap": HeatMap,
    "trivial": TrivialShare,
    "answers": AnswerTiming,
    "entropy": StepEntropy,
    "anchors": AnchorRanks,
    **dict.fromkeys(SWEEPS, Outcomes),
}
"""For each figure its measure: `add` takes the traces of a group one by one, `finish` comes after the last."""


@dataclass(frozen=True)
class Analysis:
    """The arrays of a figure, by group."""

    kind: str
    parts: int | None
    groups: dict[Group, Any]
    """A measure each."""
    references: dict[Group, Interval] = field(default_factory=dict)
    """Of `trivial`: the share of trivial tokens in the reference traces."""

    @property
    def traces(self) -> int:
        return sum(one.traces for one in self.groups.values())

    def reference_of(self, group: Group) -> tuple[Group, Interval] | None:
        """The reference of a group: that of its model and task, or the only one."""
        alike = [one for one in self.references.items() if one[0][:2] == group[:2]]
        if not alike and len(self.references) == 1:
            alike = list(self.references.items())
        return alike[0] if alike else None

    def data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        found: dict[str, Any] = {"kind": self.kind, "parts": self.parts}
        if self.references:
            found["references"] = [group._asdict() | {"share": one.data()} for group, one in self.references.items()]
        return found | {"groups": [group._asdict() | one.data() for group, one in self.groups.items()]}

    def csv(self) -> str:
        """One line per value, with its model, task and sampler. NaN is an empty cell."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for number, (group, one) in enumerate(self.groups.items()):
            columns = one.columns()
            if number == 0:
                writer.writerow([*Group._fields, *columns])
            for values in zip(*columns.values(), strict=True):
                writer.writerow([*group, *("" if math.isnan(value) else value.item() for value in values)])
        return text.getvalue()


def analyze(
    kind: str,
    traces: Sequence[Source],
    *,
    parts: int | None = None,
    reference: Sequence[Source] = (),
    on_bytes: OnBytes | None = None,
    tokenizer: Any = None,
) -> Analysis:
    """The arrays of a figure, from traces, trace files, folders of them and run folders.

    `kind` is one of `uncode.analysis.kinds.KINDS`. Rows are grouped by model, task and sampler. With `parts`, the span
    and the decode are divided into equal parts, and traces may differ in length. `reference` is for `trivial`: traces
    of a left-to-right sampler. `tokenizer` gives traces in memory the texts that `trivial` and `answers` read.
    """
    check_choices(kind, parts, bool(reference))
    found = _groups(kind, traces, parts, on_bytes, tokenizer)
    if kind in _CHECKS:
        choose.only_model(found)
        _CHECKS[kind](found)
    if not reference:
        return Analysis(kind, parts, found)
    others = _groups(kind, reference, parts, None, tokenizer)
    cells = {group[:2] for group in others}
    names = ", ".join(dict.fromkeys(group.sampler for group in others))
    require(len(cells) == len(others), f"the reference is one sampler for each task, not {names}: give one of them.")
    return Analysis(kind, parts, found, {group: reference_share(one) for group, one in others.items()})


def _groups(
    kind: str, traces: Sequence[Source], parts: int | None, on_bytes: OnBytes | None, tokenizer: Any
) -> dict[Group, Any]:
    made: dict[Group, Any] = {}
    first: dict[tuple[str, str], TraceRow] = {}
    for row in trace_rows(traces, _MEASURES[kind].needs, on_bytes, tokenizer):
        _check_alike(first.setdefault(row.group[:2], row), row, parts is None and kind not in RELATIVE)
        if row.group not in made:
            made[row.group] = _MEASURES[kind](parts)
        made[row.group].add(row)
    found = {group: made[group] for group in sorted(made, key=lambda one: one[:2])}
    for one in found.values():
        one.finish()
    return found


def _check_anchors(groups: dict[Group, Any]) -> None:
    """Raise unless there are traces with an anchor, and some without beside them."""
    given = {group for group, one in groups.items() if one.anchor is not None}
    require(len(given) > 0, "no trace has a given token inside its answer: evaluate with an `anchor`, or infill one.")
    for group in given:
        others = [other for other, one in groups.items() if other[:2] == group[:2] and one.anchor is None]
        names = ", ".join(other.sampler for other in others) or "none"
        require(
            len(others) == 1,
            f"the anchors of '{group.task}' are compared with one sampler without an anchor, not {names}: give its "
            "traces beside them, and no others.",
        )


_CHECKS: dict[str, Callable[[dict[Group, Any]], Any]] = {
    "anchors": _check_anchors,
    "planning": lambda groups: None,
    "rejection": lambda groups: choose.varied(groups, "rejection", choose.BASE),
    "hyperparameters": lambda groups: [choose.varied(groups, name, choose.UNCODE) for name in ("rate", "clip")],
    "rates": lambda groups: choose.varied(groups, "rate", choose.UNCODE),
    "priors": choose.priors,
    "corpora": lambda groups: choose.varied(groups, "table", choose.UNCODE),
    "efficiency": choose.efficient,
}
"""Figures of one model, and what raises if the samplers that they compare are not there."""


def _check_alike(first: TraceRow, row: TraceRow, same_length: bool) -> None:
    """Raise if two traces of one model and task cannot share an axis."""
    where = f"'{first.source}' and '{row.source}'" if first.source != row.source else f"'{row.source}'"
    require(
        not same_length or len(row) == len(first),
        f"traces of different lengths are mixed in {where} ({len(first)} and {len(row)} tokens): give `parts=N` to "
        "compare equal parts of the span, or analyze them apart.",
    )
    require(
        row.observe == first.observe,
        f"traces with observe='{first.observe}' and observe='{row.observe}' are mixed in {where}: analyze them apart.",
    )
