"""Readers return what was written, however it is compressed and sharded. Bad records are reported with their place."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from tests.small_tokenizers import TOKENIZERS
from uncode import UncodeError
from uncode.frequency.corpora import readers, shards
from uncode.frequency.corpora.corpus import BadRecord, Corpus, Source, Totals
from uncode.frequency.corpora.readers import Reader, Record
from uncode.frequency.corpora.shards import Shard
from uncode.frequency.counting.encoder import Encoder
from uncode.frequency.counting.job import BadRecordRules, CountJob, ResumePoint

BOM = b"\xef\xbb\xbf"
DOCUMENTS = [
    "The quick brown fox.",
    'He said "so", and: \'well\'; a,b\tc\\n "',
    "Größe über naïve café — straße",
    "中文字符与日本語 テキスト 한국어",
    "русский текст, ελληνικά, עברית, العربية, हिन्दी, ไทย",
    "👍🏽 \U0001f468\u200d\U0001f469\u200d\U0001f467 e\u0301",
    "two\nlines, and\r\nmore\n\n\nof them\n",
    "NUL \0, form feed \f, \x1c\x85\u2028\u2029 and \ufeff inside",
    "",
    " ",
]

Pack = Callable[[bytes], bytes]
PACKS: dict[str, Pack] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
    ".zstd": lambda data: zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(data),
    ".bz2": bz2.compress,
}


def as_jsonl(values: list[Any]) -> bytes:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values).encode()


def as_csv(delimiter: str = ",") -> Callable[[list[Any]], bytes]:
    def write(values: list[Any]) -> bytes:
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=delimiter).writerows([list(values[0]), *(value.values() for value in values)])
        return file.getvalue().encode()

    return write


def as_parquet(values: list[Any], rows: int = 1 << 20) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(values), file, row_group_size=rows)
    return file.getvalue()


WRITERS: dict[str, Callable[[list[Any]], bytes]] = {
    ".txt": lambda values: "".join(value["text"] for value in values).encode(),
    ".jsonl": as_jsonl,
    ".csv": as_csv(),
    ".tsv": as_csv("\t"),
    ".parquet": as_parquet,
}


def put(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def records(path: Path | str, **how: Any) -> list[Record]:
    return [record for shard in Corpus("corpus", (Source(str(path), **how),)).shards() for record in Reader(shard)]


def texts(path: Path | str, **how: Any) -> list[tuple[str, ...]]:
    found = records(path, **how)
    assert not any(record.why for record in found)
    return [record.texts for record in found]


def what_is_said(found: list[Record]) -> list[tuple[object, ...]]:
    """Records without what only the reader of a whole file knows: on which line a good one begins."""
    return [record if record.why else record.texts for record in found]


@contextmanager
def small(span: int, page: int = 1 << 20, longest: int = 1 << 28) -> Iterator[None]:
    """Files are divided at so many bytes and text is read in such pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SHARD_BYTES", span)
        patch.setattr(readers, "PAGE_BYTES", page)
        patch.setattr(readers, "MAX_LINE_BYTES", longest)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(TOKENIZERS["byte-level"]())


