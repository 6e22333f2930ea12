"""The samplers of the mini-suite, with settings in proportion to the paper's."""

from __future__ import annotations

from ...core.piece import Table
from ...core.policy import Sampler
from ...samplers import presets

RATES = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Candidates for Uncode's positional rate: the paper's four, and smaller ones, for answers here are shorter."""
BLOCKS = 8
"""Of block-wise samplers: 256 tokens in blocks of 32, in small."""
QUICK = ("uniform", "confidence", "semi_ar", "left_to_right", "uncode")
UNCODE = "uncode"


def baselines(length: int) -> dict[str, Sampler]:
    """All presets that are not Uncode's, for answers of `length` tokens."""
    block = -(-length // BLOCKS)
    found = (
        presets.uniform(),
        presets.confidence(),
        presets.entropy(),
        presets.margin(),
        presets.left_to_right(),
        presets.semi_ar(blocks=BLOCKS),
        presets.llada(steps=length, block_length=4 * block),
        presets.eb(),
        presets.tau_leaping(),
        presets.fast_dllm(block_length=block, cache="prefix"),
        presets.fast_dllm_factor(block_length=block),
        presets.remdm(block_length=block),
        presets.dream(alg="entropy", steps=length),
    )
    return {sampler.name: sampler for sampler in found}


def calibrated(length: int, table: Table, rate: float) -> dict[str, Sampler]:
    """Uncode's other presets at a rate, for answers of `length` tokens."""
    block = -(-length // BLOCKS)
    found = (
        presets.uncode_tau(frequency=table, rate=rate, special="neutral"),
        presets.uncode_eb(frequency=table, rate=rate, special="neutral"),
        presets.uncode_fast_dllm(block_length=block, frequency=table, rate=rate, special="neutral"),
    )
    return {sampler.name: sampler for sampler in found}


def at_rate(table: Table, rate: float) -> Sampler:
    """Uncode with end tokens neither pushed nor pulled: they are in no corpus."""
    return presets.uncode(frequency=table, rate=rate, special="neutral")


def with_rate(rate: float) -> str:
    """The name of Uncode at a fixed rate."""
    return f"{UNCODE} {rate:g}"
