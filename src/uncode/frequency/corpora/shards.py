"""Shards: the parts of a corpus that are read independently, by any process."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, Any, Literal

from ...core.errors import UncodeError, require
from ...util.extras import needed

Format = Literal["text", "jsonl", "csv", "tsv", "parquet"]
FORMATS: dict[str, Format] = {
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".rst": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
COMPRESSIONS = {".gz": "gz", ".zst": "zst", ".zstd": "zst", ".bz2": "bz2"}
STDIN = "-"
GUESSED = "format guessed"
"""The stamp of standard input if the caller gave no format."""
BUFFER_BYTES = 1 << 22
"""Bytes read at a time. Each read releases the GIL, and waiting for it again costs more than the read itself."""
SHARD_BYTES = 1 << 28
"""Uncompressed files of lines are divided into shards of this size, a multiple of PAGE_BYTES."""


@dataclass(frozen=True)
class Shard:
    """A file, or a part of one: the lines that begin in the bytes `start` to `stop`, or these row groups of Parquet."""

    path: str
    format: Format
    compression: str
    size: int
    """Bytes of the file that this shard reads, for progress; 0 if unknown."""
    stamp: str = ""
    """Changes with the content of the file: mtime, ETag or similar."""
    fields: tuple[str, ...] = ("text",)
    encoding: str = "utf-8"
    start: int = 0
    stop: int | None = None


def kind_of(path: str) -> tuple[Format | None, str]:
    """The format and the compression by a file's ending. The format of an unknown ending is None."""
    stem, ending = os.path.splitext(path.partition("?")[0].lower())
    compression = COMPRESSIONS.get(ending, "")
    if compression:
        ending = os.path.splitext(stem)[1]
    return FORMATS.get(ending), compression


def divide(whole: Shard) -> list[Shard]:
    """The shards of one file, in order."""
    if whole.path == STDIN or whole.compression:
        return [whole]
    if whole.format == "parquet":
        return list(_row_groups(whole))
    if whole.format not in ("text", "jsonl") or whole.size <= SHARD_BYTES:
        return [whole]
    starts = range(0, whole.size, SHARD_BYTES)
    return [replace(whole, size=min(SHARD_BYTES, whole.size - at), start=at, stop=at + SHARD_BYTES) for at in starts]


def _row_groups(whole: Shard) -> Iterator[Shard]:
    """Shards of consecutive row groups, of about SHARD_BYTES each."""
    with opened(whole) as (stream, _):
        footer = parquet(stream, whole.path).metadata
        sizes = [footer.row_group(n).total_byte_size for n in range(footer.num_row_groups)]
    first, held = 0, 0
    for n, size in enumerate(sizes, 1):
        held += size
        if held >= SHARD_BYTES or n == len(sizes):
            share = whole.size * (n - first) // max(len(sizes), 1)
            yield replace(whole, start=first, stop=n, size=share)
            first, held = n, 0


def parquet(stream: IO[bytes], path: str) -> Any:
    """Open a Parquet file."""
    reader = needed("pyarrow.parquet", "corpora", "reading Parquet")
    try:
        return reader.ParquetFile(stream)
    except Exception as error:  # pyarrow has its own classes
        raise UncodeError(f"'{path}' is not a Parquet file: {one_line(error)}.") from error


@contextmanager
def opened(shard: Shard) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A stream of a shard's decompressed bytes, and the raw file, whose position is the progress."""
    if shard.path == STDIN:
        yield sys.stdin.buffer, sys.stdin.buffer
        return
    with open_file(shard.path) as raw:
        if not shard.compression:
            yield raw, raw
            return
        with _decompressed(raw, shard.compression) as stream:
            yield stream, raw


def open_file(path: str) -> IO[bytes]:
    """Open a local file, or a URL with fsspec."""
    try:
        if "://" not in path:
            return open(path, "rb", buffering=BUFFER_BYTES)
        import fsspec

        return io.BufferedReader(fsspec.open(path, "rb").open(), BUFFER_BYTES)
    except (OSError, ValueError, ImportError) as error:
        raise UncodeError(f"'{path}' cannot be opened: {error}.") from error


def _decompressed(raw: IO[bytes], compression: str) -> IO[bytes]:
    if compression == "gz":
        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if compression == "bz2":
        return bz2.BZ2File(raw)
    require(compression == "zst", f"'{compression}' is not a known compression: decompress the file first.")
    zstandard = needed("zstandard", "corpora", "reading zst")
    return io.BufferedReader(_Frames(raw, zstandard), BUFFER_BYTES)


def one_line(error: BaseException) -> str:
    """The message of an error on one line, without its full stop."""
    return (" ".join(str(error).split()) or type(error).__name__).rstrip(".")


class _Frames(io.RawIOBase):
    """The decompressed frames of a zst file. A truncated last frame is an error; zstandard's own reader ignores it."""

    def __init__(self, raw: IO[bytes], zstandard: Any) -> None:
        self.raw, self.zstandard = raw, zstandard
        self.frame: Any = None
        self.packed = self.plain = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into the buffer. Returns 0 at the end."""
        while not self.plain:
            self.packed = self.packed or self.raw.read(1 << 14)
            if not self.packed:
                if self.frame is not None:
                    raise EOFError("the file ends within a zst frame")
                return 0
            if self.frame is None:
                self.frame = self.zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
            try:
                self.plain = self.frame.decompress(self.packed)
            except self.zstandard.ZstdError as error:
                raise OSError(str(error)) from error
            self.packed = self.frame.unused_data if self.frame.eof else b""
            self.frame = None if self.frame.eof else self.frame
        size = min(len(buffer), len(self.plain))
        buffer[:size], self.plain = self.plain[:size], self.plain[size:]
        return size
