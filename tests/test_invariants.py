"""The invariants of the design, as properties over the grid of all pieces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests import grid
from tests.checkpoints import like_the_toy
from tests.toy import MASK, ToyDenoiser
from uncode import Canvas, Policy, Sampler, Trace, UncodeError, decode, presets, steps
from uncode.core.denoiser import Denoiser, Layout
from uncode.core.pieces.blocks import BlockSchedule
from uncode.core.pieces.cache import CachePolicy, DualCache, NoCache, Plan, PrefixCache, WindowCache
from uncode.core.pieces.piece import REGISTRY, Piece
from uncode.core.pieces.propose import Proposal
from uncode.core.pieces.remask import Editor, Never
from uncode.core.pieces.score import Confidence, Exp, Score
from uncode.core.pieces.select import Selector
from uncode.core.pieces.stop import Stop
from uncode.engine import Engine, Request
from uncode.samplers.catalog import catalog
from uncode.samplers.legacy import QUIRKS
from uncode.samplers.legacy_pieces import SuppressAfterDraw
from uncode.samplers.presets import PRESETS
from uncode.samplers.resolve import resolve
from uncode.testing.hash_model import HashDenoiser, HashSession

SEEDS = st.integers(0, 7)


@st.composite
def samplers(draw: st.DrawFn) -> Sampler:
    stop = draw(st.sampled_from(grid.STOPS))
    remask, select = draw(st.sampled_from(remaskers_beside(stop)))
    propose = draw(st.sampled_from(grid.PROPOSALS))
    suppresses = isinstance(propose, SuppressAfterDraw)  # it gives proposals probability 0: no logarithms then
    select = select or draw(st.sampled_from(grid.SELECTORS))
    edits = [None] if writes_alone(stop) else [edit for edit in grid.EDITORS if grid.fits(edit, select)]
    policy = Policy(
        score=Exp(Confidence())
        if suppresses
        else draw(st.sampled_from([score for score in grid.SCORES if grid.fits(score, select)])),
        select=select,
        blocks=draw(st.sampled_from(blocks_beside(select))),
        remask=remask,
        stop=stop,
        edit=draw(st.sampled_from(edits)),
    )
    cache, adjust = draw(st.sampled_from(caches_beside(policy))), draw(st.sampled_from(grid.ADJUSTMENTS))
    return Sampler(policy, propose, cache, adjust=adjust)


def writes_alone(stop: Stop) -> bool:
    """Whether no remasker or editor goes beside a stop rule."""
    return stop.sees_beliefs or stop.overwrites


def remaskers_beside(stop: Stop) -> list[Any]:
    """Those that a policy takes beside a stop rule."""
    return [pair for pair in grid.REMASKERS if not (writes_alone(stop) and pair[0].erases)]


def blocks_beside(select: Selector) -> list[BlockSchedule]:
    """Those that a policy takes beside a selector."""
    return [blocks for blocks in grid.BLOCKS if not (blocks.sees_beliefs and select.has_schedule)]


def caches_beside(policy: Policy, caches: Sequence[CachePolicy] = grid.CACHES) -> list[CachePolicy]:
    """Those that the stepper takes beside a policy."""
    stop, terms = policy.stop, policy.score.terms
    reads_block = policy.remask.needs_standing or policy.edit or any(term.reads_committed for term in terms)
    spans = [cache for cache in caches if cache.sees_span or not stop.sees_beliefs]
    spans = [cache for cache in spans if cache.sees_block or not reads_block]
    wide = [one for one in spans if one.follows_masks or not (policy.blocks.slides and one.needs_kv_cache)]
    return [cache for cache in wide if not (stop.reads_committed and cache.needs_kv_cache)]


@st.composite
def canvases(draw: st.DrawFn) -> Canvas:
    """A canvas of one row, with a prompt, a length and given tokens."""
    prompt = draw(st.lists(st.integers(0, 28), min_size=1, max_size=5))
    span = draw(st.lists(st.sampled_from([MASK, MASK, MASK, 7]), min_size=1, max_size=13))
    return Canvas.infill([*prompt, MASK, *span], MASK)


def together(parts: list[Canvas]) -> Canvas:
    heads = [part.tokens[0, : part.start] for part in parts]
    tails = [part.tokens[0, part.start :] for part in parts]
    return Canvas._assemble(heads, tails, MASK, None)


@given(samplers(), canvases(), SEEDS, st.booleans())
def test_invariants_of_one_row(sampler: Sampler, canvas: Canvas, seed: int, is_async: bool) -> None:
    """Given positions stay, a step is a forward and its probes, commits are eligible, erasures ours, no mask left."""
    model, before = ToyDenoiser(seed), canvas
    run = steps(model, before, sampler, seed)
    run.state.lookahead.is_async = is_async
    tokens, probes = before.tokens.clone(), 0
    for count, step in enumerate(run, 1):
        probes += step.probes
        assert model.forwards - count - probes in ((0, 1) if is_async else (0,))  # the next one's may be under way
        was_masked = tokens == MASK
        changed = step.tokens != tokens
        assert not (changed & before.given).any()
        window = before.start + step.offsets.expand_as(step.committed)
        wrote = torch.zeros_like(was_masked).scatter(1, window, step.committed)
        if step.decision.edited is not None:
            edited = torch.zeros_like(was_masked).scatter(1, window, step.decision.edited)
            assert not (edited & (before.given | was_masked)).any(), "an edit fell on what is not the decoder's own"
            wrote = wrote & ~edited
        assert not (wrote & ~was_masked).any(), "a commit fell on a position that was not masked"
        if step.decision.erased is not None:
            erased = torch.zeros_like(was_masked).scatter(1, window, step.decision.erased)
            assert not (erased & before.given).any()
            assert not (erased & was_masked & ~wrote).any(), "an erasure fell on a mask"
        tokens = step.tokens.clone()
    trace = run.trace()
    assert not (trace.tokens == MASK).any()
    assert model.forwards - len(trace) in ((0, 1) if is_async else (0,))  # a stop rule may make one of them useless
    assert torch.equal(trace.tokens[before.given], before.tokens[before.given])
    assert torch.equal(trace.replay(), trace.tokens)
    assert int(trace.committed.sum()) >= int((trace.commit_step >= 0).sum())


@given(samplers(), canvases(), SEEDS)
def test_json_round_trip(sampler: Sampler, canvas: Canvas, seed: int) -> None:
    trace = decode(ToyDenoiser(seed), canvas, sampler, seed)
    again = Trace.from_json(trace.to_json(), frequency=grid.TABLE)
    assert again.to_json() == trace.to_json()
    assert torch.equal(again.replay(), trace.tokens)
    assert again.samplers == trace.samplers
    for line in trace.to_json().splitlines():
        json.loads(line)


@given(samplers())
def test_a_sampler_is_data(sampler: Sampler) -> None:
    plain = json.loads(json.dumps(sampler.to_dict()))
    assert Sampler.from_dict(plain, frequency=lambda name, sha256: grid.TABLE) == sampler


def model_of(kind: str, seed: int) -> Denoiser:
    return ToyDenoiser(seed) if kind == "toy" else like_the_toy(kind, seed)


MODELS = st.sampled_from(["toy", "llada", "dream"])


@given(MODELS, st.lists(st.tuples(samplers(), canvases()), min_size=2, max_size=3), SEEDS)
def test_a_row_alone_is_the_row_in_a_batch(kind: str, rows: list[tuple[Sampler, Canvas]], seed: int) -> None:
    """Whatever the padding and the neighbours' samplers, blocks, lengths and seeds."""
    mixed, parts = [sampler for sampler, _ in rows], [canvas for _, canvas in rows]
    seeds = [seed * 100 + 17 * r for r in range(len(mixed))]
    batch = decode(model_of(kind, seed), together(parts), mixed, seeds)
    for row, (part, sampler) in enumerate(zip(parts, mixed, strict=True)):
        alone = decode(model_of(kind, seed), part, sampler, [seeds[row]])
        length = alone.generated.shape[1]
        assert torch.equal(batch.generated[row, :length], alone.generated[0])
        assert torch.equal(batch.commit_step[row, :length], alone.commit_step[0])
        assert batch.forwards[row] == alone.forwards[0]
        assert batch.probes[row] == alone.probes[0]
        taken = int(alone.steps[0])
        assert torch.equal(batch.committed[row, :taken], alone.committed[0])
        close = {"rtol": 1e-9, "atol": 1e-9, "equal_nan": True}
        for name in ("logp", "entropy", "margin", "score"):
            torch.testing.assert_close(getattr(batch, name)[row, :length], getattr(alone, name)[0], **close)
        torch.testing.assert_close(batch.mean_entropy[row, :taken], alone.mean_entropy[0], **close)
        assert torch.equal(batch.runner_up[row, :length].nan_to_num(-1), alone.runner_up[0].nan_to_num(-1))
        assert torch.equal(batch.window[row, :taken], alone.window[0])
        assert batch.events[row] == alone.events[0]
        assert batch.mean_entropy[row, taken:].isnan().all()


