"""All arrays of the report, from the traces of one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..analysis.analyze import Analysis, analyze
from ..analysis.task_groups import REASONING, of_group
from ..evals.run.folder import RunFolder
from ..evals.suite.names import UNCODE
from .config import BASIC, LEFT_TO_RIGHT, SEMI_AR, UNCERTAIN

PARTS = 20
"""Of the decode, in the figures over time."""


@dataclass(frozen=True)
class Arrays:
    """The analyses behind the figures, by the figure's name."""

    figures: dict[str, Analysis]
    tasks: tuple[str, ...]

    def __getitem__(self, name: str) -> Analysis:
        return self.figures[name]

    @property
    def reasoning(self) -> list[str]:
        return of_group(REASONING, self.tasks)


OnFigure = Callable[[str, int, int], None]
"""Called with the name of the next analysis, how many are done, and how many there are."""


def arrays_of(folder: RunFolder, on_figure: OnFigure = lambda name, done, total: None) -> Arrays:
    """Read the traces of a run of `uncode paper`."""
    info, files = folder.info(), folder.trace_files
    decoded = {cell.task for cell in info.cells}
    tasks = tuple(task for task in info.examples if task in decoded)
    anchored = [cell for cell in info.cells if "anchor" in cell.sampler]
    anchors, first = ("confidence", *(cell.sampler for cell in anchored)), [anchored[0].task]
    reasoning, both = of_group(REASONING, tasks) or first, ("confidence", UNCODE)
    traces = {
        "order": ("heatmap", files((*both, SEMI_AR, LEFT_TO_RIGHT), first)),
        "grid": ("heatmap", files(UNCERTAIN)),
        "trivial": ("trivial", files(both, reasoning)),
        "anchor_maps": ("heatmap", files(anchors, first)),
        "anchors": ("anchors", files(anchors, first)),
        "answers": ("answers", files(both, reasoning)),
        "entropy": ("entropy", files(both)),
        "outcomes": ("accuracy", files()),
    }
    found = dict[str, Analysis]()
    for done, (name, (kind, of)) in enumerate(traces.items()):
        on_figure(name, done, len(traces))
        reference = files((LEFT_TO_RIGHT,), reasoning) if kind == "trivial" else ()
        found[name] = analyze(kind, of, parts=PARTS if kind in ("trivial", "entropy") else None, reference=reference)
    groups = found.pop("outcomes").groups
    for kind in ("rejection", "priors", "hyperparameters", "rates", "corpora", "efficiency"):
        found[kind] = Analysis(kind, None, groups)
    basic = {group: one for group, one in groups.items() if group.sampler in (*BASIC, UNCODE)}
    found["planning"] = Analysis("planning", None, basic)
    if len({one.settings.table for one in groups.values() if one.settings.table}) < 2:
        del found["corpora"]
    return Arrays(found, tasks)
