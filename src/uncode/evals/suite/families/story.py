"""Story problems with worked solutions (GSM8K): several steps, and facts that nobody needs.

There are three scenes: people who compare what they have, a purse, and boxes. A scene returns its question, the answer
and the steps of the solution, or None if a number is out of range. All numbers of a question are drawn from ranges that
leave more problems than training sees, so that an answer cannot be remembered. Sums are multiplied and products are
added to: a network can add up a question's numbers in one forward, but not follow such a chain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import final

from ...stop_strings import StopStrings
from ...task import Grade, Grader
from ...tasks.gsm8k import Gsm8kProblem
from .family import Family
from .reasoning import grade_reasoning

SolutionStep = tuple[str, str]
"""An equation, and the sentence that holds it."""
Scene = tuple[str, int, tuple[SolutionStep, ...]]
MAX_NUMBER = 200
"""No number in a solution is larger."""
STEPS = (4, 5)
"""The fewest and the most steps of a chain: people who are compared, deals of a purse."""
NAMES = (
    *("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana"),
    *("Ian", "Kim", "Leo", "Mia", "Nia", "Otto", "Rosa", "Sam"),
)
ITEMS = ("apples", "books", "cards", "coins", "eggs", "flowers", "pens", "shells", "stamps", "stones")
CONTAINERS = ("boxes", "bags", "jars", "trays", "shelves", "baskets")
"""In the plural everywhere: this model does not learn which plural belongs to which singular."""
BOX_DEALS = 3
"""Deals after the containers were counted; one of them multiplies."""
_TIMES = {2: "twice", 3: "three times"}
_GROWTHS = {2: "doubles", 3: "triples"}


class _Solution:
    """The steps so far. A number out of range spoils the solution."""

    def __init__(self) -> None:
        self.steps: list[SolutionStep] = []
        self.fits = True

    def step(self, a: int, sign: str, b: int, sentence: str) -> int:
        """Compute a step and return its result. `{}` in the sentence stands for the equation."""
        value = {"+": a + b, "-": a - b, "*": a * b}[sign]
        self.fits &= 0 < value <= MAX_NUMBER
        equation = f"{a} {sign} {b} = {value}"
        self.steps.append((equation, sentence.format(equation)))
        return value

    def scene(self, facts: list[str], question: str, answer: int) -> Scene | None:
        return (" ".join([*facts, question]), answer, tuple(self.steps)) if self.fits else None


def people(random: Random) -> Scene | None:
    """Each person has more, fewer, or a multiple of what the one before has."""
    solution, item = _Solution(), random.choice(ITEMS)
    multiplied = _multiplied(random)
    *names, stranger = random.sample(NAMES, len(multiplied) + 2)
    amount = random.randint(3, 30)
    facts = [f"{names[0]} has {amount} {item}."]
    for name, other, is_multiple in zip(names[1:], names, multiplied, strict=False):
        compared = _multiple if is_multiple else _difference
        fact, sign, number = compared(random, name, other, item)
        facts.append(fact)
        amount = solution.step(amount, sign, number, f"{name} has {{}} {item}.")
    for fact in _extra_facts(random, names, stranger, item):
        facts.insert(random.randint(1, len(facts)), fact)
    return solution.scene(facts, f"How many {item} does {names[-1]} have?", amount)


def _multiplied(random: Random) -> list[bool]:
    """Which steps of a chain multiply: one or two, but never the first."""
    steps = random.randint(*STEPS)
    found = random.sample(range(1, steps), random.randint(1, 2))
    return [number in found for number in range(steps)]


def _multiple(random: Random, name: str, other: str, item: str) -> tuple[str, str, int]:
    """A fact that compares two people, with the sign and the number of its equation."""
    factor = random.choice(list(_TIMES))
    return f"{name} has {_TIMES[factor]} as many {item} as {other}.", "*", factor


def _difference(random: Random, name: str, other: str, item: str) -> tuple[str, str, int]:
    """A fact that compares two people, with the sign and the number of its equation."""
    kind, number = random.choice(("more", "fewer")), random.randint(3, 30)
    return f"{name} has {number} {kind} {item} than {other}.", "+" if kind == "more" else "-", number


def _extra_facts(random: Random, names: list[str], stranger: str, item: str) -> list[str]:
    """Facts that the answer does not depend on."""
    facts = []
    kind = random.choice(("none", "other", "number"))
    if kind == "other":
        facts.append(_difference(random, stranger, random.choice(names), item)[0])
    if kind == "number":
        facts.append(
            random.choice(
                (
                    f"{random.choice(names)} is {random.randint(8, 60)} years old.",
                    f"{random.choice(names)} lives {random.randint(2, 30)} miles from {stranger}.",
                )
            )
        )
    return facts


def purse(random: Random) -> Scene | None:
    """One person earns, loses, doubles and triples."""
    solution = _Solution()
    name, friend = random.sample(NAMES, 2)
    amount, multiplied = random.randint(3, 30), _multiplied(random)
    facts = [f"{name} has {amount} coins."]
    extra = random.randrange(len(multiplied)) if random.random() < 0.5 else None
    for number, is_multiple in enumerate(multiplied):
        if number == extra:
            facts.append(f"{friend} {random.choice(('has', 'earns', 'sells'))} {random.randint(3, 60)} coins.")
        deal = _growth if is_multiple else _transfer
        fact, sign, change = deal(random, name, "coins")
        facts.append(fact)
        amount = solution.step(amount, sign, change, f"Now {name} has {{}} coins.")
    return solution.scene(facts, f"How many coins does {name} have now?", amount)


def _growth(random: Random, name: str, item: str) -> tuple[str, str, int]:
    """A deal that multiplies: the fact, and the sign and the number of its equation."""
    factor = random.choice(list(_GROWTHS))
    return f"{name} {_GROWTHS[factor]} the {item}.", "*", factor


def _transfer(random: Random, name: str, item: str) -> tuple[str, str, int]:
    """A deal that adds or takes: the fact, and the sign and the number of its equation."""
    kind, number = random.choice(("earns", "finds", "loses", "sells")), random.randint(3, 30)
    return f"{name} {kind} {number} {item}.", "+" if kind in ("earns", "finds") else "-", number


def boxes(random: Random) -> Scene | None:
    """Full containers and what lies beside them; then deals."""
    solution, item, containers = _Solution(), random.choice(ITEMS), random.choice(CONTAINERS)
    name, friend = random.sample(NAMES, 2)
    size, count, loose = random.randint(2, 9), random.randint(2, 9), random.randint(2, 30)
    facts = [f"All {containers} hold {size} {item}."]
    if random.random() < 0.4:
        facts.insert(random.randint(0, 1), f"{friend} has {random.randint(2, 9)} {containers}.")
    facts.append(f"{name} has {count} {containers} and {loose} {item}.")
    packed = solution.step(count, "*", size, f"The {containers} hold {{}} {item}.")
    amount = solution.step(packed, "+", loose, f"That is {{}} {item}.")
    doubled = random.randrange(BOX_DEALS)
    for number in range(BOX_DEALS):
        deal = _growth if number == doubled else _transfer
        fact, sign, change = deal(random, name, item)
        facts.append(fact)
        amount = solution.step(amount, sign, change, f"Now {name} has {{}} {item}.")
    return solution.scene(facts, f"How many {item} does {name} have now?", amount)


SCENES: tuple[Callable[[Random], Scene | None], ...] = (people, purse, boxes)


@dataclass(frozen=True)
class Solved(Gsm8kProblem):
    steps: tuple[SolutionStep, ...] = ()
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
    stops = StopStrings(("Question:",))

    def draw(self, random: Random) -> Solved:
        draw, scene = random.choice(SCENES), None  # chosen once, so that every scene is drawn as often
        while scene is None:
            scene = draw(random)
        question, answer, steps = scene
        return Solved("", question, str(answer), steps)

    @property
    def graders(self) -> dict[str, Grader[Solved]]:
        return super().graders | {"sound": self.grade_reasoning}

    def grade_reasoning(self, example: Solved, text: str) -> Grade:
        question, answer = example.question, self.grade_ours(example, text).span
        factors = [factor for words in (_TIMES, _GROWTHS) for factor, word in words.items() if word in question]
        return grade_reasoning(question, text, answer, factors)

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
