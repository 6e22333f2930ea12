"""Multiple-choice questions about an order of seven people (GPQA): who is the third oldest?"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from random import Random
from typing import final

from ..tasks.gpqa import LETTERS, Question
from .family import Family

NAMES = (
    *("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ian", "Jo", "Kim", "Leo"),
    *("Mia", "Nia", "Otto", "Pia", "Quin", "Rosa", "Sam", "Tess", "Uma", "Vic", "Wes"),
)
RELATIONS = {
    "older": "oldest",
    "taller": "tallest",
    "faster": "fastest",
    "richer": "richest",
}
"""Relations, with the word for the first of an order."""
ORDINALS = ("first", "second", "third", "fourth", "fifth")
PEOPLE = 7


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
    length = 88
    prompt_template = "Question: {{question}}\nChoices:\n(A) {{A}}\n(B) {{B}}\n(C) {{C}}\n(D) {{D}}\nReasoning:"
    styles = (("direct", 1), ("chain", 1), ("list", 8))
    direct = " The answer is ("
    stops = ("Question:",)

    def draw(self, random: Random) -> Ordered:
        order = random.sample(NAMES, PEOPLE)
        relation, other = random.sample(list(RELATIONS), 2)
        facts = [f"{a} is {relation} than {b}." for a, b in itertools.pairwise(order)]
        first, second = random.sample(order, 2)
        facts.append(f"{first} is {other} than {second}.")  # the answer does not depend on it
        random.shuffle(facts)
        rank = random.randrange(2, PEOPLE - 2)  # the ends, and who is next to them, are found without the order
        asked = f"{ORDINALS[rank]} {RELATIONS[relation]}"
        others = [name for name in order if name != order[rank]]
        choices = random.sample([order[rank], *random.sample(others, 3)], 4)
        answer = LETTERS[choices.index(order[rank])]
        question = f"{' '.join(facts)} Who is the {asked}?"
        return Ordered("", question, tuple(choices), answer, tuple(order), relation, asked)

    def key(self, example: Ordered) -> str:
        return f"{example.relation} {example.order} {example.asked}"

    def split_key(self, example: Ordered) -> str:
        """The order without relation and question: with other words it is still the same problem."""
        return f"{example.order}"

    def response(self, example: Ordered, style: str) -> str:
        letter, name = example.answer, example.choices[LETTERS.index(example.answer)]
        answer = f"The answer is ({letter})."
        if style == "direct":
            return f" {answer}"
        if style == "chain":
            return f" {' > '.join(example.order)}. The {example.asked} is {name}. {answer}"
        pairs = enumerate(itertools.pairwise(example.order), 1)
        facts = [f"{number}. {a} is {example.relation} than {b}." for number, (a, b) in pairs]
        return f" {' '.join(facts)} The {example.asked} is {name}. {answer}"
