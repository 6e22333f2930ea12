"""Story problems with worked solutions (GSM8K): several steps, and facts that nobody needs."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import final

from ...tasks.gsm8k import Gsm8kProblem
from .family import Family
from .story_scenes import SCENES, Step


@dataclass(frozen=True)
class Solved(Gsm8kProblem):
    steps: tuple[Step, ...] = ()
    """Pairs of an equation and the sentence that holds it."""


@final
class MiniStory(Family[Solved]):
    name = "mini_story"
    title = "GSM8K in miniature"
    benchmark = "gsm8k"
    problem = Solved
    length = 112
    prompt_template = "Question: {{question}}\nAnswer:"
    styles = (("direct", 1), ("terse", 2), ("sentences", 4), ("verbose", 3))
    direct = " ####"
    stops = ("Question:",)

    def draw(self, random: Random) -> Solved:
        draw, scene = random.choice(SCENES), None  # chosen once, so that every scene is drawn as often
        while scene is None:
            scene = draw(random)
        question, answer, steps = scene
        return Solved("", question, str(answer), steps)

    def split_key(self, example: Solved) -> str:
        """The equations of the solution. With other names, facts or items it is still the same problem."""
        return " ".join(sorted(equation for equation, _ in example.steps))

    def response(self, example: Solved, style: str) -> str:
        answer = f"#### {example.answer}"
        if style == "direct":
            return f" {answer}"
        if style == "terse":
            return " " + "\n".join([*(equation for equation, _ in example.steps), answer])
        sentences = [sentence for _, sentence in example.steps]
        if style == "sentences":
            return " " + "\n".join([*sentences, answer])
        lines = (f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))
        return " " + "\n".join(["Step by step:", *lines, answer])
