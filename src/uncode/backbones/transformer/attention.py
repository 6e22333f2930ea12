"""Attention of a layer: heads from the fused QKV projection, RoPE, the KV cache, and the product itself."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from ...core.support.triton_support import use_triton
from .kv_cache import LayerCache
from .linear import MAX_SKINNY_TOKENS, pays_on
from .rope import Rope, apply_rope

MIN_WIDTH = 2048
"""Width of a model whose attention is worth its own kernel; smaller ones are limited by launches anyway."""


def rope_and_cache_qkv(
    qkv: Tensor, heads: int, key_heads: int, rope: Rope, cache: LayerCache | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Split the fused projection `[B, T, (heads + 2 key_heads) d]` into heads, apply RoPE, and write the KV cache.

    Returns queries, keys and values `[B, heads, T, d]`. With a cache the fresh keys and values are written to it, and
    the keys and values of all columns are returned.
    """
    split = qkv.view(*qkv.shape[:2], heads + 2 * key_heads, -1)
    rotated, values = (part.transpose(1, 2) for part in (split[:, :, :-key_heads], split[:, :, -key_heads:]))
    if use_triton(qkv):
        from . import pointwise_triton

        pointwise_triton.rope_and_cache(qkv, heads, key_heads, rope, cache)
    else:
        rotated = apply_rope(rotated, rope)
        if cache is not None:
            cache.write(rotated[:, heads:], values)
    return rotated[:, :heads], *((rotated[:, heads:], values) if cache is None else cache.read(len(qkv)))


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attention of queries `[B, heads, T, d]` over keys and values `[B, key heads, L, d]`, as `[B, T, heads * d]`.

    `mask` `[B, 1, 1, L]` is true where a key may be seen; each row sees at least one.
    """
    if _is_decode_shape(q, k, v):
        from . import attention_triton

        return attention_triton.flash_decode(q, k, v, mask)
    grouped = q.shape[1] != k.shape[1]
    seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=grouped)
    return seen.transpose(1, 2).flatten(2)


def _is_decode_shape(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether there are few queries over wide heads, on a GPU where flash-decoding was measured to pay."""
    _, heads, queries, width = q.shape
    wide = width in (64, 128) and heads * width >= MIN_WIDTH
    return wide and queries <= MAX_SKINNY_TOKENS and k.stride() == v.stride() and pays_on(q)
