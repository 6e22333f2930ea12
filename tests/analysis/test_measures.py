"""Trivial tokens, answers and entropy over time, against arrays computed by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uncode
from tests.analysis.lines import EOS, Line, line, write
from uncode.analysis.measures.answer_timing import AnswerTiming, tokens_of
from uncode.analysis.measures.heat_map import HeatMap
from uncode.analysis.measures.outcomes import Outcomes
from uncode.analysis.measures.step_entropy import Z95, StepEntropy
from uncode.analysis.measures.step_sums import part_means
from uncode.analysis.measures.trivial_share import TrivialShare
from uncode.analysis.read_traces import trace_rows
from uncode.analysis.sampler_settings import settings_of


def result(kind: Any, tmp_path: Path, lines: list[Line], parts: int | None = None) -> Any:
    made = kind(parts)
    for row in trace_rows([write(tmp_path / "a.jsonl", lines)], kind.needs):
        made.add(row)
    made.finish()
    return made


def texts(commit_step: list[int], *words: str, **others: Any) -> Line:
    """A line with texts; the word <eos> is an EOS token."""
    ids = [EOS if word == "<eos>" else 10 + n for n, word in enumerate(words)]
    return line(commit_step, generated_ids=ids, generated_texts=list(words), **others)


def test_the_share_of_trivial_tokens_by_hand(tmp_path: Path) -> None:
    """EOS is in neither number, nor is what was given or filled."""
    first = texts([0, 0, 1, 2], "Add", " the", ".", "<eos>")
    second = texts([-1, 0, 1, -2], ".", "3", "\n", ",", forwards=2)
    found = result(TrivialShare, tmp_path, [first, second])
    assert found.commits.tolist() == [3, 2, 0] and found.traces == 2
    assert found.share[:2].tolist() == [1 / 3, 1.0] and math.isnan(found.share[2])
    assert np.isclose(found.overall.estimate, (2 / 3 + 1 / 2) / 2)
    assert found.data()["share"] == [1 / 3, 1.0, None]
    halves = result(TrivialShare, tmp_path, [first, second], parts=2)
    assert halves.commits.tolist() == [4, 1] and halves.share.tolist() == [0.5, 1.0]  # step 1 of 3 is in the first half


def test_traces_without_texts_are_one_sentence(tmp_path: Path) -> None:
    for kind in (TrivialShare, AnswerTiming):
        with pytest.raises(uncode.UncodeError, match="has no texts: decode again with `uncode eval --traces`"):
            result(kind, tmp_path, [line([0, 1], answer_span=[0, 1])])


def test_only_eos_has_no_share(tmp_path: Path) -> None:
    found = result(TrivialShare, tmp_path, [texts([0], "<eos>")])
    assert found.overall is None and found.data()["overall"] is None


def test_the_mean_entropy_by_hand(tmp_path: Path) -> None:
    """The second trace ends a step earlier; in the first, no mask was left to see at the last step."""
    span = {"observe": "span"}
    lines = [
        line([0, 1, 2], mean_entropy=[3.0, 2.0, None], **span),
        line([0, 1, 1], mean_entropy=[1.0, 1.0], **span),
        line([0, 1, 2], mean_entropy=[2.0, 3.0, 0.5], **span),
    ]
    found = result(StepEntropy, tmp_path, lines)
    assert found.mean.tolist() == [2.0, 2.0, 0.5] and found.running.tolist() == [3, 3, 1]
    assert np.allclose(found.half_width[:2], Z95 / math.sqrt(3)) and math.isnan(found.half_width[2])
    assert found.data()["low"][2] is None
    with pytest.raises(uncode.UncodeError, match=r"has the entropy of the open block alone \(observe='open'\)"):
        result(StepEntropy, tmp_path, [line([0, 1])])


def test_parts_of_a_decode_are_means_of_their_steps() -> None:
    values = np.array([1.0, 3.0, np.nan, 5.0])
    assert part_means(values, 2).tolist() == [2.0, 5.0]
    assert part_means(values[:2], 4).tolist() == [1.0, 1.0, 3.0, 3.0]
    assert math.isnan(part_means(values, 4)[2])


def test_a_span_of_characters_is_a_set_of_tokens() -> None:
    words = ["So", " 1", "", "2", "."]
    assert tokens_of(words, (3, 5)).tolist() == [False, True, False, True, False]
    assert tokens_of(words, (2, 3)).tolist() == [False, True, False, False, False]
    assert not tokens_of(words, (6, 9)).any()


def test_the_timing_of_answers_by_hand(tmp_path: Path) -> None:
    """`1 + 1 = 2`, its answer `2` at characters 6 to 7: early in the first trace, late in the second."""
    words, span = ("1", " +", " 1", " =", " 2", "<eos>"), [8, 9]
    early = texts([3, 4, 2, 5, 1, 0], *words, answer_span=span, entropy=[0, 0, 0, 0, 1.5, 0])
    late = texts([0, 1, 2, 3, 4, -2], *words, answer_span=span, entropy=[0, 0, 0, 0, 0.5, None])
    bare = texts([1, 0], "2", "<eos>", answer_span=[0, 1], entropy=[None, 0])
    none = texts([0, 1], "no", " idea", answer_span=None)
    found = result(AnswerTiming, tmp_path, [early, late, bare, none])
    assert found.traces == 4 and found.step.tolist() == [1, 4, 1]
    assert np.allclose(found.time, [1 / 6, 4 / 5, 1 / 2])
    assert found.entropy[:2].tolist() == [1.5, 0.5] and math.isnan(found.entropy[2])
    assert found.is_early[:2].tolist() == [1, 0] and math.isnan(found.is_early[2])
    assert found.early.estimate == 0.5 and found.mean_entropy.estimate == 1.0 and found.mean_step.estimate == 2.0
    assert found.data()["answers"] == 3 and found.data()["each"]["early"] == [1.0, 0.0, None]


def test_an_answer_after_half_of_the_text_is_not_early(tmp_path: Path) -> None:
    """Two of three tokens in front of the answer are there when it is complete."""
    row = texts([0, 1, 3, 2], "a", "b", "c", "d", answer_span=[3, 4])
    assert result(AnswerTiming, tmp_path, [row]).is_early.tolist() == [0]


def test_traces_without_answers_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(uncode.UncodeError, match="marks no answer: `uncode eval --traces` notes where"):
        result(AnswerTiming, tmp_path, [texts([0], "x")])


def test_accuracy_by_hand(tmp_path: Path) -> None:
    """Three of four graded answers are right. A trace without a grade counts as a trace only."""
    lines = [line([0, 1], correct=mark) for mark in (True, False, True, True, None)]
    found = result(Outcomes, tmp_path, lines)
    assert found.traces == 5 and found.correct.tolist() == [1, 0, 1, 1] and found.share.estimate == 0.75
    assert found.data()["accuracy"][0] == 0.75 and found.columns()["correct"].tolist() == [1, 0, 1, 1]
    assert result(HeatMap, tmp_path, lines).accuracy == found.share
    assert result(HeatMap, tmp_path, lines[-1:]).accuracy is None
    with pytest.raises(uncode.UncodeError, match="has no grades: decode again with `uncode eval --traces`"):
        result(Outcomes, tmp_path, lines[-1:])
    with pytest.raises(uncode.UncodeError, match="field 'correct' must be true or false, not 1"):
        result(Outcomes, tmp_path, [line([0, 1], correct=1)])


def test_the_settings_of_a_sampler_are_read_by_its_pieces() -> None:
    """A key of another name is an error, not a setting of 0."""
    made = uncode.presets.uncode(rate=0.5, clip=3.0, frequency=uncode.load("toy").frequency).to_dict()
    found = settings_of(made)
    assert (found.name, found.rate, found.clip, found.table, found.special) == ("uncode", 0.5, 3.0, "toy", "unseen")
    text = json.dumps(made)
    with pytest.raises(uncode.UncodeError, match="Informativeness has no setting 'cap'"):
        settings_of(json.loads(text.replace('"clip"', '"cap"')))
    with pytest.raises(uncode.UncodeError, match="its sampler's Informativeness says nothing of clip"):
        settings_of(json.loads(text.replace('"clip": 3.0, ', "")))
