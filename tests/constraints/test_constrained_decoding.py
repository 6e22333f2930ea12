"""Constraints in the stepper: whatever a sampler is made of, every finished row is accepted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from tests import grid
from tests.constraints.vocabularies import ALPHABET, model
from tests.test_invariants import SEEDS, blocks_beside, caches_beside, preset_in_blocks, samplers
from uncode import Canvas, FunctionDenoiser, Policy, Sampler, Stalled, Trace, UncodeError, constraint, decode, steps
from uncode.core.constraint import Constraint
from uncode.core.denoiser import Denoiser
from uncode.core.pieces.cache import DualCache
from uncode.core.pieces.propose import Greedy, Sample
from uncode.core.pieces.score import Confidence
from uncode.core.pieces.select import Exactly, Threshold, TopK
from uncode.core.pieces.stop import AfterEos, FromFirstEos, Stop
from uncode.core.stepper.state import State
from uncode.engine import Engine, Request
from uncode.samplers.legacy import QUIRKS
from uncode.samplers.presets import PRESETS
from uncode.testing.hash_model import HashDenoiser

KINDS = st.sampled_from(["texts", "words", "bytes"])
GRID_TOKENS = 28
"""With the mask and the EOS tokens as many as the grid's frequency table has."""
EVERYTHING = r"[\s\S]*"


def of_parts(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        several.map(lambda parts: f"(?:{''.join(parts)})"),
        several.map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from("*+?")).map(lambda found: f"(?:{found[0]}){found[1]}"),
        st.tuples(inner, st.integers(0, 2), st.integers(2, 5)).map(lambda n: f"(?:{n[0]}){{{n[1]},{n[2]}}}"),
    )


LETTERS = [*map(re.escape, ALPHABET), "[ab]", "[^a]", ".", r"\d", r"\S", "[a-z]", "(?:é|日)"]
EXPRESSIONS = st.recursive(st.sampled_from(LETTERS), of_parts, max_leaves=5)


def accepted(trace: Trace, denoiser: Denoiser, expressions: list[str]) -> bool:
    """Whether Python itself accepts each row's text."""
    texts = trace.texts(denoiser.tokenizer)
    return all(re.fullmatch(one, text) for one, text in zip(expressions, texts, strict=True))


def canvas_of(denoiser: Denoiser, length: int, prompts: int = 1) -> Canvas:
    return Canvas.after_prompt([[1, 2, 3], [4], [5, 6]][:prompts], length=length, mask_id=denoiser.mask_id)


def tried(run: Callable[[], Trace]) -> Trace:
    """The trace; a decode that is refused because no completion fits is no example."""
    try:
        return run()
    except UncodeError as error:
        if not any(
            reason in str(error) for reason in ("that its constraint accepts", "accepts no text", "the constraint ")
        ):
            raise
    return assume(False)  # type: ignore[return-value]


@given(samplers(), EXPRESSIONS, KINDS, SEEDS, st.integers(1, 14))
def test_whatever_the_sampler_a_row_is_accepted(s: Sampler, found: str, kind: str, seed: int, length: int) -> None:
    """Every piece of the grid; a row without a constraint beside it is the row alone, and so is the row itself."""
    denoiser = model(kind, seed % 2, GRID_TOKENS)
    trace = tried(lambda: decode(denoiser, canvas_of(denoiser, length, 2), s, seed, [constraint(regex=found), None]))
    alone = decode(denoiser, canvas_of(denoiser, length), s, seed, constraint(regex=found))
    free = Canvas.after_prompt([[4]], length=length, mask_id=denoiser.mask_id)
    assert accepted(alone, denoiser, [found])
    assert trace.rows[0].equal(alone.rows[0])
    assert trace.rows[1].equal(decode(denoiser, free, s, seed + 1).rows[0])
    assert trace.replay().equal(trace.tokens)


@pytest.mark.parametrize("name", [*PRESETS, *QUIRKS])
@pytest.mark.parametrize("kind", ["bytes", pytest.param("words", marks=pytest.mark.slow)])
def test_every_preset(name: str, kind: str) -> None:
    denoiser, found = model(kind, 1, GRID_TOKENS), [r"(?:[ab1 ]+é)+\n?", ".{1,9}-", r"(?:日|a| )*1"]
    rules = [constraint(regex=one) for one in found]
    run = lambda: decode(denoiser, canvas_of(denoiser, 12, 3), preset_in_blocks(name), 3, rules)  # noqa: E731
    if name == "legacy.llada_eos":  # it removes EOS after the draw, so it cannot end a text before its span
        with pytest.raises(Stalled, match="no token that its constraint allows"):
            run()
    else:
        assert accepted(run(), denoiser, found)


