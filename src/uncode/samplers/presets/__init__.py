"""Every published sampler as one expression, and our own."""

from typing import NoReturn

from ...core.errors import NoSuchName
from ..registry import PRESETS as PRESETS
from .classic import (
    confidence,
    dream,
    eb,
    entropy,
    fast_dllm,
    fast_dllm_factor,
    left_to_right,
    llada,
    margin,
    remdm,
    semi_ar,
    tau_leaping,
    uncode,
    uncode_eb,
    uncode_fast_dllm,
    uncode_tau,
    uniform,
)
from .newer import (
    adablock,
    certainty_density,
    credit,
    dynamic,
    edit,
    entropy_gate,
    entropy_threshold,
    hierarchy,
    info_gain,
    klass,
    local_leap,
    lookum,
    prophet,
    saber,
)
from .own import (
    certain_first,
    certain_first_fast,
)

__all__ = [
    "adablock",
    "certain_first",
    "certain_first_fast",
    "certainty_density",
    "confidence",
    "credit",
    "dream",
    "dynamic",
    "eb",
    "edit",
    "entropy",
    "entropy_gate",
    "entropy_threshold",
    "fast_dllm",
    "fast_dllm_factor",
    "hierarchy",
    "info_gain",
    "klass",
    "left_to_right",
    "llada",
    "local_leap",
    "lookum",
    "margin",
    "prophet",
    "remdm",
    "saber",
    "semi_ar",
    "tau_leaping",
    "uncode",
    "uncode_eb",
    "uncode_fast_dllm",
    "uncode_tau",
    "uniform",
]


def __dir__() -> list[str]:
    """The presets alone, for completion."""
    return __all__


def __getattr__(name: str) -> NoReturn:
    raise NoSuchName("uncode.presets", name, __all__)
