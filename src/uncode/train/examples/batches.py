"""Batches of the curriculum. The seed and the step alone decide which rows a batch holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..config import TrainConfig
from .shards import Shards


@dataclass(frozen=True)
class TrainBatch:
    """Rows of one length."""

    tokens: Tensor
    """[B, T]: prompt, answer, EOS padding."""
    answer: Tensor
    """[B, T]: true from the end of the prompt on. Only these positions are ever masked."""
    text: Tensor
    """[B, T]: true where the answer has text, before the EOS padding."""


class Batches:
    """Batches by step. Every run of a config draws the same rows at step `s`, also after an interruption."""

    def __init__(self, shards: Shards, config: TrainConfig, eos_id: int, device: torch.device) -> None:
        examples = config.examples
        self.config, self.eos_id, self.device = config, eos_id, device
        sizes = shards.prompts.astype(np.int64) + shards.answers
        self.sizes, self.prompts = (self._to_device(a) for a in (sizes, shards.prompts.astype(np.int64)))
        self.starts = self._to_device(np.cumsum(sizes) - sizes)
        self.tokens = self._to_device(shards.tokens.astype(np.int32))
        self.pools = _pools(shards, config)
        counts = np.bincount(shards.families, minlength=len(examples.shares))
        weights = (
            np.array([[len(rows) for rows in pool] for pool in self.pools]) / np.maximum(counts, 1) * examples.shares
        )
        self.mixtures = weights / np.maximum(weights.sum(1, keepdims=True), 1e-12)
        rows = np.array([config.schedule.tokens // length for length in examples.lengths])
        self.length_probabilities = weights.sum(1) / rows / (weights.sum(1) / rows).sum()

    def batch(self, step: int) -> TrainBatch:
        """The rows of a step."""
        random = np.random.default_rng([self.config.seed, step])
        which = int(random.choice(len(self.length_probabilities), p=self.length_probabilities))
        length = self.config.examples.lengths[which]
        counts = random.multinomial(self.config.schedule.tokens // length, self.mixtures[which])
        drawn = zip(self.pools[which], counts, strict=True)
        chosen = [rows[random.integers(len(rows), size=n)] for rows, n in drawn if n]
        return self._lay_out(self._to_device(np.concatenate(chosen)), length)

    def _lay_out(self, rows: Tensor, length: int) -> TrainBatch:
        positions = torch.arange(length, device=self.device)
        size, start, prompt = (t[rows, None] for t in (self.sizes, self.starts, self.prompts))
        gathered = self.tokens[(start + positions).clamp(max=len(self.tokens) - 1)].long()
        answer = positions >= prompt
        return TrainBatch(torch.where(positions < size, gathered, self.eos_id), answer, answer & (positions < size))

    def _to_device(self, array: np.ndarray) -> Tensor:
        """Copy an array. From pinned memory the host need not wait for the steps that are still running."""
        tensor = torch.from_numpy(array)
        return tensor.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else tensor


def _pools(shards: Shards, config: TrainConfig) -> list[list[np.ndarray]]:
    """The rows of each length and family: `pools[length][family]` holds row numbers.

    Each row has one length. It is one of the two shortest lengths that the longest answer of its family fits into, so
    the length of a row does not reveal the length of its answer. Every example of a family is drawn equally often.
    """
    examples = config.examples
    families, answers = shards.families, shards.answers.astype(np.int64)
    longest = np.array([answers[families == n].max(initial=0) for n in range(len(examples.shares))])
    need = shards.prompts.astype(np.int64) + longest[families] + examples.spare
    lengths = np.array(examples.lengths)
    first = np.minimum(np.searchsorted(lengths, need), len(lengths) - 1)
    drawn = np.random.default_rng(0).random(len(need))
    chosen = first + (drawn * np.minimum(len(lengths) - first, 2)).astype(np.int64)
    numbers = range(len(examples.shares))
    return [[np.flatnonzero((chosen == at) & (families == n)) for n in numbers] for at in range(len(lengths))]
