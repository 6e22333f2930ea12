"""Reading traces one line at a time: what is read, and the sentence for everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import uncode
from tests.analysis.lines import EOS, line, write
from uncode.analysis.read_traces import Group, trace_files, trace_rows

NEEDS = ("entropy", "mean_entropy", "generated_texts", "answer_span")


def test_a_line_is_read_with_what_is_needed(tmp_path: Path) -> None:
    texts = ["a", " ]", '"logp": [', "\n"]
    one = line([0, -1, 1, -2], 3, generated_ids=[5, 6, 7, EOS], generated_texts=texts, answer_span=[1, 3])
    file = write(tmp_path / "a.jsonl", [one])
    (row,) = trace_rows([file], NEEDS)
    assert row.group == Group("model", "task", "hand") and row.observe == "open" and len(row) == 4
    assert row.commit_step.tolist() == [0, -1, 1, -2] and row.is_eos.tolist() == [False, False, False, True]
    assert row.texts == texts and row.answer_span == (1, 3) and row.forwards == 3
    assert row.entropy is not None and row.entropy.tolist() == [0.5] * 4
    assert row.mean_entropy is not None and row.mean_entropy.tolist() == [1.0] * 3
    (plain,) = trace_rows([file])
    assert plain.texts is None and plain.entropy is None and plain.mean_entropy is None


def test_a_decoded_trace_is_read_as_the_library_reads_it(tmp_path: Path) -> None:
    """With events, drafts and the texts of a tokenizer."""
    model = uncode.load("toy")
    canvas = uncode.Canvas.after_prompt([[2, 13]] * 2, length=9, mask_id=model.mask_id)
    trace = uncode.decode(model, canvas, uncode.presets.remdm(block_length=5, start=0.5), drafts=True, observe="span")
    trace.save(tmp_path / "toy.jsonl", model.tokenizer)
    rows = list(trace_rows([tmp_path / "toy.jsonl"], NEEDS))
    for number, row in enumerate(rows):
        assert row.commit_step.tolist() == trace.commit_step[number].tolist()
        assert row.events is not None and [tuple(one) for one in row.events.tolist()] == trace.events[number]
        assert row.texts == trace.row(number, model.tokenizer)["generated_texts"]
        assert row.group == Group("toy", "", "remdm") and row.observe == "span"


@pytest.mark.parametrize("indent", [(",", ":"), (" , ", " : ")])
def test_lines_of_another_layout_are_read_whole(tmp_path: Path, indent: tuple[str, str]) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(line([1, 0]), separators=indent))
    (row,) = trace_rows([tmp_path / "a.jsonl"])
    assert row.commit_step.tolist() == [1, 0]


def test_a_note_that_looks_like_a_list_is_no_danger(tmp_path: Path) -> None:
    """Cutting inside nested lists breaks the line, so the whole line is parsed."""
    file = write(tmp_path / "a.jsonl", [{"schema": 1, "note": {"logp": [[1], [2]]}} | line([1, 0])])
    (row,) = trace_rows([file])
    assert row.commit_step.tolist() == [1, 0]


def test_folders_files_and_run_folders(tmp_path: Path) -> None:
    (tmp_path / "run" / "traces").mkdir(parents=True)
    (tmp_path / "run" / "run.json").write_text("{}")
    (tmp_path / "run" / "samples.jsonl").write_text("{}\n")
    two = [write(tmp_path / "run" / "traces" / f"{name}.jsonl", [line([0])]) for name in "ab"]
    assert trace_files([tmp_path / "run", two[0]]) == two
    assert trace_files([tmp_path / "run" / "traces"]) == two


def test_half_a_line_at_the_end_is_not_read(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [line([0]), line([0])])
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes()[:-40])
    assert len(list(trace_rows([file]))) == 1


def _other(**fields: Any) -> str:
    return json.dumps(line([1, 0]) | fields) + "\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "holds no trace: it is empty."),
        (_other(schema=2), "line 1 of '{}' cannot be read: field 'schema' is 2, and this version of uncode reads"),
        ('{"prompt": "x"}\n', "line 1 of '{}' is no trace: give files that uncode wrote."),
        ("[1]\n", "line 1 of '{}' is no trace"),
        ("{nothing\n", "line 1 of '{}' is not JSON"),
        (_other(commit_step=[1]), "field 'commit_step' has 1 items, expected 2"),
        (_other(commit_step=[1, -1]), "field 'commit_step[1]' disagrees with canvas_ids"),
        (_other(events=[[0, 7, 1]]), "field 'events[0]' is at an offset outside the row"),
        (_other(observe="all"), "field 'observe' must be open or span"),
        (_other(schema=[[]] * 3), "field 'schema' must be"),
    ],
)
def test_what_is_no_trace_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(uncode.UncodeError) as raised:
        list(trace_rows([tmp_path / "a.jsonl"]))
    assert sentence.format(tmp_path / "a.jsonl") in str(raised.value) and "\n" not in str(raised.value)


def test_what_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for path, sentence in (
        (tmp_path / "run", f"the folder '{tmp_path / 'run'}' holds no traces: `uncode decode --trace FILE.jsonl`"),
        (tmp_path / "no", f"the file '{tmp_path / 'no'}' does not exist: give the path of a trace."),
    ):
        with pytest.raises(uncode.UncodeError, match="trace") as raised:
            trace_files([path])
        assert str(raised.value).startswith(sentence)
    (tmp_path / "run" / "run.json").write_text("{}")
    with pytest.raises(uncode.UncodeError, match="holds no traces: run `uncode eval` with --traces"):
        trace_files([tmp_path / "run"])
    (tmp_path / "a.jsonl").write_bytes(b"\x1f\x8bxx")
    with pytest.raises(uncode.UncodeError, match="is compressed: unpack it with gunzip first"):
        list(trace_rows([tmp_path / "a.jsonl"]))
    (tmp_path / "a.jsonl").write_bytes(b'{"schema": "caf\xe9"}\n')
    with pytest.raises(uncode.UncodeError, match="is not UTF-8 text"):
        list(trace_rows([tmp_path / "a.jsonl"]))
    with pytest.raises(uncode.UncodeError, match="there are no traces: give a trace file"):
        trace_files([])
