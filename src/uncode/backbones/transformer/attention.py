"""Attention of a layer: heads from the fused QKV projection, RoPE, the KV cache, and the product itself."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from ...core.support.triton_support import use_triton
from .kv_cache import LayerCache
from .linear import MAX_SKINNY_TOKENS, pays_on
from .pointwise import QKNorm, Rope, apply_rope

MIN_WIDTH = 2048
"""Width of a model for which flash-decoding pays; smaller ones are limited by launches anyway."""
MAX_SHORT_KEYS = 256
"""Masked rows of at most this many keys are short. In a narrow model torch's attention takes up to twice as long for
them as our kernel, and costs the host 0.7 ms for each new shape. A batch has a new shape whenever rows leave it."""


def rope_and_cache_qkv(
    qkv: Tensor,
    heads: int,
    key_heads: int,
    rope: Rope,
    cache: LayerCache | None = None,
    norm: QKNorm | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Split the fused projection `[B, T, (heads + 2 key_heads) d]` into heads, apply the norm of queries and keys where
    there is one, and RoPE, and write the KV cache.

    Returns queries, keys and values `[B, heads, T, d]`. With a cache the fresh keys and values are written to it, and
    the keys and values of all columns are returned.
    """
    split = qkv.view(*qkv.shape[:2], heads + 2 * key_heads, -1)
    rotated, values = (part.transpose(1, 2) for part in (split[:, :, :-key_heads], split[:, :, -key_heads:]))
    if use_triton(qkv):
        from .kernels import pointwise_triton

        pointwise_triton.rope_and_cache(qkv, heads, key_heads, rope, cache, norm)
    else:
        rotated = apply_rope(rotated if norm is None else norm(rotated, heads), rope)
        if cache is not None:
            cache.write(rotated[:, heads:], values)
    return rotated[:, :heads], *((rotated[:, heads:], values) if cache is None else cache.read(len(qkv)))


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attention of queries `[B, heads, T, d]` over keys and values `[B, key heads, L, d]`, as `[B, T, heads * d]`.

    `mask` `[B, 1, 1 or T, L]` is true where a key may be seen; each query sees at least one.
    """
    if _is_kernel_shape(q, k, v, mask):
        from .kernels import attention_triton

        return attention_triton.flash_attention(q, k, v, mask)
    grouped = q.shape[1] != k.shape[1]
    seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=grouped)
    return seen.transpose(1, 2).flatten(2)


def _is_kernel_shape(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> bool:
    """Whether our kernel was measured to be faster: masked short rows of a narrow model, few queries of a wide one."""
    _, heads, queries, width = q.shape
    is_wide = heads * width >= MIN_WIDTH
    is_few = queries <= MAX_SKINNY_TOKENS
    is_short = mask is not None and k.shape[2] <= MAX_SHORT_KEYS
    pays = is_few if is_wide else is_short
    return width in (64, 128) and pays and k.stride() == v.stride() and pays_on(q)
