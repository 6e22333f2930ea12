"""The published held-out problems are what the families draw."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies.held_out import lines_of

import uncode
from uncode.evals.suite.families import FAMILIES

FAST_LINES = 160
"""Lines of each file that are drawn again in every run; a slow test draws all."""


def held_out_lines(name: str) -> list[str]:
    file = Path(uncode.__file__).parent / "evals" / "suite" / "families" / "held_out" / f"{name}.jsonl"
    return file.read_text().splitlines(keepends=True)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_held_out_files_are_what_the_families_draw(name: str) -> None:
    lines = held_out_lines(name)[:FAST_LINES]
    assert lines_of(name, len(lines)) == "".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_the_whole_files_are_what_the_families_draw(name: str) -> None:
    assert lines_of(name) == "".join(held_out_lines(name))
