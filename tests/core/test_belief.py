"""Beliefs and draws that are formed in parts are those that are formed at once."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch

from uncode.core.belief import Belief
from uncode.core.errors import UncodeError
from uncode.core.noise import Draw, PhiloxNoise, Purpose, gumbel
from uncode.core.pieces.propose import Sample
from uncode.core.support.triton_support import why_not
from uncode.core.view import View

LOGITS = torch.randn(3, 5, 40, generator=torch.Generator().manual_seed(1)) * 3
NOISE = PhiloxNoise(torch.tensor([[1], [2], [3]]), torch.tensor([[4], [5], [6]]))
OFFSETS = torch.arange(5)[None] + 10


@pytest.mark.parametrize("chunk", [1, 80, 200, 10**6])
def test_a_belief_in_parts_is_the_belief(chunk: int) -> None:
    whole = Belief.of(LOGITS)
    with patch("uncode.core.belief.CHUNK_LOGITS", chunk):
        parts = Belief.of(LOGITS)
    for name in ("token", "sumexp_others", "exp_second", "sum_exp_bits"):
        assert torch.equal(getattr(parts, name), getattr(whole, name))


def test_a_position_alone_is_the_position_among_others() -> None:
    """Also where a few positions of a large vocabulary are reduced at a time."""
    logits = torch.randn(1, 7, 90_000, generator=torch.Generator().manual_seed(2)) * 3
    whole = Belief.of(logits)
    for part in (slice(0, 1), slice(6, 7), slice(1, 3), slice(2, 7)):
        alone = Belief.of(logits[:, part])
        for name in ("token", "sumexp_others", "exp_second", "sum_exp_bits"):
            assert torch.equal(getattr(alone, name), getattr(whole, name)[:, part])


@pytest.mark.parametrize("chunk", [1, 130, 400, 10**6])
@pytest.mark.parametrize("by_row", [False, True])
def test_tokens_drawn_in_parts_are_those_drawn_at_once(chunk: int, by_row: bool) -> None:
    offsets = torch.stack([OFFSETS[0] + row for row in range(3)]) if by_row else OFFSETS
    wanted = (LOGITS.double() / 0.8 + gumbel(NOISE.tokens(Purpose.TOKEN, offsets, 40))).max(-1).indices
    with patch("uncode.core.noise.CHUNK_LOGITS", chunk):
        assert torch.equal(Draw(0.8, NOISE, offsets)(LOGITS), wanted)


def test_a_draw_is_proposed_without_reading_the_logits() -> None:
    there = torch.ones(LOGITS.shape[:2], dtype=torch.bool)
    view = View(
        there.long(), there, there, OFFSETS, OFFSETS.double(), 0, 1, 1, 1, 0, NOISE, there.long(), there.shape[1], there
    )
    proposed, believed = Sample(temperature=0.8)(LOGITS, view)
    assert isinstance(proposed, Draw) and believed is LOGITS
    belief = Belief.of(believed, proposed)
    assert torch.equal(belief.token, proposed(LOGITS))
    torch.testing.assert_close(belief.logp, LOGITS.log_softmax(-1).gather(-1, belief.token[..., None])[..., 0])


def test_the_reason_why_kernels_do_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    why_not.cache_clear()
    monkeypatch.setattr("uncode.core.support.triton_support.find_spec", lambda name: object())
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.delenv("CC", raising=False)
    assert why_not() == "triton finds no C compiler (gcc, clang or CC) to launch kernels with"
    why_not.cache_clear()
    monkeypatch.setattr("uncode.core.support.triton_support.find_spec", lambda name: None)
    assert why_not() == "triton is not installed"
    why_not.cache_clear()
    monkeypatch.setattr("uncode.core.support.triton_support.find_spec", lambda name: object())
    monkeypatch.setenv("CC", "cc")
    assert why_not() is None
    why_not.cache_clear()
    monkeypatch.setenv("UNCODE_KERNELS", "plain")
    assert why_not() is not None
    why_not.cache_clear()
    monkeypatch.setenv("UNCODE_KERNELS", "Plain")
    with pytest.raises(UncodeError, match="is 'fused' or 'plain', not 'Plain'"):
        why_not()
    why_not.cache_clear()
