"""The figure of the anchor intervention."""

from __future__ import annotations

from typing import Any

from ..analyze import Analysis
from ..measures.anchors import AnchorRanks
from ..read_traces import Group
from .style import COLOURS, new_figure, tidy


def anchors(analysis: Analysis) -> Any:
    """For each place of the anchor: when each offset is written, and how much earlier than without the anchor."""
    places = places_of(analysis)
    figure = new_figure(8.6, 2.9 * len(places) + 0.3)
    for (ranks, spread), (place, found) in zip(
        figure.subplots(len(places), 2, squeeze=False), places.items(), strict=True
    ):
        control = control_of(analysis, found[0][0])
        ranks.plot(control.mean, color="0.55", linestyle="--", linewidth=1, label="no anchor")
        for number, (_, one) in enumerate(found):
            colour, earlier = COLOURS[number % len(COLOURS)], one.spread(control)
            ranks.plot(one.mean, color=colour, linewidth=1.2, label=f"anchor {one.text!r}")
            spread.plot(earlier.distance, earlier.earlier, color=colour, linewidth=1.2, label=f"anchor {one.text!r}")
        ranks.axvline(place, color="0.8", linewidth=1)
        ranks.set_xlabel("position in the span")
        ranks.set_ylabel("mean rank (0 first, 1 last)")
        ranks.set_title(f"{found[0][0].task}: anchor at position {place}")
        spread.axhline(0, color="0.7", linewidth=1)
        spread.set_xlabel("distance from the anchor")
        spread.set_ylabel("earlier than without, ranks")
        spread.set_title("what the anchor changes around it")
        for axes in (ranks, spread):
            tidy(axes)
            axes.legend(frameon=False, fontsize=8)
    return figure


def places_of(analysis: Analysis) -> dict[int, list[tuple[Group, AnchorRanks]]]:
    """The groups with an anchor, by its position."""
    found: dict[int, list[tuple[Group, AnchorRanks]]] = {}
    for group, one in analysis.groups.items():
        if one.anchor is not None:
            found.setdefault(one.anchor, []).append((group, one))
    return dict(sorted(found.items()))


def control_of(analysis: Analysis, group: Group) -> AnchorRanks:
    """The traces of the same model and task without an anchor. `analyze` makes sure that there are some."""
    found: AnchorRanks = next(
        one for other, one in analysis.groups.items() if other[:2] == group[:2] and one.anchor is None
    )
    return found
