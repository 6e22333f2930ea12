"""A small random block-causal model for adapters: a position sees all columns up to the end of the open block."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

import uncode

VOCAB, MASK, BLOCK = 23, 22, 8


class Network(torch.nn.Module):
    """One layer of attention, in float64; called as diffusers calls a model."""

    device, dtype = torch.device("cpu"), torch.float64

    def __init__(self) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        sizes = {"tokens": (VOCAB, 16), "places": (200, 16), "head": (16, VOCAB)}
        for name, size in sizes.items():
            weight = torch.randn(size, generator=draw, dtype=torch.float64) * (2 if name == "head" else 1)
            self.register_parameter(name, torch.nn.Parameter(weight, requires_grad=False))
        self.calls = 0

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None) -> Any:
        self.calls += 1
        seen = torch.ones_like(ids) if attention_mask is None else attention_mask
        x = self.tokens[ids] + self.places[: ids.shape[1]]
        weights = (x @ x.transpose(1, 2) / 4).masked_fill(seen[:, None] == 0, -torch.inf).softmax(-1)
        return SimpleNamespace(logits=(x + weights @ x).tanh() @ self.head)


def denoiser(network: Network) -> uncode.FunctionDenoiser:
    """The network for `uncode.decode`: each row's forward goes up to the end of its open block."""

    def logits(tokens: Tensor) -> Tensor:
        found = torch.zeros(*tokens.shape, VOCAB, dtype=torch.float64)
        for row, ids in enumerate(tokens):
            open_at = (ids == MASK).nonzero()
            stop = min((int(open_at[0]) // BLOCK + 1) * BLOCK if len(open_at) else len(ids), len(ids))
            found[row, :stop] = network(ids[None, :stop]).logits[0]
        return found

    model = uncode.FunctionDenoiser(logits, MASK, VOCAB, dtype=torch.float64)
    model.block_length, model.has_kv_cache = BLOCK, True  # the cache of such a model is exact: recomputing is the same
    return model


def prompts(rows: int, length: int) -> Tensor:
    """Random prompts `[rows, length]`."""
    return torch.randint(0, 20, (rows, length), generator=torch.Generator().manual_seed(length))


def table() -> uncode.FrequencyTable:
    """A frequency table of the model's vocabulary."""
    counts = torch.rand(VOCAB, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return uncode.FrequencyTable(counts / counts.sum(), "random")
