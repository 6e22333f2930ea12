"""Comparison of formulas with math-verify, in a separate process that can be killed.

The process starts with the first comparison and is kept. sympy can take minutes and gigabytes for a short formula, so
a comparison has a time limit and the process a memory limit. If one is reached, the formulas count as different.
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
from .arithmetic import contradicts
from .claims import bounds_formula, denies_formula
from .find import everything
from .number_words import number_words
from .numbers import is_asserted

MAX_SECONDS = 60.0
"""For one comparison. The process itself gives up after ten seconds of CPU time."""
MAX_FORMULA_CHARACTERS = 2000
"""The longest formula of MATH has a few hundred characters."""
_SIDE_BY_SIDE = r"(?<![_\d])\d+(?:[^\S\n]|~|\\[,;: ]|\\q?quad(?![a-z]))+\d"
_TEMPERATURE = (
    r"(?P<ring>\^\s?\{?\s?\\circ\s?\}?|\\degree\b|\u00b0)(?:\s|~|\\[,;! ])*"
    r"(?:\\(?:text|mathrm|rm)\s?\{\s?[CFK]\s?\}|[CFK]\b)"
)
"""A temperature, such as 82^\\circ\\text{F}."""
_LATEX_COMMANDS = {
    "\u221a": r"\sqrt ",
    "\u00b2": "^2",
    "\u00b3": "^3",
    "\u221e": r"\infty ",
    "\u03c0": r"\pi ",
    "\u00bd": r"\frac{1}{2}",
    "\u00bc": r"\frac{1}{4}",
    "\u00be": r"\frac{3}{4}",
    "\u00d7": r"\times ",
    "\u2212": "-",
    "\u00b0": r"^\circ ",
    "\u2264": r"\le ",
    "\u2265": r"\ge ",
    "\u222a": r"\cup ",
    "\u2208": r"\in ",
}
"""The LaTeX commands of some Unicode signs."""


class Formulas:
    """Compares formulas. It may be shared between threads, which take turns."""

    def __init__(self, seconds: float = MAX_SECONDS) -> None:
        self._seconds, self._lock = seconds, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def same(self, gold: str, answer: str) -> tuple[bool, str]:
        """Whether `answer` equals `gold`, and the reason."""
        if re.search(_TEMPERATURE, gold) is None:
            answer = re.sub(_TEMPERATURE, r"\g<ring>", answer)
        if normal_form(gold) == normal_form(answer):
            return True, "the same, but for its looks"
        fault = fault_of(gold, answer)
        if fault is not None:
            return False, fault
        with self._lock:
            equal = self._ask({"gold": gold, "answer": with_commas(with_joined_thousands(with_latex_commands(answer)))})
        if equal is None:
            return False, "comparing them took too long"
        return equal, "equal by math-verify" if equal else "not equal by math-verify"

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, question: dict[str, str]) -> bool | None:
        for _ in range(2):  # if the process had died before, a second one is started
            process = self._process = self._process or _start()
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(json.dumps(question).encode() + b"\n")
                process.stdin.flush()
                poll = select.poll()
                poll.register(process.stdout, select.POLLIN)
                if poll.poll(self._seconds * 1000) and (line := process.stdout.readline()):
                    return bool(json.loads(line))
                self.close()
                return None
            except BrokenPipeError:
                self.close()
            except BaseException:  # an interrupted comparison must not leave its result to the next one
                self.close()
                raise
        return None


def fault_of(gold: str, answer: str) -> str | None:
    """The reason why an answer is wrong regardless of math-verify; else None."""
    if len(answer) > MAX_FORMULA_CHARACTERS:
        return f"a formula of {len(answer):,} characters"
    if re.search(_SIDE_BY_SIDE, with_joined_thousands(answer)) and not re.search(
        _SIDE_BY_SIDE, with_joined_thousands(gold)
    ):
        return "several numbers side by side"
    if "\\begin" not in answer and re.search(r"\\\\|\n", answer.strip()) and not re.search(r"\\\\|\n", gold):
        return "several lines"
    if denies_formula(answer) and not denies_formula(gold):
        return "it says what the answer is not"
    if bounds_formula(answer) and is_value(gold):
        return "it is a bound"
    bases = [re.findall(r"\d_\{?(\d+)\}?", text) for text in (gold, answer)]
    if bases[1] and bases[0] != bases[1]:
        return "another base"
    if contradicts(everything(answer)):
        return "its sides are not equal"
    return None


def is_value(gold: str) -> bool:
    """Whether a gold answer is neither an inequality nor an interval. Then no bound or denial can be correct."""
    bare = gold.replace("\\left", "").strip()
    return (
        not bounds_formula(gold)
        and not denies_formula(gold)
        and not bare.startswith(("(", "["))
        and "\\infty" not in gold
    )


def normal_form(formula: str) -> str:
    """A formula without markup that only changes its looks, and with all braces of fractions and roots."""
    formula = re.sub(r"(\\[dt]?frac\s?\d)\s+(?=\d)", r"\1", with_joined_thousands(formula))
    formula = re.sub(_SIDE_BY_SIDE, lambda m: re.sub(r"(?<=\d)\D+(?=\d)", "|", m[0]), formula)  # 1 2 is not 12
    text = re.sub(r"\\(?:left|right|displaystyle|!|,|;|:|quad|qquad|\s)|[$~]|\\[()\[\]]", "", formula)
    text = re.sub(r"\\(?:text|mathrm|textbf|mathbf|mbox)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\[dt]?frac\s*(\d)\s*(?=[\d{])", r"\\frac{\1}", re.sub(r"\\[dt]frac", r"\\frac", text))
    text = re.sub(r"(\\frac\{[^{}]*\})\s*(\d)", r"\1{\2}", text)
    text = re.sub(r"(?<![\w}])(\d+)\s*/\s*(\d+)(?![\w{])", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\sqrt\s*(\d)", r"\\sqrt{\1}", text.replace("\\dbinom", "\\binom").replace("\\tbinom", "\\binom"))
    text = re.sub(r"([_^])\{(\w+)\}", r"\1\2", text)
    return re.sub(r"\s|\^\{?\\circ\}?", "", text).rstrip(".")


def with_joined_thousands(formula: str) -> str:
    """The formula with blanks between thousands removed."""
    pattern = r"(?<![\d.])\d{1,3}(?:(?:[ ~]|\\[,!; ]|\{,\})\d{3})+(?!\d)"
    return re.sub(pattern, lambda m: re.sub(r"\D", "", m[0]), formula)


def with_commas(formula: str) -> str:
    """The formula with commas between values that words or boxes separate: "3 and 4" are two values."""
    between_boxes = r"\}[$\s\\()\[\]]*(?:or|and|,|;)[$\s\\()\[\]]*(?:boxed|fbox)\s?\{"
    apart = rf"{between_boxes}|\$?\s*(?:\\text\{{[^{{}}]*)?\b(?:and|or)\b(?:[^{{}}]*\}})?\s*\$?"
    return re.sub(apart, ", ", formula)


def with_latex_commands(formula: str) -> str:
    """The formula with LaTeX commands for Unicode signs, and digits for number words."""
    formula = _digits_for_words(formula)
    formula = re.sub(r"\s*(-?\d+(?:\.\d+)?)[eE]([-+]?\d{1,2})(?![\w.])", r"\1 \\times 10^{\2}", formula, count=1)
    formula = re.sub(r"(?<=[\d)}])!=", "! =", formula)
    formula = re.sub("\u221a\\s?(\\d+|[a-z])", r"\\sqrt{\1}", formula)
    return "".join(_LATEX_COMMANDS.get(sign, sign) for sign in formula)


def _digits_for_words(formula: str) -> str:
    """A phrase such as "eighteen apples" as its number in digits. Other formulas are returned unchanged."""
    text = everything(formula)
    words = number_words(text)
    if len(words) != 1 or re.search(r"\d", formula) or not is_asserted(words[0][1], text):
        return formula
    value, place = words[0]
    rest = re.sub(r"\\(?:text|math)[a-z]*", "", formula[: place.start] + formula[place.end :])
    is_phrase = re.fullmatch(r"[\s{}$.]*(?:[a-z]+[\s{}$.]*){0,2}", rest) is not None
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}" if is_phrase else formula


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
