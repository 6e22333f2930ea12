"""Pieces as data, and what they refuse."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, get_type_hints

import pytest
import torch
from torch import Tensor

from tests.toy import EOS, MASK, ToyDenoiser
from uncode import Canvas, FunctionDenoiser, Policy, Sampler, Stalled, Trace, UncodeError, decode, legacy, presets
from uncode.core.belief import Proposed
from uncode.core.pieces.blocks import Blocks, DelimitedBlocks, OverlappingBlocks
from uncode.core.pieces.cache import PrefixCache
from uncode.core.pieces.piece import REGISTRY, Piece
from uncode.core.pieces.propose import Greedy, Sample
from uncode.core.pieces.remask import LeastConfident, LoopQuota
from uncode.core.pieces.score import Confidence, Defer, ExponentialPosition, Gumbel, Informativeness, Score, Sum
from uncode.core.pieces.select import (
    Decay,
    EntropyBudget,
    EntropyThreshold,
    Even,
    Exactly,
    Factor,
    Selector,
    TauLeap,
    Threshold,
    TopK,
)
from uncode.core.pieces.stop import AfterEos, AtTheEnd, EitherStop, Stop
from uncode.core.view import Ranking, View
from uncode.frequency import as_table
from uncode.samplers import legacy_pieces

FLAT = torch.full((32,), 1 / 32)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"policy": {"score": {"piece": "Confidense"}}}, "did you mean 'Confidence'"),
        ({"policy": {"score": {"piece": "TopK"}}}, "no score is named 'TopK'"),
        ({"policy": {"score": {"piece": "Xyz"}}}, "One of your own needs an entry point of 'uncode.pieces'"),
        ({"policy": {"score": {"piece": "ExponentialPosition", "rte": 1}}}, "did you mean 'rate'"),
        ({"policy": {"score": {"piece": "ExponentialPosition"}}}, "needs a value for 'rate'"),
        ({"policy": {"score": {"piece": "ExponentialPosition", "rate": "fast"}}}, "must be a number, not 'fast'"),
        ({"policy": {"score": {"piece": "ExponentialPosition", "rate": -1}}}, "at least 0"),
        ({"policy": {"score": {"piece": "ExponentialPosition", "rate": 1, "origin": "blok"}}}, "did you mean 'block'"),
        ({"policy": {"score": {}}}, "needs a 'piece' key"),
        ({"policy": {"score": 3}}, "must be a table"),
        ({"policy": {"score": {"piece": "Confidence"}}, "limit": "many"}, "must be a whole number"),
        ({"policy": {"score": {"piece": "Confidence"}}, "limit": True}, "must be a whole number"),
        ({"policy": {"score": {"piece": "Informativeness", "table": 3}}}, "name and sha256"),
        (
            {"policy": {"score": {"piece": "Informativeness", "table": {"table": "c4", "sha256": "1"}}}},
            "needs the frequency table 'c4': pass that table",
        ),
        ({"polcy": {}}, "did you mean 'policy'"),
    ],
)
def test_what_is_not_understood_is_refused(data: dict[str, object], message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        Sampler.from_dict(data)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ExponentialPosition(float("nan")), "rate"),
        (lambda: Threshold(0.0), "above 0"),
        (lambda: Threshold(1.5), r"\(0, 1\]"),
        (lambda: Factor(0.0), "above 0"),
        (lambda: EntropyBudget(-0.1), "0 or more"),
        (lambda: TauLeap(Decay(0)), "at least 1"),
        (lambda: Decay(3, eps=0.0), "eps"),
        (lambda: Even(0), "at least 1"),
        (lambda: Exactly(0), "at least 1"),
        (lambda: LoopQuota(0), "at least 1"),
        (lambda: legacy_pieces.LeastLikelyNow(ratio=0.0), "ratio must be in"),
        (lambda: legacy_pieces.AlternatingCommit(count=0), "count must be at least 1"),
        (lambda: Policy("confidence"), r"^Policy.score must be a score, such as Confidence\(\), not 'confidence'\.$"),
        (lambda: Policy(TopK()), r"^Policy.score must be a score, such as Confidence\(\), not TopK"),
        (lambda: Sampler(Confidence()), r"^Sampler.policy must be a policy, such as Policy\(\.\.\.\), not Conf"),
        (lambda: Sum(("margin",)), r"^Sum.parts must be a score, such as Margin\(\), not 'margin'"),
        (lambda: Blocks(2, 3), "not both"),
        (lambda: Blocks(count=0), "at least 1"),
        (lambda: Blocks(length=0), "at least 1"),
        (lambda: OverlappingBlocks(length=0), "at least 1"),
        (lambda: OverlappingBlocks(share=0.0), "above 0 and at most 1"),
        (lambda: EntropyThreshold(-1.0), "0 or more"),
        (lambda: EntropyThreshold(1.0, 0), "block length must be at least 1"),
        (lambda: EntropyThreshold(1.0, best=False), "needs a block_length"),
        (lambda: PrefixCache(refresh=0), "at least 1"),
        (lambda: Sample((), -1.0), "temperature"),
        (lambda: Sample((), 1.0, 0), "top_k"),
        (lambda: Sample((), 1.0, None, 1.5), "top_p"),
        (lambda: Gumbel(0.0), "above 0"),
        (lambda: Sum(()), "at least one term"),
        (lambda: Defer((1,), by=0.0), "above 0"),
        (lambda: Sampler(Policy(Confidence()), limit=0), "at least 1"),
        (lambda: presets.uncode(frequency=FLAT, clip=0.0), "clip"),
        (lambda: presets.uncode(frequency=FLAT, informativeness=False), "leave one of the two out"),
        (lambda: presets.uncode(frequency=FLAT, proxy="entrpy"), "did you mean 'entropy'"),
        (lambda: presets.fast_dllm(cache="dul"), "did you mean 'dual'"),
        (lambda: presets.dream(alg="entropie"), "did you mean 'entropy'"),
        (lambda: presets.llada(remasking="low"), "did you mean 'low_confidence'"),
        (lambda: presets.remdm(start=1.0), "start"),
        (lambda: presets.remdm(count=0), "at least 1"),
        (lambda: presets.uncode(frequency=FLAT, special="foo"), "cannot be 'foo'"),
        (lambda: presets.uncode(frequency=FLAT, ratee=1.0), "did you mean 'rate'"),
        (lambda: presets.confidence(step=3), "did you mean 'steps'"),
        (lambda: presets.confidence(steps=2.5), "must be a whole number"),
        (lambda: presets.confidence(steps=True), "must be a whole number"),
        (lambda: presets.confidence(temperature=float("inf")), "temperature"),
        (lambda: presets.uncode(frequency=FLAT, clip=float("inf")), "clip"),
        (lambda: ExponentialPosition(1.0, "blok"), "did you mean 'block'"),
        (lambda: ExponentialPosition("fast"), "must be a number"),
        (lambda: Threshold(0.5, "scor"), "did you mean 'score'"),
        (lambda: legacy.uncode_release(frequency=FLAT, rate=-1.0), "rate"),
        (lambda: legacy.uncode_release(frequency=FLAT, clip=-1.0), "clip"),
        (lambda: legacy.remdm_release(count=0), "at least 1"),
        (lambda: legacy.remdm_release(ratio=0.0), "ratio"),
    ],
)
def test_values_out_of_range_are_one_sentence(make: object, message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        make()  # type: ignore[operator]


def canvas(length: int = 4) -> Canvas:
    return Canvas.after_prompt([[1, 2]], length=length, mask_id=MASK)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (presets.uncode(frequency=torch.ones(31)), "covers 31 tokens but the model has 32"),
        (Sampler(Policy(Confidence()), Greedy((99,))), "outside the vocabulary"),
        (
            Sampler(Policy(Confidence()), Greedy(("end",))),
            "the text of one token, but 'end' is 3 tokens",
        ),
    ],
)
def test_what_does_not_fit_the_model_is_one_sentence(sampler: Sampler, message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        decode(ToyDenoiser(0), canvas(), sampler)


@dataclass(frozen=True)
class NeverSelects(Selector):
    def __call__(self, ranking: Ranking, view: View) -> torch.Tensor:
        return torch.zeros_like(ranking.candidates)


@dataclass(frozen=True)
class WaitsForEver(NeverSelects):
    @property
    def may_wait(self) -> bool:
        return True


@dataclass(frozen=True)
class BarsTheLast(Score):
    def __call__(self, view: View) -> torch.Tensor:
        return torch.where(view.offsets == 3, -torch.inf, 0.0)


@dataclass(frozen=True)
class BarsEverything(Score):
    def __call__(self, view: View) -> torch.Tensor:
        return view.places - torch.inf


def test_a_row_without_candidates_stalls_after_one_forward() -> None:
    model = ToyDenoiser(0)
    with pytest.raises(Stalled):
        decode(model, canvas(40), Sampler(Policy(BarsEverything())))
    assert model.forwards == 1


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (Sampler(Policy(Confidence(), NeverSelects()), name="odd"), "NeverSelects selected nothing.*'odd'"),
        (Sampler(Policy(Confidence() + BarsTheLast())), "BarsTheLast scored every open position -inf or NaN"),
        (Sampler(Policy(Confidence(), WaitsForEver())), "not finished after 96 forwards.*WaitsForEver"),
        (Sampler(Policy(Confidence()), limit=2), "not finished after 2 forwards"),
        (Sampler(Policy(Confidence() + ExponentialPosition(0.0) + BarsEverything())), "BarsEverything scored"),
    ],
)
def test_stalled_names_the_piece(sampler: Sampler, message: str) -> None:
    with pytest.raises(Stalled, match=message):
        decode(ToyDenoiser(0), canvas(), sampler)


@dataclass(frozen=True)
class WholeNumbers(Score):
    def __call__(self, view: View) -> torch.Tensor:
        return view.offsets % 2


@dataclass(frozen=True)
class NotANumber(Score):
    def __call__(self, view: View) -> torch.Tensor:
        return view.places * torch.nan


def test_a_score_may_be_whole_numbers_but_not_nan() -> None:
    trace = decode(ToyDenoiser(0), canvas(), Sampler(Policy(WholeNumbers())))
    assert trace.commit_step[0].tolist() == [2, 0, 3, 1]
    with pytest.raises(Stalled, match="NotANumber scored every open position -inf or NaN"):
        decode(ToyDenoiser(0), canvas(), Sampler(Policy(NotANumber())))


def test_a_stalled_row_among_others_is_named() -> None:
    two = Canvas.after_prompt([[1], [2]], length=4, mask_id=MASK)
    with pytest.raises(Stalled, match=r"row 1 .* NeverSelects"):
        decode(ToyDenoiser(0), two, [presets.confidence(), Sampler(Policy(Confidence(), NeverSelects()))])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decode(ToyDenoiser(0), canvas(), [presets.confidence()] * 2), "2 samplers for 1 row: give"),
        (lambda: decode(ToyDenoiser(0), canvas(), presets.confidence(), [1, 2]), "2 seeds for 1 row: give"),
        (lambda: decode(ToyDenoiser(0), canvas(), presets.confidence(), None), "a seed is a whole number"),  # type: ignore[arg-type]
        (lambda: decode(ToyDenoiser(0), canvas(), presets.confidence(), "a"), "a seed is a whole number"),  # type: ignore[arg-type]
        (lambda: decode(ToyDenoiser(0), canvas(), "confidense"), "did you mean 'confidence'"),
        (lambda: decode(ToyDenoiser(0), canvas(), 3), "a sampler was expected"),  # type: ignore[arg-type]
        (lambda: Trace.from_json("hello"), "line 1 of this text is not JSON"),
        (lambda: Trace.from_json(""), "empty"),
        (lambda: Trace.from_json('{"schema": 99}'), "'schema' is 99"),
        (
            lambda: decode(ToyDenoiser(0), Canvas.after_prompt([[1]], length=2, mask_id=3), presets.confidence()),
            "the canvas was made with mask_id=",
        ),
        (lambda: decode(ToyDenoiser(0), canvas(), presets.confidence(), observe="all"), "observe"),  # type: ignore[arg-type]
    ],
)
def test_calls_that_cannot_work_are_one_sentence(call: object, message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        call()  # type: ignore[operator]


def test_banned_tokens_are_never_written() -> None:
    model = ToyDenoiser(0, boost=50.0)
    assert EOS in decode(model, canvas(9), presets.confidence()).generated[0].tolist()
    free = decode(model, canvas(9), Sampler(Policy(Confidence()), Greedy(("ends", 5))))
    assert not {EOS, EOS - 1, 5} & set(free.generated[0].tolist())


def test_top_k_of_one_is_greedy_and_top_p_cuts() -> None:
    for propose in (Sample((), 1.0, 1), Sample((), 1.0, None, 1e-6), Sample((), 0.0)):
        drawn = decode(ToyDenoiser(0), canvas(9), Sampler(Policy(Confidence()), propose))
        assert drawn.generated.tolist() == decode(ToyDenoiser(0), canvas(9), presets.confidence()).generated.tolist()
    hot = decode(ToyDenoiser(0), canvas(9), presets.confidence(temperature=2.0))
    assert hot.generated.tolist() != decode(ToyDenoiser(0), canvas(9), presets.confidence()).generated.tolist()


def test_special_tokens_of_the_table() -> None:
    """Unseen special tokens get the clip, neutral ones the table's mean, counted ones what the table says."""
    counts = torch.tensor([1, 1, 6, 2])
    table = as_table(counts.double() / 10)
    facts_table = [
        Informativeness(table, 2.0, special)._log_weights(table.surprisal(), (3,)).exp()  # type: ignore[arg-type]
        for special in ("unseen", "neutral", "counted")
    ]
    surprisal = -(counts.double() / 10).log()
    clipped = surprisal.clamp(max=2.0)
    mean = (counts / 10 * clipped).sum()
    for weights, special in zip(facts_table, (2.0, mean, surprisal[3]), strict=True):
        torch.testing.assert_close(weights, torch.tensor([2.0, 2.0, surprisal[2], special], dtype=torch.float64))


