"""Draft steps: fewer forwards, the same tokens."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests import grid
from tests.covering import covering
from tests.test_invariants import MODELS, SEEDS, canvases, model_of, together
from tests.toy import MASK, VOCAB, ToyDenoiser, ToyNetwork
from uncode import Canvas, FunctionDenoiser, Policy, Sampler, UncodeError, decode, presets, steps
from uncode.core.pieces.blocks import Blocks, GrowingBlocks
from uncode.core.pieces.cache import CachePolicy, DualCache, NoCache, PrefixCache
from uncode.core.pieces.propose import Credit, Greedy, Sample
from uncode.core.pieces.remask import Overwrite
from uncode.core.pieces.score import Confidence, Score, Uniform
from uncode.core.pieces.select import Even, Exactly, TopK
from uncode.core.pieces.stop import AfterEos, AtTheEnd, WhenAnswerIsClear
from uncode.engine import Engine, Request
from uncode.samplers.presets import PRESETS
from uncode.samplers.resolve import resolve
from uncode.testing.hash_model import HashDenoiser


def takes_drafts(name: str) -> bool:
    try:
        return resolve(name, table=grid.TABLE, options={"draft_steps": 2}).draft_steps == 2
    except UncodeError:
        return False


NAMES = [name for name in PRESETS if takes_drafts(name)]
CACHES = [NoCache(), NoCache(), PrefixCache(), DualCache()]
COUNTS = st.integers(2, 5)


@st.composite
def samplers(draw: st.DrawFn) -> Sampler:
    """A preset that takes draft steps, or pieces of the grid, with any blocks, cache and stop rule."""
    scores = [score for score in grid.SCORES if not any(piece.draws for piece in score.pieces())]
    score, select = draw(st.sampled_from(scores)), draw(st.sampled_from([TopK(Even()), TopK(Exactly(1))]))
    made = Sampler(Policy(score, select), draw(st.sampled_from([Greedy(), Greedy(("eos", 4)), Sample((), 0.0, 3)])))
    made = draw(st.sampled_from([made, *(resolve(name, table=grid.TABLE) for name in NAMES)]))
    blocks = draw(st.sampled_from([Blocks(), Blocks(count=3), Blocks(length=5), GrowingBlocks(length=4)]))
    policy = replace(made.policy, blocks=blocks, stop=draw(st.sampled_from([AtTheEnd(), AfterEos()])))
    return replace(made, policy=policy, cache=draw(st.sampled_from(CACHES)))


def test_these_presets_take_draft_steps() -> None:
    known = ["confidence", "entropy", "margin", "left_to_right", "semi_ar", "uncode", "entropy_gate"]
    assert [*known, "certainty_density", "eoser"] == NAMES


@given(MODELS, samplers(), canvases(), SEEDS, COUNTS, st.booleans())
def test_the_tokens_are_those_of_single_steps(
    kind: str, sampler: Sampler, canvas: Canvas, seed: int, count: int, is_async: bool
) -> None:
    """And so is what is recorded of each; a step is one forward."""
    model, observe = model_of(kind, seed), "span" if sampler.cache.sees_span and seed % 2 else "open"
    single = decode(model, canvas, sampler, observe=observe)
    before = getattr(model, "forwards", 0)
    run = steps(model, canvas, replace(sampler, draft_steps=count), observe=observe)
    run.state.lookahead.is_async = is_async
    masks = [int((step.tokens == MASK).sum()) for step in run]
    several = run.trace()
    assert several.tokens.equal(single.tokens)
    assert len(masks) == len(several) <= len(single)
    if kind == "toy":  # a stop rule may make one useless that was launched before the host knew
        assert model.forwards - before - len(several) in ((0, 1) if is_async else (0,))  # type: ignore[attr-defined]
    assert several.committed.sum() == single.committed.sum()
    assert several.committed[0].min() >= 1 and several.committed[0].max() <= count
    close = {"rtol": 1e-9, "atol": 1e-9, "equal_nan": True}
    for name in ("logp", "entropy", "margin", "score"):
        torch.testing.assert_close(getattr(several, name), getattr(single, name), **close)
    assert several.replay().equal(several.tokens)


@given(MODELS, st.lists(st.tuples(samplers(), canvases(), st.integers(1, 4)), min_size=2, max_size=3), SEEDS)
def test_a_row_alone_is_the_row_in_a_batch(kind: str, rows: list[tuple[Sampler, Canvas, int]], seed: int) -> None:
    """Beside rows with other blocks, lengths and numbers of steps, some without drafts."""
    mixed = [replace(sampler, draft_steps=count) for sampler, _, count in rows]
    batch = decode(model_of(kind, seed), together([canvas for _, canvas, _ in rows]), mixed)
    for row, (_, canvas, _) in enumerate(rows):
        alone = decode(model_of(kind, seed), canvas, mixed[row])
        length = alone.generated.shape[1]
        assert batch.generated[row, :length].equal(alone.generated[0])
        assert batch.commit_step[row, :length].equal(alone.commit_step[0])
        assert batch.forwards[row] == alone.forwards[0]
        torch.testing.assert_close(batch.logp[row, :length], alone.logp[0], rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize(("name", "cache"), covering(NAMES, CACHES[1:]))
def test_rows_that_join_and_leave_are_the_rows_alone(name: str, cache: CachePolicy) -> None:
    model = HashDenoiser()
    single = resolve(name, table=grid.TABLE, options={"block_length": 5}).caching(cache).stopping(AfterEos())
    sizes, counts = ((3, 12), (1, 7), (2, 9), (5, 11)), (3, 1, 3, 3)
    canvases = [Canvas.after_prompt([[1] * width], length, MASK) for width, length in sizes]
    requests = [
        Request(canvas, replace(single, draft_steps=count), key=key)
        for key, (canvas, count) in enumerate(zip(canvases, counts, strict=True))
    ]
    for result in Engine(model, max_rows=2).run(requests):
        canvas = canvases[result.request.key]
        assert result.trace.tokens.equal(decode(model, canvas, single).tokens)
        alone = decode(model, canvas, result.request.sampler)
        assert result.trace.forwards.equal(alone.forwards) and result.trace.commit_step.equal(alone.commit_step)


def test_a_model_that_never_changes_its_mind_fills_as_many_positions_a_forward() -> None:
    network = ToyNetwork(1)
    model = FunctionDenoiser(lambda tokens: network(torch.zeros_like(tokens)), mask_id=MASK, vocab_size=VOCAB)
    trace = decode(model, Canvas.after_prompt([[1, 2]], 17, MASK), presets.confidence(draft_steps=4))
    assert trace.committed[0].tolist() == [1, 4, 4, 4, 4]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"select": TopK(Even(5))}, "TopK may commit more than one token a step"),
        ({"edit": Overwrite(0.3, 2)}, "Overwrite changes tokens that were written"),
        ({"stop": WhenAnswerIsClear()}, "WhenAnswerIsClear ends a row by its beliefs"),
        ({"blocks": grid.BLOCKS[-1], "select": grid.SELECTORS[4]}, "Threshold may commit more"),
        ({"score": Confidence() + Uniform()}, "Uniform draws at random"),
        ({"propose": Sample((), 0.5)}, "Sample draws at random"),
        ({"propose": Credit()}, "Credit remembers earlier steps"),
        ({"cache": DualCache(refresh=4)}, "DualCache stores keys and values more than once a block"),
    ],
)
def test_what_cannot_be_foreseen_is_refused(change: dict[str, object], why: str) -> None:
    sampler = presets.confidence()
    parts = {name: change[name] for name in ("propose", "cache") if name in change}
    policy = replace(sampler.policy, **{name: part for name, part in change.items() if name not in parts})
    with pytest.raises(UncodeError, match=rf"^draft_steps=3 needs steps .*, and {why}.*: set it to 1, or change"):
        replace(sampler, policy=policy, draft_steps=3, **parts)
    with pytest.raises(UncodeError, match="draft_steps must be from 1 to 64, not 0"):
        replace(sampler, draft_steps=0)


def test_a_model_that_copies_no_kv_cache_is_refused() -> None:
    class Plain(HashDenoiser):
        copies_kv_cache = False

    canvas, sampler = Canvas.after_prompt([[1, 2]], 8, MASK), presets.semi_ar(blocks=2, draft_steps=2)
    assert len(decode(Plain(), canvas, sampler)) <= 8
    with pytest.raises(UncodeError, match="copy no KV cache, which DualCache with draft_steps needs"):
        decode(Plain(), canvas, sampler.caching(DualCache()))


def test_a_sampler_with_draft_steps_is_data() -> None:
    several, single = presets.confidence(draft_steps=4), presets.confidence()
    assert Sampler.from_toml(several.to_toml()) == several != single
    assert "draft_steps" not in single.to_toml()
    assert resolve(single, options={"draft_steps": 4}) == several


@pytest.mark.parametrize("score", grid.SCORES, ids=repr)
def test_a_score_that_reads_the_noise_says_so(score: Score) -> None:
    canvas, sampler = Canvas.after_prompt([[1, 2, 3]], 12, MASK), Sampler(Policy(score, TopK(Exactly(1))))
    first, second = (decode(ToyDenoiser(1), canvas, sampler, seed).commit_step for seed in (1, 2))
    assert any(piece.draws for piece in score.pieces()) is not first.equal(second)
