"""Biases and penalties beside a plain edit of the logits in numpy."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.toy import EOS, MASK, VOCAB, ToyDenoiser
from uncode import Canvas, Sampler, UncodeError, decode, presets, steps
from uncode.core.noise import PhiloxNoise
from uncode.core.pieces.propose import Adjust, Sample
from uncode.samplers.preset import with_shared

ADJUST = Adjust((3, 7), (2.5, -6.0), 0.7, 0.4, 1.6)
PROMPT = [5, 7, 9, EOS]


def edited(logits: np.ndarray, prompt: list[int], span: list[int], column: int, adjust: Adjust) -> np.ndarray:
    """The logits of one column, one token after the other."""
    found, others = logits.copy(), [one for at, one in enumerate(span) if at != column and one not in (MASK, EOS)]
    for token in range(len(found)):
        found[token] += dict(zip(adjust.tokens, adjust.bias, strict=True)).get(token, 0.0)
        if token in others or (token in prompt and token != EOS):
            found[token] *= adjust.repetition_penalty ** (-1 if found[token] > 0 else 1)
        found[token] -= adjust.frequency_penalty * others.count(token) + adjust.presence_penalty * (token in others)
    return found


@pytest.mark.parametrize("adjust", [ADJUST, replace(ADJUST, repetition_penalty=1.0), Adjust(repetition_penalty=0.5)])
def test_the_belief_is_that_of_edited_logits(adjust: Adjust) -> None:
    model, sampler = ToyDenoiser(1), replace(presets.confidence(), adjust=adjust)
    canvas = Canvas.after_prompt([PROMPT], length=10, mask_id=MASK)
    run = steps(model, canvas, sampler)
    tokens = canvas.tokens.clone()
    for step in run:
        raw = model.network(tokens)[0, len(PROMPT) :].double()
        raw[:, MASK] = -torch.inf
        span = tokens[0, len(PROMPT) :].tolist()
        wanted = np.stack([edited(row, PROMPT, span, at, adjust) for at, row in enumerate(raw.numpy())])
        belief, logp = step.decision.belief, torch.from_numpy(wanted).log_softmax(-1)
        assert belief.token[0].tolist() == wanted.argmax(-1).tolist()
        torch.testing.assert_close(belief.logp[0].double(), logp.amax(-1), atol=2e-5, rtol=1e-5)
        tokens = step.tokens.clone()
    again = Sampler.from_dict(sampler.to_dict())
    assert again == sampler and Sampler.from_toml(sampler.to_toml()) == sampler
    assert run.trace().samplers[0] == sampler


def test_neutral_values_change_nothing() -> None:
    model, canvas = ToyDenoiser(2), Canvas.after_prompt([[1, 2]], length=12, mask_id=MASK)
    plain = presets.fast_dllm(block_length=5)
    neutral = with_shared(plain, {"presence_penalty": 0.0, "frequency_penalty": 0.0, "repetition_penalty": 1.0})
    assert neutral == plain and neutral.to_dict() == plain.to_dict() and "adjust" not in plain.to_dict()
    zero = decode(model, canvas, plain.biasing({4: 0.0}))  # it is adjusted, by nothing
    free = decode(model, canvas, plain)
    assert zero.tokens.equal(free.tokens) and zero.commit_step.equal(free.commit_step) and zero.logp.equal(free.logp)


@pytest.mark.parametrize("draft_steps", [1, 3])
def test_rows_of_any_values_are_one_lane(draft_steps: int) -> None:
    model = ToyDenoiser(3)
    plain = presets.left_to_right(block_length=4, draft_steps=draft_steps)
    each = [plain, plain.biasing({VOCAB - 4: 9.0}), replace(plain, adjust=ADJUST), replace(plain, adjust=ADJUST)]
    canvas = Canvas.after_prompt([[1, 2], [3], [4, 5, 6], [7]], length=[9, 8, 7, 9], mask_id=MASK)
    run = steps(model, canvas, each, seed=4)
    assert len(run.state.lanes) == 1
    trace, prompts, lengths = run.trace(), [[1, 2], [3], [4, 5, 6], [7]], [9, 8, 7, 9]
    for at, (prompt, length, one) in enumerate(zip(prompts, lengths, each, strict=True)):
        row = Canvas.after_prompt([prompt], length=length, mask_id=MASK)
        alone = decode(model, row, one, 4 + at)
        assert trace.rows[at].equal(alone.rows[0])
        torch.testing.assert_close(trace.logp[at, :length], alone.logp[0], atol=1e-6, rtol=0)
    assert not trace.rows[0].equal(decode(model, Canvas.after_prompt([[1, 2]], 9, MASK), each[1], 4).rows[0])


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_penalty_does_not_round_the_row_beside(temperature: float) -> None:
    """It makes the lane's logits float32: a drawn ranking is the same whether they are or are of half precision."""
    half = ToyDenoiser(3).network(torch.tensor([[1, 2, MASK, MASK]])).bfloat16()
    view = next(steps(ToyDenoiser(3), Canvas.after_prompt([[1]], length=4, mask_id=MASK), "confidence"))
    noise = PhiloxNoise(torch.tensor([[3]]), torch.tensor([[0]]))
    seen: Any = SimpleNamespace(noise=noise, offsets=view.offsets)
    propose = Sample((), temperature, ranking="drawn")
    (token, believed), (same, wide) = propose(half, seen), propose(half.float(), seen)
    assert believed.dtype == torch.float32 and believed.equal(wide)
    assert torch.equal(token, same)  # type: ignore[arg-type]


def test_min_p_cuts_the_draw() -> None:
    model, canvas = ToyDenoiser(4), Canvas.after_prompt([[1, 2]], length=24, mask_id=MASK)
    run = steps(model, canvas, presets.confidence(temperature=1.5, min_p=0.4))
    tokens = canvas.tokens.clone()
    for step in run:
        p = (model.network(tokens)[0, 2:].double() / 1.5).softmax(-1)
        drawn = p.gather(-1, step.decision.belief.token[0, :, None])[:, 0]
        assert bool((drawn >= 0.4 * p.amax(-1) * (1 - 1e-9)).all())
        tokens = step.tokens.clone()
    free, none = (decode(model, canvas, presets.confidence(temperature=1.5, min_p=p)) for p in (None, 0.0))
    assert free.tokens.equal(none.tokens) and not free.tokens.equal(tokens)
    assert presets.confidence(temperature=1.0, min_p=0.2).propose == Sample((), 1.0, min_p=0.2)


def test_wrong_values() -> None:
    model, canvas = ToyDenoiser(0), Canvas.after_prompt([[1]], length=3, mask_id=MASK)
    with pytest.raises(UncodeError, match="repetition_penalty of the sampler 'confidence' must be above 0, not 0"):
        presets.confidence(repetition_penalty=0.0)
    with pytest.raises(UncodeError, match=f"a bias of token {VOCAB} means nothing to this model"):
        decode(model, canvas, presets.confidence().biasing({VOCAB: 1.0}))
    with pytest.raises(UncodeError, match=f"a bias of token {MASK} means nothing"):
        decode(model, canvas, presets.confidence().biasing({MASK: 1.0}))
    with pytest.raises(UncodeError, match=r"a bias says by token id what is added to its logits, .* not \[5\]"):
        presets.confidence().biasing([5])  # type: ignore[arg-type]
    with pytest.raises(UncodeError, match="2 tokens with a bias and 1 number: give one each"):
        Adjust((1, 2), (0.5,))
    with pytest.raises(UncodeError, match="not -1 again or below 0"):
        Adjust((-1,), (0.5,))
