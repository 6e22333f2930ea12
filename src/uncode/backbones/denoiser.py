"""The transformer as a denoiser: a dialect's ids and shift over the network."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from ..core.denoiser import Denoiser
from ..core.errors import require
from ..core.pieces.piece import Table
from ..core.support.memory import require_memory
from .dialects.dialect import Dialect
from .transformer.cuda_graph import MAX_TOKENS
from .transformer.network import Transformer
from .transformer.session import TransformerSession
from .transformer.session_memory import IdleMemory
from .transformer.shape import Shape

LEAST_POSITIONS = 4
"""Masks of a first forward from which one can judge a mask id."""
WORTH_A_WARNING = 60.0
"""Seconds of one forward."""
_WORTH_A_MEASUREMENT = 1e12
"""Floating-point operations below which no CPU needs a minute."""
_SIDE = 512


class TransformerDenoiser(Denoiser):
    """A published transformer in normal form, with a KV cache."""

    has_kv_cache = True
    copies_kv_cache = True
    computes_in_parts = True

    def __init__(
        self,
        network: Transformer,
        dialect: Dialect,
        *,
        mask_id: int,
        eos_ids: tuple[int, ...],
        text_vocab: int | None = None,
        tokenizer: Any = None,
        about: dict[str, Any] | None = None,
        frequency: Table | None = None,
    ) -> None:
        """Tokens from `text_vocab` on are never written: those of images, in a model that has them."""
        self.network, self.dialect, self.tokenizer = network, dialect, tokenizer
        self.mask_id, self.eos_ids, self.frequency = mask_id, eos_ids, frequency
        self.parameters = network.shape.parameters
        self.vocab_size, self.context = network.shape.vocab, network.shape.context
        self.block_length, self.blocks_from_answer = network.shape.block_length, network.shape.blocks_from_answer
        self.is_mask_assumed = False
        """Whether the checkpoint does not say its mask id. The first forward then looks whether it can be."""
        self.about = about or {"model": dialect.model_type}
        if network.weights is not None:
            self.about = self.about | {"weights": network.weights}
        others = range(text_vocab or self.vocab_size, self.vocab_size)
        self._barred = torch.tensor([mask_id, *others], device=self.device)
        self._idle = IdleMemory()

    def __repr__(self) -> str:
        weights = "" if self.network.weights is None else f"{self.network.weights} weights, "
        return f"TransformerDenoiser({self.about['model']}, {weights}{self.dtype}, {self.device})"

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self.network.embed.weight.device

    @property
    def dtype(self) -> torch.dtype:  # type: ignore[override]
        return self.network.embed.weight.dtype

    @property
    def graph_tokens(self) -> int:  # type: ignore[override]
        """A network on several devices is not captured."""
        return MAX_TOKENS if len({weight.device for weight in self.network.parameters()}) == 1 else 0

    @property
    def slides_on_device(self) -> bool:  # type: ignore[override]
        """On one GPU: on a CPU the host knows where windows are, and computes them in parts."""
        return self.device.type == "cuda" and self.graph_tokens > 0

    def weights(self) -> Iterable[tuple[str, Tensor]]:
        return self.network.named_parameters()

    def open(self, rows: int, length: int) -> TransformerSession:
        shape, tokens = self.network.shape, rows * length
        require(
            shape.yarn is None or length <= shape.yarn.original,
            f"this model was not made for a canvas of {length:,} tokens without a scale of its queries: use one of at "
            f"most {shape.context:,}.",
        )
        require_memory(
            tokens * shape.activations * self.dtype.itemsize,
            self.device,
            f"a forward over {tokens:,} tokens",
            "use a shorter length or a smaller batch",
        )
        warn_if_long(shape, rows, length, self.device)
        check = self._check_mask if self.is_mask_assumed else None
        return TransformerSession(self.network, self._barred, self.dialect.shift, rows, length, self._idle, check)

    def _check_mask(self, logits: Tensor) -> None:
        """Raise if the first forward contradicts a mask id that the checkpoint does not say. A model learns to fill
        masks, and no mask is ever the answer: one that proposes this token for most of them has another mask token."""
        self.is_mask_assumed = False
        proposed = logits.argmax(-1) == self.mask_id
        count, positions = int(proposed.sum()), proposed.numel()
        require(
            positions < LEAST_POSITIONS or 2 * count <= positions,
            f"this model proposes token {self.mask_id} for {count} of {positions} masks, so it is not its mask token: "
            f"add the right mask_token_id to config.json ({self.mask_id} is from {self.dialect.mask_source or 'us'}).",
        )


def warn_if_long(shape: Shape, rows: int, length: int, device: torch.device) -> None:
    """One line on standard error where a forward will take more than a minute on a CPU, because Ctrl-C takes effect
    only between operations: attention over L positions is one of L x L products for each layer."""
    work = 2.0 * shape.active_parameters * rows * length + 4.0 * shape.layers * shape.width * rows * length**2
    if device.type != "cpu" or work < _WORTH_A_MEASUREMENT:
        return
    seconds = work * _seconds_per_flop()
    if seconds > WORTH_A_WARNING:
        line = f"a forward over {rows * length:,} tokens takes about {seconds:,.0f} s here"
        stop = f"Ctrl-C is noticed within about {seconds / shape.layers:,.0f} s"
        print(f"{line}, and {stop}: use a shorter length or a GPU.", file=sys.stderr)


def _seconds_per_flop() -> float:
    """Of a matrix product on this machine: the best of eight, since other processes disturb some."""
    square = torch.ones(_SIDE, _SIDE)
    times = []
    for _ in range(8):
        began = time.perf_counter()
        torch.mm(square, square)
        times.append(time.perf_counter() - began)
    return min(times) / (2.0 * _SIDE**3)
