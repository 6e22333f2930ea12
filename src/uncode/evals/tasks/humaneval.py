"""HumanEval: complete a Python function from its docstring (Chen et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

from ...sandbox import Sandbox, Suite
from ..data import DataSource, Fields
from ..grade.code import readings, run_script, run_tests
from ..task import Example, Grade, Task, TaskSettings


@dataclass(frozen=True)
class HumanEvalProblem(Example):
    stub: str
    """Imports, helpers, signature and docstring."""
    entry: str
    test: str
    """Source that defines `check(candidate)`."""
    solution: str
    """The body of a correct function."""


@final
class HumanEval(Task[HumanEvalProblem]):
    """Our rule accepts the whole function or its body, in any layout. The tests run outside the candidate's jail."""

    name = "humaneval"
    grades_in_processes = True
    title = "HumanEval"
    source = DataSource("humaneval.jsonl", "openai/openai_humaneval")
    settings = TaskSettings(shots=0, length=256, rate=0.25, chat=True, block_length=32)

    @cached_property
    def sandbox(self) -> Sandbox:
        return Sandbox()

    def read(self, row: Fields, number: int) -> HumanEvalProblem:
        fields = ("task_id", "prompt", "entry_point", "test", "canonical_solution")
        return HumanEvalProblem(*(row[name] for name in fields))

    def placeholders(self, example: HumanEvalProblem) -> dict[str, str]:
        return {"stub": example.stub}

    def grade_ours(self, example: HumanEvalProblem, text: str) -> Grade:
        tests = (example.test, f"check({example.entry})")
        suite = Suite((example.entry,), tests, setup=example.stub)
        return run_tests(self.sandbox, suite, readings(text, example.entry, example.stub))

    def grade_as_released(self, example: HumanEvalProblem, text: str) -> Grade:
        """The stub under another name, the text without its fences, and the tests, as one script."""
        renamed = example.stub.replace(example.entry, f"{example.entry}_prompt")
        answer = text.replace("```python", "\n").replace("```", "\n")
        main = f'if __name__ == "__main__":\n    check({example.entry})'
        return run_script(self.sandbox, f"{renamed}{answer}\n{example.test}\n{main}", text)
