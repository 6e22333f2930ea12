"""The rules of newer samplers, checked by hand on logits that are written down."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

import uncode
from tests import grid
from tests.toy import EOS, EOT, MASK, ToyDenoiser
from uncode import Canvas, Policy, Sampler, Trace, UncodeError, decode, presets
from uncode.core.pieces.blocks import Blocks, DelimitedBlocks
from uncode.core.pieces.cache import DualCache, PrefixCache
from uncode.core.pieces.remask import LargestDrops, Overwrite, OverwriteBrittle
from uncode.core.pieces.score import (
    CertaintyDensity,
    Confidence,
    EarlyDiscount,
    EndsInTurn,
    EntropyGate,
    ExponentialPosition,
    Informativeness,
    Score,
)
from uncode.core.pieces.select import (
    AboveMeanAtCommit,
    AroundAnchors,
    BestOfRuns,
    Certain,
    Even,
    Exactly,
    Selector,
    Threshold,
    ThresholdOrQuota,
    TopK,
)
from uncode.core.pieces.stop import AfterEos, WhenAnswerIsClear
from uncode.core.trace.row_record import FILLED
from uncode.core.view import Ranking, View
from uncode.engine import Engine, Request
from uncode.frequency import FrequencyTable
from uncode.testing import check_piece


def fixed(probabilities: list[float], tokens: list[int] | None = None) -> uncode.FunctionDenoiser:
    """A model that always gives offset i its token with probability i; the rest goes to token 5."""
    logits = torch.full((1, len(probabilities), 8), -torch.inf)
    for offset, p in enumerate(probabilities):
        logits[0, offset, (tokens or [1] * len(probabilities))[offset]] = math.log(p)
        logits[0, offset, 5] = math.log1p(-p) if p < 1 else -torch.inf
    return uncode.FunctionDenoiser(lambda t: logits.expand(len(t), -1, -1), mask_id=0, vocab_size=8, eos_ids=(7,))


def order(model: uncode.FunctionDenoiser, length: int, score: Score, select: Selector | None = None) -> list[int]:
    """The step of every offset."""
    canvas = Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=length, mask_id=0)
    policy = Policy(score) if select is None else Policy(score, select)
    return decode(model, canvas, Sampler(policy)).commit_step[0].tolist()


def test_certain_positions_go_together_and_a_decision_goes_alone() -> None:
    """0.95 and 0.99 are certain. Then 0.9 and 0.8 are one decision each, although 0.9 is the better by far."""
    model = fixed([0.8, 0.95, 0.9, 0.99])
    assert order(model, 4, Confidence(), Certain(0.94)) == [2, 0, 1, 0]
    assert order(model, 4, Confidence(), Certain(0.999)) == [3, 1, 2, 0]


def test_an_end_waits_until_everything_before_it_proposes_an_end() -> None:
    model = fixed([0.6, 0.99, 0.7, 0.98], [1, 7, 1, 7])
    assert order(model, 4, Confidence()) == [3, 0, 2, 1]
    assert order(model, 4, Confidence() + EndsInTurn()) == [1, 2, 0, 3]


def test_an_end_need_not_wait_for_what_is_certain() -> None:
    """The two words are certain and are written in the first step, and so is the end after them."""
    model = fixed([0.99, 0.97, 0.98, 0.99], [1, 1, 7, 7])
    for select in (Certain(0.95), Threshold(0.95)):
        assert order(model, 4, Confidence() + EndsInTurn(), select) == [0, 0, 1, 1]
        assert order(model, 4, Confidence() + EndsInTurn(0.95), select) == [0, 0, 0, 0]
    assert order(model, 4, Confidence() + EndsInTurn(0.98), Threshold(0.98)) == [0, 1, 2, 2], "0.97 is uncertain"
    with pytest.raises(UncodeError, match=r"in \(0, 1\], not 1.5"):
        EndsInTurn(1.5)


def test_an_uncertain_end_waits_for_certain_words() -> None:
    """The words are frequent, so the ends are ranked before them."""
    model = fixed([0.99, 0.98, 0.6, 0.55], [1, 1, 7, 7])
    table = FrequencyTable(torch.tensor([1, 10**6, 1, 1, 1, 1, 1, 1]))
    score = Confidence() + Informativeness(table, special="counted")
    assert order(model, 4, score + EndsInTurn(0.95), Threshold(0.95)) == [0, 0, 1, 2]


def test_an_early_end_is_discounted_and_a_late_one_is_not() -> None:
    """Of three steps the factors are 0.4, 0.7 and 1: 0.99 counts as 0.396 beside 0.7, then as 0.693 beside 0.5."""
    model = fixed([0.5, 0.99, 0.7], [1, 7, 1])
    assert order(model, 3, Confidence() + EarlyDiscount()) == [2, 1, 0]
    assert order(model, 3, Confidence() + EarlyDiscount(factor=1.0)) == [2, 0, 1]
    assert order(model, 3, Confidence() + EarlyDiscount(factor=0.01), TopK(Even(1))) == [0, 0, 0]
    assert order(fixed([0.6, 0.99], [1, 5]), 2, Confidence() + EarlyDiscount()) == [1, 0], "5 is no EOS token"
    with pytest.raises(UncodeError, match="EarlyDiscount needs a number of steps, and Threshold has none"):
        Policy(Confidence() + EarlyDiscount(), Threshold(0.9))
    with pytest.raises(UncodeError, match="above 0 and at most 1, not 0"):
        EarlyDiscount(factor=0.0)


def test_the_gate_sums_the_entropy_of_earlier_masks() -> None:
    """A coin has 0.69 nats. With a budget of 0.7 the third position opens once one of the two coins is written."""
    model = fixed([0.55, 0.54, 0.99, 0.999])
    coin = -(0.55 * math.log(0.55) + 0.45 * math.log(0.45))
    assert order(model, 4, Confidence() + EntropyGate(0.0)) == [0, 1, 2, 3]
    assert order(model, 4, Confidence() + EntropyGate(coin + 0.01)) == [0, 3, 1, 2]
    assert order(model, 4, Confidence() + EntropyGate(10.0)) == [2, 3, 1, 0]


def test_the_best_of_each_run_above_a_low_bar() -> None:
    """One run at first: its best. That splits it into runs of two and one."""
    model = fixed([0.6, 0.7, 0.8, 0.5])
    assert order(model, 4, Confidence(), BestOfRuns(0.95, 0.55)) == [2, 1, 0, 3]
    assert order(model, 4, Confidence(), BestOfRuns(0.95, 0.4)) == [2, 1, 0, 1]
    assert order(model, 4, Confidence(), BestOfRuns(0.65, 0.4)) == [1, 0, 0, 1]


def test_a_threshold_or_the_quota() -> None:
    model = fixed([0.6, 0.7, 0.9, 0.8, 0.95])
    assert order(model, 5, Confidence(), ThresholdOrQuota(Exactly(2), 0.85)) == [2, 1, 0, 1, 0]
    assert order(model, 5, Confidence(), ThresholdOrQuota(Exactly(2), 0.92)) == [2, 1, 0, 1, 0]
    assert order(model, 5, Confidence(), ThresholdOrQuota(Exactly(2), 0.65)) == [1, 0, 0, 0, 0]


def test_neighbours_of_an_anchor_pass_a_lower_bar() -> None:
    model = fixed([0.8, 0.7, 0.95, 0.76, 0.6, 0.8])
    assert order(model, 6, Confidence(), AroundAnchors(radius=1)) == [1, 3, 0, 0, 4, 2]
    assert order(model, 6, Confidence(), AroundAnchors(radius=2)) == [0, 2, 0, 0, 3, 1]


def density(known: list[bool], at: int, sigma: float) -> float:
    """The share of known tokens around a position, term by term."""
    length = len(known)
    every = [True] * length + known + [known[-1]] * length
    weight = [math.exp(-((length + at - j) ** 2) / (2 * sigma**2)) for j in range(3 * length)]
    total = sum(math.exp(-(d**2) / (2 * sigma**2)) for d in range(-3 * length, 3 * length))
    return sum(w for w, k in zip(weight, every, strict=True) if k) / total


def test_the_density_of_known_tokens() -> None:
    model, canvas = fixed([0.9] * 9), Canvas.infill([1, 0, 0, 1, 0, 0, 1, 0, 0], mask_id=0)
    run = uncode.steps(model, canvas, Sampler(Policy(Confidence() + CertaintyDensity(1.5))))
    seen: Tensor = next(run).decision.terms[1]
    known = [False, False, True, False, False, True, False, False]
    for at in (0, 1, 3, 4, 6, 7):
        assert math.isclose(float(seen[0, at]), math.log(density(known, at, 1.5)), rel_tol=1e-5)


def text_of(sampler: Sampler, seed: int) -> Trace:
    canvas = Canvas.after_prompt([[1, 2]], length=24, mask_id=MASK)
    return decode(ToyDenoiser(seed, boost=2.0), canvas, sampler, drafts=True)


@pytest.mark.parametrize("seed", range(4))
def test_certain_first_never_writes_an_end_before_its_text(seed: int) -> None:
    trace = text_of(presets.certain_first(frequency=grid.TABLE, threshold=0.9), seed)
    ends, steps = torch.tensor([EOS, EOT]), trace.commit_step[0]
    for offset in torch.isin(trace.generated[0], ends).nonzero()[:, 0].tolist():
        draft = torch.tensor(trace.drafts[0][steps[offset]])
        words = ~torch.isin(draft[:offset], ends)
        assert not bool((words & (steps[:offset] > steps[offset])).any())
        assert bool((trace.logp[0][:offset][words & (steps[:offset] == steps[offset])] >= math.log(0.9)).all())
    assert len(trace) < 24
    fast = text_of(presets.certain_first_fast(frequency=grid.TABLE, threshold=0.9), seed)
    assert len(fast) <= len(trace) + 1


def test_certain_first_can_do_without_a_table() -> None:
    for make in (presets.certain_first, presets.certain_first_fast):
        plain = make(informativeness=False, block_length=8, cache="dual")
        names = [type(term).__name__ for term in plain.policy.score.terms]
        assert names == ["Confidence", "ExponentialPosition", "EndsInTurn"]
    check_piece(plain)


def test_a_gate_takes_a_threshold_or_steps() -> None:
    with pytest.raises(UncodeError, match="leave out steps or threshold"):
        presets.entropy_gate(threshold=0.9, steps=4)
    assert len(text_of(presets.entropy_gate(threshold=0.5, budget=4.0), 1)) < 24


def test_memory_follows_its_row_and_is_cleared_when_a_block_opens() -> None:
    """Row 1 outlives row 0, whose memory must not become row 1's."""
    sampler = presets.klass(drift=0.5, threshold=0.3, block_length=5)
    canvas = Canvas.after_prompt([[1, 2], [3]], length=[4, 15], mask_id=MASK)
    run = uncode.steps(ToyDenoiser(2), canvas, sampler)
    opened = set()
    for _ in run:
        memory, rows = run.state.lanes[0].memory, run.state.rows
        assert memory is not None and len(memory.values["stable_steps"]) == len(rows)
        for row, block, step in zip(rows.ids, rows.block, rows.block_step, strict=True):
            if (int(row), int(block)) not in opened and step == 1:
                opened.add((int(row), int(block)))
                at = rows.ids.tolist().index(row)
                assert not memory.values["stable_steps"][at].any()
    assert len(opened) == 4
    alone = decode(ToyDenoiser(2), Canvas.after_prompt([[3]], length=15, mask_id=MASK), sampler)
    assert run.trace().generated[1].tolist() == alone.generated[0].tolist()


