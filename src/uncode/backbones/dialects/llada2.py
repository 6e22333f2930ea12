"""LLaDA2.0 and 2.1: a block-causal mixture of experts. LLaDA2.1 was trained to correct tokens that it has written."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from ..transformer.mixture import Mixture
from ..transformer.shape import Shape
from .dialect import Config, Dialect, Release, demand, number
from .llama import NAMES, expert_names, read_shape

_BLOCK_LENGTH = 32
"""`block_length` of `generate` in modeling_llada2_moe.py."""
_MIXTURE = Mixture(256, 8, 512, 512, (0,), "sigmoid", has_bias=True, groups=8, open_groups=4, normed=True, scale=2.5)
_MINI = Shape(
    2048,
    20,
    16,
    4,
    5120,
    157184,
    theta=600000.0,
    eps=1e-6,
    context=16384,
    head_dim=128,
    qk_norm=True,
    block_length=_BLOCK_LENGTH,
    rotary_dim=64,
    mixture=_MIXTURE,
)


def _shape(config: Config) -> Shape:
    """Where config.json is silent, the defaults are those of LLaDA2MoeConfig. Its code has always a bias of the
    router, and divides the weights by their sum where a token has several experts."""
    demand(config, "LLaDA2", score_function="sigmoid", norm_topk_prob=True, norm_head=False, use_bias=False)
    first = config.get("first_k_dense_replace") or 0
    hidden = number(config, "moe_intermediate_size")
    active = number(config, "num_experts_per_tok", default=2)
    mixture = Mixture(
        number(config, "num_experts", default=16),
        active,
        hidden,
        hidden * (config.get("num_shared_experts") or 0),
        tuple(range(first)),
        "sigmoid",
        has_bias=True,
        groups=number(config, "n_group", default=8),
        open_groups=number(config, "topk_group", default=4),
        normed=active > 1,
        scale=number(config, "routed_scaling_factor", default=2.5),
    )
    return read_shape(
        {"num_key_value_heads": None, "intermediate_size": hidden, "rms_norm_eps": 1e-5, **config},
        "LLaDA2",
        qkv_bias=bool(config.get("use_qkv_bias")),
        qk_norm=config.get("use_qk_norm") is not False,
        block_length=number(config, "block_length", "block_size", default=_BLOCK_LENGTH),
        rotary_factor=number(config, "partial_rotary_factor", default=0.5),
        mixture=mixture,
    )


EXPERT_TEMPLATE = (
    "{% for message in messages %}"
    "<role>{{ {'system': 'SYSTEM', 'user': 'HUMAN', 'assistant': 'ASSISTANT'}[message['role']] }}</role>"
    "{{ message['content'] }}<|role_end|>"
    "{% endfor %}"
    "{% if add_generation_prompt %}<role>ASSISTANT</role>{% endif %}"
)
"""The frames of inclusionAI/dFactory docs/source/infer/sglang.rst."""
_DETAILS = (
    "mask id, EOS and blocks in `generate` of its modelling file (ZHZisZZ/dllm's copy), sizes in inclusionAI/dFactory "
    "configs/model_configs/llada2_mini, licence of inclusionAI/LLaDA2.X; its config.json was not read"
)
_LLADA2 = (
    "blocks of 32, every token above 0.95, at least the best (`generate` in modeling_llada2_moe.py)",
    _DETAILS,
)

LLADA2 = Dialect(
    title="LLaDA2",
    model_type="llada2_moe",
    other_types=("llada21_moe",),
    shift=0,
    shape=_shape,
    blocks="model.layers",
    names=MappingProxyType(
        {
            **NAMES,
            "embed": "model.word_embeddings",
            "qkv": "attention.query_key_value",
            "q_norm": "attention.query_layernorm",
            "k_norm": "attention.key_layernorm",
            "out": "attention.dense",
            **expert_names("mlp.gate.expert_bias", "mlp.shared_experts"),
        }
    ),
    end_of_turn="<|role_end|>",
    template=EXPERT_TEMPLATE,
    ids={"mask": 156895, "eos": 156892},
    checked="logits within 1e-5 of its published modelling code, and the tokens of its `generate` with and without "
    "editing, on five small random checkpoints",
    releases=(
        Release("inclusionAI/LLaDA2.0-mini", _MINI, True, "Apache-2.0", *_LLADA2),
        Release("inclusionAI/LLaDA2.0-mini-CAP", _MINI, True, "Apache-2.0", *_LLADA2),
        Release(
            "inclusionAI/LLaDA2.1-mini",
            replace(_MINI, context=32768),
            True,
            "Apache-2.0",
            "blocks of 32, every token above 0.7, at least the best; written tokens change above 0.5, in at most 16 "
            "rounds (huggingface/diffusers docs/source/en/api/pipelines/llada2.md, Quality)",
            f"{_DETAILS}; context in SGLang's cookbook",
        ),
    ),
    mask_source="`generate` in modeling_llada2_moe.py",
)
