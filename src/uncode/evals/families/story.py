"""Story problems with worked solutions, for GSM8K: the templates of reasoning-gym's gsm_symbolic."""

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

LONGEST_QUESTION, LONGEST_SOLUTION = 220, 170
"""Characters; the small canvas has room for no more."""
LARGEST = 100
"""No number of a solution is larger: a small model multiplies badly, and this is not about multiplying."""
_ASKS = " Give the result as your final answer. Do not include units."
_PLAIN = str.maketrans("\u00d7\u00f7\u2022\u2019\u2013\u201c\u201d", '*/-\'-""')


@dataclass(frozen=True)
class Solved(Problem):
    solution: str = ""
    """Sentences with equations, a line each, without the answer's line."""


@final
class MiniStory(Family[Solved]):
    name = "mini_story"
    title = "GSM8K in miniature"
    like = "gsm8k"
    problem = Solved
    length = 96
    form = "Question: {{question}}\nAnswer:"
    styles = (("direct", 2), ("terse", 2), ("sentences", 3), ("verbose", 3))
    stops = ("Question:",)

    def draw(self, random: Random) -> Solved:
        """From a seed drawn at random: the package seeds item i with seed + i, so neighbouring seeds would overlap."""
        gym = needed("reasoning_gym", "train", "drawing story problems")
        while True:
            item = gym.create_dataset("gsm_symbolic", size=1, seed=random.getrandbits(40))[0]
            solved = _solved(item["question"], item["metadata"]["answer_cot"], str(item["answer"]))
            if solved is not None:
                return solved

    def divides(self, example: Solved) -> str:
        """The numbers: with other names it would be the same problem."""
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
    """A problem in plain letters whose solution has equations, all of which hold; None for others."""
    question, solution = (text.translate(_PLAIN).replace(_ASKS, "").strip() for text in (question, solution))
    lines = [line.strip() for line in solution.split("\n") if line.strip()]
    if not lines or not lines[-1].startswith("####") or not re.fullmatch(r"-?\d+", answer):
        return None
    text = "\n".join(lines[:-1])
    if not (question + text).isascii() or len(question) > LONGEST_QUESTION or len(text) > LONGEST_SOLUTION:
        return None
    if max(map(int, re.findall(r"\d+", text)), default=0) > LARGEST:
        return None
    found = equations(everything(text), grouped=True)
    if not found or not all(equation.holds for equation in found):
        return None
    return Solved("", question, answer, text) if found[-1].sides[0].value == int(answer) else None
