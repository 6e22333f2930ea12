"""A count job: one corpus and one tokenizer. It is read in batches, each with a point from which to resume."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ...core.errors import require
from ..corpora.corpus import MAX_REPORTED, BadRecord, Corpus, Totals
from ..corpora.readers import Reader, Record
from ..corpora.shards import STDIN, Shard
from ..plain_words import not_text
from .encoder import Encoder
from .tally import Tally, Work
from .words import Cutter

BATCH_SECONDS = 10.0
"""A batch ends after this time at the latest, so that a kill costs little work."""
MIN_JUDGED_RECORDS = 1000
"""The share of bad records is checked from this many records on, and at the end."""


@dataclass(frozen=True)
class ResumePoint:
    """A position in the corpus: all shards before `shard`, and `records` records of it, with their checksum."""

    shard: int = 0
    records: int = 0
    checksum: int = 0


@dataclass(frozen=True)
class BadRecordRules:
    """When bad records stop the count: at the first one, or at a share of them."""

    strict: bool = False
    allow_bad: float = 0.01

    def check(self, totals: Totals, ended: bool = False) -> None:
        """Raise if there are too many bad records."""
        if not totals.bad:
            return
        first = totals.faults[0]
        require(not self.strict, f"a bad record stops a strict count: {first}.")
        require(
            totals.bad <= self.allow_bad * totals.records or not (ended or totals.records >= MIN_JUDGED_RECORDS),
            f"{totals.bad:,} of {totals.records:,} records are bad, more than the {100 * self.allow_bad:.3g} % that "
            f"`allow_bad={self.allow_bad:g}` allows (the first: {first}): check the files and `fields=`, or raise "
            "`allow_bad=`.",
        )


@dataclass
class CountBatch:
    """Work for the tokenizer, with the totals and the resume point after it."""

    work: Work
    totals: Totals
    resume_point: ResumePoint
    reached_limit: bool = False
    """Whether reading ended here at a limit of the corpus."""


OnRecord = Callable[[Totals, int, int], None]
"""Called after every record with the totals, the number of the shard and the bytes read of it."""


@dataclass(frozen=True)
class CountProgress:
    """The progress of a count, for progress bars."""

    totals: Totals
    tokens: int
    """Tokens counted so far. The tokenizer is one batch behind the reader."""
    share: float
    """The share of the corpus that is done, from 0 to 1; 0 if unknown."""


OnProgress = Callable[[CountProgress], None]


@dataclass(frozen=True)
class CountJob:
    """A corpus to count, and how to count it."""

    corpus: Corpus
    shards: tuple[Shard, ...]
    cutter: Cutter | None
    rules: BadRecordRules = field(default_factory=BadRecordRules)

    def identity(self, encoder: Encoder) -> dict[str, str]:
        """The values that must be equal to resume a count."""
        facts = dataclasses.asdict(self.corpus)
        limits = {key: facts[key] for key in ("max_bytes", "max_documents", "sample", "seed")}
        files = [(s.path, s.size, s.stamp, s.start, s.stop) for s in self.shards]
        fields = sorted({(s.fields, s.format, s.encoding) for s in self.shards})
        reading = {"files": _digest(files), "fields or formats": _digest(fields), "limits": _digest(limits)}
        return {"tokenizer": encoder.sha256} | reading

    def digest(self, encoder: Encoder) -> str:
        """A checksum of the identity; empty if a source cannot be recognised again (standard input, no stamp)."""
        seen = all(shard.stamp and shard.path != STDIN for shard in self.shards)
        return _digest(self.identity(encoder)) if seen else ""

    def share_done(self, totals: Totals, read: int) -> float:
        """The share of the corpus that is done, by bytes of the files or by the limit that is nearer to its end."""
        total, corpus = sum(shard.size for shard in self.shards), self.corpus
        parts = [read / total if total and all(shard.size for shard in self.shards) else 0.0]
        parts += [totals.bytes / corpus.max_bytes] if corpus.max_bytes else []
        parts += [totals.documents / corpus.max_documents] if corpus.max_documents else []
        return min(max(parts), 1.0)

    def batches(
        self,
        encoder: Encoder,
        start: ResumePoint,
        totals: Totals,
        on_record: OnRecord | None = None,
        done: frozenset[int] = frozenset(),
    ) -> Iterator[CountBatch]:
        """Read from `start` to the end or to a limit of the corpus, and skip the shards in `done`.

        `totals` are the totals of everything before `start`.
        """
        tally, end = Tally(encoder, self.cutter), ResumePoint(len(self.shards))
        began, patience = time.monotonic(), min(2.0, BATCH_SECONDS)  # the first batch is short, to show progress soon
        for number in (n for n in range(start.shard, end.shard) if n not in done):
            reader = Reader(self.shards[number])
            for record, data, resume_point in _records(reader, start if number == start.shard else ResumePoint(number)):
                totals.records += record.lines
                if data is None:
                    self._add_fault(BadRecord(reader.shard.path, record.line, record.why), totals)
                elif self._is_drawn(data):
                    size, documents = totals.bytes + len(data), totals.documents + 1
                    if taken := self.corpus.allows(size, documents):
                        totals.bytes, totals.documents = size, documents
                        for text in record.texts:
                            tally.add(text)
                    if not taken or self.corpus.is_reached_by(size, documents):
                        yield CountBatch(tally.take(), totals.copy(), end, reached_limit=True)
                        return
                if on_record is not None:
                    on_record(totals, number, reader.bytes_read)
                if tally.is_full or time.monotonic() - began > patience:
                    yield CountBatch(tally.take(), totals.copy(), resume_point)
                    began, patience = time.monotonic(), min(2 * patience, BATCH_SECONDS)
        yield CountBatch(tally.take(), totals.copy(), end)

    def _add_fault(self, fault: BadRecord, totals: Totals) -> None:
        totals.bad += 1
        if len(totals.faults) < MAX_REPORTED:
            totals.faults.append(fault)
        self.rules.check(totals)

    def _is_drawn(self, data: bytes) -> bool:
        """Whether a document is in the sample. A hash of its content decides, whatever the order of reading."""
        if self.corpus.sample == 1:
            return True
        drawn = hashlib.blake2b(data, digest_size=8, key=str(self.corpus.seed).encode()[:64]).digest()
        return int.from_bytes(drawn, "little") < self.corpus.sample * 2**64


def _records(reader: Reader, start: ResumePoint) -> Iterator[tuple[Record, bytes | None, ResumePoint]]:
    """The records after `start`, each with its text in bytes (None if it is bad) and the resume point after it."""
    done = checksum = 0
    for read in reader:
        record, data = _in_bytes(read, reader)
        done += 1
        checksum = _checksum(data, checksum) if data is not None else checksum
        if done > start.records:
            yield record, data, ResumePoint(start.shard, done, checksum)
        elif done == start.records:
            require(checksum == start.checksum, _changed(reader))
    require(done >= start.records, _changed(reader))


def _checksum(data: bytes, before: int) -> int:
    """A checksum of a document's length and both ends. It detects a changed file without hashing all of it."""
    return zlib.crc32(b"%d %b %b" % (len(data), data[:1024], data[-1024:]), before)


def _in_bytes(record: Record, reader: Reader) -> tuple[Record, bytes | None]:
    if record.why:
        return record, None
    try:
        return record, "".join(record.texts).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, or a byte that could not be decoded
        return reader.with_file_line(record._replace(why=not_text(reader.shard.encoding))), None


def _changed(reader: Reader) -> str:
    return f"'{reader.shard.path}' has changed since it was counted: start again with `restart=True`."


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