PIECES: list[object] = [
    *grid.SCORES, *grid.SELECTORS, *grid.BLOCKS, *grid.CACHES, *grid.REMASKERS, *grid.PROPOSALS, *grid.STOPS,
    *filter(None, grid.EDITORS),
]  # fmt: skip


def sampler_with(piece: object, random: Random) -> Sampler:
    """The piece with others drawn from the grid around it."""
    stops = [stop for stop in grid.STOPS if isinstance(piece, CachePolicy | Editor | tuple) <= (not writes_alone(stop))]
    stop = piece if isinstance(piece, Stop) else random.choice(stops)
    narrow = isinstance(piece, CachePolicy) and not piece.sees_block
    pairs = [pair for pair in remaskers_beside(stop) if grid.fits(piece, pair[1])]
    pairs = [pair for pair in pairs if not (narrow and pair[0].needs_standing)]
    remask, partner = piece if isinstance(piece, tuple) else random.choice(pairs)
    fits = not isinstance(piece, BlockSchedule) or partner is None or piece in blocks_beside(partner)
    if (isinstance(piece, Selector) and partner is not None) or not fits:
        remask, partner = Never(), None
    proposals = [one for one in grid.PROPOSALS if not (isinstance(piece, Score) and isinstance(one, SuppressAfterDraw))]
    propose = piece if isinstance(piece, Proposal) else random.choice(proposals)
    suppresses = isinstance(propose, SuppressAfterDraw)  # it gives proposals probability 0: no logarithms then
    free = [one for one in grid.SELECTORS if not isinstance(piece, BlockSchedule) or piece in blocks_beside(one)]
    free = [one for one in free if grid.fits(piece, one)]
    select = piece if isinstance(piece, Selector) else partner or random.choice(free)
    is_blind = isinstance(piece, CachePolicy) and piece.needs_kv_cache and not piece.follows_masks
    fitting = [one for one in blocks_beside(select) if not (is_blind and one.slides)]
    scores = [one for one in grid.SCORES if grid.fits(one, select) and not (narrow and one.reads_committed)]
    scores = [Exp(Confidence())] if suppresses else scores
    policy = Policy(
        score=piece if isinstance(piece, Score) else random.choice(scores),
        select=select,
        blocks=piece if isinstance(piece, BlockSchedule) else random.choice(fitting),
        remask=remask,
        stop=stop,
        edit=piece if isinstance(piece, Editor) else None,
    )
    return Sampler(policy, propose, piece if isinstance(piece, CachePolicy) else random.choice(caches_beside(policy)))