@given(EXPRESSIONS, KINDS, st.sampled_from([100, 300, 1_000, 5_000]), SEEDS, st.integers(1, 40))
def test_vocabularies_of_all_sizes(found: str, kind: str, size: int, seed: int, length: int) -> None:
    denoiser, sampler = model(kind, seed % 2, size), Sampler(Policy(Confidence(), Threshold(0.2)), cache=DualCache())
    run = lambda: decode(denoiser, canvas_of(denoiser, length), sampler, seed, constraint(regex=found))  # noqa: E731
    assert accepted(tried(run), denoiser, [found])


@st.composite
def samplers_without_eos(draw: st.DrawFn) -> Sampler:
    """For a model that has none: what names EOS tokens needs one."""
    select = draw(st.sampled_from(grid.SELECTORS))
    edit = draw(st.sampled_from([one for one in grid.EDITORS if grid.fits(one, select)]))
    remask = draw(st.sampled_from([one for one, with_it in grid.REMASKERS if with_it is None]))
    policy = Policy(Confidence(), select, draw(st.sampled_from(blocks_beside(select))), remask=remask, edit=edit)
    return Sampler(
        policy, draw(st.sampled_from([Greedy(), Sample((), 0.7)])), draw(st.sampled_from(caches_beside(policy)))
    )


@given(samplers_without_eos(), SEEDS, st.integers(1, 14))
def test_a_constraint_that_accepts_everything_changes_nothing(s: Sampler, seed: int, length: int) -> None:
    """Of a model whose tokens are all texts. Of any other, special tokens and what follows EOS are no text."""
    denoiser = model("texts", seed % 2, GRID_TOKENS, has_eos=False)
    canvas, everything = canvas_of(denoiser, length, 2), constraint(regex=EVERYTHING)
    free, held = (decode(denoiser, canvas, s, seed, one) for one in (None, everything))
    assert free.tokens.equal(held.tokens)
    assert free.commit_step.equal(held.commit_step)


def test_rows_of_any_constraints_are_one_lane() -> None:
    denoiser = model("texts", 0, 300)
    canvas = Canvas.after_prompt([[1]] * 32, length=20, mask_id=denoiser.mask_id)
    found = [f"a{{{n}}}[^a]*" for n in range(20)] * 2
    rules: list[Constraint | None] = [constraint(regex=one) for one in found[:32]]
    rules[5] = None
    run = steps(denoiser, canvas, "confidence", 0, rules)
    assert len(run.state.lanes) == 1
    trace = run.trace()
    texts = trace.texts(denoiser.tokenizer)
    assert all(rule is None or re.fullmatch(f, t) for rule, f, t in zip(rules, found[:32], texts, strict=True))


@given(EXPRESSIONS, st.sampled_from(["fast_dllm", "semi_ar", "certain_first"]), SEEDS)
def test_a_step_is_checked_once_it_is_written_or_before(found: str, name: str, seed: int) -> None:
    """On a GPU the next forward is launched before the check; where the check refuses, that forward is discarded. The
    sampler writes several tokens a step, and a stop rule fills what is behind EOS."""
    denoiser, rule = model("texts", seed % 2, GRID_TOKENS), constraint(regex=found)
    sampler = replace(preset_in_blocks(name), policy=replace(preset_in_blocks(name).policy, select=TopK(Exactly(3))))

    def decoded(late: bool, is_async: bool) -> Trace:
        with patch.object(State, "checks_late", property(lambda state: late and state.constraints.any)):
            run = steps(denoiser, canvas_of(denoiser, 12), sampler.stopping(AfterEos()), seed, rule)
            run.state.lookahead.is_async = is_async
            return run.trace()

    before = tried(lambda: decoded(late=False, is_async=False))
    for is_async in (False, True):
        after = decoded(late=True, is_async=is_async)
        assert all(ours.equal(theirs) for ours, theirs in zip(after.rows, before.rows, strict=True))
        assert after.commit_step.equal(before.commit_step) and torch.equal(
            after.logp.nan_to_num(), before.logp.nan_to_num()
        )


def test_an_engine_decodes_rows_with_and_without() -> None:
    denoiser, rule = model("bytes", 0, 300), constraint(choices=["ab", "1 é-日"])
    sampler = preset_in_blocks("fast_dllm")
    requests = [
        Request(canvas_of(denoiser, 6 + n), sampler, n, constraint=rule if n % 2 else None, key=n) for n in range(6)
    ]
    for result in Engine(denoiser, max_rows=3).run(requests):
        n = result.request.key
        assert result.trace is not None
        alone = decode(denoiser, canvas_of(denoiser, 6 + n), sampler, n, rule if n % 2 else None)
        assert result.trace.tokens.equal(alone.tokens)
        assert result.trace.constraints == alone.constraints == ({"choices": ["ab", "1 é-日"]} if n % 2 else None,)


