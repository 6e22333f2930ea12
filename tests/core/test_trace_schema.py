"""Damaged traces: one sentence with line and field, or a trace that can be written and read again."""

from __future__ import annotations

import copy
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncode
from tests import grid
from tests.toy import MASK, ToyDenoiser
from uncode import Canvas, Trace, UncodeError, decode, presets
from uncode.core.trace.schema import FIELDS

SENTENCE = re.compile(r"line (\d+) of .* cannot be read: field '([^']+)' .*\.$")
Row = dict[str, Any]


def tables(name: str, sha256: str) -> Any:
    return grid.TABLE


def rows_of(trace: Trace, tokenizer: Any = None) -> list[Row]:
    return [json.loads(line) for line in trace.to_json(tokenizer).splitlines()]


def lines() -> list[list[Row]]:
    """Traces with everything a line can hold: tables, blocks, caches, events, drafts, texts, given tokens."""
    model, toy = ToyDenoiser(1), uncode.load("toy")
    two = Canvas.after_prompt([[1, 2, 3], [4]], length=[6, 4], mask_id=MASK).with_anchors([{2: 7}, {}])
    samplers = [presets.uncode(frequency=grid.TABLE, rate=0.1), presets.fast_dllm(block_length=3, cache="dual")]
    remasked = Canvas.after_prompt([[2, 13]], length=9, mask_id=toy.mask_id)
    return [
        rows_of(decode(model, two, samplers, drafts=True)),
        rows_of(decode(toy, remasked, presets.remdm(block_length=5, start=0.5)), toy.tokenizer),
        rows_of(decode(model, two, presets.dream(alg="entropy", alg_temp=0.2, temperature=0.5, top_p=0.9))),
    ]


LINES = lines()
NOTHING = object()


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places inside a line; of lists only the first two items and the last."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if path else []
    for key, item in inside:
        if isinstance(value, dict) or key in (0, 1, len(value) - 1):
            found += paths(item, (*path, key))
    return found


