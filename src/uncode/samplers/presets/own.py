"""Samplers of this library, without a setting per task."""

from __future__ import annotations

from typing import Unpack

from .. import pieces as p
from ..calibration import Frequency, calibrated
from ..options import Special
from ..preset import Shared, preset


@preset(
    source='this library; docs/decisions.md, "samplers since 2025"',
    defaults="Default threshold: 0.999; a lower one takes fewer forwards, and far below 0.99 it makes more mistakes. "
    "Default rate: 0.02, of six the best on new problems of `tiny`, together with 0.03 (docs/log.md). Default"
    ' block_length: None, one block. Default cache: none. The rest as in uncode, but with special="neutral".',
    cost="at most one forward a token; no memory; a frequency table, as uncode, where the model has one.",
)
def certain_first(
    *,
    threshold: float = 0.999,
    rate: float = 0.02,
    frequency: Frequency = None,
    clip: float | None = 10.0,
    informativeness: bool = True,
    special: Special = "neutral",
    **shared: Unpack[Shared],
) -> p.Policy:
    """Certain first: commit all certain tokens at once; otherwise commit Uncode's top token.

    An EOS token waits until everything before it proposes an end too; a certain one does not wait for certain words.
    A model without a frequency table is decoded without informativeness, with a warning.
    """
    score = calibrated(frequency, rate, clip, "confidence", informativeness, special, needs_table=False)
    return p.Policy(score + p.EndsInTurn(threshold), p.Certain(threshold))


@preset(
    source='this library; docs/decisions.md, "samplers since 2025"',
    defaults="Default threshold: 0.99. Default block_length: None, one block. Default cache: none. The rest as in "
    'certain_first; clip 10 and special="neutral" are fixed.',
    cost="at most one forward a token, fewer than certain_first at the same threshold; no memory; a frequency "
    "table, as uncode, where the model has one.",
)
def certain_first_fast(
    *,
    threshold: float = 0.99,
    rate: float = 0.02,
    frequency: Frequency = None,
    informativeness: bool = True,
    **shared: Unpack[Shared],
) -> p.Policy:
    """Certain first in fewer forwards: the decision is committed in the same step as what is certain.

    It admits by probability and ranks by the calibrated score. `uncode_fast_dllm` uses that score, which is no
    probability, for both.
    """
    score = calibrated(frequency, rate, informativeness=informativeness, special="neutral", needs_table=False)
    return p.Policy(score + p.EndsInTurn(threshold), p.Threshold(threshold))
