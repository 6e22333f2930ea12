"""`uncode demo`: three problems, three orders, real weights: what is right, what is wrong, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import Force, trained
from ..outputs import check_output

SUMMARY = "Three problems, three orders: why order matters."
SEED = 2026


def command(
    model: Annotated[
        str, typer.Option(metavar="MODEL", help="tiny, or the folder of a model with its results beside it.")
    ] = "tiny",
    page: Annotated[Path, typer.Option(metavar="FILE", help="Where the page goes (HTML).")] = Path("demo.html"),
    seed: Annotated[int, typer.Option(metavar="N", help="Which problems are drawn.")] = SEED,
    force: Force = False,
) -> None:
    """Solve three problems with a small model under confidence, semi-AR and Uncode; write a page to replay them.

    Each problem is drawn among those on which the three orders differ in the way that is commonest in its family, by
    the model's results. Below each problem stand how many those are, and how often each order is right.

    Examples:

      uncode demo
      uncode demo --seed 7 --page other.html
    """
    check_output(page, "--page", "page", force)
    folder = trained(model)

    from ..answering.three_orders import show

    show(model, folder, page, seed)
