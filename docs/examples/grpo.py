"""GRPO on `tiny`, with torch alone: a policy gradient for answers in few forwards.

    python docs/examples/grpo.py --device cuda --picture grpo.svg
    python docs/examples/grpo.py --family mini_sudoku --forwards 2 --prompts 8 --samples 8 --tested 64  # on a CPU

Each update draws samples of a few problems with a sampler of very few forwards, grades them, and follows the gradient
of the group-relative advantage. The log-probabilities are those of the tokens along the sampler's own step map, so the
gradient is that of the decoding that was graded, and not of a left-to-right reading of its text.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import torch
from torch import Tensor

import uncode
from uncode.evals.suite.families import FAMILIES


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", default="mini_algebra", choices=FAMILIES)
    parser.add_argument("--forwards", type=int, default=4, help="forwards of a sample")
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--prompts", type=int, default=32, help="problems of an update")
    parser.add_argument("--samples", type=int, default=16, help="samples of each problem")
    parser.add_argument("--tested", type=int, default=512, help="held-out problems")
    parser.add_argument("--every", type=int, default=25, help="updates between two tests on them")
    parser.add_argument("--rate", type=float, default=1e-4, help="learning rate")
    parser.add_argument("--warm-up", type=int, default=10, help="updates until the rate is reached")
    parser.add_argument("--clip", type=float, default=0.2, help="how far a ratio may be from 1")
    parser.add_argument("--passes", type=int, default=1, help="updates on the same samples")
    parser.add_argument("--part", type=int, default=64, help="samples of one backward pass")
    parser.add_argument("--device", help="default: a GPU if there is one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="the rewards, as JSON lines")
    parser.add_argument("--picture", type=Path, help="the same as a picture (needs matplotlib)")
    return parser.parse_args(words)


class Problems:
    """Problems of a mini family, and the reward of an answer: 1 if it is right."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.family = FAMILIES[options.family]
        self.training = self.family.problems(1024, seed=options.seed, testing=False)
        self.testing = self.family.examples()[: options.tested]

    def rewards(self, denoiser: uncode.core.denoiser.Denoiser, rollout: uncode.Rollout, problems: Sequence) -> Tensor:
        answers = zip(rollout.prompt.tolist(), rollout.texts(denoiser), strict=True)
        return torch.tensor([float(self.family.grade_ours(problems[at], text).correct) for at, text in answers])


def advantages(rewards: Tensor, samples: int) -> Tensor:
    """How much better a sample is than the others of its prompt."""
    groups = rewards.view(-1, samples)
    return ((groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)).flatten()


def objective(logp: Tensor, rollout: uncode.Rollout, advantage: Tensor, clip: float) -> Tensor:
    """The clipped surrogate of PPO and GRPO, summed over the drawn tokens."""
    ratio = (logp - rollout.logp.to(logp)).exp()
    gain = advantage.to(logp)[:, None]
    surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain)
    return surrogate[rollout.drawn.to(logp.device)].sum()


def train(options: argparse.Namespace) -> list[dict[str, float]]:
    denoiser, problems = uncode.load("tiny", device=options.device), Problems(options)
    sampler = uncode.presets.confidence(steps=options.forwards)
    drawing = {"sampler": sampler, "temperature": 1.0, "length": problems.family.length, "max_rows": 512}
    denoiser.network.requires_grad_(True)
    # Gradients are noisy, and Adam's first steps follow the noise: so the rate starts low.
    optimizer = torch.optim.AdamW(
        denoiser.network.parameters(), lr=options.rate, betas=(0.9, 0.99), eps=1e-5, weight_decay=0.0
    )
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / options.warm_up, total_iters=options.warm_up)
    random, history, began = Random(options.seed), [], time.monotonic()

    def held_out() -> float:
        prompts = [problems.family.prompt(problem) for problem in problems.testing]
        found = uncode.rollout(denoiser, prompts, n=1, seed=10**9, **drawing)
        return float(problems.rewards(denoiser, found, problems.testing).mean())

    def report(update: int, **figures: float) -> None:
        history.append({"update": update, **figures, "seconds": time.monotonic() - began})
        print(json.dumps({name: round(value, 4) for name, value in history[-1].items()}), flush=True)

    report(0, held_out=held_out())
    for update in range(1, options.updates + 1):
        chosen = random.sample(problems.training, options.prompts)
        prompts = [problems.family.prompt(problem) for problem in chosen]
        seed = options.seed + update * options.prompts * options.samples
        rollout = uncode.rollout(denoiser, prompts, n=options.samples, seed=seed, **drawing)
        rewards = problems.rewards(denoiser, rollout, chosen)
        advantage = advantages(rewards, options.samples)
        useful = advantage.nonzero()[:, 0]  # where all samples of a prompt are alike there is nothing to learn
        for _ in range(options.passes if len(useful) else 0):
            optimizer.zero_grad()
            tokens = rollout[useful].drawn.sum()
            for part in useful.split(options.part):
                logp = rollout[part].log_probabilities(denoiser)
                (-objective(logp, rollout[part], advantage[part], options.clip) / tokens).backward()
            torch.nn.utils.clip_grad_norm_(denoiser.network.parameters(), 1.0)
            optimizer.step()
        warm_up.step()
        tested = {"held_out": held_out()} if update % options.every == 0 or update == options.updates else {}
        report(update, reward=float(rewards.mean()), **tested)
    return history


def draw(history: list[dict[str, float]], path: Path, options: argparse.Namespace) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.add_subplot()
    rewards = [row["reward"] for row in history if "reward" in row]
    means = [sum(rewards[max(0, at - 20) : at]) / min(at, 20) for at in range(1, len(rewards) + 1)]
    axes.plot(range(1, len(rewards) + 1), rewards, ".", color="tab:blue", alpha=0.3, label="reward of an update")
    axes.plot(range(1, len(rewards) + 1), means, color="tab:blue", label="mean of 20 updates")
    held_out = [(row["update"], row["held_out"]) for row in history if "held_out" in row]
    axes.plot(*zip(*held_out, strict=True), "s--", color="tab:orange", label="held-out problems")
    axes.set(xlabel="update", ylabel="share right", ylim=(0, 1))
    axes.set_title(f"GRPO on tiny: {options.family}, forwards of a sample: {options.forwards}", fontsize=10)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None, "Creator": "uncode"})


def main(words: Sequence[str] | None = None) -> list[dict[str, float]]:
    options = arguments(words)
    history = train(options)
    if options.out is not None:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in history))
    if options.picture is not None:
        draw(history, options.picture, options)
    return history


if __name__ == "__main__":
    main()