def test_two_pieces_cannot_share_a_buffer() -> None:
    policy = Policy(Confidence(), AboveMeanAtCommit(2), remask=LargestDrops(2))
    assert Sampler(policy).policy == policy
    with pytest.raises(UncodeError, match="two pieces of a sampler remember 'p_at_commit'"):
        Sampler(Policy(Confidence(), Both(AboveMeanAtCommit(2), AboveMeanAtCommit(3))))


def test_what_an_editor_writes_is_not_taken_for_a_filled_mask() -> None:
    """Else as many tokens are taken back as masks are filled, and the row is never finished."""
    policy = Policy(Confidence(), remask=LargestDrops(2), edit=Overwrite(0.3, 2))
    canvas = Canvas.after_prompt([[1, 2, 3], [4, 5]], length=[9, 12], mask_id=MASK)
    assert not (decode(ToyDenoiser(0), canvas, Sampler(policy)).generated == MASK).any()


@dataclass(frozen=True)
class Both(Selector):
    """What either of two selectors chooses; their buffers are forwarded without code."""

    one: Selector
    other: Selector

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        return self.one(ranking, view) | self.other(ranking, view)


def test_wrappers_forward_buffers() -> None:
    check_piece(Both(AboveMeanAtCommit(1), Certain(0.9)))