def test_after_eos_fills_the_rest_without_a_forward() -> None:
    model = ToyDenoiser(0, boost=50.0)
    stopping = presets.left_to_right().stopping(AfterEos())
    trace = decode(model, canvas(6), stopping)
    assert len(trace) == 1
    assert trace.commit_step[0].tolist() == [0, -2, -2, -2, -2, -2]
    assert len(set(trace.generated[0].tolist())) == 1
    assert torch.equal(trace.replay(), trace.tokens)
    assert (trace.replay(0) == MASK).sum() == 6


def test_after_eos_waits_for_the_masks_before_it() -> None:
    """An EOS token at the far end ends nothing; one of a later block ends the row only when all before is filled."""
    logits = torch.zeros(1, 6, 4)
    logits[0, :, 1] = torch.tensor([1.0, 1.0, 2.0, 3.0, 1.0, 1.0])
    logits[0, 3, 2] = 9.0
    model = FunctionDenoiser(lambda tokens: logits, mask_id=0, vocab_size=4, eos_ids=(2,))
    row = Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=6, mask_id=0)
    trace = decode(model, row, presets.confidence().stopping(AfterEos()))
    assert trace.commit_step[0].tolist() == [2, 3, 1, 0, -2, -2]
    assert trace.generated[0].tolist() == [1, 1, 1, 2, 2, 2]
    with pytest.raises(UncodeError, match="no EOS token"):
        decode(FunctionDenoiser(lambda tokens: logits, 0, 4), row, presets.confidence().stopping(AfterEos()))


