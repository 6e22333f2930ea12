"""Block-causal models: a cache that changes nothing, blocks that count from a row's first token, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

import uncode
from tests import grid
from tests.checkpoints import DIALECTS, Published, checkpoint, like_the_toy, save, tokens
from tests.covering import covering
from tests.toy import MASK
from uncode import Canvas, Guided, Policy, Sampler, UncodeError, decode, log_likelihood, presets
from uncode.core.pieces.blocks import Blocks, GrowingBlocks, SeededBlocks, SlidingWindow
from uncode.core.pieces.cache import BlockCache, CachePolicy, DualCache, NoCache, PrefixCache, WindowCache
from uncode.core.pieces.score import Confidence
from uncode.core.pieces.select import Even, Threshold, TopK
from uncode.core.pieces.stop import AfterEos
from uncode.core.stepper.state import State
from uncode.engine import Engine, Request
from uncode.samplers.resolve import for_model, resolve

BLOCK_CAUSAL = ["stable_diffcoder", "sdar", "dream_reasoner", "fast_dllm_v2", "a2d_bd3lm", "nemotron", "llada2"]
EXACT: list[CachePolicy] = [BlockCache(), PrefixCache(), DualCache(), PrefixCache(refresh=1), DualCache(refresh=2)]
SAMPLERS = {
    "one token a step": presets.left_to_right(block_length=4),
    "a schedule": Sampler(Policy(Confidence(), TopK(Even(9)), Blocks(length=4))),
    "a threshold": presets.fast_dllm(threshold=0.3, block_length=4, cache="none"),
    "sub-blocks": presets.confidence(block_length=2),
    "draws": presets.confidence(temperature=0.8),
    "a position prior": presets.uncode(frequency=grid.TABLE, rate=0.2),
    "draft steps": presets.confidence(draft_steps=3),
    "the first alone": Sampler(Policy(Confidence(), Threshold(0.3), SeededBlocks(2, 4))),
    "takes back": Sampler(Policy(Confidence(), grid.REMASKERS[1][1], remask=grid.REMASKERS[1][0])),  # type: ignore[arg-type]
    "stops early": presets.fast_dllm(threshold=0.3, block_length=4, cache="none").stopping(AfterEos()),
}


def canvas_of(*rows: tuple[int, int]) -> Canvas:
    prompts = [(tokens(32, 40 + n, 1, max(n, 1)) % 28)[0, :n].tolist() for n, _ in rows]
    return Canvas.after_prompt(prompts, length=[length for _, length in rows], mask_id=MASK)


UNEQUAL = ((3, 13), (4, 8), (9, 16), (1, 3), (14, 10))


@pytest.mark.parametrize(("dialect", "name"), covering(BLOCK_CAUSAL, SAMPLERS))
def test_the_cache_changes_nothing_and_neither_do_other_rows(dialect: str, name: str) -> None:
    """The prefix and dual caches are exact there too; refreshed at every step they are none.

    Each sampler with one of the models, and with all of them under `make verify`.
    """
    model = like_the_toy(dialect, 2)
    sampler = for_model(SAMPLERS[name], model, grid.TABLE)
    assert sampler.cache == BlockCache()
    whole = decode(model, canvas_of(*UNEQUAL), sampler, seed=[7, 8, 9, 10, 11])
    for cache in [*EXACT, NoCache()]:
        if sampler.draft_steps > 1 and not cache.stores_once:
            continue
        found = decode(model, canvas_of(*UNEQUAL), sampler.caching(cache), seed=[7, 8, 9, 10, 11])
        assert torch.equal(found.tokens, whole.tokens), cache
        assert torch.equal(found.commit_step, whole.commit_step), cache
        torch.testing.assert_close(found.logp, whole.logp, rtol=0, atol=1e-10, equal_nan=True)
    for row, (prompt, length) in enumerate(UNEQUAL):
        alone = decode(model, canvas_of((prompt, length)), sampler, seed=7 + row)
        assert torch.equal(alone.generated[0], whole.generated[row, :length])
        assert torch.equal(alone.window[0], whole.window[row, : alone.window.shape[1]])
        torch.testing.assert_close(alone.logp[0], whole.logp[row, :length], rtol=0, atol=1e-10, equal_nan=True)


@pytest.mark.parametrize("name", [name for name in presets.__all__ if name not in ("adablock", "prophet", "saber")])
def test_every_preset_is_exact_in_the_blocks_of_the_model(name: str) -> None:
    """All but those that choose or reopen blocks, or read beliefs behind the open one."""
    model = like_the_toy("fast_dllm_v2" if len(name) % 2 else "sdar", 2)
    sampler = resolve(name, model, grid.TABLE, {"block_length": 4})
    assert sampler.cache == BlockCache()
    canvas = canvas_of((6, 7), (3, 9))
    found, wanted = (decode(model, canvas, one, seed=3) for one in (sampler, sampler.caching(PrefixCache(refresh=1))))
    assert torch.equal(found.tokens, wanted.tokens) and torch.equal(found.commit_step, wanted.commit_step)
    torch.testing.assert_close(found.logp, wanted.logp, rtol=0, atol=1e-10, equal_nan=True)


@pytest.mark.parametrize("dialect", ["sdar", "fast_dllm_v2"])
def test_float32_with_and_without_a_cache(dialect: str, tmp_path: Path) -> None:
    model = uncode.load(checkpoint(tmp_path, dialect, 0), device="cpu")
    canvas = Canvas.after_prompt([[1, 2, 3, 4, 5], [6, 7]], length=[15, 22], mask_id=model.mask_id)
    cached, plain = (
        decode(model, canvas, presets.confidence(block_length=4).caching(cache))
        for cache in (BlockCache(), PrefixCache(refresh=1))
    )
    assert torch.equal(cached.tokens, plain.tokens)
    torch.testing.assert_close(cached.logp, plain.logp, rtol=0, atol=1e-5, equal_nan=True)


def test_a_step_computes_the_open_block_and_once_the_one_before() -> None:
    """Blocks of four count from the first token: a prompt of six fills the half of the second one."""
    model = like_the_toy("sdar", 2)
    trace = decode(model, canvas_of((6, 9)), presets.confidence(block_length=4))
    assert trace.window[0].tolist() == [[0, 8], [4, 8], *[[4, 12], *[[8, 12]] * 3], *[[8, 15], *[[12, 15]] * 2]]
    last = trace.commit_step[0].tolist()
    assert max(last[:2]) < min(last[2:6]) and max(last[2:6]) < min(last[6:])


def test_blocks_that_count_from_the_answer() -> None:
    """From the first mask of a row, also beside rows whose answers begin earlier."""
    model = like_the_toy("a2d_bd3lm", 2)
    sampler = presets.confidence(block_length=4)
    trace = decode(model, canvas_of((6, 6)), sampler)
    assert trace.window[0].tolist() == [[0, 10], *[[6, 10]] * 3, [6, 12], [10, 12]]
    rows = [[1, 2, 3, MASK, MASK, MASK, MASK, MASK, MASK], [1, 2, 3, 4, 5, MASK, 6, MASK, MASK, MASK]]
    both = decode(model, Canvas.infill(rows, MASK), sampler)
    for number, row in enumerate(rows):
        alone = decode(model, Canvas.infill([row], MASK), sampler)
        assert torch.equal(alone.rows[0], both.rows[number])
        assert torch.equal(alone.window[0], both.window[number, : alone.window.shape[1]])


def test_given_tokens_inside_the_answer() -> None:
    """A block without masks is skipped, and computed with the next one that has some."""
    model = like_the_toy("sdar", 2)
    row = [1, 2, 3, 4, 5, MASK, MASK, 8, *range(9, 17), MASK, 18, MASK, MASK]
    canvas = Canvas.infill([row], MASK)
    traces = [
        decode(model, canvas, presets.confidence(block_length=4).caching(cache))
        for cache in (BlockCache(), PrefixCache(refresh=1))
    ]
    assert traces[0].window[0].tolist() == [[0, 8], [4, 8], [4, 20], [16, 20], [16, 20]]
    assert torch.equal(traces[0].tokens, traces[1].tokens)
    torch.testing.assert_close(traces[0].logp, traces[1].logp, rtol=0, atol=1e-10, equal_nan=True)


@pytest.mark.parametrize("dialect", ["sdar", "fast_dllm_v2"])
def test_rows_join_and_leave_while_others_are_decoded(dialect: str) -> None:
    model = like_the_toy(dialect, 2)
    sampler = for_model(presets.fast_dllm(threshold=0.3, cache="none", block_length=4), model)
    rows = [(3, 9), (12, 14), (5, 6), (1, 17), (9, 4)]
    engine = Engine(model, max_rows=3)
    results = list(engine.run(Request(canvas_of(row), sampler, number) for number, row in enumerate(rows)))
    assert len(results) == len(rows)
    for result in results:
        alone = decode(model, result.request.canvas, sampler, seed=result.request.seed)
        assert result.trace is not None and torch.equal(result.trace.tokens, alone.tokens)
        assert torch.equal(result.trace.window, alone.window)


def test_guidance_sees_blocks_too() -> None:
    model = Guided(like_the_toy("sdar", 2), 0.5)
    assert model.block_length == 4
    cached, plain = (
        decode(model, canvas_of((3, 9), (8, 6)), presets.confidence(block_length=4).caching(cache))
        for cache in (BlockCache(), PrefixCache(refresh=1))
    )
    assert torch.equal(cached.tokens, plain.tokens)


def test_the_likelihood_is_the_sum_over_blocks() -> None:
    """Each given the finished ones: what stands in a later block changes nothing."""
    model = like_the_toy("sdar", 2)
    from_answer = like_the_toy("a2d_bd3lm", 2)
    both = (log_likelihood(from_answer, [1, 2], ids, method="exact") for ids in ([3, 4, 5, 6], [3, 4, 5, 6, 7]))
    alone = log_likelihood(from_answer, [1, 2, 3, 4, 5, 6], [7], method="exact")
    assert next(both) + alone == pytest.approx(next(both), abs=1e-9)
    prompt, answer = [1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12, 13]
    parts = [(prompt, answer[:2]), ([*prompt, *answer[:2]], answer[2:6]), ([*prompt, *answer[:6]], answer[6:])]
    for options in ({"method": "exact"}, {"samples": 16}):
        whole = log_likelihood(model, prompt, answer, **options)
        assert whole == pytest.approx(sum(log_likelihood(model, *part, **options) for part in parts), abs=1e-9)


@pytest.mark.parametrize(
    "blocks", [Blocks(), Blocks(count=2), Blocks(length=3), Blocks(length=8), GrowingBlocks(length=4), SlidingWindow()]
)
def test_other_blocks_are_refused(blocks: Any) -> None:
    sampler = Sampler(Policy(Confidence(), Threshold(0.5), blocks))
    with pytest.raises(UncodeError, match=r"fills blocks of 4 tokens one by one.*set `block_length=4`"):
        State(like_the_toy("sdar", 2)).add(canvas_of((3, 8)), sampler)


def test_other_caches_are_refused() -> None:
    sampler = Sampler(Policy(Confidence(), Threshold(0.5), Blocks(length=4)), cache=WindowCache())
    with pytest.raises(UncodeError, match="the cache of this block-causal model is exact"):
        State(like_the_toy("sdar", 2)).add(canvas_of((3, 8)), sampler)
    with pytest.raises(UncodeError, match="BlockCache is for block-causal models, and this model sees all"):
        State(like_the_toy("llada", 2)).add(canvas_of((3, 8)), sampler.caching(BlockCache()))


def test_a_canvas_for_which_queries_would_be_scaled_is_refused() -> None:
    """Nemotron-Labs-Diffusion multiplies them by more than 1 beyond its original context."""
    model = like_the_toy("nemotron", 2)
    with pytest.raises(UncodeError, match=r"a canvas of 70 tokens .*: use one of at most 64"):
        decode(model, canvas_of((6, 64)), presets.confidence())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mscale": 0.5}, "has mscale=0.5; uncode runs mscale=1.0 only"),
        ({"mscale": None}, "has no 'mscale'"),  # YaRN then scales queries and keys
        ({"mscale_all_dim": None}, "has no 'mscale_all_dim'"),
        ({"attention_factor": 1.2}, "has attention_factor=1.2"),
        ({"truncate": False}, "has truncate=False"),
    ],
)
def test_other_kinds_of_yarn_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    config, weights = DIALECTS["nemotron"]
    made = config(0)
    folder = save(tmp_path, made | {"rope_parameters": made["rope_parameters"] | changes}, weights(made, 0))
    with pytest.raises(UncodeError, match=message):
        uncode.load(folder, device="cpu")


def test_a_sampler_without_blocks_gets_those_of_the_model() -> None:
    model = like_the_toy("sdar", 2)
    sampler = for_model(presets.confidence(), model)
    assert sampler.policy.blocks == Blocks(length=4) and sampler.cache == BlockCache()
    assert for_model(presets.confidence(), like_the_toy("llada", 2)) == presets.confidence()
    chosen = presets.confidence(cache="dual", block_length=2)
    assert for_model(chosen, model) == chosen


# -- loading -------------------------------------------------------------------------------------


def test_the_length_of_the_blocks(tmp_path: Path) -> None:
    """SDAR's config.json does not say it; the name of a checkpoint may."""
    config, weights = DIALECTS["sdar"]
    silent = {key: value for key, value in config(0).items() if key != "block_length"}
    for name, length in (("SDAR-8B-Chat", 4), ("SDAR-8B-Chat-b16", 16)):
        model = uncode.load(save(tmp_path / name, silent, weights(silent, 0)), device="cpu")
        assert model.block_length == length
    assert uncode.wrap(Published(silent | {"block_size": 8}, weights(silent, 0))).block_length == 8


