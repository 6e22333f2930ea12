"""Files of JSON lines: the line number in an error is the one an editor shows, whatever stands between the lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from uncode import UncodeError
from uncode.cli.answering.prompts import read_file
from uncode.core.support.json_lines import read_json_lines
from uncode.evals.regrade import read_answers
from uncode.evals.suite.families import FAMILIES
from uncode.evals.tasks import find_task
from uncode.frequency.corpora.readers import Reader
from uncode.frequency.corpora.shards import Shard

GOOD = {
    "answers": {"question": "How many?", "output": "\\boxed{18}", "gold": 18.0},
    "data": {"question": "How many?", "answer": "18 #### 18"},
    "prompts": {"prompt": "a\u2028b"},
    "corpus": {"text": "some text"},
}


def read(kind: str, path: Path) -> int:
    """How many records the file holds."""
    if kind == "answers":
        return len(read_answers(path, find_task("gsm8k"), None))
    if kind == "data":
        return len(find_task("gsm8k").examples(path.parent))
    if kind == "prompts":
        return len(read_file(path, path.with_name("out.jsonl")).lines)
    records = list(Reader(Shard(str(path), "jsonl", "", path.stat().st_size)))
    bad = [record for record in records if record.why]
    if bad:
        raise UncodeError(f"line {bad[0].line}: {bad[0].why}")
    return len(records)


LAYOUTS: dict[str, tuple[Callable[[str, str], str], int]] = {
    "plain": (lambda good, other: f"{good}\n{other}\n", 2),
    "no last line end": (lambda good, other: f"{good}\n{other}", 2),
    "CRLF": (lambda good, other: f"{good}\r\n{other}\r\n", 2),
    "blank lines": (lambda good, other: f"\n{good}\n \n\n{other}\n\n", 5),
    "blank CRLF lines": (lambda good, other: f"\r\n{good}\r\n\r\n{other}\r\n", 4),
    "a byte order mark": (lambda good, other: f"\ufeff{good}\n{other}\n", 2),
    "a mark and a blank line": (lambda good, other: f"\ufeff\n{good}\n{other}\n", 3),
}
BAD = {"half a line": '{"id": 1, ', "no object": "[1]", "another field": '{"nothing": 1}', "a bare word": "nonsense"}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", GOOD)
def test_a_bad_line_has_its_own_number(kind: str, layout: str, tmp_path: Path) -> None:
    path, (lay, number) = tmp_path / "gsm8k.jsonl", LAYOUTS[layout]
    good = json.dumps(GOOD[kind], ensure_ascii=False)
    path.write_bytes(lay(good, good.replace("How", "Why")).encode())
    assert read(kind, path) == 2
    for bad in BAD.values():
        path.write_bytes(lay(good, bad).encode())
        with pytest.raises(UncodeError) as error:
            read(kind, path)
        assert f"line {number}" in str(error.value)
        if kind != "prompts":  # its message quotes that of json, which counts its own lines
            assert number == 1 or "line 1" not in str(error.value)


def test_a_bad_second_line_of_an_answers_file_is_not_called_line_1(tmp_path: Path) -> None:
    path, good = tmp_path / "answers.jsonl", json.dumps(GOOD["answers"])
    for bad, message in [
        ("{", r"^line 2 of 'answers\.jsonl' is not JSON \(Expecting property name .* at column 2\): correct or remove"),
        ('{"question": 5, "output": "x", "gold": 1}', "^line 2 of .* cannot be graded"),
        (
            '{"question": "?", "output": "x", "gold": null}',
            r"^line 2 of .* \(it has no gold answer; give the benchmark",
        ),
        ('{"question": "?", "output": null, "gold": 1}', r"^line 2 of .* \(its text is None\)"),
    ]:
        path.write_text(f"{good}\n{bad}\n{good}\n")
        with pytest.raises(UncodeError, match=message):
            read_answers(path, find_task("gsm8k"), None)


def test_a_question_that_the_data_does_not_hold(tmp_path: Path) -> None:
    (tmp_path / "gsm8k.jsonl").write_text(json.dumps(GOOD["data"]) + "\n")
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps(GOOD["answers"]) + "\n\n" + json.dumps(GOOD["answers"] | {"question": "Why?"}))
    with pytest.raises(UncodeError, match=r"^line 3 of .* \(the data does not hold its question\)"):
        read_answers(path, find_task("gsm8k"), tmp_path)


def test_the_problems_of_a_family(tmp_path: Path) -> None:
    family = next(iter(FAMILIES.values()))
    with pytest.raises(UncodeError, match="there is no file"):
        family.examples(tmp_path)
    for bad, message in [("{", "line 2 of '.*' is not JSON"), ('{"x": 1}', "line 2 of .* is not as expected")]:
        (tmp_path / f"{family.name}.jsonl").write_text(f"\n{bad}\n")
        with pytest.raises(UncodeError, match=message):
            family.examples(tmp_path)


def test_only_a_line_feed_ends_a_line() -> None:
    text = "\ufeff" + json.dumps("a\u2028b\x85c\x0bd", ensure_ascii=False).replace("\\u000b", "\u000c") + "\r\n\n3"
    with pytest.raises(UncodeError, match="line 1 of x is not JSON"):  # a control character inside a string
        list(read_json_lines(text, "x"))
    assert list(read_json_lines(text.replace("\x0c", ""), "x")) == [(1, "a\u2028b\x85cd"), (3, 3)]
