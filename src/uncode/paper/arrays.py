"""All arrays of the report, from the traces of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..analysis.analyze import Analysis, analyze
from ..analysis.task_groups import REASONING, of_group
from ..evals.run.folder import RunFolder
from .config import BASIC, LEFT_TO_RIGHT, SEMI_AR, UNCERTAIN, UNCODE

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
    info = folder.info()
    decoded = {cell.task for cell in info.cells}
    tasks = tuple(task for task in info.examples if task in decoded)
    steps = list(_steps(folder, tasks))
    found = {}
    for done, (name, make) in enumerate(steps):
        on_figure(name, done, len(steps))
        found[name] = make()
    groups = found.pop("outcomes").groups
    for kind in ("rejection", "priors", "hyperparameters", "rates", "corpora", "efficiency"):
        found[kind] = Analysis(kind, None, groups)
    basic = {group: one for group, one in groups.items() if group.sampler in (*BASIC, UNCODE)}
    found["planning"] = Analysis("planning", None, basic)
    if len({one.settings.table for one in groups.values() if one.settings.table}) < 2:
        del found["corpora"]
    return Arrays(found, tasks)


def _steps(folder: RunFolder, tasks: tuple[str, ...]) -> Iterator[tuple[str, Callable[[], Analysis]]]:
    anchored = [cell for cell in folder.info().cells if "anchor" in cell.sampler]
    anchors, first = [cell.sampler for cell in anchored], [anchored[0].task]
    reasoning = of_group(REASONING, tasks) or first
    both = ("confidence", UNCODE)
    yield "order", lambda: analyze("heatmap", folder.trace_files((*both, SEMI_AR, LEFT_TO_RIGHT), first))
    yield "grid", lambda: analyze("heatmap", folder.trace_files(UNCERTAIN))
    yield (
        "trivial",
        lambda: analyze(
            "trivial",
            folder.trace_files(both, reasoning),
            parts=PARTS,
            reference=folder.trace_files((LEFT_TO_RIGHT,), reasoning),
        ),
    )
    yield "anchor_maps", lambda: analyze("heatmap", folder.trace_files(("confidence", *anchors), first))
    yield "anchors", lambda: analyze("anchors", folder.trace_files(("confidence", *anchors), first))
    yield "answers", lambda: analyze("answers", folder.trace_files(both, reasoning))
    yield "entropy", lambda: analyze("entropy", folder.trace_files(both), parts=PARTS)
    yield "outcomes", lambda: analyze("accuracy", folder.trace_files())
