"""Look-ahead: how the host stays ahead of the device.

Some facts are known to the device alone: whether a block is filled, whether a stop rule has ended a row. To learn them
the host must wait for the forward (a host sync), and the device is idle until the host has launched the next one. Most
steps need no sync: a selector with a schedule says how many steps a block takes at least. The host counts those steps
down and syncs when one of these facts can have changed::

    open blocks -> count down -> sync -> count down      no block was filled
         ^                        |
         +------------------------+                      a block was filled, or rows came or went

A single row with a stop rule would sync at every step. On a CUDA device its next forward is launched before the sync,
so that the device works while the host waits. If the stop rule then ends the row, that one forward is discarded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..support.arrays import Ints
from .lanes.decide import Lane
from .rows import Rows


class LookAhead:
    """Steps until the host must sync, and the forward that was launched before a sync. Counts are the batch's."""

    def __init__(self, device: torch.device) -> None:
        self.is_async = device.type == "cuda"
        """Whether the device works while the host waits: only then is a forward launched before a sync."""
        self.until_filled = 0
        """The least number of steps until a block can be filled. A stop rule alone can end a row sooner."""
        self.until_sync = 0
        self.since_sync = 0
        """Steps that the rows' own counts do not have yet."""
        self.logits: Tensor | None = None
        """Of the next step, where its forward was launched before the last sync."""
        self.must_open_blocks = True

    def count_step(self) -> bool:
        """Count a step. Returns whether the host must sync after it."""
        self.since_sync += 1
        self.until_filled -= 1
        self.until_sync -= 1
        return self.until_sync <= 0

    def restart(self, rows: Rows, lanes: Sequence[Lane], members: Sequence[Ints]) -> None:
        """Restart the counts after a sync. `members` are the indices of each lane's rows.

        The host also syncs once after a block's first step, where bad logits show, and after every step where a stop
        rule may end a row.
        """
        unfinished = ~rows.finished
        steps, sync_after_next = np.zeros_like(rows.block), rows.block_step == 0
        for lane, here in zip(lanes, members, strict=True):
            policy = lane.sampler.policy
            if not policy.revises and not policy.blocks.sees_beliefs:
                masked, shares = rows.of_block(rows.masked)[here], rows.of_block(rows.shares)[here]
                steps[here] = policy.select.min_steps(masked, shares) - rows.block_step[here]
            sync_after_next[here] |= policy.stop.stops
        self.until_filled, self.until_sync = (
            int(count[unfinished].min()) if unfinished.any() else 0
            for count in (steps, np.where(sync_after_next, np.minimum(steps, 1), steps))
        )

    def take_logits(self) -> Tensor | None:
        """The logits of a forward that was launched before the last sync, once."""
        logits, self.logits = self.logits, None
        return logits

    def is_worthwhile(self, rows: int) -> bool:
        """Whether to launch the next forward before a sync. Of several rows one ends often, which would waste it."""
        return self.is_async and rows == 1 and self.until_filled > 0
