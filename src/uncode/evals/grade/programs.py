"""Grading by running tests: what HumanEval and MBPP share."""

from __future__ import annotations

from ..sandbox import Sandbox, Suite
from ..task import Grade
from .code import Reading


def judged(sandbox: Sandbox, suite: Suite, programs: list[Reading]) -> Grade:
    """The grade of the first reading that is a program."""
    if not programs:
        return Grade(False, None, f"no function named {' or '.join(suite.names)}")
    verdict = sandbox.judge(suite, *(program.source for program in programs))
    chosen = programs[verdict.program if verdict.program is not None else 0]
    return Grade(verdict.passed, chosen.place.span, verdict.why)


def silent(sandbox: Sandbox, script: str, text: str) -> Grade:
    """The released rule: the answer and its tests in one file, right if nothing is written to standard error."""
    verdict = sandbox.silent(script)
    return Grade(verdict.passed, (0, len(text)), verdict.why)
