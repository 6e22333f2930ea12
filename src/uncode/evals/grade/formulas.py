"""Whether two formulas are the same: math-verify, in a process that may be killed.

The process is started with the first question and kept. sympy can take minutes and gigabytes for a short formula, so a
question has a time limit and the process a memory limit; where either is reached the answer is "not the same".
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import re
import select
import subprocess
import sys
import threading
from pathlib import Path

from ...core.errors import UncodeError

SECONDS = 10.0
LONGEST = 2000
"""Characters of a formula; the longest of MATH has a few hundred."""


class Formulas:
    """Answers questions of equality. Safe to share between threads; they take turns."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds, self._lock = seconds, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def same(self, gold: str, answer: str) -> tuple[bool, str]:
        """Whether `answer` is `gold`, and a clause that says so."""
        if plain(gold) == plain(answer):
            return True, "the same, letter for letter"
        if len(answer) > LONGEST:
            return False, f"a formula of {len(answer):,} characters"
        if re.search(r"\d[^\S\n]+\d", joined(answer)) and not re.search(r"\d[^\S\n]+\d", joined(gold)):
            return False, "several numbers side by side"
        with self._lock:
            told = self._ask({"gold": gold, "answer": joined(answer)})
        if told is None:
            return False, "comparing them took too long"
        return told, "equal by math-verify" if told else "not equal by math-verify"

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, question: dict[str, str]) -> bool | None:
        for _ in range(2):  # a process that had ended before it was asked is started anew
            process = self._process = self._process or _start()
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(json.dumps(question).encode() + b"\n")
                process.stdin.flush()
            except OSError:
                self.close()
                continue
            if select.select([process.stdout], [], [], self._seconds)[0] and (line := process.stdout.readline()):
                return bool(json.loads(line))
            self.close()
            return None
        return None


def plain(formula: str) -> str:
    """A formula without what changes only its looks, fractions and roots with all their braces."""
    text = re.sub(r"\\(?:left|right|displaystyle|!|,|;|:|quad|qquad|\s)|[$~]|\\[()\[\]]", "", formula)
    text = re.sub(r"\\(?:text|mathrm|textbf|mathbf|mbox)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\[dt]?frac\s*(\d)\s*(?=[\d{])", r"\\frac{\1}", re.sub(r"\\[dt]frac", r"\\frac", text))
    text = re.sub(r"(\\frac\{[^{}]*\})\s*(\d)", r"\1{\2}", text)
    text = re.sub(r"(?<![\w}])(\d+)\s*/\s*(\d+)(?![\w{])", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\sqrt\s*(\d)", r"\\sqrt{\1}", text)
    return re.sub(r"\s|\^\{?\\circ\}?", "", text).rstrip(".")


def joined(formula: str) -> str:
    """Thousands set off by blanks, as one number."""
    return re.sub(r"(?<![\d.])\d{1,3}(?:[ ~]\d{3})+(?!\d)", lambda m: re.sub(r"\D", "", m[0]), formula)


def _start() -> subprocess.Popen[bytes]:
    if importlib.util.find_spec("math_verify") is None:
        raise UncodeError("grading formulas needs math_verify: pip install 'uncode[eval]'.")
    command = [sys.executable, "-P", str(Path(__file__).parent / "verifier.py")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    atexit.register(process.kill)
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        process.kill()
        process.communicate()
        raise UncodeError("math_verify does not start: try `python -c 'import math_verify'`.")
    return process