def test_a_growing_block_may_take_back_what_earlier_blocks_wrote() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=24, mask_id=MASK)
    reopened = 0
    for seed in range(8):
        trace = decode(ToyDenoiser(seed), canvas, presets.saber(block_length=6))
        assert torch.equal(trace.replay(), trace.tokens)
        full = max(step for step, offset, token in trace.events[0] if offset < 6 and token >= 0)
        later = min(step for step, offset, _ in trace.events[0] if offset >= 6)
        reopened += full > later
    assert reopened


def test_a_clear_answer_ends_a_row_with_all_of_its_masks() -> None:
    """The gap of 0.99 and 0.01 is 4.6 nats: too little in the first third of 9 steps, enough in the second."""
    model = fixed([0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.99, 0.99, 0.6])
    canvas = Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=9, mask_id=0)
    stop = WhenAnswerIsClear(6, 2, 5.0, 4.0, 1.0)
    sampler = Sampler(Policy(ExponentialPosition(1.0), blocks=Blocks(length=3), stop=stop))
    trace = decode(model, canvas, sampler)
    assert trace.commit_step[0].tolist() == [0, 1, 2, 2, 2, 2, 2, 2, 2]
    assert not trace.logp.isnan().any(), "they are commits, with a belief"
    assert sampler.stopping(AfterEos()).policy.stop == replace(stop, otherwise=AfterEos())


