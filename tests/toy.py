"""A small bidirectional transformer with a real key-value cache, for tests: its weights come from a seed.

It is a network like the published ones (RMSNorm, rotary positions, an MLP, untied head) in
float64, and its session does exactly what a :class:`Plan` says: recompute the window, attend to the
stored keys outside it, store what is to be kept. Weights are Philox noise, the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from uncode.backbones.columns import wanted_logits
from uncode.core.denoiser import Denoiser, Layout
from uncode.core.noise import PhiloxNoise, Purpose
from uncode.core.pieces.cache import Plan
from uncode.testing.hash_model import CharacterTokenizer

VOCAB, MASK, EOS, EOT = 32, 31, 30, 29
WIDTH, HEADS, LAYERS, SHARPNESS, FOCUS, MAX_POSITIONS = 24, 2, 2, 5.0, 2.0, 512


def rope_tables() -> tuple[Tensor, Tensor]:
    """Cosines and sines of every position; the last row is that of position -1, which padding has."""
    half = WIDTH // HEADS // 2
    positions = torch.cat([torch.arange(MAX_POSITIONS), torch.tensor([-1])])
    angle = positions[:, None].double() / 100.0 ** (torch.arange(half) / half)
    return angle.cos(), angle.sin()


ROPE = rope_tables()


def numbers(seed: int, stream: int, *shape: int) -> Tensor:
    """Standard normal numbers that depend on nothing but their arguments."""
    count = int(np.prod(shape))
    noise = PhiloxNoise(torch.tensor([[seed]]), torch.tensor([[stream]]))
    offsets = torch.arange(2 * count)[None]
    first, second = noise.positions(Purpose.TOKEN, offsets)[0].split(count)
    return ((-2 * first.log()).sqrt() * (2 * torch.pi * second).cos()).reshape(shape)


@dataclass
class Layer:
    q: Tensor
    k: Tensor
    v: Tensor
    out: Tensor
    up: Tensor
    down: Tensor


class ToyNetwork:
    """The network alone: hidden states of any columns, given keys and values of all others.

    `boost` is added to the logits of the two EOS tokens, for tests that need them.
    """

    def __init__(self, seed: int, boost: float = 0.0) -> None:
        self.embed = numbers(seed, 0, VOCAB, WIDTH)
        self.pos_embed = numbers(seed, 99, MAX_POSITIONS, WIDTH)
        self.bias = torch.zeros(VOCAB, dtype=torch.float64)
        self.bias[[EOS, EOT]] = boost
        self.head = numbers(seed, 1, WIDTH, VOCAB) * SHARPNESS / WIDTH**0.5
        shapes = [(WIDTH, WIDTH)] * 4 + [(WIDTH, 2 * WIDTH), (2 * WIDTH, WIDTH)]
        self.layers = [
            Layer(*(numbers(seed, 10 * n + i + 2, *s) / s[0] ** 0.5 for i, s in enumerate(shapes)))
            for n in range(LAYERS)
        ]

    def enter(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Embeddings; every position has its own, so that a row of masks is not all alike."""
        return self.embed[tokens] + self.pos_embed[positions.clamp(min=0)]

    @staticmethod
    def norm(x: Tensor) -> Tensor:
        return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()

    @staticmethod
    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        """Rotary positions on `[B, T, heads, dim]`, `positions` `[B, T]`."""
        a, b = x.chunk(2, -1)
        cos, sin = (table[positions][:, :, None] for table in ROPE)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def project(self, layer: Layer, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values `[B, T, heads, dim]`, not yet rotated."""
        h = self.norm(x)
        q, k, v = (h @ w for w in (layer.q, layer.k, layer.v))
        return tuple(t.unflatten(-1, (HEADS, WIDTH // HEADS)) for t in (q, k, v))  # type: ignore[return-value]

    def attend(self, layer: Layer, x: Tensor, q: Tensor, k: Tensor, v: Tensor, visible: Tensor) -> Tensor:
        """The rest of a layer; `q` and `k` are rotated, `visible` is `[B, keys]`."""
        weight = torch.einsum("bqhd,bkhd->bhqk", q, k) * FOCUS / q.shape[-1] ** 0.5
        weight = weight.masked_fill(~visible[:, None, None, :], -torch.inf).softmax(-1)
        x = x + torch.einsum("bhqk,bkhd->bqhd", weight, v).flatten(-2) @ layer.out
        return x + torch.nn.functional.silu(self.norm(x) @ layer.up) @ layer.down

    def logits(self, x: Tensor) -> Tensor:
        logits = self.norm(x) @ self.head + self.bias
        logits[..., MASK] = -torch.inf
        return logits

    def __call__(self, tokens: Tensor, valid: Tensor | None = None) -> Tensor:
        """Logits of a whole canvas, without any cache."""
        valid = torch.ones_like(tokens, dtype=torch.bool) if valid is None else valid
        positions = valid.long().cumsum(-1) - 1
        x = self.enter(tokens, positions)
        for layer in self.layers:
            q, k, v = self.project(layer, x)
            x = self.attend(layer, x, self.rotate(q, positions), self.rotate(k, positions), v, valid)
        return self.logits(x)

    def of_rows(self, rows: Tensor) -> ToyNetwork:
        """The network of those rows: it is the same for all."""
        return self


class ToyNetworks(ToyNetwork):
    """Networks side by side, their weights stacked: row r of a batch goes through the r-th."""

    def __init__(self, networks: Sequence[ToyNetwork]) -> None:
        self.embed, self.pos_embed, self.bias, self.head = (
            torch.stack([getattr(each, name) for each in networks]) for name in ("embed", "pos_embed", "bias", "head")
        )
        self.bias = self.bias[:, None]
        self.layers = [
            Layer(*(torch.stack(weights) for weights in zip(*(vars(layer).values() for layer in layers), strict=True)))
            for layers in zip(*(each.layers for each in networks), strict=True)
        ]

    def enter(self, tokens: Tensor, positions: Tensor) -> Tensor:
        rows = torch.arange(len(tokens))[:, None]
        return self.embed[rows, tokens] + self.pos_embed[rows, positions.clamp(min=0)]

    def of_rows(self, rows: Tensor) -> ToyNetworks:
        kept = copy(self)
        kept.embed, kept.pos_embed, kept.bias, kept.head = (
            t[rows] for t in (self.embed, self.pos_embed, self.bias, self.head)
        )
        kept.layers = [Layer(*(weight[rows] for weight in vars(layer).values())) for layer in self.layers]
        return kept


def fingerprint(logits: Tensor) -> str:
    """A hash of logits, rounded so that the order of additions does not matter."""
    rounded = (logits[..., :MASK] * 1e6).round().to(torch.int64)
    return hashlib.sha256(rounded.numpy().tobytes()).hexdigest()[:16]


@cache
def network(seed: int, boost: float) -> ToyNetwork:
    return ToyNetwork(seed, boost)


class ToyDenoiser(Denoiser):
    """The network in normal form."""

    mask_id, vocab_size, eos_ids, tokenizer = MASK, VOCAB, (EOS, EOT), CharacterTokenizer(EOT)
    device, dtype, has_kv_cache = torch.device("cpu"), torch.float64, True
    copies_kv_cache = True

    def __init__(self, seed: int, boost: float = 0.0) -> None:
        self.network = network(seed, boost)
        self.forwards = 0
        self.about = {"model": f"toy-{seed}"}

    @classmethod
    def side_by_side(cls, models: Sequence[ToyDenoiser]) -> ToyDenoiser:
        """One model for a batch with a row for each of these."""
        made = cls(0)
        made.network, made.about = ToyNetworks([model.network for model in models]), {"model": "toys"}
        return made

    def open(self, rows: int, length: int) -> ToySession:
        return ToySession(self, rows, length)


class ToySession:
    """Keys and values of every layer, `[B, L, heads, dim]`, rotated where they are used."""

    def __init__(self, denoiser: ToyDenoiser, rows: int, length: int) -> None:
        self.denoiser, self.network = denoiser, denoiser.network
        shape = (rows, length, HEADS, WIDTH // HEADS)
        self.stored = [
            (torch.full(shape, torch.nan).double(), torch.full(shape, torch.nan).double()) for _ in range(LAYERS)
        ]

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        net, valid, length = self.network, layout.valid, tokens.shape[1]
        self.denoiser.forwards += 1
        if plan.store.width == 0 and plan.reuse.width == 0:  # nothing is cached, so there is a shorter way
            return wanted_logits(net(tokens, valid), plan)
        fresh, reuse, keep = (torch.from_numpy(s.mask(length)) for s in (plan.window, plan.reuse, plan.store))
        visible = (fresh | reuse) & valid
        positions = valid.long().cumsum(-1) - 1
        columns = torch.from_numpy(np.minimum(plan.window.start[:, None] + np.arange(plan.window.width), length - 1))
        x = net.enter(tokens.gather(1, columns), positions.gather(1, columns))
        for number, layer in enumerate(net.layers):
            q, k, v = net.project(layer, x)
            old_k, old_v = self.stored[number]
            full_k, full_v = (self._lay(new, old, columns, fresh) for new, old in ((k, old_k), (v, old_v)))
            for old, full in ((old_k, full_k), (old_v, full_v)):
                old[keep & fresh] = full[keep & fresh]
            unseen = ~visible[:, :, None, None]
            keys = net.rotate(full_k.masked_fill(unseen, 0.0), positions)
            q = net.rotate(q, positions.gather(1, columns))
            x = net.attend(layer, x, q, keys, full_v.masked_fill(unseen, 0.0), visible)
        return self._rows(net.logits(x), plan)

    @staticmethod
    def _lay(new: Tensor, old: Tensor, columns: Tensor, fresh: Tensor) -> Tensor:
        """Fresh entries at their columns, stored ones elsewhere."""
        spread = torch.zeros_like(old)
        for row in range(len(old)):
            here = columns[row][fresh[row, columns[row]]]
            spread[row, here] = new[row, : len(here)]
        return torch.where(fresh[:, :, None, None], spread, old)

    @staticmethod
    def _rows(logits: Tensor, plan: Plan) -> Tensor:
        shift = torch.from_numpy(plan.wanted.start[:, None] + np.arange(plan.wanted.width) - plan.window.start[:, None])
        inside = (shift >= 0) & (shift < torch.from_numpy(plan.window.stop - plan.window.start)[:, None])
        found = logits.gather(1, shift.clamp(0, logits.shape[1] - 1)[:, :, None].expand(-1, -1, logits.shape[-1]))
        return torch.where(inside[:, :, None], found, torch.nan)  # what was not computed may be anything

    def add(self, rows: int, left: int, right: int) -> None:
        def grow(t: Tensor) -> Tensor:
            return torch.nn.functional.pad(t, (0, 0, 0, 0, left, right, 0, rows), value=torch.nan)

        self.stored = [(grow(k), grow(v)) for k, v in self.stored]

    def keep(self, rows: Tensor) -> None:
        self.stored = [(k[rows], v[rows]) for k, v in self.stored]
        self.network = self.network.of_rows(rows)

    def copy_rows(self, session: ToySession, rows: Tensor) -> None:
        self.stored = [(k[rows], v[rows]) for k, v in session.stored]
        self.network = session.network.of_rows(rows)
