"""Corpora: paths, globs, folders, URLs and dataset ids, resolved to a list of shards; totals of what was read."""

from __future__ import annotations

import codecs
import glob
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from ...core.errors import UncodeError, require, suggest
from ...util.extras import needed
from ...util.fetch import is_offline, unreachable_hub
from .shards import COMPRESSIONS, FORMATS, GUESSED, STDIN, Format, Shard, divide, kind_of, one_line

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
MAX_REPORTED = 20
"""At most this many bad records are reported one by one."""


@dataclass(frozen=True)
class Source:
    """A source of documents, and how to read it."""

    where: str
    """A file, glob, folder, URL (s3://, hf://, https://, ...), dataset id, or - for standard input."""
    format: Format | None = None
    """None: by the names of the files."""
    fields: tuple[str, ...] = ("text",)
    encoding: str = "utf-8"
    config: str | None = None
    split: str = "train"
    revision: str | None = None
    """Configuration, split and revision of a dataset id."""


@dataclass(frozen=True)
class BadRecord:
    """A bad record: its file, its line and the reason."""

    file: str
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.why}"


@dataclass
class Totals:
    """Totals of the records read so far."""

    records: int = 0
    documents: int = 0
    bytes: int = 0
    bad: int = 0
    faults: list[BadRecord] = field(default_factory=list)

    def copy(self) -> Totals:
        """A snapshot of the totals."""
        return replace(self, faults=list(self.faults))

    def add(self, other: Totals) -> None:
        """Add the totals of another shard."""
        self.records += other.records
        self.documents += other.documents
        self.bytes += other.bytes
        self.bad += other.bad
        self.faults = (self.faults + other.faults)[:MAX_REPORTED]


@dataclass(frozen=True)
class Corpus:
    """Sources in order, with limits: the first documents, or a sample of them."""

    name: str
    sources: tuple[Source, ...]
    max_bytes: int | None = None
    max_documents: int | None = None
    sample: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        require(len(self.sources) > 0, "the corpus has no source: name a file, a folder or a dataset.")
        require(0 < self.sample <= 1, f"sample must be above 0 and at most 1, not {self.sample:g}.")
        for name, limit in self.limits().items():
            require(limit > 0, f"{name} must be above 0, not {limit}.")

    def limits(self) -> dict[str, int]:
        """The limits that are given, by their names."""
        given = {"max_bytes": self.max_bytes, "max_documents": self.max_documents}
        return {name: limit for name, limit in given.items() if limit is not None}

    def allows(self, size: int, documents: int) -> bool:
        """Whether totals of `size` bytes and `documents` documents are within the limits."""
        fits = self.max_bytes is None or size <= self.max_bytes
        return fits and (self.max_documents is None or documents <= self.max_documents)

    def is_reached_by(self, size: int, documents: int) -> bool:
        """Whether these totals reach a limit exactly."""
        return size == self.max_bytes or documents == self.max_documents

    def remaining_after(self, totals: Totals) -> Corpus | None:
        """The corpus with the limits that remain after `totals`; None if a limit is reached."""
        if self.is_reached_by(totals.bytes, totals.documents):
            return None
        left_bytes = None if self.max_bytes is None else self.max_bytes - totals.bytes
        left_documents = None if self.max_documents is None else self.max_documents - totals.documents
        return replace(self, max_bytes=left_bytes, max_documents=left_documents)

    def shards(self) -> list[Shard]:
        """All shards, in order. A file that is named twice is read once."""
        found: dict[tuple[str, tuple[str, ...]], Shard] = {}
        for source in self.sources:
            for path in _files(source):
                shard = _shard(path, source)
                found.setdefault((_canonical(path), shard.fields), shard)
        return [part for shard in found.values() for part in divide(shard)]


def read_size(text: str) -> int:
    """The number of bytes in a text such as 16GB, 1.5 GiB or 300000."""
    match = _SIZE.fullmatch(text.strip())
    require(match is not None, f"'{text}' is not a size: write 16GB, 500MB or a number of bytes.")
    assert match is not None
    number, letter, binary = match.groups()
    return int(Decimal(number) * (1024 if binary else 1000) ** " kmgt".index(letter.lower() or " "))


def _shard(path: str, source: Source) -> Shard:
    """A whole file as one shard."""
    kind, compression = kind_of(path)
    chosen = source.format or ("text" if path == STDIN else kind)
    endings = ", ".join([*FORMATS, *COMPRESSIONS])
    require(chosen is not None, f"'{path}' has no known ending ({endings}): give its `format=`.")
    assert chosen is not None
    encoding = _check_encoding(source.encoding)
    size, stamp = (0, "" if source.format else GUESSED) if path == STDIN else _stat(path)
    return Shard(path, chosen, compression, size, stamp, source.fields, encoding)


def _check_encoding(encoding: str) -> str:
    """The canonical name of an encoding. Raise if files in it cannot be read line by line."""
    try:
        name = codecs.lookup(encoding).name
        if name == "utf-8-sig":
            return "utf-8"
        has_lines = "\n".encode(encoding) == b"\n" and codecs.getincrementaldecoder(encoding) is not None
    except (LookupError, UnicodeError):
        raise UncodeError(f"'{encoding}' is not an encoding that Python knows: give another `encoding=`.") from None
    require(has_lines, f"files in {encoding} cannot be read line by line: convert them to UTF-8 (iconv).")
    return name


