"""`uncode demo`: three problems, decoded by a small model in three orders, graded and explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from ..options import Force, trained_folder
from ..outputs import check_output

SUMMARY = "Solve three problems in three orders: why order matters."
SEED = 2026


def command(
    model: Annotated[
        str, Option(metavar="MODEL", help="tiny, or the folder of a model with its results.json.")
    ] = "tiny",
    view: Annotated[Path, Option(metavar="FILE", help="The file for the page (HTML).")] = Path("demo.html"),
    seed: Annotated[int, Option(metavar="N", help="Which problems are drawn.")] = SEED,
    force: Force = False,
) -> None:
    """Solve three problems with confidence, semi-AR and certain_first on a small model; write a page that replays them.

    Each problem is drawn among those on which the three orders differ, with the family's most common pattern of right
    and wrong. Below each problem, the demo prints how common the pattern is, and how often each order is right.

    Examples:

      uncode demo
      uncode demo --seed 7 --view other.html
    """
    check_output(view, "--view", "page", force)
    folder = trained_folder(model)

    from ..answering.three_orders import show

    show(model, folder, view, seed)
