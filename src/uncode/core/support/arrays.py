"""Arrays on the host."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
"""Whole numbers: columns, counts, indices of rows."""