def test_sure_eos_tokens_do_not_make_an_answer_clear() -> None:
    """Seven EOS tokens of 0.9999 (9.2 nats) after two words of 0.6 (0.4): over all masks the mean would be 7.3."""
    model = fixed([0.6, 0.6, *[0.9999] * 7], tokens=[1, 1, *[7] * 7])
    canvas = Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=9, mask_id=0)
    sampler = Sampler(Policy(ExponentialPosition(1.0), stop=WhenAnswerIsClear(None, 5, 5.0, 5.0, 5.0)))
    assert decode(model, canvas, sampler).commit_step[0].tolist() == [0, 1, *[2] * 7], "no text is left after two steps"
    at_once = Sampler(Policy(ExponentialPosition(1.0), stop=WhenAnswerIsClear(None, 5, 0.3, 0.3, 0.3)))
    assert len(decode(model, canvas, at_once)) == 1


def test_a_stop_rule_that_sees_the_span_is_refused_beside_a_dual_cache_and_a_remasker() -> None:
    with pytest.raises(UncodeError, match=r"WhenAnswerIsClear needs every masked position.*DualCache"):
        text_of(presets.prophet().caching(DualCache()), 0)
    with pytest.raises(UncodeError, match="LargestDrops can take nothing back"):
        Policy(Confidence(), remask=LargestDrops(2), stop=WhenAnswerIsClear())


def test_an_answer_at_a_known_place_is_refused_beside_a_cache() -> None:
    """Committed positions of closed blocks have no logits then."""
    assert text_of(presets.prophet().caching(PrefixCache()), 0)
    for sampler in (presets.prophet(answer_start=4), presets.prophet(answer_start=4).stopping(AfterEos())):
        with pytest.raises(UncodeError, match=r"reads committed positions too, which PrefixCache does not compute"):
            text_of(sampler.caching(PrefixCache()), 0)


