"""Grading by running tests, for HumanEval and MBPP."""

from __future__ import annotations

from ...sandbox import Sandbox, Suite
from ..task import Grade
from .code import Reading


def run_tests(sandbox: Sandbox, suite: Suite, programs: list[Reading]) -> Grade:
    """Grade the first reading that is a valid program."""
    if not programs:
        return Grade(False, None, f"no function named {' or '.join(suite.names)}")
    verdict = sandbox.judge(suite, *(program.source for program in programs))
    chosen = programs[verdict.program if verdict.program is not None else 0]
    return Grade(verdict.passed, chosen.place.span, verdict.why)


def run_script(sandbox: Sandbox, script: str, text: str) -> Grade:
    """Grade by the released rule: the answer and its tests are one script, which must not write to standard error."""
    verdict = sandbox.silent(script)
    return Grade(verdict.passed, (0, len(text)), verdict.why)
