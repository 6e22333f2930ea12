"""Whether a threshold that is chosen without labels suits models that are less sure of themselves.

The logits of the model are divided by each temperature. For each, `uncode.choose_threshold` masks parts of texts and
chooses the threshold of `certain_first`, which then solves new problems: at its default threshold and at the chosen
one. The texts are training examples, or answers that the model itself wrote from left to right to other new problems.

python bench/threshold.py                                   # 32 problems a family, half an hour on two cores
python bench/threshold.py --text training --temperatures 1 --max-error 0.005 0.01 0.02
python bench/threshold.py --model ./mine --device cuda --problems 512 --batch 512
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from answers import before_eos, canvas_of, text_of
from numpy.typing import NDArray

import uncode
from uncode.core.pieces.stop import AfterEos
from uncode.evals.suite.families import FAMILIES
from uncode.train.examples.curriculum import draw
from uncode.util.stats import mcnemar, newcombe

HEAD = "head.weight"
EXAMPLES = 16
"""Texts of each family from which the threshold is chosen."""
MASKS = 8
"""How often each of them is masked."""
TEXT_SEED, CHUNK = 99, 0
"""A draw of examples that no config of the package trains on."""

Pairs = list[tuple[list[int], list[int]]]
"""Prompts and the texts after them, as token ids."""


class Outcome(NamedTuple):
    """Right (1) or wrong (0) on every problem, and the mean number of forwards over the families."""

    right: NDArray[np.float64]
    forwards: float

    def __str__(self) -> str:
        return f"{100 * self.right.mean():.1f} % in {self.forwards:.1f} forwards"


def soften(model: uncode.Denoiser, temperature: float) -> None:
    """Divide the model's logits by a temperature: the last layer has no bias."""
    dict(model.weights())[HEAD].div_(temperature)


def training_texts(model: uncode.Denoiser) -> Pairs:
    encode, pairs = model.tokenizer.encode, Pairs()
    for name, family in FAMILIES.items():
        for one in draw(name, TEXT_SEED, CHUNK, EXAMPLES):
            pairs.append((encode(one.prompt), filled_up(model, encode(one.response), family.length)))
    return pairs


def own_texts(model: uncode.Denoiser) -> Pairs:
    """What the model writes from left to right."""
    sampler, pairs = uncode.presets.left_to_right().stopping(AfterEos()), Pairs()
    for family in FAMILIES.values():
        examples = family.fresh_problems(EXAMPLES, TEXT_SEED)
        trace = uncode.decode(model, canvas_of(model, family, examples), sampler)
        for example, row in zip(examples, trace.generated.tolist(), strict=True):
            pairs.append((model.tokenizer.encode(family.prompt(example)), filled_up(model, row, family.length)))
    return pairs


def filled_up(model: uncode.Denoiser, ids: list[int], length: int) -> list[int]:
    """The tokens before the first EOS token, then EOS tokens to the end of the canvas."""
    text = before_eos(model, ids)[:length]
    return [*text, *[model.eos_ids[0]] * (length - len(text))]


TEXTS = {"training": training_texts, "own": own_texts}


def solve(model: uncode.Denoiser, threshold: float, problems: int, batch: int, seed: int) -> Outcome:
    """Decode new problems of every family with `certain_first`."""
    sampler = uncode.presets.certain_first(threshold=threshold, frequency=model.frequency).stopping(AfterEos())
    right, forwards = list[float](), list[float]()
    for family in FAMILIES.values():
        examples, counts = family.fresh_problems(problems, seed), list[int]()
        for begin in range(0, problems, batch):
            part = examples[begin : begin + batch]
            trace = uncode.decode(model, canvas_of(model, family, part), sampler)
            texts = [text_of(model, row.tolist()) for row in trace.generated]
            right += [float(family.grade(one, text).correct) for one, text in zip(part, texts, strict=True)]
            counts += trace.forwards.tolist()
        forwards.append(float(np.mean(counts)))
    return Outcome(np.array(right), float(np.mean(forwards)))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--model", default="tiny")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--problems", type=int, default=32, help="new problems of each family")
    arguments.add_argument("--batch", type=int, default=64)
    arguments.add_argument("--temperatures", type=float, nargs="+", default=[1.0, 2.0, 3.0])
    arguments.add_argument("--max-error", type=float, nargs="+", default=[0.005])
    arguments.add_argument("--text", choices=list(TEXTS), default="own", help="where the masked texts come from")
    arguments.add_argument("--draw", type=int, default=5, help="the seed of the new problems")
    asked = arguments.parse_args()
    default = uncode.presets.certain_first(informativeness=False).policy.select.threshold  # type: ignore[attr-defined]
    texts = TEXTS[asked.text](uncode.load(asked.model, device=asked.device))  # greedy, so the same at every temperature
    for temperature in asked.temperatures:
        model = uncode.load(asked.model, device=asked.device)
        soften(model, temperature)
        base = solve(model, default, asked.problems, asked.batch, asked.draw)
        print(f"temperature {temperature:g}: at {default} {base}", flush=True)
        for max_error in asked.max_error:
            choice = uncode.choose_threshold(model, texts, max_error=max_error, masks=MASKS)
            found = solve(model, choice.threshold, asked.problems, asked.batch, asked.draw)
            gain = newcombe(found.right, base.right)
            p, (low, high) = mcnemar(found.right, base.right).p, (100 * gain.low, 100 * gain.high)
            print(f"  {max_error:g} of {choice.answers} answers spoilt: at {choice.threshold:.7f} {found};", end=" ")
            print(f"{100 * gain.estimate:+.1f} [{low:+.1f}, {high:+.1f}] points, p {p:.3f}", flush=True)


if __name__ == "__main__":
    main()