def _stat(path: str) -> tuple[int, str]:
    """A file's size, and a stamp that changes with its content: mtime, ETag or similar."""
    if "://" not in path:
        facts = os.stat(path)
        return facts.st_size, str(facts.st_mtime_ns)
    with _one_sentence(path):
        filesystem, inside = _remote(path)
        facts = filesystem.info(inside)
        stamps = (facts.get(key) for key in ("ETag", "etag", "blob_id", "Last-Modified", "mtime"))
        return int(facts.get("size") or 0), str(next(filter(None, stamps), ""))


def _files(source: Source) -> Iterator[str]:
    """The files of a source, sorted by name."""
    where = source.where
    if where == STDIN:
        yield where
    elif "://" in where:
        yield from _remote_files(where, source)
    elif os.path.isdir(where):
        yield from _with_known_endings(sorted(_walk(where)), source, where)
    elif os.path.isfile(where):
        yield where
    elif glob.has_magic(where):
        found = sorted(path for path in glob.glob(where, recursive=True) if os.path.isfile(path))
        require(len(found) > 0, f"no file matches '{where}'.")
        yield from found
    else:
        yield from _dataset_files(source)


def is_dataset_id(where: str) -> bool:
    """Whether a source can only be a dataset id (owner/name), because there is no such file or folder."""
    return _ID.fullmatch(where) is not None and not os.path.exists(where) and not os.path.exists(os.path.dirname(where))


def _walk(folder: str) -> Iterator[str]:
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(at, name) for name in files if not name.startswith("."))


def _with_known_endings(paths: list[str], source: Source, where: str) -> list[str]:
    """The files of a folder that have a known ending; all of them if a format is given."""
    found = paths if source.format else [path for path in paths if kind_of(path)[0]]
    require(
        len(found) > 0, f"'{where}' holds no file with a known ending ({', '.join(FORMATS)}): give their `format=`."
    )
    return found


def _canonical(path: str) -> str:
    """The canonical path or URL of a file."""
    if "://" not in path:
        return os.path.realpath(path)
    filesystem, inside = _remote(path)
    local = "file" in filesystem.protocol
    return os.path.realpath(inside) if local else filesystem.unstrip_protocol(inside)


def _without_hidden(paths: list[str], inside: str) -> list[str]:
    """The paths that are not hidden, nor in a hidden folder below `inside`."""
    base = inside.count("/")
    return [path for path in paths if not any(part.startswith(".") for part in path.split("/")[base:])]


def _remote(path: str) -> tuple[Any, str]:
    import fsspec

    filesystem, inside = fsspec.core.url_to_fs(path)
    return filesystem, inside


def _remote_files(where: str, source: Source) -> list[str]:
    with _one_sentence(where):
        filesystem, inside = _remote(where)
        if glob.has_magic(inside):
            facts = filesystem.glob(inside, detail=True)
            wild = inside.split("/")
            first = next(n for n, part in enumerate(wild) if glob.has_magic(part))
            found = sorted(path for path, fact in facts.items() if fact["type"] == "file")
            found = _without_hidden(found, "/".join(wild[: first + 1]))
            require(len(found) > 0, f"no file matches '{where}'.")
        elif not where.startswith("http") and filesystem.isdir(inside):
            found = _with_known_endings(_without_hidden(sorted(filesystem.find(inside)), inside + "/"), source, where)
        else:
            return [where]
        return [filesystem.unstrip_protocol(path) for path in found]


def _dataset_files(source: Source) -> list[str]:
    """The files of a dataset on the hub, for the source's configuration and split."""
    where = source.where
    absent = f"there is no file or folder '{where}' here, and"
    require(is_dataset_id(where), f"{absent} it is not a dataset id (owner/name): check the path.")
    datasets = needed("datasets", "corpora", f"{absent} reading it as a dataset id")
    if (hub := unreachable_hub(where)) is not None:
        raise UncodeError(
            f"{absent} as a dataset id it cannot be fetched, because the hub ({hub}) cannot be reached: check the "
            "path, or try again with a network."
        )
    offline = " in offline mode (HF_HUB_OFFLINE)" if is_offline() else ""
    with _one_sentence(where, f"{absent} as a dataset id it cannot be read{offline}"):
        builder = datasets.load_dataset_builder(where, source.config, revision=source.revision)
        files = builder.config.data_files or {}
        require(
            source.split in files,
            f"'{where}' has no split '{source.split}': {suggest(source.split, map(str, files))}",
        )
        return [str(path) for path in files[source.split]]


@contextmanager
def _one_sentence(where: str, begins: str = "") -> Iterator[None]:
    """Turn the errors of hubs and clouds into an UncodeError of one sentence, which starts with `begins`."""
    begins = begins or f"'{where}' cannot be read"
    try:
        yield
    except UncodeError:
        raise
    except ImportError as error:  # fsspec names the missing package of a file system
        extra = "pip install 'uncode[corpora]'" if where.startswith("http") else one_line(error)
        raise UncodeError(f"{begins}, because a package for such URLs is missing: {extra}.") from error
    except Exception as error:  # each file system has its own classes
        why = one_line(error) if str(error) != where else "no file is there, or the server cannot be reached"
        raise UncodeError(f"{begins}: {why}.") from error
