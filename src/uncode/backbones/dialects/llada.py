"""LLaDA-8B, LLaDA-1.5 and what was made of them: plain positions, every output predicts its own position."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..transformer.shape import Shape
from .dialect import COMPARED, Config, Dialect, Release, demand, number

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


_LLADA = "blocks of 32, the most probable first, one token a forward (ML-GSAI/LLaDA generate.py)"
_IDS = "mask id in the same file, licence on the hub; the decoder token for token on toy networks"

LLADA = Dialect(
    title="LLaDA",
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
    text_vocab_key="llm_vocab_size",
    checked=COMPARED,
    releases=(
        Release("GSAI-ML/LLaDA-8B-Base", _8B, False, "MIT", _LLADA, _IDS),
        Release("GSAI-ML/LLaDA-8B-Instruct", _8B, True, "MIT", _LLADA, _IDS),
        Release("GSAI-ML/LLaDA-1.5", _8B, True, "MIT", _LLADA, _IDS),
        Release(
            "d3LLM/d3LLM_LLaDA",
            _8B,
            True,
            "Apache-2.0",
            "overlapping blocks of 32, the next opens at a tenth; entropy at most 0.5 (hao-ai-lab/d3LLM "
            "chat/chat_d3llm_llada.py); its own KV cache is not here",
            "mask id in the same file, licence on the hub; the decoder token for token on toy networks",
        ),
        Release(
            "Zigeng/dParallel-LLaDA-8B-instruct",
            _8B,
            True,
            "MIT",
            "blocks of 32, entropy at most 0.5 (czg1225/dParallel LLaDA/generate.py)",
            "mask id in the same file, licence of the repository; its modelling file is Fast-dLLM's, byte for byte; "
            "the decoder token for token on toy networks",
        ),
    ),
)

_8B_WITH_IMAGES = replace(_8B, vocab=134656)
_MMADA = (
    "blocks of 128, the most probable first, one token a forward, temperature 1 (Gen-Verse/MMaDA generate.py)",
    "mask id and template in the same file, model_type in models/modeling_mmada.py, licence of the repository; sizes "
    "and the number of text tokens in the configuration of tyfeld/MMaDA-Parallel-M on the hub, not verified for this "
    "release",
)


def _mmada_shape(config: Config) -> Shape:
    number(config, LLADA.text_vocab_key)  # which of its tokens are text must be known
    return _shape(config)


MMADA = replace(
    LLADA,
    title="MMaDA",
    model_type="mmada",
    shape=_mmada_shape,
    template=_TEMPLATE.replace("<|end_header_id|>\n\n", "<|end_header_id|>\n").replace(
        "<|end_header_id|>\\n\\n", "<|end_header_id|>\\n"
    ),
    replaces_template=True,
    checked=f"{COMPARED.replace('NVlabs/Fast-dLLM', 'Gen-Verse/MMaDA')}; text only: image tokens are never written",
    releases=(
        Release("Gen-Verse/MMaDA-8B-Base", _8B_WITH_IMAGES, True, "MIT", *_MMADA),
        Release("Gen-Verse/MMaDA-8B-MixCoT", _8B_WITH_IMAGES, True, "MIT", *_MMADA),
    ),
)
"""MMaDA: LLaDA-8B with tokens for images behind those for text, and one newline in its headers."""
