"""The results of the mini-suite from the samples of its run folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..run.calibrate import mean_entropy
from ..run.folder import RunFolder
from .families import FAMILIES
from .names import UNCODE, with_rate
from .outcomes import Outcome, read_outcomes
from .results import Cell, FamilyResults, best_rate

WHOLE = " whole"
"""The end of the label of a sampler that fills every mask, for the measures of order."""
HASTY_SHARE = 4
"""An answer is hasty if an EOS token is written in the first quarter of its forwards."""


def family_results(
    folder: RunFolder, calibration: RunFolder | None, problems: int, order: Sequence[str], data: Path | None = None
) -> dict[str, FamilyResults]:
    """The results of each family on its first problems, in the order of the paper's tables.

    Samplers come in the given order of labels, whichever process ran them first; others come last.
    """
    grouped = read_outcomes(folder)
    entropies = {} if calibration is None else read_outcomes(calibration)
    cells_of_run = folder.info().cells
    ran = dict.fromkeys(cell.sampler for cell in cells_of_run)
    labels = [label for label in order if label in ran] + [label for label in ran if label not in order]
    tasks = {cell.task for cell in cells_of_run}
    found = {}
    for name, family in FAMILIES.items():
        if name not in tasks:
            continue
        ids = [example.id for example in family.examples(data)[:problems]]
        complete = {label: rows for label in labels if (rows := _in_order(grouped.get((name, label), ()), ids))}
        if not complete:
            continue
        chosen = {
            label.rpartition(" ")[2]: mean_entropy(one.entropy for one in rows)
            for (task, label), rows in entropies.items()
            if task == name
        }
        measured = {label: rows for label, rows in complete.items() if all(one.order for one in rows)}
        cells = {label: cell_of(rows) for label, rows in complete.items() if label not in measured}
        if chosen and with_rate(best_rate(chosen)) in cells:
            cells.pop(UNCODE, None)  # it is Uncode at the chosen rate
        found[name] = FamilyResults(
            about={},
            cells=cells,
            entropies=chosen,
            orders={label.removesuffix(WHOLE): _orders(rows) for label, rows in measured.items()},
            seconds=sum(one.seconds for rows in complete.values() for one in rows),
        )
    return found


def cell_of(outcomes: Sequence[Outcome]) -> Cell:
    """One sampler on one family, its outcomes in the order of the problems."""
    count = len(outcomes)
    return Cell(
        right=_marks(_graded(one) for one in outcomes),
        hasty=_marks(is_hasty(one) for one in outcomes),
        forwards=round(sum(one.forwards for one in outcomes) / count, 2),
        tokens=round(sum(one.tokens for one in outcomes) / count, 2),
    )


def _graded(outcome: Outcome) -> bool:
    assert outcome.is_right is not None, "answers of a cell are graded"
    return outcome.is_right


def is_hasty(outcome: Outcome) -> bool:
    return outcome.first_eos_step is not None and outcome.first_eos_step < outcome.forwards / HASTY_SHARE


def _marks(values: Iterable[bool]) -> str:
    return "".join("1" if value else "0" for value in values)


def _orders(outcomes: Sequence[Outcome]) -> dict[str, list[Any]]:
    """The measures of order, a list each."""
    return {name: [(one.order or {})[name] for one in outcomes] for name in ("when", "early", "overall")}


def _in_order(outcomes: Iterable[Outcome], ids: Sequence[str]) -> list[Outcome]:
    """The outcomes of these examples, in this order; none if one is missing."""
    by_id = {one.id: one for one in outcomes}
    return [by_id[name] for name in ids] if all(name in by_id for name in ids) else []
