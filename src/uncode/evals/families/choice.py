"""Multiple-choice questions about an order of three people (GPQA): who is the oldest?"""

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
    """The people, from most to least."""
    relation: str = ""
    asked: str = ""


@final
class MiniChoice(Family[Ordered]):
    name = "mini_choice"
    title = "GPQA in miniature"
    benchmark = "gpqa"
    problem = Ordered
    length = 80
    prompt_template = "Question: {{question}}\nChoices:\n(A) {{A}}\n(B) {{B}}\n(C) {{C}}\n(D) {{D}}\nReasoning:"
    styles = (("direct", 3), ("chain", 3), ("sentences", 4))
    direct = "The answer is ("
    stops = ("Question:",)

    def draw(self, random: Random) -> Ordered:
        *order, stranger = random.sample(NAMES, 4)
        relation = random.choice(list(RELATIONS))
        facts = [f"{a} is {relation} than {b}." for a, b in itertools.pairwise(order)]
        random.shuffle(facts)
        place = random.choice((0, 1, 2))
        asked = rank_names(relation)[place]
        choices = random.sample([*order, stranger], 4)
        answer = LETTERS[choices.index(order[place])]
        return Ordered("", f"{' '.join(facts)} Who is {asked}?", tuple(choices), answer, tuple(order), relation, asked)

    def key(self, example: Ordered) -> str:
        return f"{example.relation} {example.order} {example.asked}"

    def split_key(self, example: Ordered) -> str:
        """The order without the question, because the answers rank all three people."""
        return f"{example.relation} {example.order}"

    def response(self, example: Ordered, style: str) -> str:
        answer = f"The answer is ({example.answer})."
        if style == "direct":
            return answer
        ranks_by_name = dict(zip(example.order, rank_names(example.relation), strict=True))
        listed = list(zip(LETTERS, example.choices, strict=True))
        if style == "chain":
            ranks = [f"({letter}) {name} {ranks_by_name.get(name, 'nobody').split()[-1]}" for letter, name in listed]
            return f"{' > '.join(example.order)}: {', '.join(ranks)}. {answer}"
        facts = [f"{a} is {example.relation} than {b}." for a, b in itertools.pairwise(example.order)]
        ranks = [f"({letter}) {name} is {ranks_by_name.get(name, 'not named')}." for letter, name in listed]
        return f"{' '.join(facts)} {' '.join(ranks)} {answer}"


def rank_names(relation: str) -> tuple[str, str, str]:
    """The names of the three ranks, from most to least."""
    most, least = RELATIONS[relation]
    return f"the {most}", "in the middle", f"the {least}"
