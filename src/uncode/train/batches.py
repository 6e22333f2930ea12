"""Batches of the curriculum: which rows a step learns from, decided by the seed and the step alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .config import TrainConfig
from .shards import Shards


@dataclass(frozen=True)
class Batch:
    """Rows of one length."""

    tokens: Tensor
    """[B, T]: prompt, answer, end tokens."""
    answer: Tensor
    """[B, T]: true from the end of the prompt on. Only there is anything hidden."""
    text: Tensor
    """[B, T]: true where the answer has text, before the end tokens."""


class Batches:
    """Row `b` of step `s` is the same in every run of a config, wherever the run was interrupted."""

    def __init__(self, shards: Shards, config: TrainConfig, end_id: int, device: torch.device) -> None:
        examples = config.examples
        self.config, self.end_id, self.device = config, end_id, device
        sizes = shards.prompts.astype(np.int64) + shards.answers
        self.sizes, self.prompts = (self._there(a) for a in (sizes, shards.prompts.astype(np.int64)))
        self.starts = self._there(np.cumsum(sizes) - sizes)
        self.tokens = self._there(shards.tokens.astype(np.int32))
        self.pools = _pools(shards, config)
        counts = np.bincount(shards.families, minlength=len(examples.shares))
        taught = (
            np.array([[len(rows) for rows in pool] for pool in self.pools]) / np.maximum(counts, 1) * examples.shares
        )
        self.mixtures = taught / np.maximum(taught.sum(1, keepdims=True), 1e-12)
        rows = np.array([config.schedule.tokens // length for length in examples.lengths])
        self.often = taught.sum(1) / rows / (taught.sum(1) / rows).sum()

    def batch(self, step: int) -> Batch:
        """The rows of a step."""
        random = np.random.default_rng([self.config.seed, step])
        which = int(random.choice(len(self.often), p=self.often))
        length = self.config.examples.lengths[which]
        counts = random.multinomial(self.config.schedule.tokens // length, self.mixtures[which])
        drawn = zip(self.pools[which], counts, strict=True)
        chosen = [rows[random.integers(len(rows), size=n)] for rows, n in drawn if n]
        return self._laid_out(self._there(np.concatenate(chosen)), length)

    def _laid_out(self, rows: Tensor, length: int) -> Batch:
        places = torch.arange(length, device=self.device)
        size, start, prompt = (t[rows, None] for t in (self.sizes, self.starts, self.prompts))
        found = self.tokens[(start + places).clamp(max=len(self.tokens) - 1)].long()
        answer = places >= prompt
        return Batch(torch.where(places < size, found, self.end_id), answer, answer & (places < size))

    def _there(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device)


def _pools(shards: Shards, config: TrainConfig) -> list[list[np.ndarray]]:
    """For each length and family, the rows that are taught at that length.

    A row has one length, drawn among those that the longest answer of its family would fit into: how long the
    row is then tells nothing about the answer, and every example of a family is taught as often as any other.
    """
    examples = config.examples
    families, answers = shards.families, shards.answers.astype(np.int64)
    longest = np.array([answers[families == n].max(initial=0) for n in range(len(examples.shares))])
    need = shards.prompts.astype(np.int64) + longest[families] + examples.spare
    lengths = np.array(examples.lengths)
    first = np.minimum(np.searchsorted(lengths, need), len(lengths) - 1)
    drawn = np.random.default_rng(0).random(len(need))
    place = first + (drawn * (len(lengths) - first)).astype(np.int64)
    numbers = range(len(examples.shares))
    return [[np.flatnonzero((place == at) & (families == n)) for n in numbers] for at in range(len(lengths))]
