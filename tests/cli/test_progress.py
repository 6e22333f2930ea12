"""Progress bars, on a terminal and without one."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from uncode.cli import progress
from uncode.evals.run.options import Progress

BARS = {"item": (progress.item_bar, "2/4"), "download": (progress.download_bar, "2/4 bytes")}


@pytest.mark.parametrize("kind", BARS)
def test_a_bar_shows_the_name_as_it_is_and_the_amount(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bar, amount = BARS[kind]
    shown = _show(bar, monkeypatch, is_terminal=True)
    assert "grading [a].jsonl" in shown and amount in shown


@pytest.mark.parametrize("kind", BARS)
def test_without_a_terminal_nothing_is_shown(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _show(BARS[kind][0], monkeypatch, is_terminal=False).strip() == ""


def _show(bar: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> str:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=is_terminal, width=100, color_system=None)
    monkeypatch.setattr(progress, "Console", lambda stderr: console)
    with bar("grading [a].jsonl") as on_progress:
        on_progress(0, 0)
        on_progress(2, 4)
    return screen.getvalue()


def test_no_time_is_estimated_from_the_first_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 40))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    console = Console(record=True, width=200)
    on_progress = progress._eval_lines(console)
    for done in (0, 1, 100):
        on_progress(Progress("story, eb", done, 200, done, done))
    first, second, third = console.export_text().splitlines()
    assert first == "story, eb: 0 of 200 answers"
    assert second == "story, eb: 1 of 200 answers, 100.0 % right", "one answer after loading the model says nothing"
    assert third == "story, eb: 100 of 200 answers, 100.0 % right, about 2 min left"
