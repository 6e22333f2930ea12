"""LLaDA-MoE: LLaDA with experts, bidirectional, under the parameter names of transformers' OLMoE."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from ..transformer.mixture import Mixture
from ..transformer.shape import Shape
from .dialect import Config, Release, demand, number
from .llada2 import LLADA2
from .llama import NAMES, expert_names, read_shape

_7B = Shape(
    2048,
    16,
    16,
    16,
    8192,
    157184,
    theta=50000.0,
    eps=1e-5,
    context=8192,
    qk_norm=True,
    mixture=Mixture(64, 8, 1024),
)


def _shape(config: Config) -> Shape:
    """As the published code, which scores by softmax and neither divides the weights by their sum nor scales them,
    whatever the configuration says; where it has a bias, that is part of the weights."""
    demand(config, "LLaDA-MoE", clip_qkv=None, moe_router_score_function="softmax")
    layers, hidden = number(config, "num_hidden_layers"), number(config, "expert_intermediate_size")
    kinds = config.get("moe_layer_freq") or [1] * layers
    demand({"moe_layer_freq": len(kinds)}, "LLaDA-MoE", moe_layer_freq=layers)
    has_bias = bool(config.get("moe_router_enable_expert_bias"))
    mixture = Mixture(
        number(config, "num_experts"),
        number(config, "num_experts_per_tok"),
        hidden,
        config.get("shared_expert_intermediate_size") or 0,
        tuple(layer for layer, kind in enumerate(kinds) if kind == 0),
        has_bias=has_bias,
        weighs_bias=has_bias,
    )
    return read_shape(
        {**config, "intermediate_size": config.get("dense_intermediate_size") or hidden},
        "LLaDA-MoE",
        qk_norm=bool(config.get("qk_layernorm")),
        rotary_factor=number(config, "partial_rotary_factor", default=1.0),
        mixture=mixture,
    )


_CHECKED = (
    "blocks of 64, every token above 0.76, at least the best (inclusionAI/dInfer evaluations/eval_llada_moe.sh); "
    "its KV cache is not here",
    "mask id and EOS in inclusionAI/dInfer tests/test_llada_moe.py, which has the licence of its code; sizes in public "
    "copies of its configuration; its own config.json and the licence of the weights were not read",
)

LLADA_MOE = replace(
    LLADA2,
    title="LLaDA-MoE",
    model_type="llada",
    architecture="LLaDAMoEModelLM",
    other_types=("lladamoe",),
    shape=_shape,
    names=MappingProxyType(
        {
            **NAMES,
            **expert_names("mlp.expert_bias", "shared_expert"),
        }
    ),
    checked="logits within 1e-5 of its published modelling code, and the tokens of LLaDA's generate.py, on five small "
    "random checkpoints",
    releases=(
        Release("inclusionAI/LLaDA-MoE-7B-A1B-Base", _7B, False, "not verified", *_CHECKED),
        Release("inclusionAI/LLaDA-MoE-7B-A1B-Instruct", _7B, True, "not verified", *_CHECKED),
    ),
    mask_source="inclusionAI/dInfer tests/test_llada_moe.py",
)
