"""The mini families: small versions of the paper's seven benchmarks, to train and to test the embedded model."""

from __future__ import annotations

from typing import Any

from ....core.errors import require, suggest
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
    """The full name of a family. `story` is short for `mini_story`."""
    full = name if name in FAMILIES else f"mini_{name}"
    known = [family.removeprefix("mini_") for family in FAMILIES]
    require(full in FAMILIES, f"there is no family '{name}': {suggest(name.removeprefix('mini_'), known)}")
    return full
