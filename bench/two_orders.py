"""What `uncode.two_orders` gains and costs on new problems of the mini families, beside its two orders alone.

python bench/two_orders.py                                   # 64 problems a family, some minutes on two cores
python bench/two_orders.py --model ./mine --device cuda --problems 512
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from answers import canvas_of, text_of
from numpy.typing import NDArray

import uncode
from uncode.core.pieces.stop import AfterEos
from uncode.evals.suite.families import FAMILIES
from uncode.generation.order_choice import RATES
from uncode.util.stats import mcnemar, newcombe

FAMILY_WIDTH = 10


@dataclass(frozen=True)
class Outcome:
    """Right answers and forwards of each problem, under each of the three."""

    right: NDArray[np.bool_]
    forwards: NDArray[np.float64]
    again: int
    """Problems that were decoded twice."""


def solve(model: uncode.Denoiser, name: str, rates: Sequence[float], problems: int, batch: int, draw: int) -> Outcome:
    family = FAMILIES[name]
    examples = family.fresh_problems(problems, draw)
    presets, table = uncode.presets, model.frequency
    orders = [presets.certain_first(rate=rate, frequency=table).stopping(AfterEos()) for rate in rates]
    right, forwards, again = list[list[bool]](), list[list[float]](), 0
    for begin in range(0, len(examples), batch):
        part = examples[begin : begin + batch]
        canvas = canvas_of(model, family, part)
        found = uncode.two_orders(model, canvas, orders)
        other = uncode.decode(model, canvas, orders[1])
        answers = (found.first.generated, other.generated, found.generated)
        counts = (found.first.forwards, other.forwards, found.forwards)
        texts = [[text_of(model, row.tolist()) for row in rows] for rows in answers]
        right += [[family.grade(example, each[n]).correct for each in texts] for n, example in enumerate(part)]
        forwards += [[float(each[n]) for each in counts] for n in range(len(part))]
        again += len(found.again)
    return Outcome(np.array(right), np.array(forwards), again)


def line(title: str, outcome: Outcome) -> str:
    each = zip(100 * outcome.right.mean(0), outcome.forwards.mean(0), strict=True)
    shown = (f"{right:6.1f} in {forwards:5.1f}" for right, forwards in each)
    return f"{title:{FAMILY_WIDTH}} {'   '.join(shown)}   {outcome.again:5} of {len(outcome.right)} twice"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--model", default="tiny")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--problems", type=int, default=64)
    arguments.add_argument("--batch", type=int, default=64)
    arguments.add_argument("--rates", type=float, nargs=2, default=RATES, help="positional rates of the two orders")
    arguments.add_argument("--draw", type=int, default=5, help="the seed of the new problems")
    asked = arguments.parse_args()
    model = uncode.load(asked.model, device=asked.device)
    names = [*(f"rate {rate:g}" for rate in asked.rates), "two orders"]
    print(f"{'':{FAMILY_WIDTH}} {'   '.join(f'{name:>15}' for name in names)}")
    found = []
    for name in FAMILIES:
        found.append(solve(model, name, asked.rates, asked.problems, asked.batch, asked.draw))
        print(line(name.removeprefix("mini_"), found[-1]), flush=True)
    whole = Outcome(
        np.concatenate([one.right for one in found]),
        np.concatenate([one.forwards for one in found]),
        sum(one.again for one in found),
    )
    print(line("average", whole))
    both, one = whole.right[:, 2].astype(float), whole.right[:, 0].astype(float)
    gain = newcombe(both, one)
    low, high = 100 * gain.low, 100 * gain.high
    test = mcnemar(both, one)
    print(f"two orders minus {names[0]}: {100 * gain.estimate:+.2f} [{low:+.2f}, {high:+.2f}] points, p {test.p:.3f}")


if __name__ == "__main__":
    main()
