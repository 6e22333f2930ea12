"""A2D of ZHZisZZ/dllm: Qwen3 or Qwen2 trained to fill masks, bidirectional (MDLM) or in blocks (BD3LM).

Both write the same config.json; the name of a checkpoint says which it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..transformer.shape import Shape
from .dialect import Config, Release, number
from .llama import CHATML, like_llama, read_shape

_BLOCK_LENGTH = 32
"""`block_size` of dllm/core/samplers/bd3lm.py."""
_IDS = {"mask": 151669, "eos": 151645}
_QWEN3 = Shape(1024, 28, 16, 8, 3072, 151936, 1e6, 1e-6, 32768, tied=True, head_dim=128, qk_norm=True)
_QWEN2 = Shape(896, 24, 14, 2, 4864, 151936, 1e6, 1e-6, 32768, tied=True, qkv_bias=True)


def _in_blocks(shape: Shape, length: int | None = _BLOCK_LENGTH) -> Shape:
    return replace(shape, block_length=length, blocks_from_answer=length is not None)


def _release(name: str, shape: Shape) -> Release:
    kind, on_the_hub = "bd3lm" if "bd3lm" in name else "mdlm", "Coder" in name
    return Release(
        f"dllm-hub/{name}",
        _in_blocks(shape) if kind == "bd3lm" else shape,
        True,
        "Apache-2.0" if on_the_hub else "not verified",
        f"blocks of 32, the most probable first, one token a forward (ZHZisZZ/dllm examples/a2d/{kind}/sample.py)",
        "licence on the hub" if on_the_hub else "the hub's page has the licence in its head, which was not found",
    )


def _reader(*, qk_norm: bool = False, qkv_bias: bool = False) -> Callable[[Config], Shape]:
    def read(config: Config) -> Shape:
        named = _BLOCK_LENGTH if "bd3lm" in str(config.get("_name_or_path")) else None
        says = any(config.get(key) is not None for key in ("block_length", "block_size"))
        length = number(config, "block_length", "block_size") if says else named
        return _in_blocks(read_shape(config, "A2D", qk_norm=qk_norm, qkv_bias=qkv_bias), length)

    return read


A2D_QWEN3 = like_llama(
    "A2D on Qwen3",
    "a2d-qwen3",
    _reader(qk_norm=True),
    _IDS,
    "logits within 1e-5 of its published modelling code, and the tokens of dllm's two samplers, on five small random "
    "checkpoints",
    (
        _release("Qwen3-0.6B-diffusion-mdlm-v0.1", _QWEN3),
        _release("Qwen3-0.6B-diffusion-bd3lm-v0.1", _QWEN3),
    ),
    end_of_turn="<|im_end|>",
    template=CHATML,
    mask_source="the token that dllm/utils/models.py adds to Qwen's",
)
A2D_QWEN2 = like_llama(
    "A2D on Qwen2.5",
    "a2d-qwen2",
    _reader(qkv_bias=True),
    _IDS | {"mask": 151665},
    "nothing of its own; a2d-qwen3 was compared, and Dream, which has its biases",
    (
        _release("Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1", _QWEN2),
        _release("Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm-v0.1", _QWEN2),
    ),
    end_of_turn="<|im_end|>",
    template=CHATML,
    mask_source="the token that dllm/utils/models.py adds to Qwen's",
)
