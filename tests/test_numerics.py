"""Numbers that must not go wrong in silence; docs/numerics.md tells the story."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from uncode import Canvas, FrequencyTable, FunctionDenoiser, Sampler, decode, legacy, presets
from uncode.core.belief import Belief
from uncode.core.noise import PhiloxNoise, Purpose, gumbel, philox
from uncode.core.view import Ranking

FLAT = torch.full((64,), 1 / 64)


def content_order(length: int, sampler: Sampler) -> list[int]:
    """Decode a row in which every odd offset is much surer than the even one before it, and see what goes first."""
    logits = torch.zeros(1, length, 64)
    logits[0, :, 1] = torch.where(torch.arange(length) % 2 == 1, 5.0, 0.01)
    model = FunctionDenoiser(lambda tokens: logits, mask_id=0, vocab_size=64)
    canvas = Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=length, mask_id=0)
    return decode(model, canvas, sampler).commit_step[0].tolist()


@pytest.mark.parametrize(("rate", "length"), [(0.25, 1024), (1.0, 128)])
def test_the_order_follows_the_content_at_every_offset(rate: float, length: int) -> None:
    """Of each pair of neighbours the surer one goes first, from the first offset to the last."""
    steps = content_order(length, presets.uncode(frequency=FLAT, rate=rate))
    assert all(steps[i + 1] < steps[i] for i in range(0, length, 2))


@pytest.mark.parametrize(("rate", "length", "first_zero"), [(0.25, 1024, 416), (1.0, 128, 104)])
def test_the_release_loses_the_order_where_its_prior_underflows(rate: float, length: int, first_zero: int) -> None:
    steps = content_order(length, legacy.uncode_release(frequency=FLAT, rate=rate))
    assert all(steps[i + 1] < steps[i] for i in range(0, first_zero - 16, 2))
    assert steps[first_zero:] == list(range(first_zero, length)), "ties go to the lowest position"
    zeros = int((torch.exp(-rate * torch.arange(length, dtype=torch.float32)) == 0).sum())
    assert zeros == length - first_zero
    assert (rate, zeros) in {(0.25, 608), (1.0, 24)}


@pytest.mark.parametrize("proxy", ["confidence", "entropy", "margin"])
def test_the_priors_push_the_same_way_under_every_proxy(proxy: str) -> None:
    """Equal uncertainty: the earlier position and the rarer token come first. Negative entropy times a weight would
    rank both backwards."""
    logits = torch.zeros(1, 4, 5)
    for offset, token in enumerate([1, 2, 1, 2]):
        logits[0, offset, token] = 3.0
    model = FunctionDenoiser(lambda tokens: logits, mask_id=0, vocab_size=5)
    canvas = Canvas.after_prompt([[3]], length=3, mask_id=0)
    frequency = torch.tensor([0.01, 0.9, 0.01, 0.04, 0.04])
    by_place = presets.uncode(proxy=proxy, informativeness=False, rate=0.25)
    assert decode(model, canvas, by_place).commit_step[0].tolist() == [0, 1, 2]
    by_token = presets.uncode(proxy=proxy, frequency=frequency, rate=0.0)
    assert decode(model, canvas, by_token).commit_step[0].tolist() == [0, 2, 1]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_beliefs_are_float32_whatever_the_model(dtype: torch.dtype) -> None:
    belief = Belief.of(torch.randn(2, 3, 50).to(dtype))
    assert {belief.logp.dtype, belief.entropy.dtype, belief.margin.dtype} == {torch.float32}


def test_float64_logits_keep_float64() -> None:
    assert Belief.of(torch.randn(2, 3, 50, dtype=torch.float64)).entropy.dtype == torch.float64


def test_near_certain_positions_do_not_tie() -> None:
    """A softmax in bfloat16 rounds 0.99820, 0.99891 and 0.99934 to 1; one in float32 rounds 1 - 1e-9."""
    gaps = torch.tensor([8.0, 8.5, 9.0, 24.0, 25.0, 40.0])
    logits = torch.stack([gaps, torch.zeros(6), torch.zeros(6)], -1)[None].to(torch.bfloat16)
    assert len(set(logits.softmax(-1)[0, :, 0].tolist())) < 6
    assert len(set(logits.float().softmax(-1)[0, :, 0].tolist())) < 6
    assert len(set(Belief.of(logits).logp[0].tolist())) == 6


@given(st.integers(0, 10**6))
def test_belief_against_float64_softmax(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 5, 37, generator=generator) * float(1 + seed % 13)
    logits[..., 3] = -torch.inf
    token = torch.randint(4, 37, (2, 5), generator=generator)
    p = logits.double().softmax(-1)
    best = p.topk(2, -1).values
    for belief, expected in (
        (Belief.of(logits), best[..., 0].log()),
        (Belief.of(logits, token), p.gather(-1, token[..., None])[..., 0].log()),
    ):
        torch.testing.assert_close(belief.logp.double(), expected, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(belief.entropy.double(), torch.special.entr(p).sum(-1), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(belief.margin.double(), best[..., 0] - best[..., 1], rtol=1e-4, atol=1e-6)
    assert torch.equal(Belief.of(logits).token, logits.argmax(-1))


def test_ties_go_to_the_lowest_position_and_the_lowest_id() -> None:
    model = FunctionDenoiser(lambda tokens: torch.zeros(*tokens.shape, 6), mask_id=0, vocab_size=6)
    canvas = Canvas.after_prompt([[1, 1]], length=300, mask_id=0)
    for sampler in (presets.confidence(), presets.confidence(steps=75), presets.margin(), presets.entropy(steps=10)):
        trace = decode(model, canvas, sampler)
        assert trace.commit_step[0].tolist() == sorted(trace.commit_step[0].tolist())
        assert set(trace.generated[0].tolist()) == {1}


def test_ranking_is_stable() -> None:
    score = torch.tensor([[1.0, 2.0, 2.0, -torch.inf, 2.0, 1.0]])
    ranking = Ranking(score, torch.ones_like(score, dtype=torch.bool))
    assert ranking.order[0].tolist() == [1, 2, 4, 0, 5, 3]
    assert ranking.top(2)[0].tolist() == [False, True, True, False, False, False]
    assert ranking.top(torch.tensor([[9]]))[0].tolist() == [True, True, True, False, True, True]


def test_philox_is_the_published_one() -> None:
    """Known answers of Philox4x32-10 from Random123's kat_vectors."""
    ones = 0xFFFFFFFF
    zero = philox(torch.tensor([0]), (0, 0, 0, 0))
    assert [int(w) for w in zero] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    full = philox(torch.tensor([-1]), (ones, ones, ones, ones))
    assert [int(w) for w in full] == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    pi = philox(torch.tensor([0x299F31D0A4093822]), (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344))
    assert [int(w) for w in pi] == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def test_noise_depends_on_the_row_alone() -> None:
    seeds, steps = torch.tensor([[3], [9]]), torch.tensor([[0], [4]])
    both = PhiloxNoise(seeds, steps)
    alone = PhiloxNoise(seeds[1:], steps[1:])
    offsets = torch.tensor([[5, 6, 7]])
    assert torch.equal(both.positions(Purpose.UNIFORM, offsets)[1:], alone.positions(Purpose.UNIFORM, offsets))
    assert torch.equal(both.tokens(Purpose.TOKEN, offsets, 10)[1:, 2:], alone.tokens(Purpose.TOKEN, offsets[:, 2:], 10))
    assert not torch.equal(both.positions(Purpose.COMMIT, offsets), both.positions(Purpose.ERASE, offsets))
    assert torch.equal(both.tokens(Purpose.TOKEN, offsets, 7), both.tokens(Purpose.TOKEN, offsets, 10)[..., :7])


