"""A model whose logits are a hash: exact in any batch, and NaN wherever a plan leaves them undefined."""

from __future__ import annotations

import torch
from torch import Tensor

from ..backbones.columns import wanted_logits
from ..core.denoiser import Denoiser, Layout
from ..core.pieces.cache import Plan

_PRIME = 2**31 - 1
_SHARPNESS = 9.0


class CharacterTokenizer:
    """Every character is a token; the tokens from the first EOS token on are no characters."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return [ord(character) % self.tokens for character in text]


class HashDenoiser(Denoiser):
    """The logits of a position depend on the position itself, its two neighbours and how much of the row is filled.

    They are whole numbers until the last division, so a row has the same logits alone and in any batch. Columns that
    the plan does not recompute, and padding, are NaN: a piece that reads them gives itself away.
    """

    dtype = torch.float32
    has_kv_cache = True
    copies_kv_cache = True

    def __init__(self, vocab_size: int = 32, fingerprint: str = "") -> None:
        self.vocab_size, self.mask_id = vocab_size, vocab_size - 1
        self.eos_ids = (vocab_size - 2, vocab_size - 3)
        self.about = {"model": "hash", "tokenizer": fingerprint}
        self.tokenizer = CharacterTokenizer(vocab_size - 3)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashDenoiser) and (self.vocab_size, self.about) == (other.vocab_size, other.about)

    def __hash__(self) -> int:
        return hash(self.vocab_size)

    def open(self, rows: int, length: int) -> HashSession:
        return HashSession(self)


class HashSession:
    """It stores nothing: what a plan reuses would be the same if it were computed again."""

    def __init__(self, denoiser: HashDenoiser) -> None:
        self.denoiser = denoiser

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        valid, length = layout.valid, tokens.shape[1]
        ids = torch.where(valid, tokens, self.denoiser.vocab_size)
        positions = torch.arange(length) - valid.long().argmax(-1, keepdim=True)
        filled = (valid & (tokens != self.denoiser.mask_id)).sum(-1, keepdim=True)
        left, right = (torch.nn.functional.pad(ids, pad, value=self.denoiser.vocab_size) for pad in ((1, 0), (0, 1)))
        key = _mix(positions * 7919 + left[:, :-1] * 104729 + right[:, 1:] * 1299709 + filled * 15485863)
        values = _mix(key[:, :, None] + _mix(torch.arange(self.denoiser.vocab_size) + 1))
        sharpness = _SHARPNESS * (1 + key % 4) / 4  # some positions are nearly certain, others are not
        logits = (values.double() / _PRIME * sharpness[:, :, None]).float()
        logits[..., self.denoiser.mask_id] = -torch.inf
        computed = torch.from_numpy(plan.window.mask(length)) & valid
        return wanted_logits(logits.masked_fill_(~computed[:, :, None], torch.nan), plan)

    def add(self, rows: int, left: int, right: int) -> None:
        """Nothing is stored, so nothing moves."""

    def keep(self, rows: Tensor) -> None:
        """Nothing is stored, so nothing moves."""

    def copy_rows(self, session: HashSession, rows: Tensor) -> None:
        """Nothing is stored, so nothing is copied."""


def _mix(numbers: Tensor) -> Tensor:
    """Scatter whole numbers over [0, 2^31 - 1)."""
    mixed = (numbers % _PRIME) * 48271 % _PRIME
    return (mixed ^ (mixed >> 15)) * 69621 % _PRIME
