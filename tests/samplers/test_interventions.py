from __future__ import annotations

import pytest
import torch

import uncode
from tests.toy import MASK, ToyDenoiser
from uncode import Canvas, UncodeError, decode, presets
from uncode.backbones.toy import WordTokenizer
from uncode.core.trace.texts import TRIVIAL
from uncode.samplers.interventions import RejectTrivial, insert_anchor, reject_trivial, trivial_ids

TOKENS = tuple(range(0, 29, 2))


def first_step_trivial(trace: uncode.Trace) -> torch.Tensor:
    return torch.isin(trace.generated[0], torch.tensor(TOKENS))


def test_the_papers_list_has_eighteen_tokens() -> None:
    assert len(TRIVIAL) == len(set(TRIVIAL)) == 18


def test_rejecting_always_puts_trivial_tokens_last() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=24, mask_id=MASK)
    sampler = reject_trivial(presets.confidence(), TOKENS, 1.0)
    trace = decode(ToyDenoiser(6), canvas, sampler, drafts=True)
    for step, draft in enumerate(trace.drafts[0]):
        here = trace.commit_step[0] == step
        left = trace.commit_step[0] >= step
        if first_step_trivial(trace)[here].any():
            assert torch.isin(torch.tensor(draft)[left], torch.tensor(TOKENS)).all(), "there was another candidate"


def test_rejecting_never_changes_nothing() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=24, mask_id=MASK)
    plain = decode(ToyDenoiser(6), canvas, presets.confidence(steps=8))
    never = decode(ToyDenoiser(6), canvas, reject_trivial(presets.confidence(steps=8), TOKENS, 0.0))
    assert torch.equal(plain.commit_step, never.commit_step)


def test_the_share_that_is_rejected_is_the_probability() -> None:
    """One step, a hundred rows, each with one trivial favourite and one other candidate."""
    logits = torch.zeros(400, 3, 4)
    logits[:, 1, 1], logits[:, 2, 2] = 9.0, 5.0
    model = uncode.FunctionDenoiser(lambda t: logits[: len(t)], mask_id=0, vocab_size=4)
    canvas = Canvas.after_prompt([[3]] * 400, length=2, mask_id=0)
    trace = decode(model, canvas, reject_trivial(presets.confidence(), (1,), 0.3))
    rejected = float((trace.commit_step[:, 1] == 0).double().mean())
    assert abs(rejected - 0.3) < 4 * (0.3 * 0.7 / 400) ** 0.5


def test_several_rejections_in_one_step() -> None:
    """Three picked, two of them trivial, one replacement: the worse of the two makes way."""
    logits = torch.zeros(1, 5, 6)
    for offset, (token, value) in enumerate([(1, 9.0), (2, 8.0), (1, 7.0), (1, 6.0), (3, 5.0)]):
        logits[0, offset, token] = value
    model = uncode.FunctionDenoiser(lambda t: logits, mask_id=0, vocab_size=6)
    canvas = Canvas.after_prompt(torch.zeros(1, 0, dtype=torch.long), length=5, mask_id=0)
    sampler = reject_trivial(presets.tau_leaping(tau=3), (1,), 1.0)
    trace = decode(model, canvas, sampler)
    assert trace.commit_step[0].tolist() == [0, 0, 1, 1, 0]
    assert isinstance(sampler.policy.select, RejectTrivial)
    assert sampler.name == "tau_leaping+reject_trivial"


def test_anchors_stand_where_the_paper_puts_them() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=100, mask_id=MASK)
    for at in (0.25, 0.75):
        anchored = insert_anchor(canvas, at, 5)
        trace = decode(ToyDenoiser(0), anchored, presets.confidence(steps=20))
        assert trace.commit_step[0, int(100 * at)] == -1
        assert trace.generated[0, int(100 * at)] == 5
        assert (trace.commit_step[0] == -1).sum() == 1
        assert trace.logp[0, int(100 * at)].isnan()


def test_anchors_stand_at_a_part_of_each_rows_own_length() -> None:
    canvas = insert_anchor(Canvas.after_prompt([[1], [2]], length=[4, 16], mask_id=MASK), 0.75, 7)
    assert (canvas.tokens == 7).nonzero().tolist() == [[0, 4], [1, 13]]


def test_trivial_tokens_of_any_tokenizer() -> None:
    words = ["<mask>", "<end>", "the", " the", "The", "theory", ".", " .", "\n", "\n\n", " ", "  ", "$", "is"]
    assert [words[i] for i in trivial_ids(WordTokenizer(words))] == ["the", " the", ".", " .", "\n", " ", "$", "is"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reject_trivial(presets.confidence(), (1,), 1.5), "probability"),
        (lambda: insert_anchor(Canvas.after_prompt([[1]], length=4, mask_id=9), 1.0, 2), "relative position"),
    ],
)
def test_bad_values_are_one_sentence(call: object, message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        call()  # type: ignore[operator]
