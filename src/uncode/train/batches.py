"""Batches of the curriculum: which rows a step learns from, decided by the seed and the step alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..core.errors import require
from .recipe import Recipe
from .shards import Shards


@dataclass(frozen=True)
class Batch:
    """Rows of one length."""

    tokens: Tensor
    """[B, T]: prompt, answer, end tokens."""
    answer: Tensor
    """[B, T]: true from the end of the prompt on. Only there is anything hidden."""


class Batches:
    """Row `b` of step `s` is the same in every run of a recipe, wherever the run was interrupted."""

    def __init__(self, shards: Shards, recipe: Recipe, end_id: int, device: torch.device) -> None:
        lessons = recipe.lessons
        self.recipe, self.end_id, self.device = recipe, end_id, device
        sizes = shards.prompts.astype(np.int64) + shards.answers
        self.sizes, self.prompts = (self._there(a) for a in (sizes, shards.prompts.astype(np.int64)))
        self.starts = self._there(np.cumsum(sizes) - sizes)
        self.tokens = self._there(shards.tokens.astype(np.int32))
        self.fitting = {
            length: [
                np.flatnonzero((shards.families == number) & (sizes <= length - lessons.spare))
                for number in range(len(lessons.shares))
            ]
            for length in lessons.lengths
        }
        for length, rows in self.fitting.items():
            require(sum(map(len, rows)) > 0, f"no lesson fits into {length} tokens: take it out of lessons.lengths.")

    def batch(self, step: int) -> Batch:
        """The rows of a step."""
        random = np.random.default_rng([self.recipe.seed, step])
        lessons = self.recipe.lessons
        length = int(random.choice(lessons.lengths))
        there = [(rows, lessons.shares[number]) for number, rows in enumerate(self.fitting[length]) if len(rows)]
        weights = np.array([share for _, share in there])
        counts = random.multinomial(self.recipe.schedule.tokens // length, weights / weights.sum())
        chosen = [rows[random.integers(len(rows), size=n)] for (rows, _), n in zip(there, counts, strict=True)]
        return self._laid_out(self._there(np.concatenate(chosen)), length)

    def _laid_out(self, rows: Tensor, length: int) -> Batch:
        places = torch.arange(length, device=self.device)
        size, start, prompt = (t[rows, None] for t in (self.sizes, self.starts, self.prompts))
        found = self.tokens[(start + places).clamp(max=len(self.tokens) - 1)].long()
        return Batch(torch.where(places < size, found, self.end_id), places >= prompt)

    def _there(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device)
