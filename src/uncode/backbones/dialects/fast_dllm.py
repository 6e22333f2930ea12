"""Fast-dLLM v2: Qwen2.5 turned into a block-causal model; the output at a position predicts the next one."""

from __future__ import annotations

from dataclasses import replace

from ..transformer.shape import Shape
from .dialect import Config, Release, number
from .llama import CHATML, like_llama, read_shape

_7B = Shape(3584, 28, 28, 4, 18944, 152064, 1e6, 1e-6, 32768, qkv_bias=True, block_length=32)
_1_5B = replace(_7B, width=1536, heads=12, key_heads=2, hidden=8960, vocab=151936, tied=True)
_OWN = (
    "the first token of a block alone, then sub-blocks of 8, all from 0.9 on and the best (README.md on the hub)",
    "licence on the hub; its cache of sub-blocks is off by default and not here",
)


def _shape(config: Config) -> Shape:
    return read_shape(config, "Fast-dLLM v2", qkv_bias=True, block_length=number(config, "bd_size"))


FAST_DLLM_V2 = like_llama(
    "Fast-dLLM v2",
    "Fast_dLLM_Qwen",
    _shape,
    {"mask": 151665, "eos": 151645},
    "logits within 1e-5 of its published modelling code, and the tokens of its generate, on five small random "
    "checkpoints",
    (
        Release("Efficient-Large-Model/Fast_dLLM_v2_1.5B", _1_5B, True, "Apache-2.0", *_OWN),
        Release("Efficient-Large-Model/Fast_dLLM_v2_7B", _7B, True, "Apache-2.0", *_OWN),
    ),
    shift=1,
    end_of_turn="<|im_end|>",
    template=CHATML,
    mask_source="`mask_id` of generate in its modeling.py",
)
