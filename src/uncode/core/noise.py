"""Stateless randomness: a number is a hash of (row seed, step, offset, token, purpose).

Nothing is drawn from a generator, so a row's draws depend on neither its neighbours nor padding nor
device. The hash is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
SC 2011), the counter-based generator that GPU kernels use as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import torch
from torch import Tensor

from .support.transfer import number

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF


class Purpose(IntEnum):
    """What a draw is for; draws for different purposes are independent."""

    TOKEN = 0
    UNIFORM = 1
    GUMBEL = 2
    COMMIT = 3
    ERASE = 4
    REJECT = 5
    PROBE = 6


def philox(seed: Tensor, counter: tuple[Tensor | int, Tensor | int, Tensor | int, int]) -> tuple[Tensor, ...]:
    """Four 32-bit words (as int64) for every broadcast combination of 64-bit `seed` and `counter`."""
    k0, k1 = seed & _WORD, (seed >> 32) & _WORD
    words = (c.long() if isinstance(c, Tensor) else number(c, seed, torch.int64) for c in counter)
    _, c0, c1, c2, c3 = torch.broadcast_tensors(seed, *words)  # type: ignore[no-untyped-call]
    for _ in range(10):
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]  # wraps; both halves survive the masks below
        c0, c1, c2, c3 = ((p1 >> 32) & _WORD) ^ c1 ^ k0, p1 & _WORD, ((p0 >> 32) & _WORD) ^ c3 ^ k1, p0 & _WORD
        k0, k1 = (k0 + _WEYL[0]) & _WORD, (k1 + _WEYL[1]) & _WORD
    return c0, c1, c2, c3


def _unit(word: Tensor) -> Tensor:
    """A 32-bit word as a float64 strictly between 0 and 1."""
    return (word.double() + 0.5) * 2.0**-32


class Noise(Protocol):
    """Where a step's random numbers come from. Tests replace it to replay recorded noise."""

    def positions(self, purpose: Purpose, offsets: Tensor) -> Tensor:
        """Uniform numbers in (0, 1), one per position: `[B, W]`, float64."""
        ...

    def tokens(self, purpose: Purpose, offsets: Tensor, vocab_size: int) -> Tensor:
        """Uniform numbers in (0, 1), one per position and token: `[B, W, V]`, float64."""
        ...

    def take(self, rows: Tensor) -> Noise:
        """The same noise for some of the rows."""
        ...


@dataclass(slots=True, eq=False)
class PhiloxNoise:
    """The noise of one step."""

    seeds: Tensor
    """Of the rows, `[B, 1]`."""
    steps: Tensor
    """Each row's own count of forwards, `[B, 1]`."""

    def positions(self, purpose: Purpose, offsets: Tensor) -> Tensor:
        words = philox(self.seeds, (0, offsets, self.steps, int(purpose)))
        return _unit(words[0])

    def tokens(self, purpose: Purpose, offsets: Tensor, vocab_size: int) -> Tensor:
        groups = torch.arange((vocab_size + 3) // 4, device=self.seeds.device)  # one hash serves four tokens
        counter = (groups, offsets[:, :, None], self.steps[:, :, None], int(purpose))
        words = torch.stack(philox(self.seeds[:, :, None], counter), dim=-1)
        return _unit(words.flatten(-2)[..., :vocab_size])

    def take(self, rows: Tensor) -> PhiloxNoise:
        return PhiloxNoise(self.seeds[rows], self.steps[rows])


def gumbel(uniform: Tensor) -> Tensor:
    """Standard Gumbel noise from uniform numbers: adding it to log p and taking the maximum draws from p."""
    return -(-uniform.log()).log()


CHUNK_LOGITS = 2**20
"""Logits whose noise is made together (at least one column): in float64 it takes 8 MB."""


@dataclass(frozen=True)
class Draw:
    """How a token is drawn from softmax(logits / temperature): by Gumbel noise in float64."""

    temperature: float
    noise: Noise
    offsets: Tensor
    """Of the positions, `[1, W]` or `[B, W]`."""

    def __call__(self, logits: Tensor) -> Tensor:
        """The tokens `[B, W]`, drawn in chunks of columns."""
        rows, width, vocab = logits.shape
        chunk = max(1, CHUNK_LOGITS // max(rows * vocab, 1))
        parts = [
            self._drawn(logits[:, at : at + chunk], self.offsets[:, at : at + chunk]) for at in range(0, width, chunk)
        ]
        return torch.cat(parts, 1) if parts else self.offsets.new_empty(rows, 0)

    def _drawn(self, logits: Tensor, offsets: Tensor) -> Tensor:
        noise = gumbel(self.noise.tokens(Purpose.TOKEN, offsets, logits.shape[-1]))
        return (logits.double() / self.temperature + noise).max(-1).indices
