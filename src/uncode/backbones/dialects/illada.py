"""iLLaDA-8B, and Stable-DiffCoder-8B on the same shape: bidirectional and block-causal.

Neither has a mask id in its config.json.
"""

from __future__ import annotations

from dataclasses import replace

from ..transformer.shape import Shape
from .dialect import Config, Release, demand, number
from .llama import like_llama, read_shape

_8B = Shape(4096, 32, 32, 8, 14336, 155136, theta=500000.0, eps=1e-6, context=8192, tied=True)
_BLOCK_LENGTH = 4
"""`block_length` of `generate_block` in modeling_stable_diffcoder.py."""
_CODER = replace(_8B, tied=False, block_length=_BLOCK_LENGTH)


def _illada_shape(config: Config) -> Shape:
    demand(config, "iLLaDA", layer_norm_eps=None)
    return read_shape(config, "iLLaDA")


def _coder_shape(config: Config) -> Shape:
    length = number(config, "block_length", "block_size", default=_BLOCK_LENGTH)
    return read_shape(config, "Stable-DiffCoder", block_length=length)


_IDS = {"mask": 5, "eos": 2}
_LLADA = (
    "blocks of 32, the most probable first, one token a forward (ML-GSAI/LLaDA README.md, 2026-06-24: its generate.py)",
    "licence in the same file; its evaluation code is not published",
)
_IN_BLOCKS = (
    "in a block the most probable first, one token a forward (ByteDance-Seed/Stable-DiffCoder README.md)",
    "licence on the hub; that decoder token for token",
)
ILLADA = like_llama(
    "iLLaDA",
    "illada",
    _illada_shape,
    _IDS,
    "logits within 1e-5 of its modelling code, typed off, and the tokens of LLaDA's generate.py, on five small random "
    "checkpoints",
    (
        Release("GSAI-ML/iLLaDA-8B-Base", _8B, False, "Apache-2.0", *_LLADA),
        Release("GSAI-ML/iLLaDA-8B-Instruct", _8B, True, "Apache-2.0", *_LLADA),
    ),
    mask_source="README.md of ML-GSAI/LLaDA, 2026-06-24",
)
STABLE_DIFFCODER = like_llama(
    "Stable-DiffCoder",
    "llama",
    _coder_shape,
    _IDS,
    "logits within 1e-5 of transformers' LLaMA, which it inherits, and the tokens of its generate_block, typed off, on "
    "five small random checkpoints",
    (
        Release("ByteDance-Seed/Stable-DiffCoder-8B-Base", _CODER, False, "MIT", *_IN_BLOCKS),
        Release("ByteDance-Seed/Stable-DiffCoder-8B-Instruct", _CODER, True, "MIT", *_IN_BLOCKS),
    ),
    architecture="StableDiffcoderForCausalLM",
    mask_source="`mask_id` of generate_block in its modeling_stable_diffcoder.py",
)
