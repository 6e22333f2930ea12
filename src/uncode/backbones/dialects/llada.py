"""LLaDA-8B and LLaDA-1.5: plain positions, every output predicts its own position."""

from __future__ import annotations

from typing import Any

from ..transformer.network import Shape
from .dialect import Config, Dialect, Release, demand, number

_8B = Shape(4096, 32, 32, 32, 12288, 126464, theta=500000.0, eps=1e-5, context=4096)

_TEMPLATE = (
    "{{ bos_token or '' }}"
    "{% for message in messages %}"
    "<|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n{{ message['content'] | trim }}<|eot_id|>"
    "{% endfor %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"  # as an expression: jinja drops a last newline
)
"""One header, one blank line, the trimmed text and `<|eot_id|>` per message; the assistant's header always follows."""


def _shape(config: Config) -> Shape:
    demand(
        config,
        "LLaDA",
        block_type="llama",
        activation_type="silu",
        layer_norm_type="rms",
        layer_norm_with_affine=True,
        bias_for_layer_norm=False,
        rope=True,
        alibi=False,
        attention_layer_norm=False,
        include_bias=False,
        input_emb_norm=False,
        scale_logits=False,
        block_group_size=1,
    )
    width, heads = number(config, "d_model"), number(config, "n_heads")
    return Shape(
        width=width,
        layers=number(config, "n_layers"),
        heads=heads,
        key_heads=1 if config.get("multi_query_attention") else number(config, "n_kv_heads", default=heads),
        hidden=int(number(config, "mlp_hidden_size", default=number(config, "mlp_ratio", default=4) * width)),
        vocab=number(config, "embedding_size", "vocab_size"),
        theta=number(config, "rope_theta", default=10000.0),
        eps=number(config, "rms_norm_eps", default=1e-5),
        context=number(config, "max_sequence_length"),
        qkv_bias=bool(config.get("include_qkv_bias")),
        tied=bool(config.get("weight_tying")),
    )


def config_of(shape: Shape) -> dict[str, Any]:
    """The configuration of a network of that shape: what :func:`_shape` reads."""
    return {
        "model_type": "llada",
        "block_type": "llama",
        "activation_type": "silu",
        "layer_norm_type": "rms",
        "rope": True,
        "rope_theta": shape.theta,
        "rms_norm_eps": shape.eps,
        "d_model": shape.width,
        "n_layers": shape.layers,
        "n_heads": shape.heads,
        "n_kv_heads": shape.key_heads,
        "mlp_hidden_size": shape.hidden,
        "vocab_size": shape.vocab,
        "embedding_size": shape.vocab,
        "max_sequence_length": shape.context,
        "weight_tying": shape.tied,
        "include_bias": False,
        "include_qkv_bias": shape.qkv_bias,
    }


LLADA = Dialect(
    model_type="llada",
    shift=0,
    shape=_shape,
    blocks="model.transformer.blocks",
    names={
        "embed": "model.transformer.wte",
        "norm": "model.transformer.ln_f",
        "head": "model.transformer.ff_out",
        "attention_norm": "attn_norm",
        "q": "q_proj",
        "k": "k_proj",
        "v": "v_proj",
        "out": "attn_out",
        "mlp_norm": "ff_norm",
        "gate": "ff_proj",  # the one that silu is applied to
        "up": "up_proj",
        "down": "ff_out",
    },
    end_of_turn="<|eot_id|>",
    template=_TEMPLATE,
    ids={"mask": 126336, "eos": 126081, "turn": 126348},
    releases=(
        Release("GSAI-ML/LLaDA-8B-Base", _8B, chat=False),
        Release("GSAI-ML/LLaDA-8B-Instruct", _8B, chat=True),
        Release("GSAI-ML/LLaDA-1.5", _8B, chat=True),
    ),
)
