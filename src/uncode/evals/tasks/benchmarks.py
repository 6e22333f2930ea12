"""The benchmarks of the paper, by name."""

from __future__ import annotations

from ..task import AnyTask
from .countdown import Countdown
from .gpqa import Gpqa
from .gsm8k import Gsm8k
from .humaneval import HumanEval
from .math500 import Math500
from .mbpp import Mbpp
from .sudoku import Sudoku

TASKS: dict[str, type[AnyTask]] = {
    task.name: task for task in (HumanEval, Mbpp, Gsm8k, Math500, Gpqa, Countdown, Sudoku)
}
"""In the order of the paper's tables."""
