"""The two program families: a function from its docstring (HumanEval), and from a sentence (MBPP)."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TypeVar, final

from ...grade.code import Reading, readings
from ...task import Grade
from ...tasks.humaneval import HumanEvalProblem as DocstringProblem
from ...tasks.mbpp import MbppProblem as SentenceProblem
from .behaviour import Behaviour
from .family import Family, hash_number
from .functions import draw_function


@dataclass(frozen=True)
class Documented(DocstringProblem):
    loop: str = ""
    """The same body, written as a loop."""
    words: str = ""
    """The returned value in words, which is the problem's key. The name of the function is not part of it."""


@dataclass(frozen=True)
class Described(SentenceProblem):
    loop: str = ""
    words: str = ""


@final
class MiniDocstring(Family[Documented]):
    name = "mini_docstring"
    grades_in_processes = True
    title = "HumanEval in miniature"
    benchmark = "humaneval"
    problem = Documented
    length = 104
    prompt_template = "{{stub}}"
    styles = (("short", 5), ("loop", 5))

    def draw(self, random: Random) -> Documented:
        function = draw_function(random)
        stub = f'def {function.name}({function.arguments}):\n    """Return the {function.words}."""\n'
        lines = "".join(f"    {test}\n" for test in function.tests)
        test = f"def check({function.name}):\n{lines}"
        return Documented("", stub, function.name, test, function.short, function.loop, function.words)

    def key(self, example: Documented) -> str:
        return example.words

    def may_be_tested(self, example: Documented) -> bool:
        return self.held_out(example) and hash_number(f"which {example.words}") % 2 == 0

    def is_fair_test(self, example: Documented) -> bool:
        return _is_fair(example.stub + example.solution)

    def response(self, example: Documented, style: str) -> str:
        return example.solution if style == "short" else example.loop

    def grade_ours(self, example: Documented, text: str) -> Grade:
        known = _reference_grade(self, example, text, readings(text, example.entry, example.stub))
        return known or super().grade_ours(example, text)


@final
class MiniSentence(Family[Described]):
    name = "mini_sentence"
    grades_in_processes = True
    title = "MBPP in miniature"
    benchmark = "mbpp"
    problem = Described
    length = 112
    prompt_template = "Task: {{description}}\nFunction: {{signature}}\n"
    styles = (("short", 4), ("loop", 4), ("fence", 2))

    def draw(self, random: Random) -> Described:
        function = draw_function(random)
        head = f"def {function.name}({function.arguments}):\n"
        return Described(
            id="",
            number=0,
            description=f"Write a function to find the {function.words}.",
            entry=function.name,
            signature=f"{function.name}({function.arguments})",
            imports=(),
            tests=function.tests,
            solution=head + function.short,
            loop=head + function.loop,
            words=function.words,
        )

    def key(self, example: Described) -> str:
        return example.words

    def may_be_tested(self, example: Described) -> bool:
        return self.held_out(example) and hash_number(f"which {example.words}") % 2 == 1

    def is_fair_test(self, example: Described) -> bool:
        return _is_fair(example.solution)

    def response(self, example: Described, style: str) -> str:
        if style == "fence":
            return f"```python\n{example.solution}```\n"
        return example.solution if style == "short" else example.loop

    def grade_ours(self, example: Described, text: str) -> Grade:
        known = _reference_grade(self, example, text, readings(text, example.entry))
        return known or super().grade_ours(example, text)


def _is_fair(program: str) -> bool:
    """Whether no training example computes the same, and wrong programs cannot pass because the result is constant."""
    behaviour = Behaviour.of(program)
    return not (behaviour.is_in_training or behaviour.is_constant)


P = TypeVar("P", Documented, Described)


def _reference_grade(family: Family[P], example: P, text: str, found: list[Reading]) -> Grade | None:
    """The grade of an answer that is one of the reference solutions; None for any other answer.

    A reference solution passes its tests, so it need not run. That saves most of the time: a run takes about 0.3 s, and
    most correct answers of a model that was trained on these solutions are one of them.
    """
    references = (family.response(example, style) for style, _ in family.styles)
    if not found or text.strip("\n") not in {one.strip("\n") for one in references}:
        return None
    return Grade(True, found[0].place.span, "it is a reference solution")
