"""Which models uncode can run, by the `model_type` of their config.json."""

from __future__ import annotations

from ...core.errors import UncodeError, require
from .dialect import Config, Dialect
from .dream import DREAM
from .llada import LLADA

DIALECTS = (LLADA, DREAM)


def dialect_of(config: Config, where: object) -> Dialect | None:
    """The dialect a configuration speaks, None for a masked LM of transformers, an error for anything else."""
    kind, classes = config.get("model_type"), config.get("architectures") or []
    mixed = config.get("num_experts") or "moe" in f"{kind} {classes}".casefold()
    experts = f"'{where}' is a mixture of experts, another network than LLaDA-8B's: uncode does not run it."
    for dialect in DIALECTS:
        if str(kind).casefold() == dialect.model_type.casefold():
            require(not mixed, experts)
            return dialect
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    if kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return None
    require(not mixed, experts)
    named = f"a '{kind}' model" if kind else "a model without model_type"
    raise UncodeError(
        f"'{where}' is {named}, not a masked diffusion or masked language model: uncode loads "
        f"{', '.join(d.model_type for d in DIALECTS)} and what transformers' AutoModelForMaskedLM knows."
    )
