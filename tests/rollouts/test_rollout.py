"""Rollouts: the samples are those of `decode`, and their log-probabilities those of a loop that anyone would write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import uncode
from tests.checkpoints import checkpoint, like_the_toy
from tests.toy import EOS, MASK, ToyDenoiser
from uncode import Canvas, FunctionDenoiser, Guided, Rollout, Sampler, UncodeError, decode, presets, rollout
from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.transformer.pointwise import rope_of
from uncode.core.denoiser import Denoiser
from uncode.core.pieces.policy import Policy
from uncode.core.pieces.propose import Sample
from uncode.core.pieces.score import Confidence

TWO, FOUR = presets.confidence(steps=2), presets.confidence(steps=4)


def plain_logits(model: TransformerDenoiser, tokens: Tensor) -> Tensor:
    """The network over whole rows, without a session."""
    shape, positions = model.network.shape, torch.arange(tokens.shape[1])[None]
    cos, sin = rope_of(positions, shape.head_width, shape.theta, torch.float64)
    logits = model.network.logits(*model.network(tokens, (cos[:, None], sin[:, None])))
    return logits.index_fill(-1, torch.tensor([model.mask_id]), float("-inf"))


def by_loop(found: Rollout, logits_of: Callable[[Tensor], Tensor]) -> Tensor:
    """Sample by sample and step by step."""
    values = []
    for row in found.rows():
        own = [torch.zeros((), dtype=found.logp.dtype)] * found.step_map.shape[1]
        for step in range(int(row.step_map.max()) + 1):
            written = (row.step_map == -1) | ((row.step_map >= 0) & (row.step_map < step))
            canvas = torch.cat([row.before, torch.where(written, row.generated, found.canvas.mask_id)])
            logp = (logits_of(canvas[None])[0] / found.temperature).log_softmax(-1)
            for offset in (row.step_map == step).nonzero()[:, 0].tolist():
                own[offset] = logp[len(row.before) + offset, row.generated[offset]]
        values.append(torch.stack(own))
    return torch.stack(values)


def test_gradients_on_tiny_are_those_of_a_loop() -> None:
    model = uncode.load("tiny", device="cpu", dtype="float64")
    found = rollout(model, ["Problem: 2 + 3", "a"], n=2, sampler=TWO, temperature=0.7, length=6, stop_at_eos=False)
    assert found.canvas.start > 1 and found.step_map.max() == 1 and len(found) == 4
    weights = list(model.network.requires_grad_(True).parameters())
    weight = torch.linspace(-1, 1, found.logp.numel()).view_as(found.logp)
    ours = found.log_probabilities(model, batch_size=5)
    torch.testing.assert_close(ours.detach(), found.logp, rtol=0, atol=1e-10)
    theirs = by_loop(found, lambda tokens: plain_logits(model, tokens))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    grads = [torch.autograd.grad((logp * weight).sum(), weights) for logp in (ours, theirs)]
    for mine, plain in zip(*grads, strict=True):
        torch.testing.assert_close(mine, plain, rtol=1e-8, atol=1e-11)
    assert all(float(grad.abs().max()) > 0 for grad in grads[0])


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_samples_are_those_of_decode(temperature: float) -> None:
    model = ToyDenoiser(3)
    canvas = Canvas.after_prompt([[1, 2, 3], [4]], length=[9, 6], mask_id=MASK)
    sampler = presets.fast_dllm(threshold=0.3, block_length=5, cache="none")
    found = rollout(model, canvas, n=3, sampler=sampler, temperature=temperature, seed=5, stop_at_eos=False)
    drawn = presets.fast_dllm(threshold=0.3, block_length=5, cache="none", temperature=temperature)
    for at, row in enumerate(found.rows()):
        alone = Canvas.after_prompt([[[1, 2, 3], [4]][at // 3]], length=[9, 6][at // 3], mask_id=MASK)
        trace = decode(model, alone, drawn, seed=5 + at)
        assert torch.equal(torch.cat([row.before, row.generated]), trace.tokens[0])
        assert torch.equal(row.step_map, trace.commit_step[0]) and row.forwards == len(trace)
        if temperature == 1:
            torch.testing.assert_close(row.logp, trace.logp[0], rtol=0, atol=1e-12)
    assert found.prompt.tolist() == [0, 0, 0, 1, 1, 1] and found.seeds.tolist() == list(range(5, 11))
    few = rollout(model, canvas, n=3, sampler=sampler, temperature=temperature, seed=5, stop_at_eos=False, max_rows=2)
    assert torch.equal(few.tokens, found.tokens) and torch.equal(few.step_map, found.step_map)
    torch.testing.assert_close(few.logp, found.logp, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.log_probabilities(model), found.logp, rtol=0, atol=1e-10)


def banned(ranking: Any) -> Sampler:
    return Sampler(Policy(Confidence()), Sample(ban=(1, 2, 3), temperature=0.8, ranking=ranking))


@pytest.mark.parametrize("sampler", [FOUR, presets.left_to_right(), banned("clean"), banned("drawn")])
@pytest.mark.parametrize("dialect", ["llada", "dream"])
def test_recomputed_is_what_was_recorded(dialect: str, sampler: Sampler) -> None:
    """With given tokens inside the span, and prompts of unequal length."""
    model = like_the_toy(dialect, 2)
    mask = model.mask_id
    canvas = Canvas.infill([[1, 2, mask, mask, 3, mask, mask], [4, 5, 6, mask, mask]], mask_id=mask)
    found = rollout(model, canvas, n=2, sampler=sampler, seed=1)
    assert found.temperature == (0.8 if type(sampler.propose) is Sample else 1.0)
    assert found.given.sum(1).tolist() == [1, 1, 0, 0] and found.drawn.sum(1).tolist() == [4, 4, 2, 2]
    assert (found.logp[found.drawn] < 0).all() and (found.logp[~found.drawn] == 0).all()
    tolerance = 1e-10 if model.dtype == torch.float64 else 1e-5
    for size in (1, 64):
        again = found.log_probabilities(model, batch_size=size)
        torch.testing.assert_close(again, found.logp, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dialect", ["sdar", "nemotron"])
def test_a_block_causal_model_has_an_exact_cache(dialect: str, tmp_path: Path) -> None:
    model = uncode.load(checkpoint(tmp_path, dialect, 0), dtype="float64")
    canvas = Canvas.after_prompt([[5, 6, 7], [8, 9, 10, 11, 12]], length=9, mask_id=model.mask_id)
    found = rollout(model, canvas, n=2, sampler="confidence", temperature=0.9)
    assert found.sampler["cache"]["piece"] == "BlockCache"
    torch.testing.assert_close(found.log_probabilities(model), found.logp, rtol=0, atol=1e-10)


def test_what_the_stop_rule_fills_was_not_drawn() -> None:
    model = ToyDenoiser(1, boost=6.0)
    canvas = Canvas.after_prompt([[1, 2]], length=10, mask_id=MASK)
    found = rollout(model, canvas, n=8, sampler="left_to_right")
    filled = found.step_map == -2
    assert filled.any() and not (filled & found.drawn).any() and (found.logp[filled] == 0).all()
    assert (found.forwards == found.drawn.sum(1)).all() and EOS in found.generated
    torch.testing.assert_close(found.log_probabilities(model), found.logp, rtol=0, atol=1e-10)
    assert not (rollout(model, canvas, n=8, sampler="left_to_right", stop_at_eos=False).step_map == -2).any()


def test_any_differentiable_model_has_gradients() -> None:
    weight = torch.zeros(6, 6, requires_grad=True)
    model = FunctionDenoiser(lambda tokens: weight[tokens].roll(1, 1), 0, 6)
    found = rollout(model, Canvas.after_prompt([[1, 2]], 3, mask_id=0), n=4, sampler=FOUR)
    found.log_probabilities(model).sum().backward()
    assert weight.grad is not None and float(weight.grad.abs().sum()) > 0
    guided = Guided(model, 1.0)
    again = rollout(guided, Canvas.after_prompt([[1, 2]], 3, mask_id=0), n=4, sampler=FOUR)
    logp = again.log_probabilities(guided)
    assert logp.requires_grad
    torch.testing.assert_close(logp.detach(), again.logp)


@pytest.fixture(scope="module")
def found() -> Rollout:
    model = ToyDenoiser(3)
    return rollout(model, Canvas.after_prompt([[1, 2, 3], [4]], length=[5, 3], mask_id=MASK), n=2, sampler=FOUR)


@pytest.mark.parametrize("suffix", ["safetensors", "parquet"])
def test_a_file_gives_the_rollout_back(found: Rollout, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"samples.{suffix}"
    found.save(path)
    found[2:].save(path)  # a rollout replaces a rollout
    found.save(path)
    again = Rollout.load(path)
    for name in ("tokens", "step_map", "logp", "prompt", "seeds", "forwards", "given", "drawn"):
        assert torch.equal(getattr(again, name), getattr(found, name)), name
    assert torch.equal(again.canvas.tokens, found.canvas.tokens) and again.canvas.start == found.canvas.start
    assert again.sampler == found.sampler and again.model == found.model and again.temperature == found.temperature
    torch.testing.assert_close(again.log_probabilities(ToyDenoiser(3)), found.logp, rtol=0, atol=1e-10)


def test_some_of_the_samples(found: Rollout) -> None:
    assert repr(found) == "Rollout(4 samples of 2 prompts, 16 drawn tokens, confidence)"
    part = found[torch.tensor([3, 0])]
    assert len(part) == 2 and part.prompt.tolist() == [1, 0] and torch.equal(part.tokens[0], found.tokens[3])
    assert torch.equal(part.log_probabilities(ToyDenoiser(3)), found.log_probabilities(ToyDenoiser(3))[[3, 0]])


TOY_CANVAS = Canvas.after_prompt([[1, 2]], length=4, mask_id=MASK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampler": "remdm"}, r"'remdm' may change tokens that were written \(.*\), so a step map does not say"),
        ({"sampler": presets.confidence(temperature=1.0, top_k=3)}, "cuts its draws, .* leave out top_k, top_p"),
        ({"sampler": "credit"}, "proposal Credit of this sampler takes no temperature"),
        ({"temperature": 0}, "the temperature must be above 0"),
        ({"temperature": -1.0}, "temperature must be a number of 0 or more|at least 0"),
        ({"n": 0}, "n must be a whole number of at least 1, not 0"),
        ({"length": 3}, "a canvas has its length already"),
        ({"stop_at_eos": 1}, "stop_at_eos must be True or False, not 1"),
        ({"number": 3}, "^rollout has no option 'number'"),
    ],
)
def test_what_cannot_be_rolled_out_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        rollout(ToyDenoiser(1), TOY_CANVAS, **{"sampler": FOUR} | options)


def test_what_cannot_be_recomputed_is_refused(found: Rollout, tmp_path: Path) -> None:
    cached = rollout(ToyDenoiser(1), TOY_CANVAS, n=1, sampler=presets.fast_dllm(block_length=2, cache="dual"))
    assert (cached.logp[cached.drawn] < 0).all()
    with pytest.raises(UncodeError, match=r"reused keys and values of earlier steps \(DualCache\), .* cache='none'"):
        cached.log_probabilities(ToyDenoiser(1))
    always: Denoiser = ToyDenoiser(1)
    fresh = rollout(always, TOY_CANVAS, n=1, sampler=presets.confidence(cache="none"))
    assert fresh.log_probabilities(always).shape == (1, 4)
    with pytest.raises(UncodeError, match=f"made with mask_id={MASK}, but the model's mask id is 0"):
        found.log_probabilities(uncode.load("toy"))
    with pytest.raises(UncodeError, match="none of the samples was chosen"):
        found[4:]
    with pytest.raises(UncodeError, match=r"must end in \.safetensors or \.parquet"):
        found.save(tmp_path / "samples.csv")
    (other := tmp_path / "other.safetensors").write_bytes(b"not ours")
    with pytest.raises(UncodeError, match="exists and is not a rollout"):
        found.save(other)
    with pytest.raises(UncodeError, match="holds no rollout"):
        Rollout.load(other)
    found.save(other, force=True)
    assert len(Rollout.load(other)) == 4
