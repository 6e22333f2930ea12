"""Logits that no sampler can use: the error names the model, and not the piece that met them first."""

from __future__ import annotations

from torch import Tensor

from .denoiser import Denoiser
from .errors import BadLogits, UncodeError, require, shown


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


def check_shape(denoiser: Denoiser, logits: object, expected: tuple[int, int, int], columns: int) -> None:
    """Raise unless these are logits `[B, W, V]` of a canvas with so many columns."""
    name = model_name(denoiser)
    if not isinstance(logits, Tensor) or not logits.is_floating_point():  # the text of logits takes long to make
        raise UncodeError(f"the model '{name}' must return a tensor of floating-point logits, not {shown(logits)}.")
    shape = tuple(logits.shape)
    whole = shape == (expected[0], columns, expected[2])
    advice = "return the columns of plan.wanted alone" if whole else "return one entry per row, column and token"
    require(shape == expected, f"the model '{name}' returned logits of shape {shape}, not {expected}: {advice}.")


def mask_not_barred(denoiser: Denoiser) -> UncodeError:
    """The error for a model that would write the mask token itself."""
    return UncodeError(
        f"the model '{model_name(denoiser)}' gives the mask token ({denoiser.mask_id}) a probability: set its logit to "
        "-inf at every position."
    )


def bad_logits(denoiser: Denoiser, kind: str, where: str = "", row: int | None = None) -> BadLogits:
    """The error that names the model. `kind` is what its logits are, `row` the id of the row that met them."""
    dtype = str(denoiser.dtype).removeprefix("torch.")
    return BadLogits(
        f"the model '{model_name(denoiser)}' returned {kind} logits{where}: check its weights, or load it in another "
        f"dtype than {dtype or 'this one'}.",
        row,
    )
