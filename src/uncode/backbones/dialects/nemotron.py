"""Nemotron-Labs-Diffusion: Ministral 3 trained to fill blocks, and to predict the next token.

Finished tokens are causal one by one, and the last of them predicts the first of the open block.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from ..transformer.shape import Shape, Yarn
from .dialect import Config, Release, demand, number
from .llama import NAMES, like_llama, read_shape

_8B = Shape(
    4096,
    34,
    32,
    8,
    14336,
    131072,
    theta=1e6,
    eps=1e-5,
    context=16384,
    head_dim=128,
    block_length=32,
    blocks_from_answer=True,
    causal_context=True,
    yarn=Yarn(16.0, 16384),
)
_OWN = (
    "blocks of 32: the first token alone, then all from 0.9 on and the best (chat/chat_dlm.py of a copy of "
    "NVlabs/Nemotron-Labs-Diffusion, linyewei526/Nemotron-Labs-Diffusion)"
)
_CHECKED = (
    "config.json as quoted in a public course on it; the NVIDIA Nemotron Open Model License by press reports, the "
    "hub's page with it was not found"
)


def _shape(config: Config) -> Shape:
    demand(config, "Nemotron-Labs-Diffusion", dlm_paradigm="bidirectional")
    rope = config.get("rope_parameters") or {}
    demand(rope, "Nemotron-Labs-Diffusion", rope_type="yarn", attention_factor=None, truncate=True)
    scales = number(rope, "mscale"), number(rope, "mscale_all_dim")  # without them YaRN scales cosines and sines
    demand({"mscale": scales[0]}, "Nemotron-Labs-Diffusion", mscale=scales[1])
    original = int(number(rope, "original_max_position_embeddings"))
    yarn = Yarn(
        number(rope, "factor"), original, number(rope, "beta_fast", default=32), number(rope, "beta_slow", default=1)
    )
    plain = {**config, "rope_parameters": {"rope_theta": number(rope, "rope_theta")}}
    shape = read_shape(plain, "Nemotron-Labs-Diffusion", block_length=number(config, "block_size"))
    return replace(shape, context=original, yarn=yarn, blocks_from_answer=True, causal_context=True)


NEMOTRON = replace(
    like_llama(
        "Nemotron-Labs-Diffusion",
        "nemotron_labs_diffusion",
        _shape,
        {"mask": 100, "eos": 11},
        "logits within 1e-5 of transformers' Ministral 3 with the masks of its published generate, and that decoder's "
        "tokens, typed off, on five small random checkpoints",
        (
            Release("nvidia/Nemotron-Labs-Diffusion-8B-Base", _8B, False, "not verified", _OWN, _CHECKED),
            Release("nvidia/Nemotron-Labs-Diffusion-8B", _8B, True, "not verified", _OWN, _CHECKED),
        ),
        shift=1,
    ),
    blocks="encoder.layers",
    names=MappingProxyType(
        {**NAMES, "embed": "encoder.embed_tokens", "norm": "encoder.norm", "head": "diffusion_head"}
    ),
)
