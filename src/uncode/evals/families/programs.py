"""The two program families: a function from its docstring (HumanEval), and from a sentence (MBPP)."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import final

from ..tasks.humaneval import Problem as DocstringProblem
from ..tasks.mbpp import Problem as SentenceProblem
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
    title = "HumanEval in miniature"
    benchmark = "humaneval"
    problem = Documented
    length = 80
    prompt_template = "{{stub}}"
    styles = (("short", 5), ("loop", 5))

    def draw(self, random: Random) -> Documented:
        function = draw_function(random)
        stub = f'def {function.name}(xs):\n    """Return the {function.words}."""\n'
        lines = "".join(f"    {test}\n" for test in function.tests)
        test = f"def check({function.name}):\n{lines}"
        return Documented("", stub, function.name, test, function.short, function.loop, function.words)

    def key(self, example: Documented) -> str:
        return example.words

    def may_be_tested(self, example: Documented) -> bool:
        return self.held_out(example) and hash_number(f"which {example.words}") % 2 == 0

    def response(self, example: Documented, style: str) -> str:
        return example.solution if style == "short" else example.loop


@final
class MiniSentence(Family[Described]):
    name = "mini_sentence"
    title = "MBPP in miniature"
    benchmark = "mbpp"
    problem = Described
    length = 80
    prompt_template = "Task: {{description}}\nFunction: {{signature}}\n"
    styles = (("short", 4), ("loop", 4), ("fence", 2))

    def draw(self, random: Random) -> Described:
        function = draw_function(random)
        head = f"def {function.name}(xs):\n"
        return Described(
            id="",
            number=0,
            description=f"Write a function to find the {function.words}.",
            entry=function.name,
            signature=f"{function.name}(xs)",
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

    def response(self, example: Described, style: str) -> str:
        if style == "fence":
            return f"```python\n{example.solution}```\n"
        return example.solution if style == "short" else example.loop
