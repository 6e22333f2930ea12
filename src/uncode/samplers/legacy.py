"""Bug-compatible versions of released samplers, bit-exact. Each names what it reproduces; `presets` has the fix."""

from __future__ import annotations

from typing import NoReturn, Unpack

from ..core.errors import NoSuchName
from . import pieces as p
from .calibration import Frequency, table_or_own
from .preset import PRESETS, Shared, preset

__all__ = [
    "fast_dllm_dream",
    "fast_dllm_factor",
    "linear_position",
    "llada_eos",
    "remdm_release",
    "uncode_release",
]


def __dir__() -> list[str]:
    """The samplers alone, for completion."""
    return __all__


@preset(
    source="NEUIR/Uncode src/generate.py, generate_with_pc_sampler",
    is_quirk=True,
)
def uncode_release(
    *,
    steps: int | None = None,
    frequency: Frequency = None,
    rate: float = 0.25,
    clip: float = 10.0,
    blocks: int = 1,
    **shared: Unpack[Shared],
) -> p.Policy:
    """Uncode as released: clip on the product, offsets from the block, positions beyond the underflow tie."""
    return p.Policy(
        p.ReleasedUncode(table_or_own(frequency), rate, clip), p.TopK(p.Even(steps)), p.Blocks(count=blocks)
    )


@preset(
    source="NEUIR/Uncode src/generate.py, generate_with_linear_position",
    is_quirk=True,
)
def linear_position(
    *,
    blocks: int = 1,
    steps: int | None = None,
    frequency: Frequency = None,
    rate: float = 0.25,
    clip: float = 10.0,
    **shared: Unpack[Shared],
) -> p.Policy:
    """The linear ablation of Uncode as released."""
    return p.Policy(
        p.ReleasedLinear(table_or_own(frequency), rate, clip), p.TopK(p.Even(steps)), p.Blocks(count=blocks)
    )


@preset(
    source="NEUIR/Uncode src/generate.py, get_transfer_index_dynamic",
    is_quirk=True,
    block_length=32,
)
def fast_dllm_factor(*, factor: float = 1.0, **shared: Unpack[Shared]) -> p.Sampler:
    """Factor decoding as released, with the unchecked last candidate."""
    policy = p.Policy(p.Confidence(), p.FactorOffByOne(factor))
    return p.Sampler(policy, name="fast_dllm_factor_release")


@preset(
    source='NVlabs/Fast-dLLM dream/model/generation_utils_block.py, _sample (alg="confidence_threshold")',
    is_quirk=True,
    block_length=32,
    cache="auto",
)
def fast_dllm_dream(*, threshold: float = 0.9, **shared: Unpack[Shared]) -> p.Policy:
    """Fast-dLLM on Dream as released: every block opens with its first position, then goes by the threshold."""
    return p.Policy(p.Confidence(), p.FirstThenThreshold(threshold))


@preset(
    source="ML-GSAI/LLaDA generate.py, line 98; issue 137",
    is_quirk=True,
    block_length=128,
)
def llada_eos(*, steps: int | None = 128, **shared: Unpack[Shared]) -> p.Sampler:
    """LLaDA with confidence_eos_eot_inf as published."""
    policy = p.Policy(p.Exp(p.Confidence()), p.TopK(p.Even(steps)))
    return p.Sampler(policy, p.SuppressAfterDraw((), 0.0))


@preset(
    source="NEUIR/Uncode src/generate.py, generate_with_remdm",
    is_quirk=True,
)
def remdm_release(*, ratio: float = 0.875, count: int = 1, loops: int = 32, **shared: Unpack[Shared]) -> p.Sampler:
    """ReMDM as Uncode's baseline: two forwards a loop, erasing what is least likely now."""
    policy = p.Policy(
        p.Confidence(), p.AlternatingCommit(ratio, count, loops), remask=p.LeastLikelyNow(ratio, count, loops)
    )
    return p.Sampler(policy, limit=100_000)


QUIRKS = {name: entry.make for name, entry in PRESETS.items() if name.startswith("legacy.")}
"""Every quirk by the name the command line knows it by."""


def __getattr__(name: str) -> NoReturn:
    raise NoSuchName("uncode.legacy", name, __all__)
