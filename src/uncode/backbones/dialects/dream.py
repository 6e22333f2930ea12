"""Dream-v0: an autoregressive model turned around, so the output at a position predicts the next one."""

from __future__ import annotations

from dataclasses import replace

from ..transformer.network import Shape
from .dialect import Config, Dialect, Release, demand
from .llama import NAMES, read_shape

_7B = Shape(3584, 28, 28, 4, 18944, 152064, theta=1e6, eps=1e-6, context=2048, qkv_bias=True)

_TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def _shape(config: Config) -> Shape:
    demand(config, "Dream", rope_scaling=None)
    shape = read_shape(config, "Dream", qkv_bias=True)
    return replace(shape, context=min(shape.context, _7B.context))  # the longest it was trained on


DREAM = Dialect(
    model_type="Dream",
    shift=1,
    shape=_shape,
    blocks="model.layers",
    names=NAMES,
    end_of_turn="<|im_end|>",
    template=_TEMPLATE,
    ids={"mask": 151666, "eos": 151643, "turn": 151645},
    releases=(
        Release("Dream-org/Dream-v0-Base-7B", _7B, chat=False),
        Release("Dream-org/Dream-v0-Instruct-7B", _7B, chat=True),
    ),
)