def test_an_editor_overwrites_what_the_model_would_now_write_otherwise() -> None:
    """Offset 0 proposes token 1 until offset 1 is written, then token 2; the full block is looked at again."""

    def logits(tokens: Tensor) -> Tensor:
        found = torch.zeros(len(tokens), 2, 8)
        found[:, 1, 3] = 4.0
        found[:, 0, 1], found[:, 0, 2] = 5.0, torch.where(tokens[:, 1] == 0, 0.0, 9.0)
        return found

    model = uncode.FunctionDenoiser(logits, mask_id=0, vocab_size=8)
    canvas = Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=2, mask_id=0)

    def trace_with(rounds: int, threshold: float = 0.0) -> Trace:
        return decode(model, canvas, Sampler(Policy(Confidence(), edit=Overwrite(threshold, rounds))))

    trace = trace_with(16)
    assert trace.generated[0].tolist() == [2, 3] and int(trace.forwards[0]) == 4
    assert trace.events[0] == [(0, 0, 1), (1, 1, 3), (2, 0, 2)]
    assert trace.commit_step[0].tolist() == [2, 1] and torch.equal(trace.replay(), trace.tokens)
    assert torch.equal(trace.replay(2)[0], torch.tensor([1, 3]))
    assert trace_with(1).generated[0].tolist() == [2, 3] and int(trace_with(1).forwards[0]) == 3
    assert trace_with(0).generated[0].tolist() == [1, 3] and int(trace_with(0).forwards[0]) == 2
    assert trace_with(16, 0.999).generated[0].tolist() == [1, 3]


def brittle() -> uncode.FunctionDenoiser:
    """Offset 0 is token 1 with 0.6, and stays so while it stands. If it is masked once offset 1 is written, it is token
    2 with 0.9. All others are token 3."""

    def logits(tokens: Tensor) -> Tensor:
        found = torch.full((*tokens.shape, 8), -torch.inf)
        found[..., 3], found[..., 4] = math.log(0.99), math.log(0.01)
        revised = (tokens[:, 0] == 0) & (tokens[:, 1] != 0)
        found[:, 0] = -torch.inf
        found[:, 0, 1] = torch.where(revised, 0.1, 0.6).log()
        found[:, 0, 2] = torch.where(revised, 0.9, 0.4).log()
        return found

    return uncode.FunctionDenoiser(logits, mask_id=0, vocab_size=8)


def revised(**settings: float) -> Trace:
    """Four positions from left to right, with the editor at each of the two steps in the middle."""
    options: dict[str, Any] = {"candidates": 1, "every": 1, "protect": 0} | settings
    canvas = Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=4, mask_id=0)
    policy = Policy(ExponentialPosition(1.0), TopK(), edit=OverwriteBrittle(**options))
    trace = decode(brittle(), canvas, Sampler(policy))
    assert torch.equal(trace.replay(), trace.tokens)
    return trace


def test_a_brittle_token_is_overwritten_with_what_a_probe_says() -> None:
    """The first probe still finds token 1. The second does not, and its belief is what the trace keeps."""
    trace = revised()
    assert trace.generated.tolist() == [[2, 3, 3, 3]] and trace.probes == ([0, 1, 1, 0],)
    assert trace.events[0] == [(0, 0, 1), (1, 1, 3), (2, 0, 2), (2, 2, 3), (3, 3, 3)]
    assert math.isclose(math.exp(trace.logp[0, 0]), 0.9, rel_tol=1e-6) and trace.forwards.tolist() == [6]
    assert math.isclose(math.exp(trace.logp[0, 2]), 0.99, rel_tol=1e-6), "the others keep the step's own"


def test_an_editor_with_a_probe_revises_only_where_and_when_it_may() -> None:
    kept = [[1, 3, 3, 3]]
    assert revised(threshold=0.95).generated.tolist() == kept, "0.9 is too little"
    assert revised(every=3).probes == ([0, 0, 0, 0],)
    assert revised(protect=4).probes == ([0, 0, 0, 0],), "nothing may be tried"
    assert revised(protect=3).generated.tolist() == [[2, 3, 3, 3]]
    for settings in ({"every": 0}, {"start": 0.5, "end": 0.5}, {"threshold": 1.0}, {"protect": -1}):
        with pytest.raises(UncodeError, match="must be"):
            OverwriteBrittle(**settings)  # type: ignore[arg-type]


def blocks_of(model: uncode.FunctionDenoiser, canvas: Canvas, blocks: DelimitedBlocks) -> list[tuple[int, int]]:
    """The offsets of every block that was open after a first step, as the rows had them."""
    run = uncode.steps(model, canvas, Sampler(Policy(Confidence(), Threshold(1.0), blocks)))
    found = []
    for _ in run:
        rows = run.state.rows
        if int(rows.block_step[0]) != -1 or rows.finished[0]:
            found.append((int(rows.starts[0]), int(rows.stops[0])))
    assert not (run.trace().tokens == 0).any()
    return list(dict.fromkeys(found))


