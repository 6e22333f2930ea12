"""The code of pieces from outside the package, as a part of a sampler's definition.

A run folder tells samplers apart by their settings. The code of a piece of one's own changes while it is being written,
so its fingerprint belongs to the definition: answers of the former code are not taken for those of the new one.
"""

from __future__ import annotations

import hashlib
import inspect
import sys

from ...core.pieces.policy import Sampler

PACKAGE = __name__.partition(".")[0]


def own_code(sampler: Sampler) -> dict[str, str]:
    """For each piece from outside the package, by its class, the fingerprint of the module that defines it."""
    parts = (sampler.policy, sampler.propose, sampler.cache)
    classes = {type(piece) for part in parts for piece in part.pieces()}
    outside = [kind for kind in classes if kind.__module__.partition(".")[0] != PACKAGE]
    return {kind.__name__: _fingerprint(kind) for kind in sorted(outside, key=lambda kind: kind.__name__)}


def _fingerprint(kind: type) -> str:
    try:
        source = inspect.getsource(sys.modules[kind.__module__])
    except (OSError, TypeError, KeyError):  # typed into a console
        return "unknown"
    return hashlib.sha256(source.encode()).hexdigest()[:16]
