"""The samplers of the mini-suite, with the paper's settings scaled to shorter answers."""

from __future__ import annotations

from ...core.pieces.piece import Table
from ...core.pieces.policy import Sampler
from ...samplers import presets
from .names import BLOCKS, UNCODE, UNSEEN, semi_ar


def baselines(length: int) -> dict[str, Sampler]:
    """All presets other than Uncode's, for answers of `length` tokens."""
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
    by_name = {sampler.name: sampler for sampler in found}
    return by_name | {semi_ar(blocks): presets.semi_ar(blocks=blocks) for blocks in (BLOCKS, BLOCKS // 2, 2 * BLOCKS)}


def calibrated(length: int, table: Table, rate: float) -> dict[str, Sampler]:
    """Uncode's other presets with a rate, for answers of `length` tokens."""
    block = -(-length // BLOCKS)
    found = (
        presets.uncode(frequency=table, rate=rate, special="unseen"),
        presets.uncode_tau(frequency=table, rate=rate, special="neutral"),
        presets.uncode_eb(frequency=table, rate=rate, special="neutral"),
        presets.uncode_fast_dllm(block_length=block, frequency=table, rate=rate, special="neutral"),
    )
    return {UNSEEN if sampler.name == UNCODE else sampler.name: sampler for sampler in found}


def at_rate(table: Table, rate: float) -> Sampler:
    """Uncode with a rate and `special="neutral"`, because no corpus contains EOS."""
    return presets.uncode(frequency=table, rate=rate, special="neutral")