def test_given_eos_tokens_do_not_stop() -> None:
    row = Canvas.after_prompt([[1]], length=5, mask_id=MASK).with_anchors({0: EOS})
    assert len(decode(ToyDenoiser(0), row, presets.left_to_right().stopping(AfterEos()))) == 4


@dataclass(frozen=True)
class HalfIsEnough(Stop):
    """A rule of one's own: half of the span is written."""

    def __call__(self, tokens: Tensor, masked: Tensor, own: Tensor) -> Tensor:
        is_half = masked.sum(-1, keepdim=True) * 2 <= masked.shape[-1]
        return torch.where(masked & is_half, 3, -1)


def test_a_stop_rule_of_ones_own_stays_when_another_is_added() -> None:
    mine = Sampler(Policy(presets.left_to_right().policy.score, TopK(), stop=HalfIsEnough()), name="half")
    both = mine.stopping(AfterEos())
    logits = torch.tensor([0.0, 1.0, 0.0, 0.0]).expand(1, 6, 4)
    model = FunctionDenoiser(lambda tokens: logits, mask_id=0, vocab_size=4, eos_ids=(2,))
    row = Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=6, mask_id=0)
    assert both.stopping(AfterEos()) == both and mine.stopping(AtTheEnd()) == mine
    for sampler in (mine, both, Sampler.from_dict(both.to_dict())):
        assert decode(model, row, sampler).generated[0].tolist() == [1, 1, 1, 3, 3, 3]
    ends = FunctionDenoiser(lambda tokens: logits.roll(1, -1), mask_id=0, vocab_size=4, eos_ids=(2,))
    assert decode(ends, row, mine).generated[0].tolist() == [2, 2, 2, 3, 3, 3]
    assert decode(ends, row, both).generated[0].tolist() == [2] * 6
    assert both.policy.stop == EitherStop(HalfIsEnough(), AfterEos())


