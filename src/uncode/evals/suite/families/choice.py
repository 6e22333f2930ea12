"""Multiple-choice questions about a hidden thing (GPQA): under which cup is the coin after twelve swaps?"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import final

from ...stop_strings import StopStrings
from ...tasks.gpqa import LETTERS, GpqaQuestion
from .family import Family

THINGS = ("coin", "pea", "ring", "key", "bean", "pearl", "stone", "die")
COVERS = ("cup", "bowl", "hat", "shell", "box", "lid", "pot", "mug")
SWAPS = 12
"""Swaps in a test problem. Training also has shorter problems, from which the model learns to follow the thing."""
SHORT_SHARE = 0.5
"""The share of problems with fewer swaps."""

Swap = tuple[str, str]


@dataclass(frozen=True)
class Hidden(GpqaQuestion):
    cover: str = ""
    places: tuple[str, ...] = ()
    """The letter of the cover that hides the thing: at first, and after each swap."""
    swaps: tuple[Swap, ...] = ()


@final
class MiniChoice(Family[Hidden]):
    """The covers have the letters of the choices: a model this small does not learn to look a letter up."""

    name = "mini_choice"
    title = "GPQA in miniature"
    benchmark = "gpqa"
    problem = Hidden
    length = 96
    prompt_template = "Question: {{question}}\nChoices:\n(A) {{A}}\n(B) {{B}}\n(C) {{C}}\n(D) {{D}}\nReasoning:"
    styles = (("direct", 2), ("list", 8))
    direct = " The answer is ("
    stops = StopStrings(("Question:",))

    def draw(self, random: Random) -> Hidden:
        thing, cover = random.choice(THINGS), random.choice(COVERS)
        count = random.randint(1, SWAPS - 1) if random.random() < SHORT_SHARE else SWAPS
        swaps = tuple((a, b) for a, b in (random.sample(LETTERS, 2) for _ in range(count)))
        places = [random.choice(LETTERS)]
        for swap in swaps:
            places.append(swap[1 - swap.index(places[-1])] if places[-1] in swap else places[-1])
        moves = ", ".join(f"{a}-{b}" for a, b in swaps)
        question = f"The {thing} is under {cover} {places[0]}. Swaps: {moves}. Where is the {thing} now?"
        choices = tuple(f"{cover} {letter}" for letter in LETTERS)
        return Hidden("", question, choices, places[-1], cover, tuple(places), swaps)

    def may_be_tested(self, example: Hidden) -> bool:
        """Only long problems are tested. After a few swaps, one forward can guess the place."""
        return self.held_out(example) and len(example.swaps) == SWAPS

    def split_key(self, example: Hidden) -> str:
        """The swaps, with the covers numbered as they appear: with other letters it is still the same problem."""
        appear = [example.places[0], *(letter for swap in example.swaps for letter in swap)]
        numbers = {letter: number for number, letter in enumerate(dict.fromkeys(appear))}
        pairs = (sorted(numbers[letter] for letter in swap) for swap in example.swaps)
        return " ".join(f"{a}-{b}" for a, b in pairs)

    def response(self, example: Hidden, style: str) -> str:
        place = example.places[-1]
        answer = f"The answer is ({example.answer})."
        if style == "direct":
            return f" {answer}"
        pairs = zip(example.swaps, example.places[1:], strict=True)
        steps = ", ".join(f"{a}-{b}: {after}" for (a, b), after in pairs)
        return f" {example.places[0]}, {steps}. So it is under {example.cover} {place}. {answer}"