def changed(row: Row, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Row:
    row = copy.deepcopy(row)
    parent: Any = row
    for key in path[:-1]:
        parent = parent[key]
    new = change(parent[path[-1]])
    if new is NOTHING:
        del parent[path[-1]]
    else:
        parent[path[-1]] = new
    return row


def shortened(value: Any) -> Any:
    return value[:-1] if isinstance(value, list | str) else value


def lengthened(value: Any) -> Any:
    return value + value[-1:] if isinstance(value, list | str) else value


VALUES = [
    None, True, False, "", "open", "1", 0, 1, -1, -2, -3, 7, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308,
    float("nan"), float("inf"), [], [1], [None], [[1, 2]], [[]], {}, {"piece": "TopK"}, {"piece": []},
    {"table": 1, "sha256": []}, {"a": {"b": [1]}},
]  # fmt: skip
CHANGES: list[Callable[[Any], Any]] = [
    *(lambda old, new=value: new for value in VALUES),
    lambda old: NOTHING,
    lambda old: [old],
    lambda old: {"x": old},
    str,
    lambda old: -old if isinstance(old, int | float) else old,
    lambda old: old + 1 if isinstance(old, int | float) else old,
    lambda old: float(old) if isinstance(old, int) else old,
    shortened,
    lengthened,
    lambda old: old[::-1] if isinstance(old, list) else old,
]


@st.composite
def damaged(draw: st.DrawFn) -> tuple[list[Row], int]:
    rows = draw(st.sampled_from(LINES))
    at = draw(st.integers(0, len(rows) - 1))
    field = draw(st.sampled_from(sorted(rows[at])))
    path = draw(st.sampled_from(paths({field: rows[at][field]})))
    row = changed(rows[at], path, draw(st.sampled_from(CHANGES)))
    return [*rows[:at], row, *rows[at + 1 :]], at + 1


def check(rows: list[Row], number: int) -> str | None:
    """Raises unless the rows are a trace that round-trips, or an error names a line from `number` on and a field."""
    text = "\n".join(json.dumps(row) for row in rows)
    message = ""
    try:
        trace = Trace.from_json(text, frequency=tables)
    except UncodeError as error:
        message = str(error)
    if message:
        found = SENTENCE.match(message)
        assert found and int(found[1]) >= number, message
        assert len(message) < 900 and "\n" not in message, message
        return found[2]
    again = trace.to_json()
    assert Trace.from_json(again, frequency=tables).to_json() == again
    return None


@given(damaged())
@settings(max_examples=max(300, settings().max_examples))
def test_any_change_of_a_line_is_an_error_with_line_and_field_or_a_trace(case: tuple[list[Row], int]) -> None:
    check(*case)


@pytest.mark.parametrize("change", [lambda old: NOTHING, *(lambda old, new=new: new for new in (None, True, "?", {}))])
@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_is_missing_or_of_another_type_is_named(field: str, change: Callable[[Any], Any]) -> None:
    for rows in LINES:
        row = changed(rows[-1], (field,), change)
        if type(row.get(field, NOTHING)) is type(rows[-1][field]) and field in ("dtype", "versions"):
            continue  # any text, any object of texts
        named = check([*rows[:-1], row], len(rows))
        assert named and re.split(r"[.\[]", named)[0] == field


def test_good_lines_are_read() -> None:
    for rows in LINES:
        assert check(rows, 1) is None
        text = "".join(json.dumps(row) + "\n" for row in rows)
        trace = Trace.from_json(text, frequency=tables)
        keys = [key for key in rows[0] if not key.endswith(("_text", "_texts"))]
        again = [json.loads(line) for line in trace.to_json().splitlines()]
        assert [{key: row[key] for key in keys if key in row} for row in rows] == again


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        (("commit_step",), shortened, "field 'commit_step' has 3 items, expected 4"),
        (("commit_step", 0), lambda old: 99, r"'commit_step\[0\]' must be a whole number from -2 to \d+, not 99"),
        (("commit_step", 0), lambda old: -1, r"'commit_step\[0\]' disagrees with canvas_ids"),
        (("generated_ids", 1), lambda old: 2**63, r"'generated_ids\[1\]' must .* of at least 0, not 92233720"),
        (("generated_ids", 1), lambda old: MASK, r"'generated_ids\[1\]' is still masked"),
        (("prompt_ids", 0), lambda old: 1.0, r"'prompt_ids\[0\]' must be a whole number of at least 0, not 1.0"),
        (("logp", 2), lambda old: float("nan"), r"'logp\[2\]' must be a finite number or null, not nan"),
        (("logp", 2), lambda old: 10**400, "'logp' has a number that does not fit into 64 bits"),
        (("runner_up", 0), lambda old: 4.0, r"'runner_up\[0\]' must be a whole number from 0 to 3, not 4.0"),
        (("window", 0), lambda old: [2, 1], r"'window\[0\]' ends before it starts"),
        (("window", 1), lambda old: [0, 6], r"'window\[1\]' must be a whole number from 0 to 5, not 6"),
        (("window", 0), lambda old: [2], r"'window\[0\]' has 1 items, expected 2"),
        (("window", 0), lambda old: 2, r"'window\[0\]' must be a list of 2 whole numbers, not 2"),
        (("committed", 0), lambda old: old + 1, r"'committed\[0\]' disagrees with commit_step or events"),
        (("terms",), lambda old: {}, "'terms' must be those of the sampler, Confidence, not none"),
        (("observe",), lambda old: "all", "'observe' must be open or span, not 'all'"),
        (("observe",), lambda old: "span", "'observe' differs from the first line's"),
        (("sampler", "name"), lambda old: 5, "'sampler.name' must be text, not 5"),
        (("sampler", "polcy"), lambda old: {}, r"'sampler' is no sampler .*did you mean 'policy'"),
        (("canvas_ids",), lambda old: [], "'canvas_ids' is empty"),
        (("drafts", 0), shortened, r"'drafts\[0\]' has 3 items, expected 4"),
        (("note",), lambda old: {"deep": [float("inf")]}, "'note.deep.0' must be a finite number, not inf"),
    ],
)  # fmt: skip
def test_an_invalid_field_is_named_with_the_reason(
    path: tuple[Any, ...], change: Callable[[Any], Any], message: str
) -> None:
    first, second = copy.deepcopy(LINES[0])
    second["note"], second["sampler"]["polcy"] = 0, {}
    if path != ("sampler", "polcy"):
        del second["sampler"]["polcy"]
    text = json.dumps(first) + "\n\n" + json.dumps(changed(second, path, change)) + "\n"
    with pytest.raises(UncodeError, match=message) as error:
        Trace.from_json(text, frequency=tables)
    assert str(error.value).startswith("line 3 of this text cannot be read: field")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ([99, 0, 1], "step that the row did not take"),
        ([-1, 0, 1], "step that the row did not take"),
        ([0, 9, 1], "offset outside the row"),
        ([0, 0], r"'events\[0\]' has 2 items, expected 3"),
    ],
)
def test_events_are_checked(event: list[int], message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        Trace.from_json(json.dumps(changed(LINES[1][0], ("events", 0), lambda old: event)))
    with pytest.raises(UncodeError, match="field 'events' is missing, because there are event_texts"):
        Trace.from_json(json.dumps(changed(LINES[1][0], ("events",), lambda old: NOTHING)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no trace: it is empty"),
        (b"\n \r\n", "holds no trace: it is empty"),
        (b"hello", r"line 1 of '.*t\.jsonl' is not JSON \(Expecting value at column 1\)"),
        (b"\n{", r"line 2 of '.*' is not JSON \(Expecting property name enclosed in double quotes at column 2\)"),
        (b'\n\n"hello"', "line 3 of .* field 'schema' is missing, because the line is 'hello'"),
        (b'{"schema": 99}', "line 1 .* field 'schema' is 99, and this version of uncode reads schema 1; read it with"),
        (b"[" * 100_000, "line 1 .* nested too deeply"),
        (b"1" * 5000, "line 1 .* is not JSON"),
        (b"{}\n\xff\xfe", r"line 2 of .* cannot be read: it is not UTF-8 text \(invalid start byte\); restore"),
        (gzip.compress(b"{}", mtime=0)[:-3], "is compressed: unpack it with gunzip first"),
    ],
)
def test_a_file_that_is_not_a_trace_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    with pytest.raises(UncodeError, match=message):
        Trace.load(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "is a folder"), (tmp_path / "none", "does not exist"), ("\0", "be read")):
        with pytest.raises(UncodeError, match=message):
            Trace.load(path)
    with pytest.raises(UncodeError, match="loaded from a path, not from 5"):
        Trace.load(5)  # type: ignore[arg-type]