def whole_settings() -> list[tuple[type[Piece], str]]:
    """Every setting of every piece that is a whole number."""
    return [
        (cls, name)
        for cls in REGISTRY.values()
        if cls.__module__.startswith("uncode.")
        for name, hint in get_type_hints(cls).items()
        if hint in (int, int | None) and name in {field.name for field in fields(cls)}
    ]


@pytest.mark.parametrize(("cls", "name"), whole_settings())
@pytest.mark.parametrize("value", [2**31, 10**30, -(10**5000)], ids=["2^31", "10^30", "-10^5000"])
def test_whole_numbers_are_bounded(cls: type[Piece], name: str, value: int) -> None:
    """Decoding multiplies them by lengths, in 64 bits."""
    needed = {
        Sampler: {"policy": Policy(Confidence())},
        DelimitedBlocks: {"tokens": (1,)},
        EntropyThreshold: {"threshold": 1.0},
    }.get(cls, {})
    with pytest.raises(UncodeError, match=rf"^{cls.__name__}\.{name} must be a whole number below 2\^31, not "):
        cls(**needed, **{name: value})


def test_the_largest_whole_numbers_decode() -> None:
    most = 2**31 - 1
    for sampler in (
        presets.llada(steps=most, block_length=most),
        presets.semi_ar(blocks=most, steps=most),
        presets.tau_leaping(tau=most),
        Sampler(Policy(Confidence(), EntropyThreshold(1.0, most), OverlappingBlocks(most))),
        presets.dream(alg="entropy", steps=most, top_k=most),
        presets.remdm(steps=most, count=most),
    ):
        assert not (decode(ToyDenoiser(0), canvas(4), sampler).tokens == MASK).any()