def test_a_block_ends_with_the_most_probable_delimiter_nearby() -> None:
    """Token 3 is the delimiter. A quarter of 16 columns is looked at, then the block has five; the last is shorter."""
    p, tokens = [0.6] * 16, [1] * 16
    for offset, probability in ((1, 0.7), (2, 0.8), (4, 0.9), (9, 0.75), (15, 0.7)):
        p[offset], tokens[offset] = probability, 3
    model, canvas = fixed(p, tokens), Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=16, mask_id=0)
    assert blocks_of(model, canvas, DelimitedBlocks((3,), 0.5, 5)) == [(0, 3), (3, 5), (5, 10), (10, 15), (15, 16)]
    assert blocks_of(model, canvas, DelimitedBlocks((3,), 0.85, 5)) == [(0, 5), (5, 10), (10, 15), (15, 16)]
    assert blocks_of(model, canvas, DelimitedBlocks((3,), 0.5, 5, share=1.0)) == [(0, 5), (5, 10), (10, 16)]


def test_a_block_starts_at_its_first_mask() -> None:
    """Given tokens are no delimiters, and a block without a mask is never opened."""
    model, canvas = fixed([0.6] * 12), Canvas.infill([0, 0, 3, 3, 3, 3, 3, 3, 0, 3, 0, 0], mask_id=0)
    assert blocks_of(model, canvas, DelimitedBlocks((3,), 0.1, 3)) == [(0, 3), (8, 11), (11, 12)]


def test_delimited_blocks_refuse_a_schedule_and_a_model_without_the_delimiter() -> None:
    with pytest.raises(UncodeError, match="DelimitedBlocks finds its blocks while it decodes, so TopK cannot share"):
        Policy(Confidence(), blocks=DelimitedBlocks((1,)))
    canvas = Canvas.after_prompt([[1]], length=4, mask_id=0)
    with pytest.raises(UncodeError, match=r"but '\\n' is unknown to a model without a tokenizer"):
        decode(fixed([0.5] * 5), canvas, presets.adablock())
    with pytest.raises(UncodeError, match=r"but '\\n' is 0 tokens of this model"):
        decode(uncode.load("toy"), canvas, presets.adablock())
    assert int(decode(uncode.load("toy"), canvas, presets.adablock(delimiter="period")).forwards[0]) <= 4


@pytest.mark.parametrize("name", ["adablock", "info_gain"])
def test_a_row_that_joins_a_running_batch_is_the_row_alone(name: str) -> None:
    """Through the engine, beside rows with other samplers. Probes are forwards of the row and of the engine."""
    model, sampler = ToyDenoiser(3), getattr(presets, name)(block_length=6)
    rows = [([1, 2, 3], 20, sampler), ([4], 13, presets.semi_ar(blocks=2)), ([5, 6], 24, sampler), ([7], 9, sampler)]
    requests = [
        Request(Canvas.after_prompt([prompt], length=length, mask_id=MASK), each, seed=number, key=number)
        for number, (prompt, length, each) in enumerate(rows)
    ]
    engine = Engine(model, max_rows=2)
    for result in engine.run(requests):
        assert result.row is not None and result.trace is not None
        alone = decode(ToyDenoiser(3), result.request.canvas, result.request.sampler, [result.request.seed])
        assert result.row.generated.tolist() == alone.generated[0].tolist()
        assert result.row.forwards == int(alone.forwards[0]) == int(result.trace.forwards[0])
        assert torch.equal(result.trace.commit_step, alone.commit_step) and result.trace.probes == alone.probes
    assert engine.forwards == model.forwards


