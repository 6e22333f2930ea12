"""Whether reasons are needed: direct answers against answers with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ....util.stats import Interval, newcombe
from ...report.table import Table
from .. import report
from ..families import FAMILIES
from ..folder import TrainedModel
from ..names import DIRECT
from .claims import sign_of


def direct_answers(runs: Sequence[TrainedModel]) -> str:
    """Direct answers against left to right, for the families that have both. Empty if none has."""
    rows = []
    gaps = list[Interval]()
    for run, family in product(runs, FAMILIES):
        forced, reasoned = (run.results.cell(family, name) for name in (DIRECT, "left_to_right"))
        if forced is not None and reasoned is not None:
            gaps.append(newcombe(reasoned.solved, forced.solved))
            shown = [report.percent(cell.accuracy, whole=True) for cell in (forced, reasoned)]
            rows.append([report.short(family), str(run.seed), *shown, report.points([100 * x for x in gaps[-1]])])
    if not rows:
        return ""
    table = Table(["family", "seed", "forced to answer directly", "left to right", "difference"], rows)
    helps = sum(sign_of(gap) > 0 for gap in gaps)
    return (
        "In these families some training answers have no reasoning: one in ten, and two in ten for choice. To force "
        f"such an answer, we give the model its first words. Reasons help in {helps} of {len(gaps)} lines: the paired "
        "95 % interval of the difference is above 0.\n\n" + table.markdown()
    )
