"""Which models uncode can run, by the `model_type` of their config.json."""

from __future__ import annotations

from ...core.errors import UncodeError, require
from .a2d import A2D_QWEN2, A2D_QWEN3
from .dialect import Config, Dialect
from .dream import CODA, DREAM
from .fast_dllm import FAST_DLLM_V2
from .illada import ILLADA, STABLE_DIFFCODER
from .llada import LLADA, MMADA
from .llada2 import LLADA2
from .llada_moe import LLADA_MOE
from .nemotron import NEMOTRON
from .sdar import DREAM_REASONER, SDAR

DIALECTS = (
    LLADA,
    DREAM,
    MMADA,
    CODA,
    ILLADA,
    STABLE_DIFFCODER,
    SDAR,
    DREAM_REASONER,
    NEMOTRON,
    FAST_DLLM_V2,
    A2D_QWEN3,
    A2D_QWEN2,
    LLADA_MOE,
    LLADA2,
)


def is_dialect(config: Config) -> bool:
    """Whether a configuration is of a dialect."""
    return any(dialect.speaks(config) for dialect in DIALECTS)


def named_dialect(config: Config, where: object) -> Dialect | None:
    """The dialect of a configuration, by its `model_type` and class."""
    specific_first = sorted(DIALECTS, key=lambda each: not each.architecture)
    found = next((dialect for dialect in specific_first if dialect.speaks(config)), None)
    if found is not None and "expert" not in found.names:
        _refuse_experts(config, where)
    return found


def dialect_of(config: Config, where: object) -> Dialect | None:
    """The dialect a configuration speaks, None for a masked LM of transformers, an error for anything else."""
    kind, dialect = config.get("model_type"), named_dialect(config, where)
    if dialect is not None or is_masked_lm(kind):
        return dialect
    _refuse_experts(config, where)
    if not kind:
        raise UncodeError(without_model_type(config, where))
    if config.get("auto_map"):
        raise UncodeError(
            f"'{where}' is a '{kind}' model with code of its own, which uncode does not run: load it with transformers "
            "yourself, and pass it to uncode.wrap(model, tokenizer)."
        )
    known = ", ".join(dialect.family for dialect in DIALECTS)
    raise UncodeError(
        f"'{where}' is a '{kind}' model, not a masked diffusion or masked language model: uncode loads {known} "
        "and what transformers' AutoModelForMaskedLM knows."
    )


def is_masked_lm(kind: object) -> bool:
    """Whether transformers has a masked LM of this `model_type`, of its own or registered by the caller."""
    from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    if kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return True
    try:
        return type(AutoConfig.for_model(str(kind))) in MODEL_FOR_MASKED_LM_MAPPING
    except Exception:  # no such type, or a configuration that needs more than its name
        return False


def _refuse_experts(config: Config, where: object) -> None:
    mixed = (
        config.get("num_experts")
        or "moe" in f"{config.get('model_type')} {config.get('architectures') or []}".casefold()
    )
    require(
        not mixed,
        f"'{where}' is a mixture of experts of a kind that uncode does not run: it runs LLaDA-MoE and LLaDA2.",
    )


def without_model_type(config: Config, where: object) -> str:
    """The sentence for a config.json without `model_type`: the line to add, by its `architectures` or its keys."""
    from transformers.models.auto import modeling_auto

    known = {
        name: kind
        for kinds in (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES)
        for kind, name in kinds.items()
    }
    classes = [str(name) for name in config.get("architectures") or []]
    guesses = [known[name] for name in classes if name in known]
    for dialect in DIALECTS:
        kind = dialect.model_type.casefold()
        if any(name.casefold().startswith(kind) for name in classes) or (not classes and _has_shape(dialect, config)):
            guesses.append(dialect.model_type)
    such = "" if guesses else "that names the model's family, such as "
    kind = guesses[0] if guesses else "bert"
    return f'the config.json of \'{where}\' has no model_type: add the line {such}"model_type": "{kind}", to it.'


def _has_shape(dialect: Dialect, config: Config) -> bool:
    """Whether a configuration has the keys of a dialect. Those of Dream are usual, but for the id of the mask."""
    try:
        dialect.shape(config)
    except UncodeError:
        return False
    return config.get("mask_token_id") is not None
