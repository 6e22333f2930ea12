"""Comparison of formulas with math-verify, in separate processes that can be killed.

A process starts with the first comparison and is kept for the next. sympy can take minutes and gigabytes for a short
formula, so a comparison has a time limit and the process a memory limit. If one is reached, the formulas count as
different.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import re
import select
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from ...core.errors import UncodeError
from .arithmetic import contradicts
from .claims import bounds_formula, denies_formula
from .find import BETWEEN_BOXES, BOX, everything
from .numbers import BLANK, WORDS, is_asserted, number_words, plain_formula

CPU_SECONDS = 10.0
"""For one comparison. CPU time, so that a busy machine changes no verdict."""
MAX_SECONDS = 60.0
"""Of wall-clock time, for a process that waits instead of computing."""
MAX_EXPONENT, MAX_FACTORIAL = 10**6, 10**5
"""Larger ones are not computed."""
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
    "\u221e": r"\infty ",
    "\u03c0": r"\pi ",
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
    """Compares formulas. Threads may share it: each comparison has a process to itself while it runs."""

    def __init__(self) -> None:
        self._idle: defaultdict[int, list[subprocess.Popen[bytes]]] = defaultdict(list)
        """The processes that wait for work, by the process that started them: a fork must not share its parent's."""
        atexit.register(self.close)

    def same(self, gold: str, answer: str) -> tuple[bool, str]:
        """Whether `answer` equals `gold`, and the reason."""
        if re.search(_TEMPERATURE, gold) is None:
            answer = re.sub(_TEMPERATURE, r"\g<ring>", answer)
        if normal_form(gold) == normal_form(answer):
            return True, "the same, but for its looks"
        if len(answer) > MAX_FORMULA_CHARACTERS:
            return False, f"a formula of {len(answer):,} characters"
        scales = re.search(r"(?<!\\)(?<![A-Za-z])[kKMBT]\b|\d[kKMBT]\b", gold) is None  # else they are variables
        gold, answer = plain_formula(gold, scales=False), plain_formula(answer, scales)
        if "_" not in gold:
            answer = answer.replace("_{10}", "")
        if normal_form(gold) == normal_form(answer):
            return True, "the same, but for its spelling"
        fault = fault_of(gold, answer)
        if fault is not None:
            return False, fault
        equal = self._ask({"gold": gold, "answer": with_commas(with_joined_thousands(with_latex_commands(answer)))})
        if equal is None:
            return False, "comparing them took too long"
        return equal, "equal by math-verify" if equal else "not equal by math-verify"

    def close(self) -> None:
        """End the processes that wait for work."""
        idle = self._idle[os.getpid()]
        while idle:
            _end(idle.pop())

    def _ask(self, question: dict[str, str]) -> bool | None:
        idle = self._idle[os.getpid()]
        for _ in range(2):  # if a process has died while it waited, a second one is started
            try:
                process = idle.pop()
            except IndexError:
                process = _start()
            try:
                line = _reply(process, json.dumps(question).encode())
            except BrokenPipeError:
                _end(process)
                continue
            except BaseException:  # an interrupted comparison must not leave its result to the next one
                _end(process)
                raise
            if line is None:
                _end(process)
                return None
            idle.append(process)
            return bool(json.loads(line))
        return None


def fault_of(gold: str, answer: str) -> str | None:
    """The reason why an answer is wrong regardless of math-verify; else None."""
    if is_too_large(answer):
        return "a number that is too large to compute"
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


def is_too_large(formula: str) -> bool:
    """Whether a formula has a power or a factorial of whole numbers that would take longer than the limit."""
    if any(int(number) > MAX_FACTORIAL for number in re.findall(r"(\d+)[)}\s]*!", formula)):
        return True
    for tower in re.finditer(r"(?<![=_\d])(?<!_\{)\d+(?:[)}\s]*\^[\s{(]*\d+)+", formula):
        exponent = 1
        for number in reversed(re.findall(r"\d+", tower[0])[1:]):
            if exponent > MAX_EXPONENT.bit_length() and int(number) > 1:
                return True
            exponent = int(number) ** exponent
            if exponent > MAX_EXPONENT:
                return True
    return False


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
    """The formula with commas between values that words, semicolons or boxes separate: "3 and 4" are two values."""
    formula = re.sub(rf"\}}{BETWEEN_BOXES}{BOX}\s?\{{", ", ", formula)
    formula = re.sub(rf"{WORDS}([^{{}}]*\d[^{{}}]*)\}}", r" \1 ", formula)
    formula = re.sub(rf"{WORDS}\s*(?:either|both)\s*\}}|\b(?:either|both)\b", " ", formula)
    joint = (
        rf"(?:{WORDS}[^{{}}\d]*\b(?:and|or)\b[^{{}}\d]*\}}|\b(?:and|or)\b|\\(?:lor|vee|land|wedge)(?![a-z])|;(?<!\\;))"
    )
    return re.sub(rf"(?:[,$]|{BLANK})*{joint}(?:\$|{BLANK})*", ", ", formula)


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
    command = [sys.executable, "-P", str(Path(__file__).parent / "verifier.py"), str(CPU_SECONDS)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        _end(process)
        raise UncodeError("math_verify does not start: try `python -c 'import math_verify'`.")
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def _reply(process: subprocess.Popen[bytes], question: bytes) -> bytes | None:
    """The line that a process answers; None if it has ended, or takes longer than MAX_SECONDS."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(question + b"\n")
    process.stdin.flush()
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    return (process.stdout.readline() or None) if poll.poll(MAX_SECONDS * 1000) else None
