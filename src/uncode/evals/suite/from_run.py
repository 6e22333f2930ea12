"""The results of the mini-suite from the samples of its run folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...analysis.measures.order import bias_intervals
from ...util.stats import Interval
from ..run.calibrate import mean_entropy
from ..run.folder import RunFolder
from ..run.runner import CALIBRATION
from .every_preset import entries_by_label
from .families import FAMILIES
from .names import UNCODE, with_rate
from .outcomes import Outcome, read_outcomes
from .results import CellResults, Results, best_rate

WHOLE = " whole"
"""The end of the label of a sampler that fills every mask, for the measures of order."""
HASTY_SHARE = 4
"""An answer is hasty if an EOS token is written in the first quarter of its forwards."""
ORDERS_COMPARED = ("confidence", "left_to_right")
"""The samplers whose orders are compared. A run of other samplers alone shows no biases."""

Orders = Mapping[str, Mapping[str, list[Any]]]
"""By sampler, the measures of order by name, a value for each problem."""


def results_of_run(path: Path, problems: int, data: Path | None, about: Mapping[str, Any]) -> Results:
    """The results of a run folder on the first problems of each family, in the order of the paper's tables.

    Samplers come in the order of the suite, whichever process ran them first; others come last.
    """
    folder, calibration = RunFolder(path), path / CALIBRATION
    outcomes = read_outcomes(folder)
    unlabelled = read_outcomes(RunFolder(calibration)) if calibration.is_dir() else {}
    run = folder.info().cells
    ran, tasks = dict.fromkeys(cell.sampler for cell in run), {cell.task for cell in run}
    labels = [label for label in dict.fromkeys([*entries_by_label(), *ran]) if label in ran]
    found, orders, seconds = Results({}, {}, {}, {}), dict[str, Orders](), 0.0
    for name in (name for name in FAMILIES if name in tasks):
        ids = [example.id for example in FAMILIES[name].examples(data)[:problems]]
        complete = {label: rows for label in labels if (rows := _in_order(outcomes.get((name, label), ()), ids))}
        entropies = {
            label.rpartition(" ")[2]: mean_entropy(one.entropy for one in rows)
            for (task, label), rows in unlabelled.items()
            if task == name
        }
        measured = {label: rows for label, rows in complete.items() if all(one.order for one in rows)}
        cells = {label: cell_of(rows) for label, rows in complete.items() if label not in measured}
        if entropies:
            found.entropies[name] = entropies
            if with_rate(best_rate(entropies)) in cells:
                cells.pop(UNCODE, None)  # it is Uncode at the chosen rate
        found.cells[name] = cells
        orders[name] = {label.removesuffix(WHOLE): _orders(rows) for label, rows in measured.items()}
        seconds += sum(one.seconds for rows in complete.values() for one in rows)
    found.biases.update(biases_of(orders))
    found.about.update(about, seconds=round(seconds, 1))
    return found


def cell_of(outcomes: Sequence[Outcome]) -> CellResults:
    """One sampler on one family, its outcomes in the order of the problems."""
    count, sound = len(outcomes), [one.is_sound for one in outcomes]
    columns = [one.columns for one in outcomes if one.columns is not None]
    return CellResults(
        right=_marks(bool(one.is_right) for one in outcomes),
        hasty=_marks(is_hasty(one) for one in outcomes),
        forwards=round(sum(one.forwards for one in outcomes) / count, 2),
        tokens=round(sum(one.tokens for one in outcomes) / count, 2),
        sound=None if None in sound else _marks(map(bool, sound)),
        columns=round(sum(columns) / count, 1) if len(columns) == count else None,
    )


def is_hasty(outcome: Outcome) -> bool:
    return outcome.first_eos_step is not None and outcome.first_eos_step < outcome.forwards / HASTY_SHARE


def _marks(values: Iterable[bool]) -> str:
    return "".join("1" if value else "0" for value in values)


def _orders(outcomes: Sequence[Outcome]) -> dict[str, list[Any]]:
    return {name: [(one.order or {})[name] for one in outcomes] for name in ("when", "early", "overall")}


def _in_order(outcomes: Iterable[Outcome], ids: Sequence[str]) -> list[Outcome]:
    """The outcomes of these examples, in this order; none if one is missing."""
    by_id = {one.id: one for one in outcomes}
    return [by_id[name] for name in ids] if all(name in by_id for name in ids) else []


def biases_of(orders: Mapping[str, Orders]) -> dict[str, Any]:
    """The paper's two biases, boundary tokens first and trivial tokens first: of the confidence sampler, compared with
    left to right, for each family and for all together."""
    seen = {name: of for name, of in orders.items() if len(of) == len(ORDERS_COMPARED)}
    if not seen:
        return {}
    together = {
        sampler: {
            key: [value for of in seen.values() for value in of[sampler][key]] for key in ("when", "early", "overall")
        }
        for sampler in ORDERS_COMPARED
    }
    found = {
        name: bias_intervals(*(of[sampler] for sampler in ORDERS_COMPARED))
        for name, of in (seen | {"all": together}).items()
    }
    return {
        name: {"when": list(map(_rounded, when))} | {measure: _rounded(one) for measure, one in measures.items()}
        for name, (when, measures) in found.items()
    }


def _rounded(interval: Interval) -> list[float | None]:
    return [None if value is None else round(value, 4) for value in interval.data()]
