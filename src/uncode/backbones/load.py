"""Models by name."""

from __future__ import annotations

from ..core.denoiser import Denoiser
from ..core.errors import UncodeError
from .toy import toy


def load(name: str) -> Denoiser:
    """The denoiser of that name. This version carries "toy"; any other model can be wrapped as a FunctionDenoiser."""
    if name == "toy":
        return toy()
    raise UncodeError(
        f"no model is named '{name}': this version knows 'toy'; wrap another model as uncode.FunctionDenoiser."
    )
