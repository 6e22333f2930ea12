"""CoDA: Qwen3 trained to fill masks, bidirectional; the output at a position predicts the next one."""

from __future__ import annotations

from ..transformer.shape import Shape
from .dialect import Config, Release
from .llama import CHATML, like_llama, read_shape

_1_7B = Shape(2048, 28, 16, 8, 6144, 151936, theta=1e6, eps=1e-6, context=40960, head_dim=128, qk_norm=True)
_OWN = (
    "least entropy first, one token a forward, temperature 0.1, top_p 0.9 (SalesforceAIResearch/CoDA "
    "evaluation/lm_eval/eval_mbpp_humaneval.sh)"
)


def _shape(config: Config) -> Shape:
    return read_shape(config, "CoDA", qk_norm=True)


CODA = like_llama(
    "CoDA",
    "CoDA",
    _shape,
    {"mask": 151669, "eos": 151643, "turn": 151645},
    "logits within 1e-5 of its published modelling code, and the tokens of its diffusion_generate, on five small "
    "random checkpoints",
    (
        Release("Salesforce/CoDA-v0-Base", _1_7B, False, "CC-BY-NC-4.0", _OWN, "licence on the hub"),
        Release("Salesforce/CoDA-v0-Instruct", _1_7B, True, "CC-BY-NC-4.0", _OWN, "licence of the repository"),
    ),
    shift=1,
    end_of_turn="<|im_end|>",
    template=CHATML,
)
