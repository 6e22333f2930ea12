"""Dream-v0 and what was made like it: once autoregressive, so the output at a position predicts the next one."""

from __future__ import annotations

from dataclasses import replace

from ..transformer.shape import Shape
from .dialect import COMPARED, Config, Dialect, Release, demand
from .llama import CHATML, NAMES, like_llama, read_shape

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


def _entropy(temperature: float, source: str, top_p: float = 0.95) -> str:
    return f"least entropy first, one token a forward, temperature {temperature}, top_p {top_p} ({source})"


_TOY = "the decoder token for token on toy networks"
_DREAM = (
    _entropy(0.2, "DreamLM/Dream README.md"),
    f"mask id and EOS in the code of NVlabs/Fast-dLLM, licence of the repository; {_TOY}",
)
_D3LLM = "overlapping blocks of 32, the next opens at a tenth; entropy at most 0.5"
_DIFFUCODER = (
    "licence on the hub; mask id in DiffuCoder-7B-Base's configuration_dream.py; sizes by the size of the weights; the "
    "modelling file was not read"
)

DREAM = Dialect(
    title="Dream, Dream-Coder and DiffuCoder",
    model_type="Dream",
    shift=1,
    shape=_shape,
    blocks="model.layers",
    names=NAMES,
    end_of_turn="<|im_end|>",
    template=_TEMPLATE,
    ids={"mask": 151666, "eos": 151643, "turn": 151645},
    end_tokens=("<|dlm_pad|>",),  # fills what follows an answer of DiffuCoder
    checked=COMPARED,
    releases=(
        Release("Dream-org/Dream-v0-Base-7B", _7B, False, "Apache-2.0", *_DREAM),
        Release("Dream-org/Dream-v0-Instruct-7B", _7B, True, "Apache-2.0", *_DREAM),
        Release(
            "d3LLM/d3LLM_Dream",
            _7B,
            True,
            "not verified",
            f"{_D3LLM} (hao-ai-lab/d3LLM chat/chat_d3llm_dream.py); its own KV cache is not here",
            f"ids are Dream's; the hub's page with the licence was not found; logits of its own modelling file; {_TOY}",
        ),
        Release(
            "d3LLM/d3LLM_Dream_Coder",
            _7B,
            True,
            "Apache-2.0",
            f"{_D3LLM} (hao-ai-lab/d3LLM eval_scripts/dream-coder.sh); its own KV cache is not here",
            f"EOS in generation_config.json and licence on the hub, mask id Dream's; {_TOY}",
        ),
        Release(
            "Zigeng/dParallel_Dream_7B_Instruct",
            _7B,
            True,
            "MIT",
            "blocks of 32, entropy at most 0.5 (czg1225/dParallel Dream/generate.py)",
            f"ids are Dream's; licence of the repository; its modelling file is Fast-dLLM's, byte for byte; {_TOY}",
        ),
        Release(
            "Dream-org/Dream-Coder-v0-Base-7B",
            _7B,
            False,
            "Apache-2.0",
            _entropy(0.2, "DreamLM/Dream-Coder base/eval_code_base.sh", 0.9),
            "ids are Dream's; licence of the repository; logits of its own modelling file",
        ),
        Release(
            "Dream-org/Dream-Coder-v0-Instruct-7B",
            _7B,
            True,
            "Apache-2.0",
            _entropy(0.1, "DreamLM/Dream-Coder README.md; the eos_penalty of its demos is not here"),
            "licence on the hub, ids and sizes in a copy of its configuration there; logits of its own modelling file",
        ),
        Release(
            "apple/DiffuCoder-7B-Base",
            _7B,
            False,
            "apple-amlr",
            _entropy(0.2, "apple/ml-diffucoder README.md"),
            _DIFFUCODER,
        ),
        Release(
            "apple/DiffuCoder-7B-Instruct",
            _7B,
            True,
            "apple-amlr",
            _entropy(0.3, "apple/ml-diffucoder inference_demo.py"),
            _DIFFUCODER,
        ),
        Release(
            "apple/DiffuCoder-7B-cpGRPO",
            _7B,
            True,
            "apple-amlr",
            _entropy(0.4, "apple/ml-diffucoder README.md"),
            _DIFFUCODER,
        ),
    ),
)

_CODA_1_7B = Shape(2048, 28, 16, 8, 6144, 151936, theta=1e6, eps=1e-6, context=40960, head_dim=128, qk_norm=True)
_CODA_OWN = (
    "least entropy first, one token a forward, temperature 0.1, top_p 0.9 (SalesforceAIResearch/CoDA "
    "evaluation/lm_eval/eval_mbpp_humaneval.sh)"
)


def _coda_shape(config: Config) -> Shape:
    return read_shape(config, "CoDA", qk_norm=True)


CODA = like_llama(
    "CoDA",
    "CoDA",
    _coda_shape,
    {"mask": 151669, "eos": 151643, "turn": 151645},
    "logits within 1e-5 of its published modelling code, and the tokens of its diffusion_generate, on five small "
    "random checkpoints",
    (
        Release("Salesforce/CoDA-v0-Base", _CODA_1_7B, False, "CC-BY-NC-4.0", _CODA_OWN, "licence on the hub"),
        Release(
            "Salesforce/CoDA-v0-Instruct", _CODA_1_7B, True, "CC-BY-NC-4.0", _CODA_OWN, "licence of the repository"
        ),
    ),
    shift=1,
    end_of_turn="<|im_end|>",
    template=CHATML,
)
"""Qwen3, trained to fill masks. Its head is not tied, although its configuration class would tie it."""