@pytest.mark.parametrize("piece", PIECES, ids=repr)
def test_each_piece_is_drawn_three_times(piece: object) -> None:
    """Three rows with the piece beside two with wider blocks, on logits that are NaN where undefined: each as alone."""
    random, model = Random(repr(piece)), HashDenoiser()
    samplers = [sampler_with(piece, random) for _ in range(3)] + [Sampler(Policy(Confidence())), presets.fast_dllm()]
    prompts = [[1 + random.randrange(28) for _ in range(1 + random.randrange(5))] for _ in samplers]
    lengths = [1 + random.randrange(9) for _ in range(3)] + [12, 11]
    canvas = Canvas.after_prompt(prompts, length=lengths, mask_id=MASK)
    batch = decode(model, canvas, samplers, list(range(len(samplers))))
    for row in range(3):
        one = Canvas.after_prompt([prompts[row]], length=lengths[row], mask_id=MASK)
        alone = decode(model, one, samplers[row], [row])
        assert torch.equal(batch.generated[row, : lengths[row]], alone.generated[0])
        assert torch.equal(batch.commit_step[row, : lengths[row]], alone.commit_step[0])
        assert batch.events[row] == alone.events[0]


REFRESHING: list[CachePolicy] = [PrefixCache(refresh=1), DualCache(refresh=1), WindowCache(every=1, prompt_every=1)]