def test_a_norm_of_queries_that_is_missing(tmp_path: Path) -> None:
    config, weights = DIALECTS["sdar"]
    without = {name: t for name, t in weights(config(0), 0).items() if "_norm" not in name.split(".")[-2][:6]}
    with pytest.raises(UncodeError, match=r"missing: model\.layers\.0\.self_attn\.k_norm"):
        uncode.load(save(tmp_path, config(0), without), device="cpu")


# -- a mask id that the checkpoint does not say ----------------------------------------------------


@pytest.fixture
def silent(tmp_path: Path) -> Path:
    """An iLLaDA that does not say its mask id."""
    config, weights = DIALECTS["illada"]
    made = {key: value for key, value in config(0).items() if key != "mask_token_id"} | {"eos_token_id": 2}
    return save(tmp_path / "silent", made, weights(made, 0))


def tokenizer_in(folder: Path, fifth: str, **special: str) -> None:
    words = {name: at for at, name in enumerate(["a", "b", "<eos>", "c", "d", fifth, "e"])}
    kind: Any = PreTrainedTokenizerFast
    kind(tokenizer_object=Tokenizer(WordLevel(words, unk_token="a")), eos_token="<eos>", **special).save_pretrained(
        folder
    )


def test_a_first_forward_that_proposes_the_mask_contradicts_it(silent: Path) -> None:
    canvas = Canvas.after_prompt([[1, 3, 4]], length=8, mask_id=5)
    model: Any = uncode.load(silent, device="cpu")
    assert model.mask_id == 5 and model.is_mask_assumed
    decode(model, canvas, presets.confidence())
    assert not model.is_mask_assumed
    wrong: Any = uncode.load(silent, device="cpu")
    with torch.no_grad():
        wrong.network.norm.weight.zero_()  # all logits are equal, and the first of them wins
        wrong.network.norm.weight[0] = 1
        wrong.network.head.weight.zero_()
        wrong.network.head.weight[5, 0], wrong.network.head.weight[6, 0] = 9, -9
    wrong.network.embed.weight[:, 0] = 50
    with pytest.raises(UncodeError, match=r"proposes token 5 for 8 of 8 masks.*5 is from README\.md of ML-GSAI/LLaDA"):
        decode(wrong, canvas, presets.confidence())


def test_the_tokenizer_must_call_it_a_mask(silent: Path) -> None:
    tokenizer_in(silent, "<[MASK]>")
    assert uncode.load(silent, device="cpu").mask_id == 5
    tokenizer_in(silent, "word")
    with pytest.raises(UncodeError, match=r"names no mask_token_id, and token 5 of the tokenizer is 'word'.*README"):
        uncode.load(silent, device="cpu")
    tokenizer_in(silent, "word", mask_token="e")
    said: Any = uncode.load(silent, device="cpu")
    assert said.mask_id == 6 and not said.is_mask_assumed
