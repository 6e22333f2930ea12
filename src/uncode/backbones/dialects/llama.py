"""What the dialects share that are built like LLaMA or Qwen in transformers: parameter names and configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..transformer.mixture import Mixture
from ..transformer.shape import Shape
from .dialect import Config, Dialect, Release, demand, number

NAMES = MappingProxyType(
    {
        "embed": "model.embed_tokens",
        "norm": "model.norm",
        "head": "lm_head",
        "attention_norm": "input_layernorm",
        "q": "self_attn.q_proj",
        "k": "self_attn.k_proj",
        "v": "self_attn.v_proj",
        "q_norm": "self_attn.q_norm",
        "k_norm": "self_attn.k_norm",
        "out": "self_attn.o_proj",
        "mlp_norm": "post_attention_layernorm",
        "gate": "mlp.gate_proj",
        "up": "mlp.up_proj",
        "down": "mlp.down_proj",
    }
)


def expert_names(bias: str, shared: str) -> dict[str, str]:
    """The published names of a layer's router, its bias, an expert and the shared expert."""
    sides = {f"experts.{side}": f"{shared}.{side}_proj" for side in ("gate", "up", "down")}
    return {"experts.router": "mlp.gate", "experts.bias": bias, "expert": "mlp.experts.{}", **sides}


CHATML = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Qwen's chat template without a system message."""


def like_llama(
    title: str,
    model_type: str,
    shape: Callable[[Config], Shape],
    ids: Mapping[str, int],
    checked: str,
    releases: tuple[Release, ...],
    *,
    shift: int = 0,
    end_of_turn: str = "",
    template: str = "",
    architecture: str = "",
    mask_source: str = "",
) -> Dialect:
    """A dialect with these parameter names."""
    return Dialect(
        title=title,
        model_type=model_type,
        shift=shift,
        shape=shape,
        blocks="model.layers",
        names=NAMES,
        end_of_turn=end_of_turn,
        template=template,
        ids=ids,
        checked=checked,
        releases=releases,
        architecture=architecture,
        mask_source=mask_source,
    )


def read_shape(
    config: Config,
    model: str,
    *,
    qkv_bias: bool = False,
    qk_norm: bool = False,
    block_length: int | None = None,
    rotary_factor: float = 1.0,
    mixture: Mixture | None = None,
) -> Shape:
    """The shape that a configuration of transformers' LLaMA or Qwen says."""
    demand(config, model, hidden_act="silu", use_sliding_window=False, attention_bias=False, mlp_bias=False)
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    demand({"rope_type": rope.get("rope_type", rope.get("type"))}, model, rope_type="default")
    demand(rope, model, factor=1.0)
    heads = number(config, "num_attention_heads")
    width, head_dim = number(config, "hidden_size"), config.get("head_dim")
    rotary_dim = int((head_dim or width // heads) * rotary_factor)
    return Shape(
        width=width,
        layers=number(config, "num_hidden_layers"),
        heads=heads,
        key_heads=number(config, "num_key_value_heads", default=heads),
        hidden=number(config, "intermediate_size"),
        vocab=number(config, "vocab_size"),
        theta=number({**rope, **config}, "rope_theta", default=10000.0),
        eps=number(config, "rms_norm_eps", default=1e-6),
        context=number(config, "max_position_embeddings"),
        qkv_bias=qkv_bias,
        tied=bool(config.get("tie_word_embeddings")),
        head_dim=None if head_dim is None else number(config, "head_dim"),
        qk_norm=qk_norm,
        block_length=block_length,
        rotary_dim=None if rotary_factor == 1 else rotary_dim,
        mixture=mixture,
    )
