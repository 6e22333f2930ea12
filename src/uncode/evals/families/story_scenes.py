"""The scenes of the story problems: people who compare what they have, a purse, boxes and bags.

A scene returns its question, the answer and the steps of the solution, or None if a number is out of range. All
numbers of a question are drawn from ranges that leave more problems than training sees, so that an answer cannot be
remembered, and a chain of three to six steps cannot be computed in one forward.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Step = tuple[str, str]
"""An equation, and the sentence that holds it."""
Scene = tuple[str, int, tuple[Step, ...]]
MAX_NUMBER = 200
"""No number in a solution is larger."""
NAMES = (
    *("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana"),
    *("Ian", "Kim", "Leo", "Mia", "Nia", "Otto", "Rosa", "Sam"),
)
ITEMS = ("apples", "books", "cards", "coins", "eggs", "flowers", "pens", "shells", "stamps", "stones")
GOODS = tuple(item for item in ITEMS if item != "coins")
CONTAINERS = ("box", "bag", "jar", "basket", "shelf", "tray")
_PLURALS = {"box": "boxes", "shelf": "shelves"}
_TIMES = {2: "twice", 3: "three times"}


class _Solution:
    """The steps so far. A number out of range spoils the solution."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
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
    """Each person has more, fewer, or a multiple of what another one has."""
    solution, item = _Solution(), random.choice(ITEMS)
    *names, stranger = random.sample(NAMES, random.randint(3, 4) + 1)
    amounts = [random.randint(5, 40)]
    facts = [f"{names[0]} has {amounts[0]} {item}."]
    for name, other in zip(names[1:], names, strict=False):
        fact, sign, number = _compared(random, name, other, item)
        facts.append(fact)
        amounts.append(solution.step(amounts[-1], sign, number, f"{name} has {{}} {item}."))
    facts += _extra_facts(random, names, stranger, item)
    if random.random() < 0.5:
        random.shuffle(facts)
    if random.random() < 0.5:
        return solution.scene(facts, f"How many {item} does {names[-1]} have?", amounts[-1])
    partner = random.randrange(len(names) - 1)
    together = solution.step(amounts[-1], "+", amounts[partner], "Together they have {}" + f" {item}.")
    return solution.scene(facts, f"How many {item} do {names[-1]} and {names[partner]} have together?", together)


def _compared(random: Random, name: str, other: str, item: str) -> tuple[str, str, int]:
    """A fact that compares two people, with the sign and the number of its equation."""
    kind = random.choice(("more", "more", "fewer", "fewer", "times"))
    if kind == "times":
        factor = random.choice(list(_TIMES))
        return f"{name} has {_TIMES[factor]} as many {item} as {other}.", "*", factor
    number = random.randint(3, 30)
    return f"{name} has {number} {kind} {item} than {other}.", "+" if kind == "more" else "-", number


def _extra_facts(random: Random, names: list[str], stranger: str, item: str) -> list[str]:
    """Facts that the answer does not depend on."""
    facts = []
    kind = random.choice(("none", "other", "number"))
    if kind == "other":
        facts.append(_compared(random, stranger, random.choice(names), item)[0])
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
    """One person earns, spends and buys."""
    solution = _Solution()
    name, friend = random.sample(NAMES, 2)
    amount = random.randint(10, 60)
    facts, count = [f"{name} has {amount} coins."], random.randint(2, 3)
    extra = random.randrange(1, count + 1) if random.random() < 0.5 else 0
    for number in range(count):
        if number + 1 == extra:
            facts.append(
                random.choice(
                    (f"{friend} has {random.randint(10, 99)} coins.", f"{friend} earns {random.randint(10, 60)} coins.")
                )
            )
        fact, amount = _deal(random, solution, name, amount)
        facts.append(fact)
    return solution.scene(facts, f"How many coins does {name} have now?", amount)


def _deal(random: Random, solution: _Solution, name: str, amount: int) -> tuple[str, int]:
    """A deal of a purse: the fact, and the amount after it."""
    kind = random.choice(("earns", "finds", "loses", "buys", "sells"))
    now = f"Now {name} has {{}} coins."
    if kind in ("earns", "finds", "loses"):
        number = random.randint(3, 30)
        return f"{name} {kind} {number} coins.", solution.step(amount, "-" if kind == "loses" else "+", number, now)
    item, number, price = random.choice(GOODS), random.randint(2, 9), random.randint(2, 9)
    total = solution.step(number, "*", price, f"The {item} cost {{}} coins.")
    fact = f"{name} {kind} {number} {item} for {price} coins each."
    return fact, solution.step(amount, "-" if kind == "buys" else "+", total, now)


def boxes(random: Random) -> Scene | None:
    """Full containers of two kinds, and what is taken out or shared."""
    solution, item = _Solution(), random.choice(ITEMS)
    name, friend = random.sample(NAMES, 2)
    kinds = random.sample(CONTAINERS, 3)
    sizes, counts = [random.randint(3, 12) for _ in kinds], [random.randint(2, 9) for _ in kinds]
    used = 2
    facts = [f"A {kind} holds {size} {item}." for kind, size in zip(kinds[:used], sizes, strict=False)]
    if random.random() < 0.4:
        facts.append(f"{friend} has {random.randint(2, 9)} {_plural(random.choice(kinds[:used]))}.")
    random.shuffle(facts)
    owned = [f"{count} {_plural(kind)}" for kind, count in zip(kinds[:used], counts, strict=False)]
    facts.append(f"{name} has {', '.join(owned[:-1])} and {owned[-1]}.")
    parts = [
        solution.step(count, "*", size, f"The {_plural(kind)} hold {{}} {item}.")
        for kind, count, size in zip(kinds[:used], counts, sizes, strict=False)
    ]
    amount = parts[0]
    for part in parts[1:]:
        amount = solution.step(amount, "+", part, f"That is {{}} {item}.")
    if random.random() < 0.7:
        number = random.randint(5, 40)
        facts.append(f"{name} gives {number} {item} to {friend}.")
        amount = solution.step(amount, "-", number, f"{name} keeps {{}} {item}.")
    return solution.scene(facts, f"How many {item} does {name} have now?", amount)


def _plural(kind: str) -> str:
    return _PLURALS.get(kind, f"{kind}s")


SCENES: tuple[Callable[[Random], Scene | None], ...] = (people, purse, boxes)