def binary_entropy(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def dependent() -> uncode.FunctionDenoiser:
    """Token 1 has the probabilities 0.55, 0.95 and 0.7. Once the first position is written, the others have 0.97 and
    0.9; the other two positions say nothing about each other."""

    def logits(tokens: Tensor) -> Tensor:
        first = tokens[:, :1] != 0
        p = torch.where(first, torch.tensor([0.55, 0.97, 0.9]), torch.tensor([0.55, 0.95, 0.7]))
        scores = torch.full((*tokens.shape, 4), -torch.inf)
        scores[..., 1], scores[..., 2] = p.log(), (1 - p).log()
        return scores

    return uncode.FunctionDenoiser(logits, mask_id=0, vocab_size=4)


@pytest.mark.parametrize(("name", "first"), [("info_gain", 1), ("lookum", 0)])
def test_the_least_uncertainty_after_a_candidate(name: str, first: int) -> None:
    """Each of the three positions is tried. LookUM takes the one that teaches most; Info-Gain also counts its price."""
    h = binary_entropy
    left = [(h(0.97) + h(0.9)) / 2, (h(0.55) + h(0.7)) / 2, (h(0.55) + h(0.95)) / 2]
    price = [h(0.55), h(0.95), h(0.7)] if name == "info_gain" else [0.0] * 3
    sums = [sum(pair) for pair in zip(left, price, strict=True)]
    assert sums.index(min(sums)) == first
    sampler = getattr(presets, name)(candidates=16, position_temperature=100.0, threshold=0.99)
    canvas = Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=3, mask_id=0)
    trace = decode(dependent(), canvas, sampler)
    assert trace.commit_step[0].tolist().index(0) == first
    assert trace.probes == ([3, 2, 0],) and trace.steps.tolist() == [3] and trace.forwards.tolist() == [8]
    assert len(trace) == 8 and torch.equal(trace.replay(2) == 0, trace.commit_step == 2)


def test_a_further_position_is_committed_where_it_leaves_less_uncertainty() -> None:
    """The anchor is the second position, 0.95. With the third, the first alone is left; with the first, the third."""
    h = binary_entropy
    left = {"first": h(0.9), "third": h(0.55), "none": (h(0.55) + h(0.7)) / 2}
    assert min(left, key=lambda name: left[name]) == "first"
    canvas = Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=3, mask_id=0)
    trace = decode(dependent(), canvas, presets.lopa(candidates=3, threshold=0.9))
    assert trace.commit_step.tolist() == [[0, 0, 1]] and trace.probes == ([3, 0],) and trace.forwards.tolist() == [5]
    trace = decode(dependent(), canvas, presets.lopa(candidates=2, threshold=0.9))
    assert trace.commit_step.tolist() == [[1, 0, 1]], "the third leaves more than none; then the two leave nothing"
    assert trace.probes == ([2, 2],)


def test_a_block_of_sure_positions_needs_no_probe() -> None:
    canvas = Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=3, mask_id=0)
    trace = decode(dependent(), canvas, presets.info_gain(threshold=0.5))
    assert trace.commit_step.tolist() == [[0, 0, 0]] and trace.probes == ([0],) and len(trace) == 1


def test_probes_are_part_of_a_trace() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=6, mask_id=MASK)
    text = decode(ToyDenoiser(2), canvas, presets.info_gain(threshold=0.99)).to_json()
    row = json.loads(text)
    assert row["forwards"] == len(row["probes"]) + sum(row["probes"]) and len(row["committed"]) == len(row["probes"])
    assert Trace.from_json(text).to_json() == text
    for probes, why in (([9] * 6, "more"), ([-1] * 6, "whole number"), (row["probes"][1:], "expected")):
        with pytest.raises(UncodeError, match=why):
            Trace.from_json(json.dumps(row | {"probes": probes}))
    assert "probes" not in json.loads(decode(ToyDenoiser(2), canvas, presets.confidence()).to_json())


def test_a_row_that_eos_closes_early_replays_step_by_step() -> None:
    """DCD writes EOS over tokens behind the first one, and the trace keeps it."""
    overwritten = 0
    for seed in range(12):
        model = ToyDenoiser(seed, boost=2.0)
        run = uncode.steps(model, Canvas.after_prompt([[1, 2, 3]], 24, MASK), presets.dcd(threshold=0.4, window=24))
        canvases = [step.tokens.clone() for step in run]
        trace = run.trace()
        assert all(torch.equal(trace.replay(count), canvas) for count, canvas in enumerate(canvases, 1))
        written = {offset for step, offset, _ in trace.events[0]}
        overwritten += len(trace.events[0]) - len(written)
        assert bool(trace.logp[0][trace.commit_step[0] == FILLED].isnan().all())
    assert overwritten
