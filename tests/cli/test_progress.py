"""Progress bars, on a terminal and without one."""

from __future__ import annotations

import pytest
from rich.console import Console

from uncode.cli import progress
from uncode.evals.run.options import RunProgress


def test_the_time_left_is_estimated_from_the_speed_after_the_first_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    console = Console(record=True, width=200)
    on_progress = progress._eval_lines(console)
    for seconds, done in ((0, 100), (600, 100), (640, 101), (680, 116), (720, 117), (760, 121)):
        now[0] = seconds
        on_progress(RunProgress("story, eb", done, 201, 0, 0))
    loading, first, few, enough, more = console.export_text().splitlines()
    assert loading == "story, eb: 100 of 201 answers", "a resumed run has answers before it loads a model"
    assert "min left" not in first and "min left" not in few, "1 and 15 answers after the first"
    assert enough == "story, eb: 117 of 201 answers, about 7 min left", "16 answers in 80 s, 84 to come"
    assert more == "story, eb: 121 of 201 answers, about 8 min left", "20 answers in 120 s, 80 to come"
