"""The paper's seven benchmarks in miniature: what the embedded model is taught, and what it is tested with."""

from __future__ import annotations

from typing import Any

from ...core.errors import require, suggest
from .algebra import MiniAlgebra
from .choice import MiniChoice
from .countdown import MiniCountdown
from .family import Family
from .programs import MiniDocstring, MiniSentence
from .story import MiniStory
from .sudoku import MiniSudoku

FAMILIES: dict[str, Family[Any]] = {
    family.name: family
    for family in (
        MiniDocstring(),
        MiniSentence(),
        MiniStory(),
        MiniAlgebra(),
        MiniChoice(),
        MiniCountdown(),
        MiniSudoku(),
    )
}
"""In the order of the paper's tables."""


def find_family(name: str) -> str:
    """The whole name of a family; `story` is enough for `mini_story`."""
    whole = name if name in FAMILIES else f"mini_{name}"
    known = [family.removeprefix("mini_") for family in FAMILIES]
    require(whole in FAMILIES, f"there is no family '{name}': {suggest(name.removeprefix('mini_'), known)}")
    return whole
