"""SDAR and TraDo, and DreamReasoner: Qwen3 turned into a block-causal model, every output predicts its own position."""

from __future__ import annotations

import re
from dataclasses import replace

from ..transformer.shape import Shape
from .dialect import Config, Release, number
from .llama import CHATML, like_llama, read_shape

_BLOCK_LENGTH = 4
"""Of SDAR's default models (its README, 2025-09-09). Others have theirs as the last part of the name, -b32 say."""
_8B = Shape(4096, 36, 32, 8, 12288, 151936, 1e6, 1e-6, 32768, head_dim=128, qk_norm=True, block_length=_BLOCK_LENGTH)
_4B = replace(_8B, width=2560, hidden=9728, tied=True)
_1_7B = replace(_8B, width=2048, layers=28, heads=16, hidden=6144, tied=True)
_IDS = {"mask": 151669, "eos": 151643, "turn": 151645}


_DYNAMIC = "in a block all above {}, at least one, temperature 1 ({})"
_TOKENS = "that decoder token for token at temperature 0"
_SDAR = (_DYNAMIC.format(0.85, "JetAstra/SDAR generate.py, the defaults"), f"licence on the hub; {_TOKENS}")
_TRADO = _DYNAMIC.format(0.9, "Gen-Verse/dLLM-RL README.md, configs/trado_eval.yaml")
_NO_PAGE = "the hub's page with the licence was not found; the code's is Apache-2.0"


def _named_length(config: Config) -> int | None:
    """The length of the blocks that the name of a checkpoint ends with."""
    found = re.search(r"-b(\d+)$", str(config.get("_name_or_path") or ""))
    return int(found[1]) if found else None


def _shape(config: Config) -> Shape:
    length = number(config, "block_length", "block_size", default=_named_length(config) or _BLOCK_LENGTH)
    return read_shape(config, "SDAR", qk_norm=True, block_length=length)


def _reasoner_shape(config: Config) -> Shape:
    return read_shape(config, "DreamReasoner", qk_norm=True, block_length=number(config, "block_size"))


SDAR = like_llama(
    "SDAR and TraDo",
    "sdar",
    _shape,
    _IDS,
    "logits within 1e-5 of its published modelling code, and the tokens of its generate.py, on five small random "
    "checkpoints",
    (
        Release("JetLM/SDAR-1.7B-Chat", _1_7B, True, "Apache-2.0", *_SDAR),
        Release("JetLM/SDAR-4B-Chat", _4B, True, "Apache-2.0", *_SDAR),
        Release("JetLM/SDAR-8B-Chat", _8B, True, "Apache-2.0", *_SDAR),
        Release("JetLM/SDAR-8B-Chat-b32", replace(_8B, block_length=32), True, "Apache-2.0", *_SDAR),
        Release(
            "Gen-Verse/TraDo-4B-Instruct",
            _4B,
            True,
            "MIT",
            _TRADO,
            f"licence of a copy on the hub, exdysa/TraDo-4B-Instruct; {_TOKENS}",
        ),
        Release("Gen-Verse/TraDo-8B-Instruct", _8B, True, "not verified", _TRADO, f"{_NO_PAGE}; {_TOKENS}"),
        Release("Gen-Verse/TraDo-8B-Thinking", _8B, True, "not verified", _TRADO, f"{_NO_PAGE}; {_TOKENS}"),
    ),
    end_of_turn="<|im_end|>",
    template=CHATML,
    mask_source="JetAstra/SDAR, whose generate.py reads it from the tokenizer",
)
DREAM_REASONER = like_llama(
    "DreamReasoner",
    "Dream",
    _reasoner_shape,
    _IDS,
    "logits within 1e-5 of transformers' Qwen3 with a block-causal mask; its own modelling code was not at hand",
    (
        Release(
            "Dream-org/DreamReasoner-8B",
            replace(_8B, block_length=32),
            True,
            "Apache-2.0",
            checked="licence of the repository; its decoder was not found, nor which settings it has",
        ),
    ),
    end_of_turn="<|im_end|>",
    template=CHATML,
    architecture="DreamForCausalLM",
)