@given(MODELS, samplers(), canvases(), SEEDS, st.sampled_from(REFRESHING))
def test_refreshing_every_step_is_no_cache(
    kind: str, sampler: Sampler, canvas: Canvas, seed: int, cache: CachePolicy
) -> None:
    cache = next(iter(caches_beside(sampler.policy, [cache, PrefixCache(refresh=1)])), NoCache())
    plain = decode(model_of(kind, seed), canvas, replace(sampler, cache=NoCache()), seed)
    cached = decode(model_of(kind, seed), canvas, replace(sampler, cache=cache), seed)
    assert torch.equal(plain.tokens, cached.tokens)
    torch.testing.assert_close(plain.logp, cached.logp, rtol=0, atol=1e-10, equal_nan=True)


@given(samplers(), canvases(), SEEDS)
def test_nothing_changes_the_logits(sampler: Sampler, canvas: Canvas, seed: int) -> None:
    model, kept = ToyDenoiser(seed), []
    session = model.open(1, canvas.tokens.shape[1])
    original = session.logits

    def spy(*args: object) -> torch.Tensor:
        logits = original(*args)  # type: ignore[arg-type]
        kept.append((logits, logits.clone()))
        return logits

    session.logits = spy  # type: ignore[method-assign,assignment]
    model.open = lambda rows, length: session  # type: ignore[method-assign]
    decode(model, canvas, sampler, seed)
    for logits, copy in kept:  # NaN where nothing was computed
        torch.testing.assert_close(logits, copy, rtol=0, atol=0, equal_nan=True)


@given(samplers(), SEEDS)
def test_the_same_seed_gives_the_same_tokens(sampler: Sampler, seed: int) -> None:
    canvas = Canvas.after_prompt([[1, 2, 3], [4, 5]], length=[9, 12], mask_id=MASK)
    first, second = (decode(ToyDenoiser(seed), canvas, sampler, seed) for _ in range(2))
    assert first.to_json() == second.to_json()


def test_the_grid_holds_every_piece() -> None:
    listed: set[str] = set()

    def collect(value: object) -> None:
        if isinstance(value, Piece):
            listed.add(type(value).__name__)
            for part in vars(value).values():
                collect(part)
        elif isinstance(value, list | tuple):
            for part in value:
                collect(part)

    for row in (
        grid.SCORES,
        grid.SELECTORS,
        grid.BLOCKS,
        grid.CACHES,
        grid.REMASKERS,
        grid.PROPOSALS,
        grid.STOPS,
        grid.EDITORS,
        grid.ADJUSTMENTS,
    ):
        collect(row)
    ours = {name for name, cls in REGISTRY.items() if cls.__module__.startswith("uncode.")}
    kinds = {name for name, cls in REGISTRY.items() if cls.__dict__.get("kind") is True}
    elsewhere = {"BlockCache"}  # of block-causal models alone: tests/backbones/test_block_causal.py
    assert ours - kinds - {"Policy", "Sampler"} - elsewhere == listed