def faults(encoder: Encoder, path: Path, **how: Any) -> list[BadRecord]:
    """What counting says of the bad records of a file."""
    corpus = Corpus("corpus", (Source(str(path), **how),))
    job = CountJob(corpus, tuple(corpus.shards()), None, BadRecordRules(allow_bad=1))
    return [batch.totals for batch in job.batches(encoder, ResumePoint(), Totals())][-1].faults


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("packing", PACKS)
@pytest.mark.parametrize("kind", WRITERS)
def test_documents_are_read_back_from_every_format(kind: str, packing: str, pieces: int, tmp_path: Path) -> None:
    written = WRITERS[kind]([{"id": str(n), "text": text} for n, text in enumerate(DOCUMENTS)])
    size = -(-len(written) // pieces)
    packed = b"".join(PACKS[packing](written[at : at + size]) for at in range(0, len(written), size))
    expected = ["".join(DOCUMENTS)] if kind == ".txt" else DOCUMENTS
    assert texts(put(tmp_path, f"a{kind}{packing}", packed)) == [(text,) for text in expected]


@pytest.mark.parametrize("packing", PACKS)
@pytest.mark.parametrize("kind", [".txt", ".jsonl", ".csv", ".tsv"])
def test_an_empty_file_has_no_documents(kind: str, packing: str, tmp_path: Path) -> None:
    assert texts(put(tmp_path, f"a{kind}{packing}", PACKS[packing](b""))) == []


@pytest.mark.parametrize("packing", PACKS)
def test_a_parquet_file_without_rows_has_no_documents(packing: str, tmp_path: Path) -> None:
    file = io.BytesIO()
    parquet.write_table(pa.table({"text": pa.array([], pa.string())}), file)
    assert texts(put(tmp_path, f"a.parquet{packing}", PACKS[packing](file.getvalue()))) == []


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", BOM + b"a\r\n\r\nb", ["a\r\n\r\nb"]),
        ("a.txt", b"a\rb\0c\n\n" + BOM, ["a\rb\0c\n\n\ufeff"]),
        ("a.txt", b"\n", ["\n"]),
        ("a.txt", BOM, []),
        ("a.jsonl", BOM, []),
        ("a.jsonl", BOM + b'{"text": "a"}\r\n\r\n \t\n{"text": "b\\u0000"}', ["a", "b\0"]),
        ("a.jsonl", b'\n{"text": ""}\n\n', [""]),
        ("a.jsonl", b"\n\r\n", []),
        ("a.csv", BOM + b'text\r\n"a\r\n\nb, ""c"""\r\n\r\nd', ['a\r\n\nb, "c"', "d"]),
        ("a.csv", BOM + b'"text"\na\n', ["a"]),
        ("a.csv", b"id,text,more\n1,a\0b,\n2,,x,y,z\n", ["a\0b", ""]),
        ("a.csv", b"\n\r\ntext\na\n", ["a"]),
        ("a.csv", b"text\n", []),
        ("a.csv", b"\n\n", []),
        ("a.tsv", BOM + b'id\ttext\n1\t"a\tb\nc"\n\n2\td, e', ["a\tb\nc", "d, e"]),
    ],
)
def test_marks_line_ends_and_blank_lines(name: str, content: bytes, expected: list[str], tmp_path: Path) -> None:
    assert texts(put(tmp_path, name, content)) == [(text,) for text in expected]


@pytest.mark.parametrize("encoding", ["utf-8", "UTF-8", "utf8", "U8"])
@pytest.mark.parametrize("kind", [".txt", ".jsonl", ".csv", ".tsv"])
def test_a_mark_is_no_text_however_the_encoding_is_spelt(kind: str, encoding: str, tmp_path: Path) -> None:
    path = put(tmp_path, f"a{kind}", BOM + WRITERS[kind]([{"text": "ü"}]))
    assert texts(path, encoding=encoding) == [("ü",)]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("latin-1", "Größe"),
        ("cp1251", "русский"),
        ("shift_jis", "日本語 ソ表"),
        ("gb18030", "中文 👍"),
        ("big5", "功許"),
    ],
)
@pytest.mark.parametrize("kind", [".txt", ".jsonl", ".csv", ".tsv"])
def test_other_encodings_are_read(kind: str, encoding: str, text: str, tmp_path: Path) -> None:
    written = WRITERS[kind]([{"text": text}]).decode().encode(encoding)
    assert texts(put(tmp_path, f"a{kind}", written), encoding=encoding) == [(text,)]


RECORD = {
    "title": "T",
    "text": "t",
    "meta": {"author": {"name": "N"}},
    "messages": [{"content": "a", "role": "x"}, {"content": "b", "role": "y"}],
    "tags": ["x", "y"],
    "turns": [["p", "q"], ["r"]],
}


