"""Dream-v0: an autoregressive model turned around, so the output at a position predicts the next one."""

from __future__ import annotations

from ..transformer.network import Shape
from .dialect import Config, Dialect, Release, demand, number

_7B = Shape(3584, 28, 28, 4, 18944, 152064, theta=1e6, eps=1e-6, context=2048, qkv_bias=True)

_TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def _shape(config: Config) -> Shape:
    demand(config, "Dream", hidden_act="silu", rope_scaling=None, use_sliding_window=False)
    rope = config.get("rope_parameters") or {}  # where transformers 5 writes theta
    demand(rope, "Dream", rope_type="default")
    heads = number(config, "num_attention_heads")
    return Shape(
        width=number(config, "hidden_size"),
        layers=number(config, "num_hidden_layers"),
        heads=heads,
        key_heads=number(config, "num_key_value_heads", default=heads),
        hidden=number(config, "intermediate_size"),
        vocab=number(config, "vocab_size"),
        theta=number({**rope, **config}, "rope_theta", default=10000.0),
        eps=number(config, "rms_norm_eps", default=1e-6),
        context=min(number(config, "max_position_embeddings"), _7B.context),  # the longest it was trained on
        qkv_bias=True,
        tied=bool(config.get("tie_word_embeddings")),
    )


DREAM = Dialect(
    model_type="Dream",
    shift=1,
    shape=_shape,
    blocks="model.layers",
    names={
        "embed": "model.embed_tokens",
        "norm": "model.norm",
        "head": "lm_head",
        "attention_norm": "input_layernorm",
        "q": "self_attn.q_proj",
        "k": "self_attn.k_proj",
        "v": "self_attn.v_proj",
        "out": "self_attn.o_proj",
        "mlp_norm": "post_attention_layernorm",
        "gate": "mlp.gate_proj",
        "up": "mlp.up_proj",
        "down": "mlp.down_proj",
    },
    end_of_turn="<|im_end|>",
    template=_TEMPLATE,
    ids={"mask": 151666, "eos": 151643, "turn": 151645},
    releases=(
        Release("Dream-org/Dream-v0-Base-7B", _7B, chat=False),
        Release("Dream-org/Dream-v0-Instruct-7B", _7B, chat=True),
    ),
)
