"""Readers: iterate over the records of a shard, good and bad. Memory is bounded for any file."""

from __future__ import annotations

import codecs
import csv
import io
import json
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple

from ...core.errors import UncodeError
from ..plain_words import json_fault, not_text
from .shards import GUESSED, STDIN, Shard, one_line, open_file, opened, parquet

PAGE_BYTES = 1 << 20
"""A text file is read in pages: the lines that begin within this many bytes. Longer lines are cut at a space."""
MAX_LINE_BYTES = 1 << 25
"""A longer line is a bad record: its tokens would not fit into a small memory."""


class Record(NamedTuple):
    """A document: one text for each chosen field; or, for a bad record, the reason why it cannot be read."""

    line: int
    """The first line of a bad record in the file, or its row in a Parquet file, from 1."""
    texts: tuple[str, ...]
    why: str = ""
    lines: int = 1
    """The number of lines in a page of text. Each counts as a record for the share of bad records."""


class UnusableRecord(ValueError):
    """The reason why a record cannot be used."""


class Reader:
    """Iterates over the records of one shard."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self._raw: IO[bytes] | None = None
        self._before: int | None = None

    @property
    def bytes_read(self) -> int:
        """Bytes of the shard that have been read; 0 if unknown."""
        if self._raw is None or self._raw.closed or self.shard.path == STDIN or self.shard.format == "parquet":
            return 0
        return min(max(0, self._raw.tell() - self.shard.start), self.shard.size)

    def __iter__(self) -> Iterator[Record]:
        shard = self.shard
        kinds = {"text": _text, "jsonl": _jsonl, "csv": _csv, "tsv": _csv, "parquet": _parquet}
        try:
            with opened(shard) as (stream, self._raw):
                for record in kinds[shard.format](stream, shard):
                    yield self.with_file_line(record) if record.why else record
        except (OSError, EOFError, ValueError, zlib.error) as error:
            reason = one_line(error)
            raise UncodeError(
                f"'{shard.path}' could not be read to its end ({reason}): repair it or leave it out."
            ) from error

    def with_file_line(self, bad: Record) -> Record:
        """A bad record with its line number counted from the start of the file, not of the shard."""
        if self.shard.format == "parquet" or not self.shard.start:
            return bad
        if self._before is None:
            self._before = _lines_before(self.shard)
        return bad._replace(line=bad.line + self._before)


def _lines_before(shard: Shard) -> int:
    """The number of lines in earlier shards of the file."""
    found, left = 0, shard.start - 1
    with open_file(shard.path) as file:
        while left > 0 and (part := file.read(min(left, PAGE_BYTES))):
            found, left = found + part.count(b"\n"), left - len(part)
        return found + 1  # plus the line that reaches into this shard


def _lines(stream: IO[bytes], shard: Shard, longest: int) -> Iterator[tuple[int, bytes]]:
    """The lines that begin in the shard, each with the offset of its first byte. Long lines come in parts."""
    if shard.start:
        at, inside = stream.seek(shard.start - 1), True
        while inside and (part := stream.readline(longest)):
            at, inside = at + len(part), not part.endswith(b"\n")
    else:
        first = stream.readline(longest)
        if text := first.removeprefix(codecs.BOM_UTF8):
            yield 0, text
        at, inside = len(first), not first.endswith(b"\n")
    while inside or shard.stop is None or at < shard.stop:
        part = stream.readline(longest)
        if not part:
            return
        yield at, part
        at, inside = at + len(part), not part.endswith(b"\n")


def _text(stream: IO[bytes], shard: Shard) -> Iterator[Record]:
    """Pages of whole lines. A line longer than a page is read by itself, in parts."""
    page: list[bytes] = []
    number, page_at, long_line = 1, 0, None
    for at, part in _lines(stream, shard, PAGE_BYTES):
        ends = part.endswith(b"\n")
        if at == 0 and shard.path == STDIN and shard.stamp == GUESSED and part.startswith(b'{"'):
            raise UncodeError(
                "standard input looks like JSON lines: give `format=jsonl`, or `format=text` to count it as plain text."
            )
        is_long = long_line is not None or (not ends and len(part) >= PAGE_BYTES - len(codecs.BOM_UTF8))
        if page and (is_long or at // PAGE_BYTES != page_at):
            yield from _page(page, number - len(page), shard)
            page = []
        if is_long:
            long_line = long_line or _LongLine(number, shard.encoding)
            yield from long_line.add(part, ends)
            long_line = None if ends else long_line
        else:
            page_at = page_at if page else at // PAGE_BYTES
            page.append(part)
        number += ends or not is_long
    if long_line is not None:
        yield from long_line.add(b"", True)
    if page:
        yield from _page(page, number - len(page), shard)


class _LongLine:
    """A line longer than a page, as documents of about a page. It is cut at spaces where possible."""

    def __init__(self, number: int, encoding: str) -> None:
        self.number, self.encoding, self.rest = number, encoding, ""
        self.decoder = codecs.getincrementaldecoder(encoding)()

    def add(self, part: bytes, ends: bool) -> Iterator[Record]:
        try:
            text = self.rest + self.decoder.decode(part, final=ends)
        except ValueError:
            yield Record(self.number, (), not_text(self.encoding))
            lenient = codecs.getincrementaldecoder(self.encoding)("ignore")
            lenient.decode(part, final=ends)
            self.decoder.setstate(lenient.getstate())
            text = self.rest
        cut = len(text) if ends else text.rfind(" ")
        done, self.rest = (text[:cut], text[cut:]) if cut > 0 else (text, "")
        if done:
            yield Record(self.number, (done,))


def _page(lines: list[bytes], first: int, shard: Shard) -> Iterator[Record]:
    """A page as one document. A line that cannot be decoded is a bad record; the other lines are kept."""
    try:
        yield Record(first, (b"".join(lines).decode(shard.encoding),), lines=len(lines))
    except ValueError:
        good: list[str] = []
        for number, line in enumerate(lines, first):
            try:
                good.append(line.decode(shard.encoding))
            except ValueError:
                yield Record(number, (), not_text(shard.encoding))
        if good:
            yield Record(first, ("".join(good),), lines=len(good))


def _jsonl(stream: IO[bytes], shard: Shard) -> Iterator[Record]:
    paths, number, skipping = _paths(shard), 0, False
    for at, line in _lines(stream, shard, MAX_LINE_BYTES):
        begins = not skipping
        skipping = len(line) >= MAX_LINE_BYTES - len(codecs.BOM_UTF8) and not line.endswith(b"\n")
        number += begins
        if skipping or not begins:
            if begins:
                yield Record(number, (), f"longer than {MAX_LINE_BYTES >> 20} MB")
            continue
        if line.isspace():
            continue
        if at == 0 and line.lstrip().startswith(b"["):
            raise UncodeError(f"'{shard.path}' is one JSON array: write one record a line (jq -c '.[]').")
        try:
            yield Record(number, _pick(json.loads(line.decode(shard.encoding)), paths))
        except UnicodeDecodeError:
            yield Record(number, (), not_text(shard.encoding))
        except UnusableRecord as error:
            yield Record(number, (), str(error))
        except (ValueError, RecursionError) as error:
            yield Record(number, (), f"not valid JSON ({json_fault(error, one_line=True)})")


def _csv(stream: IO[bytes], shard: Shard) -> Iterator[Record]:
    csv.field_size_limit(MAX_LINE_BYTES)  # this limit of the csv module holds for the whole process
    encoding = "utf-8-sig" if codecs.lookup(shard.encoding).name == "utf-8" else shard.encoding
    text = io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline="")
    try:
        rows = csv.reader(text, delimiter="\t" if shard.format == "tsv" else ",", strict=True)
        header = next(filter(None, rows), [])
        missing = [name for name in shard.fields if name not in header]
        if missing and header:
            raise _no_column(shard, missing[0], header)
        columns = [header.index(name) for name in shard.fields if name in header]
        while True:
            line = rows.line_num + 1
            try:
                row = next(rows)
            except StopIteration:
                break
            except csv.Error as error:
                yield Record(line, (), f"not CSV: {error}")
                continue
            absent = [header[column] for column in columns if column >= len(row)]
            if row and absent:
                yield Record(line, (), f"no field '{absent[0]}'")
            elif row:
                yield Record(line, tuple(row[column] for column in columns))
    finally:
        text.detach()


def _parquet(stream: IO[bytes], shard: Shard) -> Iterator[Record]:
    if not stream.seekable() or shard.compression:
        with tempfile.TemporaryFile() as whole:
            shutil.copyfileobj(stream, whole)
            whole.seek(0)
            yield from _rows(whole, shard)
    else:
        yield from _rows(stream, shard)


def _rows(stream: IO[bytes], shard: Shard) -> Iterator[Record]:
    paths, file = _paths(shard), parquet(stream, shard.path)
    known = file.schema_arrow.names
    wanted = list(dict.fromkeys(path[0] for path in paths))
    for name in wanted:
        if name not in known:
            raise _no_column(shard, name, known)
    groups = range(file.num_row_groups)[shard.start : shard.stop]
    number = sum(file.metadata.row_group(n).num_rows for n in range(shard.start))
    for batch in file.iter_batches(256, row_groups=groups, columns=wanted):
        for row in range(batch.num_rows):
            number += 1
            try:
                yield Record(number, _pick({name: batch.column(name)[row].as_py() for name in wanted}, paths))
            except ValueError as error:
                yield Record(number, (), str(error))


def _no_column(shard: Shard, name: str, known: list[str]) -> UncodeError:
    return UncodeError(f"'{shard.path}' has no column '{name}', only {', '.join(known)}: choose one with `fields=`.")


def _paths(shard: Shard) -> list[list[str]]:
    return [name.split(".") for name in shard.fields]


def _pick(record: object, paths: list[list[str]]) -> tuple[str, ...]:
    """The texts of the chosen fields. A path follows the keys of objects and all items of lists."""
    return tuple(text for path in paths for text in _follow(record, path, ".".join(path)))


def _follow(value: object, path: list[str], name: str) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _follow(item, path, name)
    elif path:
        if not isinstance(value, dict):
            raise UnusableRecord(f"no field '{name}': not an object")
        if path[0] not in value:
            raise UnusableRecord(f"no field '{name}'")
        yield from _follow(value[path[0]], path[1:], name)
    elif isinstance(value, str):
        yield value
    else:
        raise UnusableRecord(f"the field '{name}' is {'null' if value is None else type(value).__name__}, not text")
