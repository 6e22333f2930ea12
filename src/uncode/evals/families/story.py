"""Story problems with worked solutions (GSM8K), from the templates of reasoning-gym's gsm_symbolic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import final

from ...extras import needed
from ..grade.arithmetic import equations
from ..grade.find import everything
from ..tasks.gsm8k import Problem
from .family import Family

MAX_QUESTION_CHARACTERS, MAX_SOLUTION_CHARACTERS = 220, 170
"""Longer texts do not fit into the small model's context."""
MAX_NUMBER = 100
"""No number in a solution is larger, because a small model multiplies badly."""
_INSTRUCTION = " Give the result as your final answer. Do not include units."
_TO_ASCII = str.maketrans("\u00d7\u00f7\u2022\u2019\u2013\u201c\u201d", '*/-\'-""')


@dataclass(frozen=True)
class Solved(Problem):
    solution: str = ""
    """Sentences with equations, one per line, without the line of the answer."""


@final
class MiniStory(Family[Solved]):
    name = "mini_story"
    title = "GSM8K in miniature"
    benchmark = "gsm8k"
    problem = Solved
    length = 96
    prompt_template = "Question: {{question}}\nAnswer:"
    styles = (("direct", 2), ("terse", 2), ("sentences", 3), ("verbose", 3))
    direct = "####"
    stops = ("Question:",)

    def draw(self, random: Random) -> Solved:
        """Draw a problem with a random seed. reasoning-gym seeds item i with seed + i, so nearby seeds overlap."""
        gym = needed("reasoning_gym", "train", "drawing story problems")
        while True:
            item = gym.create_dataset("gsm_symbolic", size=1, seed=random.getrandbits(40))[0]
            solved = _solved(item["question"], item["metadata"]["answer_cot"], str(item["answer"]))
            if solved is not None:
                return solved

    def split_key(self, example: Solved) -> str:
        """The numbers of the question. With other names it is still the same problem."""
        return " ".join(re.findall(r"\d+", example.question))

    def response(self, example: Solved, style: str) -> str:
        answer = f"#### {example.answer}"
        if style == "direct":
            return answer
        if style == "terse":
            found = equations(everything(example.solution), grouped=True)
            steps = [re.sub(r"\s|\$", "", equation.place.text).replace("x", "*") for equation in found]
            return "\n".join([*dict.fromkeys(steps), answer])
        if style == "sentences":
            return f"{example.solution}\n{answer}"
        lines = (f"{number}. {line}" for number, line in enumerate(example.solution.split("\n"), 1))
        return "\n".join(["Let us go step by step.", *lines, f"So the answer is {example.answer}.", answer])


def _solved(question: str, solution: str, answer: str) -> Solved | None:
    """A problem in ASCII whose solution has equations that all hold; None for other problems."""
    question, solution = (text.translate(_TO_ASCII).replace(_INSTRUCTION, "").strip() for text in (question, solution))
    lines = [line.strip() for line in solution.split("\n") if line.strip()]
    if not lines or not lines[-1].startswith("####") or not re.fullmatch(r"-?\d+", answer):
        return None
    text = "\n".join(lines[:-1])
    if (
        not (question + text).isascii()
        or len(question) > MAX_QUESTION_CHARACTERS
        or len(text) > MAX_SOLUTION_CHARACTERS
    ):
        return None
    if max(map(int, re.findall(r"\d+", text)), default=0) > MAX_NUMBER:
        return None
    found = equations(everything(text), grouped=True)
    if not found or not all(equation.holds for equation in found):
        return None
    return Solved("", question, answer, text) if found[-1].sides[0].value == int(answer) else None