def preset_in_blocks(name: str) -> Sampler:
    """The preset with short blocks."""
    has_number = any(option.name == "blocks" for option in catalog()[name].options)
    options = {"blocks": 3} if has_number else {"block_length": 5}
    return resolve(name, table=grid.TABLE, options=options)


class FailsOnce(HashDenoiser):
    """Its fourth forward runs out of memory, so that the engine starts its rows again."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def open(self, rows: int, length: int) -> HashSession:
        return FailsOnceSession(self)


class FailsOnceSession(HashSession):
    denoiser: FailsOnce

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        self.denoiser.calls += 1
        if self.denoiser.calls == 4:
            raise torch.OutOfMemoryError("no memory")
        return super().logits(tokens, layout, plan)


@pytest.mark.parametrize("name", [*PRESETS, *QUIRKS])
def test_every_preset_keeps_the_invariants(name: str) -> None:
    """Rows that join and leave a running batch, and start again after a forward that failed, are the rows alone; a
    cache that is refreshed every step is none, or is refused; a trace is read back as it was written."""
    model, sampler = HashDenoiser(), preset_in_blocks(name)
    rows = [([1, 2, 3], 12), ([4], 7), ([5, 6], 9)]
    canvases = [Canvas.after_prompt([prompt], length=length, mask_id=MASK) for prompt, length in rows]
    requests = [Request(canvas, sampler, seed, key=seed) for seed, canvas in enumerate(canvases)]
    beside = Request(canvases[0], presets.fast_dllm(block_length=11, cache="dual"), 7)
    plain = dict[int, Trace]()
    found_rows = [
        result
        for each in (model, FailsOnce())
        for result in Engine(each, max_rows=2).run([requests[0], beside, *requests[1:]])
    ]
    assert len(found_rows) == 2 * (len(requests) + 1)
    for result in found_rows:
        if result.request.key is None:
            continue
        alone = plain[result.request.key] = decode(model, result.request.canvas, sampler, [result.request.key])
        found = result.trace
        assert found is not None and torch.equal(found.generated, alone.generated)
        assert torch.equal(found.commit_step, alone.commit_step) and torch.equal(found.forwards, alone.forwards)
        assert (found.events, found.probes) == (alone.events, alone.probes)
        assert Trace.from_json(alone.to_json(), frequency=grid.TABLE).to_json() == alone.to_json()
    for cache in REFRESHING:
        if cache in caches_beside(sampler.policy, REFRESHING):
            cached = decode(model, canvases[0], sampler.caching(cache), 0)
            assert torch.equal(cached.commit_step, plain[0].commit_step)
        else:
            with pytest.raises(UncodeError, match="use another cache"):
                decode(model, canvases[0], sampler.caching(cache), 0)


@pytest.mark.parametrize(("score", "select"), grid.SCORED_SELECTORS, ids=grid.short_name)
def test_the_grid_of_scores_and_selectors(score: object, select: object) -> None:
    """Every score with every selector, in blocks; four unequal rows, two with a cache and two without."""
    canvas = Canvas.after_prompt([[1, 2, 3], [4], [5, 6], [7]], length=[12, 7, 10, 8], mask_id=MASK)
    policy = Policy(score, select, grid.BLOCKS[2])  # type: ignore[arg-type]
    mixed = [Sampler(policy, cache=cache) for cache in (NoCache(), NoCache(), DualCache(), DualCache())]
    trace = decode(ToyDenoiser(1), canvas, mixed)
    assert not (trace.tokens == MASK).any()
