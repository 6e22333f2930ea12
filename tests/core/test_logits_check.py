"""Logits that are no numbers: the error names the model, not the sampler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import uncode
from tests.checkpoints import DIALECTS, save
from uncode import Canvas, FunctionDenoiser, Guided, Sampler, Stalled, UncodeError, decode, presets
from uncode.core.pieces.stop import AfterEos
from uncode.core.stepper.advance import advance
from uncode.core.stepper.state import State

VOCAB, MASK = 7, 0
SAMPLERS = {
    "confidence": presets.confidence(),
    "several a step": presets.confidence(steps=3),
    "threshold": presets.fast_dllm(block_length=4),
    "blind to the logits": presets.uniform(),
    "left to right": presets.left_to_right(),
    "waits": presets.dream(alg="entropy", steps=4),
    "tau leap": presets.dream(steps=4),
    "remasks": presets.remdm(block_length=4),
    "drawn": presets.confidence(temperature=1.0),
    "stops": presets.confidence().stopping(AfterEos()),
}


def model(change: Callable[[Tensor, int], None]) -> FunctionDenoiser:
    calls = []

    def fn(tokens: Tensor) -> Tensor:
        logits = torch.zeros(*tokens.shape, VOCAB) + torch.arange(VOCAB)
        change(logits, len(calls))
        calls.append(1)
        return logits

    return FunctionDenoiser(fn, MASK, VOCAB, eos_ids=(6,), name="broken-7b")


def row(length: int = 8) -> Canvas:
    return Canvas.after_prompt([[1, 2]], length=length, mask_id=MASK)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    ("value", "where", "message"),
    [
        (torch.nan, slice(None), "NaN logits at position 2 "),
        (torch.nan, slice(3), "NaN logits at position 2 "),  # a few rows of the head
        (-torch.inf, slice(None), "only -inf logits at position 2 "),
        (torch.inf, slice(3, 5), "infinite logits at position 2 "),
    ],
)
def test_the_model_is_named(sampler: str, value: float, where: slice, message: str) -> None:
    def spoil(logits: Tensor, call: int) -> None:
        logits[..., where] = value

    with pytest.raises(UncodeError, match=f"the model 'broken-7b' returned {message}of row 0: check its weights"):
        decode(model(spoil), row(), SAMPLERS[sampler])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_one_bad_position_is_named_before_it_is_written(sampler: str) -> None:
    def spoil(logits: Tensor, call: int) -> None:
        logits[:, 5] = torch.nan

    with pytest.raises(UncodeError, match="'broken-7b' returned NaN logits at position 5 of row 0"):
        decode(model(spoil), row(), SAMPLERS[sampler])


@pytest.mark.parametrize("sampler", ["confidence", "blind to the logits", "left to right", "waits"])
def test_logits_that_become_nan_later(sampler: str) -> None:
    def spoil(logits: Tensor, call: int) -> None:
        if call >= 2:
            logits[:, :] = torch.nan

    with pytest.raises(UncodeError, match=r"'broken-7b' returned NaN( or infinite)? logits at position"):
        decode(model(spoil), row(), SAMPLERS[sampler])


def test_infinite_logits_are_not_called_nan() -> None:
    def spoil(logits: Tensor, call: int) -> None:
        logits[..., 3:5] = torch.inf if call >= late else logits[..., 3:5]

    late = 0
    with pytest.raises(UncodeError, match="returned infinite logits: check"):
        uncode.log_likelihood(model(spoil), [1, 2], [3, 4], method="exact")
    late = 2
    with pytest.raises(UncodeError, match="returned infinite logits at position"):
        decode(model(spoil), row(), presets.confidence())
    with pytest.raises(UncodeError, match="returned NaN or infinite logits at position"):
        decode(model(spoil), row(), presets.uniform())


def test_a_row_among_others_is_named_by_its_own_positions() -> None:
    def spoil(logits: Tensor, call: int) -> None:
        logits[1, 6] = torch.nan

    two = Canvas.after_prompt([[1, 2], [3, 4]], length=8, mask_id=MASK)
    with pytest.raises(UncodeError, match="NaN logits at position 6 of row 1"):
        decode(model(spoil), two, [presets.confidence(), presets.uniform()])
    with pytest.raises(UncodeError, match="NaN logits at position 6 of row 1"):
        decode(Guided(model(spoil), 1.0), two, presets.confidence())


def test_a_look_ahead_forward_hides_no_bad_logits() -> None:
    def spoil(logits: Tensor, call: int) -> None:
        logits[:, 4] = torch.nan

    state = State(model(spoil))
    state.lookahead.is_async = True
    state.add(row(), SAMPLERS["stops"])
    with pytest.raises(UncodeError, match="NaN logits at position 4"):
        advance(state)


def test_the_limit_is_not_the_samplers_fault() -> None:
    def spoil(logits: Tensor, call: int) -> None:
        if call >= 1:
            logits[:] = torch.nan

    sampler = presets.dream(alg="entropy", steps=99)
    limited = Sampler(sampler.policy, limit=5)
    with pytest.raises(UncodeError, match="'broken-7b' returned NaN logits"):
        decode(model(spoil), row(64), limited)


def test_bans_of_every_token_are_not_the_models_fault() -> None:
    def spare(logits: Tensor, call: int) -> None:
        """Leave them as they are."""

    sampler = presets.uniform()
    banned = Sampler(sampler.policy, type(sampler.propose)(tuple(range(1, VOCAB))))
    with pytest.raises(Stalled, match="the limit of sampler"):
        decode(model(spare), row(), banned)


@pytest.mark.parametrize(
    ("dialect", "name"),
    [
        ("llada", "wte.weight"),
        ("llada", "attn_norm.weight"),
        ("llada", "ln_f.weight"),
        ("dream", "embed_tokens.weight"),
        ("dream", "norm.weight"),
    ],
)
def test_nan_weights_of_a_checkpoint(dialect: str, name: str, tmp_path: Path) -> None:
    config, weights = DIALECTS[dialect]
    made = config(0)
    tensors = weights(made, 0)
    next(tensor for key, tensor in tensors.items() if key.endswith(name)).fill_(torch.nan)
    folder = save(tmp_path / "spoilt", made, tensors)
    broken = uncode.load(folder, device="cpu")
    canvas = Canvas.after_prompt([[1, 2, 3]], length=6, mask_id=broken.mask_id)
    for sampler in (presets.confidence(), presets.uniform(), presets.fast_dllm(block_length=3, cache="dual")):
        with pytest.raises(UncodeError, match="the model 'spoilt' returned NaN logits at position 3 of row 0"):
            decode(broken, canvas, sampler)
    with pytest.raises(UncodeError, match="the model 'spoilt' returned NaN logits"):
        uncode.log_likelihood(broken, [1, 2], [3, 4], method="exact")