def test_line_ends_blank_lines_marks_and_separators_of_others(tmp_path: Path) -> None:
    """A byte order mark, CRLF, blank lines, and U+2028 inside a text, which ends no line."""
    rows = [row | {"note": "a\u2028b\x85c"} for row in LINES[2]]
    text = "\ufeff" + "\r\n\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\r\n"
    (tmp_path / "t.jsonl").write_bytes(text.encode())
    trace = Trace.load(tmp_path / "t.jsonl")
    assert len(trace.tokens) == 2 and trace.header["note"] == "a\u2028b\x85c"


def test_terms_in_another_order_and_notes_that_differ() -> None:
    first, second = copy.deepcopy(LINES[0])
    first["terms"] = dict(sorted(first["terms"].items(), reverse=True))
    first |= {"answer_span": [0, 1], "model": first["model"]}
    second |= {"answer_span": [1, 2]}
    trace = Trace.from_json(json.dumps(first) + "\n" + json.dumps(second), frequency=tables)
    assert list(trace.terms[0]) == list(LINES[0][0]["terms"]) and "answer_span" not in trace.header


def test_the_table_of_many_lines_is_resolved_once() -> None:
    asked = []

    def find(name: str, sha256: str) -> Any:
        asked.append(name)
        return grid.TABLE

    Trace.from_json((json.dumps(LINES[0][0]) + "\n") * 5, frequency=find)
    assert len(asked) == 1
    with pytest.raises(UncodeError, match=r"line 1 .* pass frequency= where it names a frequency table"):
        Trace.from_json(json.dumps(LINES[0][0]))


def test_lines_of_two_models_are_no_trace() -> None:
    first, second = copy.deepcopy(LINES[0])
    second |= {"model": "another"}
    with pytest.raises(UncodeError, match=r"line 2 .* 'model' differs from the first line's.*load them one by one"):
        Trace.from_json(json.dumps(first) + "\n" + json.dumps(second), frequency=tables)
    second |= {
        "model": first["model"],
        "mask_id": 99,
        "canvas_ids": [99 if i == MASK else i for i in second["canvas_ids"]],
    }
    with pytest.raises(UncodeError, match=r"line 2 .* 'mask_id' differs"):
        Trace.from_json(json.dumps(first) + "\n" + json.dumps(second), frequency=tables)