def test_two_pieces_of_one_name_are_refused() -> None:
    with pytest.raises(UncodeError, match="two pieces are named 'Confidence'"):
        type("Confidence", (Score,), {"__module__": "elsewhere"})


def test_entry_points_bring_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    from uncode.core.pieces import piece

    class Entry:
        def load(self) -> None:
            @dataclass(frozen=True)
            class FromAPlugin(Score):
                def __call__(self, view: View) -> torch.Tensor:
                    return view.places

    piece._load_plugins.cache_clear()
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [Entry()] if group == "uncode.pieces" else [])
    sampler = Sampler.from_dict({"policy": {"score": {"piece": "FromAPlugin"}}})
    trace = decode(ToyDenoiser(0), canvas(), sampler)
    assert trace.commit_step[0].tolist() == [3, 2, 1, 0]
    piece._load_plugins.cache_clear()
    broken = importlib.metadata.EntryPoint("mine", "nosuch.scores", "uncode.pieces")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [broken])
    with pytest.raises(UncodeError, match=r"entry point 'mine' \(nosuch.scores\) cannot be imported \(ModuleNotFound"):
        Sampler.from_dict({"policy": {"score": {"piece": "Confidence"}}})
    monkeypatch.undo()
    piece._load_plugins.cache_clear()


def test_dreams_schedule() -> None:
    """With as many steps as tokens, the first step commits nothing and the last two (as the published code does)."""
    trace = decode(ToyDenoiser(0), canvas(32), presets.dream(alg="maskgit_plus", steps=32))
    assert trace.committed[0].tolist() == [0] + [1] * 30 + [2]


def test_a_block_opens_before_the_one_in_front_is_full() -> None:
    """Blocks of four, the next at half of one; the last has two columns. Rows: nothing, half, all of the first."""
    masked = torch.ones(4, 10, dtype=torch.bool)
    masked[1, [1, 3]] = masked[2, :4] = masked[3] = False
    start, stop = OverlappingBlocks(4, 0.5).window(masked)
    assert start[:, 0].tolist() == [0, 0, 4, 10] and stop[:, 0].tolist() == [4, 8, 8, 10]
    masked[1, 4:6] = False
    assert OverlappingBlocks(4, 0.5).window(masked)[1][:, 0].tolist() == [4, 10, 8, 10]


def test_topk_selector_defaults_to_one_token_a_step() -> None:
    assert Policy(Confidence()).select == TopK(Even(None))


def test_a_policy_checks_what_its_pieces_need() -> None:
    sentence = r"LeastConfident needs a number of steps, and Threshold has none: select with a schedule"
    with pytest.raises(UncodeError, match=sentence):
        Policy(Confidence(), Threshold(0.5), remask=LeastConfident())
    Policy(Confidence(), TopK(Even(4)), remask=LeastConfident())


def test_a_proposal_sees_the_view() -> None:
    """A temperature that falls as a block is filled, which needs the step."""

    @dataclass(frozen=True)
    class Cooling(Sample):
        def propose(self, logits: Tensor, view: View) -> tuple[Proposed, Tensor]:
            seen.append(view.block_step)
            return super().propose(logits, view)

    seen: list[Any] = []
    canvas = Canvas.after_prompt([[1, 2]], length=6, mask_id=MASK)
    decode(ToyDenoiser(1), canvas, Sampler(Policy(Confidence(), blocks=Blocks(length=3)), Cooling()))
    assert seen == [0, 1, 2, 0, 1, 2]