def test_draws_follow_the_distribution() -> None:
    """Gumbel noise and an argmax draw from the softmax; 40,000 draws, within four standard errors."""
    logits = torch.tensor([0.0, 1.0, 2.0])
    noise = PhiloxNoise(torch.tensor([[1]]), torch.tensor([[0]]))
    uniform = noise.tokens(Purpose.TOKEN, torch.arange(40_000)[None], 3)
    assert uniform.min() > 0 and uniform.max() < 1
    drawn = torch.bincount((logits + gumbel(uniform)).argmax(-1).flatten(), minlength=3) / 40_000
    p = logits.softmax(-1)
    assert bool(((drawn - p).abs() < 4 * (p * (1 - p) / 40_000).sqrt()).all())


def test_bf16_and_float32_models_differ_only_by_their_logits() -> None:
    """The belief of bf16 logits is the belief of the same numbers in float32."""
    logits = torch.randn(1, 9, 30).to(torch.bfloat16)
    low, high = Belief.of(logits), Belief.of(logits.float())
    assert torch.equal(low.entropy, high.entropy) and torch.equal(low.logp, high.logp)


def test_unseen_tokens_count_as_seen_once() -> None:
    table = FrequencyTable(torch.tensor([0, 1, 9]))
    torch.testing.assert_close(table.surprisal().exp(), torch.tensor([10.0, 10.0, 10 / 9], dtype=torch.float64))
    plain = FrequencyTable(torch.tensor([0.0, 0.2, 0.8]))
    torch.testing.assert_close(plain.surprisal().exp(), torch.tensor([5.0, 5.0, 1.25], dtype=torch.float64))
