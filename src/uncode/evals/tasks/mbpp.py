"""MBPP, sanitized: write a Python function from one sentence (Austin et al., 2021)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import final

from ...sandbox import Sandbox, Suite
from ..data import DataSource, Fields
from ..grade.code import readings, run_script, run_tests
from ..task import Example, Grade, Task, TaskSettings


@dataclass(frozen=True)
class MbppProblem(Example):
    number: int
    description: str
    entry: str
    """The function that the tests call."""
    signature: str
    imports: tuple[str, ...]
    """The imports of the tests, and those of the reference solution, which the tests rely on."""
    tests: tuple[str, ...]
    solution: str


@final
class Mbpp(Task[MbppProblem]):
    """All 427 problems of the sanitized set. The prompt gives the name and parameters of the function under test."""

    name = "mbpp"
    grades_in_processes = True
    title = "MBPP"
    source = DataSource(
        "sanitized-mbpp.json", "google-research-datasets/mbpp", "sanitized", "train+test+validation+prompt"
    )
    settings = TaskSettings(shots=0, length=128, rate=0.25, chat=True, block_length=16)

    @cached_property
    def sandbox(self) -> Sandbox:
        return Sandbox()

    def read(self, row: Fields, number: int) -> MbppProblem:
        code, tests = str(row["code"]).replace("\r\n", "\n").replace("\t", "    "), tuple(row["test_list"])
        entry = _entry(code, tests)
        imports = (*row["test_imports"], *re.findall(r"^(?:import|from)\s.*\S", code, re.M))
        task_id = int(row["task_id"])
        return MbppProblem(
            f"mbpp/{task_id}", task_id, row["prompt"], entry, _signature(code, entry), imports, tests, row["code"]
        )

    def placeholders(self, example: MbppProblem) -> dict[str, str]:
        return {"description": example.description, "signature": example.signature}

    def grade_ours(self, example: MbppProblem, text: str) -> Grade:
        suite = Suite((example.entry,), example.tests, setup="\n".join(example.imports))
        return run_tests(self.sandbox, suite, readings(text, example.entry))

    def grade_as_released(self, example: MbppProblem, text: str) -> Grade:
        """The first python fence or the whole text, and the tests without their imports, as one script."""
        parts = text.split("```python")
        code = parts[1].split("```")[0] if len(parts) > 1 else text.replace("```", "\n")
        header = f'"""\nTest file for task_id: {example.number}\nProblem description: {example.description}\n"""'
        tests = "\n\n".join(example.tests)
        return run_script(self.sandbox, f"{header}\n\n\n\n{code}\n\n{tests}\n", text)


def _entry(code: str, tests: tuple[str, ...]) -> str:
    """The first function that the tests call and the reference defines. One of them has the name of a builtin."""
    defined = set(re.findall(r"^\s*def\s+(\w+)", code, re.M))
    called = [name for test in tests for name in re.findall(r"\b([A-Za-z_]\w*)\s*\(", test)]
    found = next((name for name in called if name in defined), None)
    if found is None:
        raise ValueError("the tests call no function of the reference solution")
    return str(found)


def _signature(code: str, entry: str) -> str:
    found = re.search(rf"^\s*def\s+{entry}\s*(\(.*?\))\s*(?:->[^:]*)?:", code, re.M | re.S)
    return entry + (re.sub(r"\s+", " ", found[1]) if found else "()")
