"""Logits that no sampler can use: the error names the model, and not the piece that met them first."""

from __future__ import annotations

from torch import Tensor

from .denoiser import Denoiser
from .errors import UncodeError


def model_name(denoiser: Denoiser) -> str:
    """What a trace calls the model; the class of one that does not say."""
    return str(denoiser.about.get("model") or type(denoiser).__name__)


def find_bad_logits(logits: Tensor) -> tuple[int, str] | None:
    """The first of the positions `[W, V]` without a probability for any token, and what its logits are.

    NaN and +inf leave none, and so does -inf for every token: a softmax is NaN then.
    """
    top = logits.amax(-1)  # amax hands NaN on
    bad = ~top.isfinite()
    if not bool(bad.any()):
        return None
    at = int(bad.long().argmax())
    kind = "NaN" if bool(top[at].isnan()) else "infinite" if float(top[at]) > 0 else "only -inf"
    return at, kind


def bad_logits(denoiser: Denoiser, kind: str, where: str = "") -> UncodeError:
    """The error that names the model. `kind` is what its logits are."""
    dtype = str(denoiser.dtype).removeprefix("torch.")
    return UncodeError(
        f"the model '{model_name(denoiser)}' returned {kind} logits{where}: check its weights, or load it in another "
        f"dtype than {dtype or 'this one'}."
    )
