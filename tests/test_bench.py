"""The benchmarks run: on a GPU they measure, but here nobody would see one that no longer starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from uncode.samplers.presets import PRESETS

BENCH = Path(__file__).parent.parent / "bench"


def test_agreement_decodes_with_every_preset() -> None:
    """Some presets need a frequency table, and one a tokenizer."""
    command = [sys.executable, BENCH / "agreement.py", "--networks", "1", "--workers", "1", "--device", "cpu"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    samplers = len(PRESETS) + 4
    assert f"{samplers} samplers: 0 of {3 * samplers} rows differ" in run.stdout
