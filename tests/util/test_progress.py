"""Progress bars, on a terminal and without one."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from uncode.util import progress

BARS = {"item": (progress.item_bar, "2/4"), "download": (progress.download_bar, "2/4 bytes")}


def test_a_bar_of_reading_appears_when_it_takes_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _show(progress.reading_bar, monkeypatch, is_terminal=True).strip() == ""
    clock = iter(range(0, 100, 3))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    assert "2/4 bytes" in _show(progress.reading_bar, monkeypatch, is_terminal=True)


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
