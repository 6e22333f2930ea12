"""Case studies, from traces made by hand: each rule, the order of the cases, and the verb."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import uncode
from tests.analysis.lines import EOS, Line, line, write
from tests.cli.running import run
from uncode.analysis.cases import RULES, find_cases

WORDS = ("1", " +", " 2", " =", " 3", "<eos>")
RIGHT = [0, 1, 2, 3, 4, 5]
SPAN = [8, 9]


def traced(label: str, steps: list[int], *words: str, correct: bool, id: str = "a", **others: object) -> Line:
    ids = [EOS if word == "<eos>" else 10 + at for at, word in enumerate(words)]
    notes = {"generated_ids": ids, "generated_texts": list(words), "answer_span": SPAN, "prompt_text": "1 + 2?"}
    return line(steps, label=label, **{**notes, "correct": correct, "id": id, **others})


def right(id: str = "a") -> Line:
    return traced("uncode", RIGHT, *WORDS, correct=True, id=id)


def early(id: str = "a") -> Line:
    """Its answer, 7, is there before the equation."""
    return traced("confidence", [3, 4, 2, 5, 1, 0], "1", " +", " 2", " =", " 7", "<eos>", correct=False, id=id)


def cut(id: str = "a") -> Line:
    """It ends after two tokens, by an EOS that is there first."""
    words = ("1", ".", "<eos>", "<eos>", "<eos>", "<eos>")
    return traced("confidence", [5, 4, 3, 2, 1, 0], *words, correct=False, id=id, answer_span=None)


def locked(id: str = "a") -> Line:
    """The comma is written before the number in front of it, and stays."""
    words = ("1", " +", " 5", ",", " 3", "<eos>")
    return traced("confidence", [0, 1, 3, 2, 4, 5], *words, correct=False, id=id)


@pytest.mark.parametrize(("failing", "kind"), [(early, "early_answer"), (cut, "cut_short"), (locked, "trivial_lock")])
def test_each_kind_by_hand(failing: object, kind: str, tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [failing(), right()])  # type: ignore[operator]
    (case,) = find_cases([file], "confidence", "uncode")
    assert (case.kind, case.id, case.task) == (kind, "a", "task")
    assert case.divergence == {"early_answer": 4, "cut_short": 1, "trivial_lock": 2}[kind]
    assert [row["label"] for row in case.rows()] == ["confidence", "uncode"]
    assert not find_cases([file], "confidence", "uncode", kinds=[name for name in RULES if name != kind])


def test_a_failure_of_no_kind_is_no_case(tmp_path: Path) -> None:
    """Both are written from left to right, and the first token that differs is a number."""
    wrong = traced("confidence", RIGHT, "1", " +", " 2", " =", " 4", "<eos>", correct=False)
    assert not find_cases([write(tmp_path / "a.jsonl", [wrong, right()])], "confidence", "uncode")


def test_only_pairs_of_wrong_and_right_count(tmp_path: Path) -> None:
    """Another id, an answer that both get right, one that both get wrong, and one without a grade are no cases."""
    lines = [early("a"), right("b"), early("c") | {"correct": True}, right("c"), early("d"), right("d")]
    lines += [early("e"), right("e") | {"correct": False}, early("f") | {"correct": None}, right("f")]
    (case,) = find_cases([write(tmp_path / "a.jsonl", lines)], "confidence", "uncode")
    assert case.id == "d"


def test_the_shortest_texts_come_first(tmp_path: Path) -> None:
    lines = [early("long"), right("long"), cut("short"), right("short")]
    found = find_cases([write(tmp_path / "a.jsonl", lines)], "confidence", "uncode")
    assert [case.id for case in found] == ["short", "long"]


def test_wrong_names_are_one_sentence(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [early(), right()])
    for args, message in (
        (("confidense", "uncode"), "no sampler 'confidense': did you mean 'confidence'"),
        (("uncode", "uncode"), "'uncode' is given twice"),
    ):
        with pytest.raises(uncode.UncodeError, match=message):
            find_cases([file], *args)
    with pytest.raises(uncode.UncodeError, match="no kind of case 'early': did you mean 'early_answer'"):
        find_cases([file], "confidence", "uncode", kinds=["early"])


def test_the_verb_shows_the_cases_and_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.jsonl", [early("a"), right("a"), locked("b"), right("b")])
    shown = run("cases", "a.jsonl", "--view", "cases.html")
    assert shown.returncode == 0, shown.stderr
    text = shown.stdout
    assert "early_answer: the answer is committed before the reasoning (1 found)" in text
    assert "cut_short: an early EOS cuts the text short (0 found)" in text
    assert "1 + 2 =» 7 ∎ x 1" in text and "1 + 2 =» 3 ∎ x 1" in text and "confidence, wrong" in text
    assert shown.stderr.strip() == "cases.html: 4 traces, to be replayed in a browser."
    assert (tmp_path / "cases.html").read_text().count("<section") == 4
    found = json.loads(run("cases", "a.jsonl", "--kind", "trivial_lock", "--json").stdout)
    assert [(case["id"], case["divergence"], case["texts"][0]) for case in found] == [("b", 2, "1 + 5, 3")]
    assert run("cases", "a.jsonl", "--kind", "cut_short", "--view", "none.html").returncode == 2
    assert "two labels with a comma" in run("cases", "a.jsonl", "--samplers", "uncode").stderr