def test_an_engine_refuses_what_cannot_be_completed() -> None:
    denoiser, rule = model("texts", 0, 100), constraint(regex="(?:-日){50}")
    requests = [Request(canvas_of(denoiser, 5), preset_in_blocks("confidence"), constraint=one) for one in (rule, None)]
    found = {result.request.constraint: result for result in Engine(denoiser).run(requests)}
    assert "fits into 5 tokens: it takes at least" in str(found[rule].error)
    assert found[None].error is None


class Everywhere(Stop):
    """Writes token 0 over all masks."""

    def __call__(self, tokens: torch.Tensor, masked: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        return torch.where(masked, 0, -1)


@pytest.mark.parametrize("stop", [AfterEos(), FromFirstEos(), Everywhere()])
def test_what_a_stop_rule_fills_is_checked(stop: Stop) -> None:
    denoiser, sampler = model("texts", 0, 100), Sampler(Policy(Confidence(), Threshold(0.9), stop=stop))
    trace = decode(denoiser, canvas_of(denoiser, 12), sampler, 0, constraint(regex="[^a]{3,5}"))
    assert accepted(trace, denoiser, ["[^a]{3,5}"])


def test_given_tokens_are_part_of_the_text() -> None:
    denoiser = model("texts", 0, 100)
    canvas = canvas_of(denoiser, 6).with_anchors({2: ALPHABET.index("日"), 4: ALPHABET.index("b")})
    trace = decode(denoiser, canvas, "confidence", 0, constraint(regex="[^b]*日[^日]*b1"))
    assert accepted(trace, denoiser, ["[^b]*日[^日]*b1"])
    with pytest.raises(UncodeError, match="has 6 tokens and the given ones in their place"):
        decode(denoiser, canvas, "confidence", 0, constraint(regex="[^日]*"))


def test_banned_tokens_complete_nothing() -> None:
    denoiser = model("texts", 0, 100)
    end = Sampler(Policy(Confidence()), Greedy(("ends",)))
    assert accepted(decode(denoiser, canvas_of(denoiser, 2), end, 0, constraint(regex="a.|aa")), denoiser, ["a.|aa"])
    with pytest.raises(UncodeError, match="has 4 tokens and the given ones"):
        decode(denoiser, canvas_of(denoiser, 4), end, 0, constraint(regex="a|日"))


def test_a_model_that_gives_no_allowed_token_a_probability() -> None:
    like = model("texts", 0, 100)

    def logits(tokens: torch.Tensor) -> torch.Tensor:
        found = torch.zeros(*tokens.shape, like.vocab_size)
        found[..., ALPHABET.index("b")] = found[..., like.mask_id] = -torch.inf
        return found

    denoiser = FunctionDenoiser(
        logits, mask_id=like.mask_id, vocab_size=like.vocab_size, eos_ids=like.eos_ids, tokenizer=like.tokenizer
    )
    with pytest.raises(Stalled, match="no token that its constraint allows has a probability and"):
        decode(denoiser, canvas_of(denoiser, 1), "confidence", 0, constraint(regex="b"))


def test_wrong_constraints() -> None:
    denoiser, rule = model("texts", 0, 100), constraint(regex="a")
    with pytest.raises(UncodeError, match="1 constraint for 2 rows"):
        decode(denoiser, canvas_of(denoiser, 4, 2), "confidence", 0, [rule])
    with pytest.raises(
        UncodeError, match=r"made by uncode.constraint\(...\), one for all rows or one per row, not 'a'"
    ):
        decode(denoiser, canvas_of(denoiser, 4), "confidence", 0, "a")  # type: ignore[arg-type]
    with pytest.raises(UncodeError, match="no tokenizer, so a constraint cannot know its texts"):
        decode(
            FunctionDenoiser(lambda t: t, mask_id=1, vocab_size=2),
            Canvas.after_prompt([0], 1, 1),
            "confidence",
            0,
            rule,
        )
    with pytest.raises(UncodeError, match="cannot decode single tokens"):
        decode(HashDenoiser(), Canvas.after_prompt([0], 1, 31), "confidence", 0, rule)


def test_traces_keep_constraints() -> None:
    denoiser = model("texts", 0, 100)
    trace = decode(denoiser, canvas_of(denoiser, 5, 2), "confidence", 0, [constraint(regex="a+"), None])
    again = Trace.from_json(trace.to_json())
    assert again.constraints == trace.constraints == ({"regex": "a+"}, None)