@pytest.mark.parametrize("kind", [".jsonl", ".parquet"])
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["text"], "t"),
        (["text", "title"], "tT"),
        (["title", "text"], "Tt"),
        (["meta.author.name"], "N"),
        (["messages.content"], "ab"),
        (["messages.role", "title"], "xyT"),
        (["tags"], "xy"),
        (["turns"], "pqr"),
    ],
)
def test_fields_are_found_inside_objects_and_lists(kind: str, fields: list[str], expected: str, tmp_path: Path) -> None:
    path = put(tmp_path, f"a{kind}", WRITERS[kind]([RECORD, RECORD]))
    assert texts(path, fields=tuple(fields)) == [tuple(expected)] * 2


def test_the_columns_of_a_csv_file_are_named_as_they_are(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", b"a.b,c,text\n1,2,3\n")
    assert texts(path, fields=("text", "a.b")) == [("3", "1")]


@pytest.mark.parametrize(
    ("field", "line", "why"),
    [
        ("text", '{"title": "x"}', "no field 'text'"),
        ("text", '{"text": null}', "the field 'text' is null"),
        ("text", '{"text": 5}', "the field 'text' is int"),
        ("text", '{"text": true}', "the field 'text' is bool"),
        ("text", '{"text": {"a": "b"}}', "the field 'text' is dict"),
        ("text", '{"text": ["a", 5]}', "the field 'text' is int"),
        ("text", '"just text"', "no field 'text': not an object"),
        ("a.b", '{"a": {"c": "x"}}', "no field 'a.b'"),
        ("a.b", '{"a": "x"}', "no field 'a.b': not an object"),
        ("a.b", '{"a": [{"b": "x"}, {}]}', "no field 'a.b'"),
        ("text", '{"text": "x"', "not valid JSON ("),
        ("text", "nonsense", "not valid JSON ("),
        ("text", '{"text": "x"} {"text": "y"}', "not valid JSON (column 15)"),
        ("text", "[" * 100_000, "not valid JSON ("),
        ("text", '{"n": ' + "9" * 5000 + "}", "not valid JSON ("),
    ],
)
def test_a_bad_line_is_reported_and_the_others_are_read(field: str, line: str, why: str, tmp_path: Path) -> None:
    good = '{"text": "x", "a": {"b": "x"}}'
    path = put(tmp_path, "a.jsonl", f"{good}\n\n{line}\n{good}".encode())
    first, bad, last = records(path, fields=(field,))
    assert first == Record(1, ("x",)) and last == Record(4, ("x",))
    assert (bad.line, bad.texts) == (3, ()) and bad.why.startswith(why)


@pytest.mark.parametrize(
    ("field", "values", "why"),
    [
        ("text", ["a", None, "b"], "the field 'text' is null"),
        ("text", [["a"], [None], ["b"]], "the field 'text' is null"),
        ("text.a", [{"a": "a"}, None, {"a": "b"}], "no field 'text.a': not an object"),
    ],
)
def test_a_bad_row_of_a_parquet_file_is_reported(field: str, values: list[Any], why: str, tmp_path: Path) -> None:
    path = put(tmp_path, "a.parquet", as_parquet([{"text": value} for value in values]))
    first, bad, last = records(path, fields=(field,))
    assert (first, last) == (Record(1, ("a",)), Record(3, ("b",)))
    assert (bad.line, bad.texts) == (2, ()) and bad.why.startswith(why)


def test_a_parquet_column_that_is_no_text_is_bad(tmp_path: Path) -> None:
    path = put(tmp_path, "a.parquet", as_parquet([{"text": 5}]))
    assert records(path) == [Record(1, (), "the field 'text' is int, not text")]


def test_a_parquet_text_that_is_not_utf8_is_bad(tmp_path: Path) -> None:
    wrong = pa.array([b"a", b"\xff", b"b"]).cast(pa.string(), safe=False)
    parquet.write_table(pa.table({"text": wrong}), tmp_path / "a.parquet")
    first, bad, last = records(tmp_path / "a.parquet")
    assert (first, last) == (Record(1, ("a",)), Record(3, ("b",))) and bad.line == 2 and "can't decode" in bad.why


def test_a_row_that_is_too_short_names_the_field_it_lacks(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", b'id,title,text\n1,"a\nb",c\n2\n\n3,d,e\n4,f\n')
    assert records(path) == [
        Record(2, ("c",)),
        Record(4, (), "no field 'text'"),
        Record(6, ("e",)),
        Record(7, (), "no field 'text'"),
    ]


def test_only_the_line_with_a_bad_byte_is_dropped_from_a_text(tmp_path: Path) -> None:
    path = put(tmp_path, "a.txt", "ä\nb\n".encode() + b"c\xff\n" + "d\n中".encode())
    bad, rest = records(path)
    assert rest == Record(1, ("ä\nb\nd\n中",), lines=4)
    assert (bad.line, bad.texts) == (3, ()) and bad.why == "not UTF-8 text"


def test_a_text_that_is_all_bad_leaves_no_document(tmp_path: Path) -> None:
    assert [(record.line, record.texts) for record in records(put(tmp_path, "a.txt", b"\xff\n\xfe"))] == [
        (1, ()),
        (2, ()),
    ]


@pytest.mark.parametrize("kind", [".jsonl", ".csv", ".tsv"])
def test_only_the_record_with_a_bad_byte_is_dropped(kind: str, encoder: Encoder, tmp_path: Path) -> None:
    written = WRITERS[kind]([{"text": text} for text in ("a", "XX", "b")])
    path = put(tmp_path, f"a{kind}", written.replace(b"XX", b"\xff"))
    (fault,) = faults(encoder, path)
    assert (fault.file, fault.line) == (str(path), 2 if kind == ".jsonl" else 3) and fault.why == "not UTF-8 text"
    assert [record.texts for record in records(path) if record.line != fault.line] == [("a",), ("b",)]


BAD_LINES = {
    "not valid JSON": b"nonsense",
    "no field": b'{"txt": "x"}',
    "a bad byte": b'{"text": "\xff"}',
    "half a surrogate pair": b'{"text": "\\ud83d"}',
    "too long": b'{"text": "%s"}' % (b"x" * 300),
}


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_bad_line_has_its_number_in_every_shard(bad: str, encoder: Encoder, tmp_path: Path) -> None:
    lines = [b'{"text": "%s"}' % (b"y" * (n % 50)) if n % 9 else BAD_LINES[bad] for n in range(1, 101)]
    lines[30:33] = [b"", b"\r", b" "]
    path = put(tmp_path, "a.jsonl", b"\n".join(lines))
    with small(span=128, page=64, longest=256):
        assert [fault.line for fault in faults(encoder, path)] == [n for n in range(1, 101) if n % 9 == 0]


def test_a_bad_line_of_a_text_has_its_number_in_every_shard(encoder: Encoder, tmp_path: Path) -> None:
    lines = [b"y" * (n % 50) if n % 9 else b"\xff" for n in range(1, 101)]
    with small(span=128, page=64):
        found = faults(encoder, put(tmp_path, "a.txt", b"\n".join(lines)))
    assert [fault.line for fault in found] == [n for n in range(1, 101) if n % 9 == 0]


@pytest.mark.parametrize("mark", [b"", BOM])
def test_a_line_longer_than_the_longest_is_one_bad_record(mark: bytes, tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", mark + as_jsonl([{"text": "x" * 200}, {"text": "y"}]))
    with small(span=1 << 20, longest=64):
        bad, good = records(path)
    assert (bad.line, bad.texts) == (1, ()) and bad.why.startswith("longer than")
    assert good == Record(2, ("y",))


SIZES = st.tuples(st.integers(1, 6), st.sampled_from([8, 16, 50])).map(lambda sizes: (sizes[0] * sizes[1], sizes[1]))
PIECES = [b"\n", b"\n", b"\r\n", b"\r", b" ", b"a", b"a word or two ", b"\0", BOM, b"x" * 60, b"y " * 40, b"\n" * 20]
PIECES += [text.encode() for text in ("é", "中文", "👍", "中" * 30, "👍 " * 12, "\u2028")]
VALID = st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join)
ANY = st.lists(st.sampled_from([*PIECES, b"\xff", b"\xe4\xb8", b"\x80"]), max_size=40).map(b"".join)


@given(content=ANY, sizes=SIZES)
def test_a_divided_text_has_the_records_of_the_whole(content: bytes, sizes: tuple[int, int], folder: Path) -> None:
    path = put(folder, "a.txt", content)
    with small(1 << 20, sizes[1]):
        whole = records(path)
    with small(*sizes):
        assert what_is_said(records(path)) == what_is_said(whole)


@given(content=VALID, sizes=SIZES)
def test_the_pages_of_a_text_are_its_text(content: bytes, sizes: tuple[int, int], folder: Path) -> None:
    path = put(folder, "a.txt", content)
    with small(*sizes):
        pages = texts(path)
    assert "".join(text for (text,) in pages) == content.removeprefix(BOM).decode()
    assert all(0 < len(text.encode()) <= 2 * sizes[1] for (text,) in pages)


@given(content=VALID, page=st.sampled_from([8, 16, 50]))
def test_packed_text_has_the_pages_of_plain_text(content: bytes, page: int, folder: Path) -> None:
    with small(page * 2, page):
        plain = what_is_said(records(put(folder, "a.txt", content)))
        assert what_is_said(records(put(folder, "a.txt.gz", gzip.compress(content)))) == plain


LINES = st.lists(
    st.one_of(
        st.text(st.characters(codec="utf-8"), max_size=30).map(lambda text: as_jsonl([{"text": text}])[:-1]),
        st.sampled_from([b"", b" ", b"\r", b"nonsense\r", b'{"text": null}', b'{"text": "\xff"}', b"{" + b"x" * 90]),
    ),
    max_size=20,
)


@given(lines=LINES, start=st.sampled_from([b"", BOM]), end=st.sampled_from([b"", b"\n"]), sizes=SIZES)
def test_a_divided_jsonl_file_has_the_records_of_the_whole(
    lines: list[bytes], start: bytes, end: bytes, sizes: tuple[int, int], folder: Path
) -> None:
    path = put(folder, "a.jsonl", start + b"\n".join(lines) + end)
    whole = records(path)
    assert [record.line for record in whole] == [n for n, line in enumerate(lines, 1) if line.strip()]
    with small(*sizes):
        assert what_is_said(records(path)) == what_is_said(whole)
    with small(1 << 20, longest=64):
        cut = records(path)
    with small(*sizes, longest=64):
        assert what_is_said(records(path)) == what_is_said(cut)


@pytest.mark.parametrize("kind", [".txt", ".jsonl"])
def test_only_plain_files_of_lines_are_divided(kind: str, tmp_path: Path) -> None:
    written = WRITERS[kind]([{"text": "x" * 98 + "\n"} for _ in range(100)])
    with small(1 << 10, 1 << 9):
        for name, parts in {f"a{kind}": -(-len(written) // 1024), f"a{kind}.gz": 1, "a.csv": 1}.items():
            path = put(tmp_path, name, PACKS[".gz" if name.endswith(".gz") else ""](written))
            found = Corpus("corpus", (Source(str(path)),)).shards()
            assert len(found) == parts and sum(shard.size for shard in found) == path.stat().st_size


@pytest.mark.parametrize("span", [1, 600, 2000, 1 << 28])
@pytest.mark.parametrize("rows", [7, 300])
def test_a_divided_parquet_file_has_the_rows_of_the_whole(rows: int, span: int, tmp_path: Path) -> None:
    values = [{"n": n, "text": f"{n} " * 20 if n % 10 else None} for n in range(1000)]
    path = put(tmp_path, "a.parquet", as_parquet(values, rows))
    with small(span):
        assert (len(Corpus("corpus", (Source(str(path)),)).shards()) > 1) == (span < 1 << 28)
        found = records(path)
    assert [(record.line, record.texts) for record in found] == [
        (value["n"] + 1, (value["text"],) if value["text"] else ()) for value in values
    ]


@pytest.mark.parametrize(
    ("line", "spaced"),
    [("many words " * 100, True), ("中文 字符 👍 " * 50, True), ("x" * 1000, False), ("中" * 500, False)],
)
@pytest.mark.parametrize("mark", [b"", BOM])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_long_line_is_cut_at_spaces_and_nothing_is_lost(
    line: str, spaced: bool, mark: bytes, end: str, tmp_path: Path
) -> None:
    path = put(tmp_path, "a.txt", mark + f"before\n{line}{end}".encode())
    with small(1 << 20, page=64):
        pages = [text for (text,) in texts(path)]
    assert pages[0] == "before\n" and "".join(pages[1:]) == line + end
    assert len(pages) > 8 and all(len(page.encode()) <= 2 * 64 for page in pages)
    assert not spaced or all(page.startswith(" ") for page in pages[2:])


def test_lines_around_a_long_one_keep_their_pages_and_numbers(tmp_path: Path) -> None:
    path = put(tmp_path, "a.txt", b"a\nb\n" + b"word " * 40 + b"\nc\n\xff\n")
    with small(1 << 20, page=64):
        found = records(path)
    assert found[0] == Record(1, ("a\nb\n",), lines=2) and {record.line for record in found[1:-2]} == {3}
    assert "".join(text for record in found[1:-2] for text in record.texts) == "word " * 40 + "\n"
    assert found[-2].line == 5 and found[-2].why and found[-1] == Record(4, ("c\n",))


@pytest.mark.parametrize("at", range(300, 310))
def test_a_bad_byte_in_a_long_line_costs_one_part(at: int, tmp_path: Path) -> None:
    line = "中".encode() * 300
    path = put(tmp_path, "a.txt", line[:at] + b"\xff" + line[at:])
    with small(1 << 20, page=64):
        found = records(path)
    assert [record.line for record in found if record.why] == [1]
    kept = "".join(text for record in found for text in record.texts)
    assert set(kept) == {"中"} and len(kept) >= 300 - 2 * 64 // 3


@pytest.mark.parametrize("packing", PACKS)
def test_bytes_read_grow_to_the_size_of_the_shard(packing: str, tmp_path: Path) -> None:
    path = put(tmp_path, f"a.jsonl{packing}", PACKS[packing](as_jsonl([{"text": f"{n}"} for n in range(3000)])))
    with small(1 << 14, 1 << 13):
        for shard in Corpus("corpus", (Source(str(path)),)).shards():
            reader = Reader(shard)
            progress = [reader.bytes_read, *(reader.bytes_read for _ in reader)]
            assert progress == sorted(progress) and progress[0] == 0 and progress[-1] == shard.size
            assert packing or len(set(progress)) == len(progress)


@pytest.mark.parametrize("packing", PACKS)
@pytest.mark.parametrize("kind", WRITERS)
def test_a_reader_may_be_left_early(kind: str, packing: str, tmp_path: Path) -> None:
    path = put(tmp_path, f"a{kind}{packing}", PACKS[packing](WRITERS[kind]([{"text": "x\n" * 99}] * 9)))
    (shard,) = Corpus("corpus", (Source(str(path)),)).shards()
    with small(1 << 20, page=64):
        assert next(iter(Reader(shard))).texts


TEXT = b"".join(b"line %d of some text\n" % n for n in range(30_000))
PARQUET = as_parquet([{"text": f"{n} some text"} for n in range(3000)])
LONG_WINDOW = b"\x28\xb5\x2f\xfd\x00\xa8" + (5 << 3 | 1).to_bytes(3, "little") + b"text\n"
"""A zst frame as `zstd --long=31` begins it: one raw block, in a window of 2 GiB."""


def test_zst_with_a_long_window_is_read(tmp_path: Path) -> None:
    assert texts(put(tmp_path, "a.txt.zst", LONG_WINDOW)) == [("text\n",)]


def without(data: bytes, at: int, count: int = 8) -> bytes:
    return data[:at] + b"\xff" * count + data[at + count :]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((f"cut.txt{end}", pack(TEXT)[:-3000]) for end, pack in PACKS.items() if end),
        *((f"cut by a byte.txt{end}", pack(TEXT)[:-1]) for end, pack in PACKS.items() if end),
        *((f"plain.txt{end}", TEXT) for end in PACKS if end),
        *((f"more.txt{end}", PACKS[end](TEXT) + b"and more text") for end in (".gz", ".zst", ".zstd")),
        *((f"wrong at the start.txt{end}", without(pack(TEXT), 12)) for end, pack in PACKS.items() if end),
        *((f"wrong.txt{end}", without(PACKS[end](TEXT), 5000)) for end in (".gz", ".zstd", ".bz2")),
        ("garbage.parquet", TEXT),
        ("empty.parquet", b""),
        ("cut.parquet", PARQUET[:-3000]),
        ("wrong.parquet", without(PARQUET, 4, 40)),
        ("wrong later.parquet", without(PARQUET, 3000)),
        ("garbage.parquet.gz", gzip.compress(TEXT)),
        ("array.json", b'[\n{"text": "a"},\n{"text": "b"}\n]\n'),
        ("array with a mark.json", BOM + b'[{"text": "a"},\n{"text": "b"}]'),
        ("array on one line.json", b'[{"text": "a"}, {"text": "b"}]'),
    ],
)
def test_a_damaged_file_is_one_sentence(name: str, content: bytes, tmp_path: Path) -> None:
    path = put(tmp_path, name, content)
    with pytest.raises(UncodeError) as caught:
        records(path)
    said = str(caught.value)
    assert said.startswith(f"'{path}' ") and said.endswith(".") and not said.endswith("..") and "\n" not in said


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".parquet"])
def test_a_missing_column_names_those_there_are(kind: str, tmp_path: Path) -> None:
    path = put(tmp_path, f"a{kind}", WRITERS[kind]([{"title": "a", "body": "b"}]))
    with pytest.raises(UncodeError, match=rf"a{kind}'.* no column 'text', only title, body: choose one with `fields=`"):
        records(path)


@pytest.mark.parametrize("kind", ["text", "jsonl", "csv", "parquet"])
@pytest.mark.parametrize("path", ["", "no/such/file", "memory://no/such/file", "what://is/this"])
def test_a_file_that_cannot_be_opened_is_one_sentence(kind: Any, path: str, tmp_path: Path) -> None:
    path = path or str(tmp_path)
    with pytest.raises(UncodeError, match=f"^'{path}' cannot be opened: .*[^.]\\.$"):
        list(Reader(Shard(path, kind, "", 0)))


@pytest.mark.parametrize("kind", ["text", "jsonl", "csv", "tsv", "parquet"])
def test_every_format_comes_through_a_pipe(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    there, here = os.pipe()
    with os.fdopen(here, "wb") as written:
        written.write(WRITERS[".txt" if kind == "text" else f".{kind}"]([{"text": "a ü"}]))
    with os.fdopen(there, "r") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert texts("-", format=kind) == [("a ü",)]
