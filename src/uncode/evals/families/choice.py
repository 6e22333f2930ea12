"""Questions with four choices over a closed little world: who is older than whom, for GPQA."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from random import Random
from typing import final

from ..tasks.gpqa import LETTERS, Question
from .family import Family

NAMES = (
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gus",
    "Hana",
    "Ian",
    "Jo",
    "Kim",
    "Leo",
    "Mia",
    "Nia",
    "Otto",
    "Pia",
    "Quin",
    "Rosa",
    "Sam",
    "Tess",
    "Uma",
    "Vic",
    "Wes",
    "Xena",
    "Yara",
    "Zoe",
)
RELATIONS = {
    "older": ("oldest", "youngest"),
    "taller": ("tallest", "shortest"),
    "faster": ("fastest", "slowest"),
    "richer": ("richest", "poorest"),
}


@dataclass(frozen=True)
class Ordered(Question):
    order: tuple[str, ...] = ()
    """From most to least."""
    relation: str = ""
    asked: str = ""


@final
class MiniChoice(Family[Ordered]):
    name = "mini_choice"
    title = "GPQA in miniature"
    like = "gpqa"
    problem = Ordered
    length = 80
    form = "Question: {{question}}\nChoices:\n(A) {{A}}\n(B) {{B}}\n(C) {{C}}\n(D) {{D}}\nReasoning:"
    styles = (("direct", 3), ("chain", 3), ("sentences", 4))
    stops = ("Question:",)

    def draw(self, random: Random) -> Ordered:
        *order, stranger = random.sample(NAMES, 4)
        relation = random.choice(list(RELATIONS))
        facts = [f"{a} is {relation} than {b}." for a, b in itertools.pairwise(order)]
        random.shuffle(facts)
        place = random.choice((0, 1, 2))
        asked = (f"the {RELATIONS[relation][0]}", "in the middle", f"the {RELATIONS[relation][1]}")[place]
        choices = random.sample([*order, stranger], 4)
        answer = LETTERS[choices.index(order[place])]
        return Ordered("", f"{' '.join(facts)} Who is {asked}?", tuple(choices), answer, tuple(order), relation, asked)

    def key(self, example: Ordered) -> str:
        return f"{example.relation} {example.order} {example.asked}"

    def response(self, example: Ordered, style: str) -> str:
        name = example.choices[LETTERS.index(example.answer)]
        answer = f"The answer is ({example.answer})."
        if style == "direct":
            return answer
        lettered = [f"{person} ({LETTERS[example.choices.index(person)]})" for person in example.order]
        if style == "chain":
            return f"{' > '.join(lettered)}, so it is {name}. {answer}"
        places = zip(lettered, ("first", "second", "last"), strict=True)
        ranks = [f"{person} comes {place}." for person, place in places]
        return f"By who is {example.relation}: {' '.join(ranks)} {name} is {example.asked}. {answer}"
