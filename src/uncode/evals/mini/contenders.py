"""The samplers of the mini-suite, with settings in proportion to the paper's."""

from __future__ import annotations

from ...core.piece import Table
from ...core.policy import Sampler
from ...samplers import presets

RATES = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Candidates for Uncode's positional rate: the paper's four, and smaller ones, for answers here are shorter."""
BLOCKS = 8
"""Of block-wise samplers: 256 tokens in blocks of 32, in small."""
UNCODE = "uncode"
UNSEEN = "uncode unseen"
"""End tokens as the most informative of all, which is what the released tables imply and the preset's default."""
QUICK = ("uniform", "confidence", "semi_ar", "left_to_right", UNCODE)


def baselines(length: int) -> dict[str, Sampler]:
    """All presets that are not Uncode's, for answers of `length` tokens."""
    block = -(-length // BLOCKS)
    found = (
        presets.uniform(),
        presets.confidence(),
        presets.entropy(),
        presets.margin(),
        presets.left_to_right(),
        presets.llada(steps=length, block_length=4 * block),
        presets.eb(),
        presets.tau_leaping(),
        presets.fast_dllm(block_length=block, cache="prefix"),
        presets.fast_dllm_factor(block_length=block),
        presets.remdm(block_length=block),
        presets.dream(alg="entropy", steps=length),
    )
    named = {sampler.name: sampler for sampler in found}
    return named | {semi_ar(blocks): presets.semi_ar(blocks=blocks) for blocks in (BLOCKS, BLOCKS // 2, 2 * BLOCKS)}


def calibrated(length: int, table: Table, rate: float) -> dict[str, Sampler]:
    """Uncode's other presets at a rate, for answers of `length` tokens."""
    block = -(-length // BLOCKS)
    found = (
        presets.uncode(frequency=table, rate=rate, special="unseen"),
        presets.uncode_tau(frequency=table, rate=rate, special="neutral"),
        presets.uncode_eb(frequency=table, rate=rate, special="neutral"),
        presets.uncode_fast_dllm(block_length=block, frequency=table, rate=rate, special="neutral"),
    )
    return {UNSEEN if sampler.name == UNCODE else sampler.name: sampler for sampler in found}


def at_rate(table: Table, rate: float) -> Sampler:
    """Uncode with end tokens neither pushed nor pulled: they are in no corpus."""
    return presets.uncode(frequency=table, rate=rate, special="neutral")


def semi_ar(blocks: int) -> str:
    """The name of semi-AR; with as many blocks as the paper has, it needs none."""
    return "semi_ar" if blocks == BLOCKS else f"semi_ar {blocks}"


def with_rate(rate: float) -> str:
    """The name of Uncode at a fixed rate."""
    return f"{UNCODE} {rate:g}"
