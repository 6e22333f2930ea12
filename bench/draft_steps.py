"""Forwards that draft steps save on new problems of the mini families, by family and number of steps a forward makes.

python bench/draft_steps.py                                   # 32 problems a family, minutes on two cores
python bench/draft_steps.py --model ./mine --device cuda --problems 512
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from answers import canvas_of
from numpy.typing import NDArray

import uncode
from uncode.core.pieces.stop import AfterEos
from uncode.evals.suite.families import FAMILIES

SAMPLERS = ("left_to_right", "confidence", "uncode")
NAME_WIDTH = 14


def forwards(
    model: uncode.Denoiser, canvas: uncode.Canvas, name: str, counts: Sequence[int]
) -> tuple[NDArray[np.float64], int]:
    """The mean forwards of a row for each number of draft steps, and the rows whose tokens are not those of the first
    number."""
    traces = [
        uncode.decode(model, canvas, getattr(uncode.presets, name)(draft_steps=count).stopping(AfterEos()))
        for count in counts
    ]
    differ = sum(int((trace.tokens != traces[0].tokens).any(-1).sum()) for trace in traces)
    return np.array([trace.forwards.double().mean() for trace in traces]), differ


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--model", default="tiny")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--problems", type=int, default=32)
    arguments.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4, 8], help="draft steps")
    arguments.add_argument("--samplers", nargs="+", default=SAMPLERS)
    arguments.add_argument("--draw", type=int, default=5, help="the seed of the new problems")
    asked = arguments.parse_args()
    model, differ = uncode.load(asked.model, device=asked.device), 0
    for name in asked.samplers:
        print(f"{name:{NAME_WIDTH}}{''.join(f'{count:9}' for count in asked.counts)}   draft steps")
        every = []
        for family in FAMILIES.values():
            canvas = canvas_of(model, family, family.fresh_problems(asked.problems, asked.draw))
            found, different = forwards(model, canvas, name, asked.counts)
            every.append(found)
            differ += different
            line = "".join(f"{value:9.1f}" for value in found)
            print(f"{family.name.removeprefix('mini_'):{NAME_WIDTH}}{line}", flush=True)
        mean = np.mean(every, 0)
        print(f"{'average':{NAME_WIDTH}}{''.join(f'{value:9.1f}' for value in mean)}")
        print(f"{'fewer by':{NAME_WIDTH}}{''.join(f'{mean[0] / value:8.2f}x' for value in mean)}", flush=True)
    rows = len(asked.samplers) * len(FAMILIES) * (len(asked.counts) - 1) * asked.problems
    print(f"{differ} of {rows} rows differ from those with {asked.counts[0]}")


if __name__ == "__main__":
    main()
