"""A job: one corpus, one tokenizer. It is read in batches; each says how far it reaches, so that counting can go on."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import require
from ..corpora.corpus import Corpus
from ..corpora.readers import Reader, Record
from ..corpora.shards import STDIN, Shard
from ..corpora.totals import MAX_REPORTED, Fault, Totals
from ..plain_words import not_text
from .encoder import Encoder
from .tally import Tally, Work
from .words import Cutter

BATCH_SECONDS = 10.0
"""A batch is ended after so long, that a kill may cost little."""
ENOUGH = 1000
"""Records that must have been read before a share of bad ones means anything."""


@dataclass(frozen=True)
class Place:
    """How far counting has come: all shards before this one, and so many records of it, with their checksum."""

    shard: int = 0
    records: int = 0
    checksum: int = 0


@dataclass(frozen=True)
class Rules:
    """What is done about bad records."""

    strict: bool = False
    allowed: float = 0.01

    def check(self, totals: Totals, ended: bool = False) -> None:
        """Raise if there are too many of them."""
        if not totals.bad:
            return
        first = totals.faults[0]
        require(not self.strict, f"a bad record stops a strict count: {first}.")
        require(
            totals.bad <= self.allowed * totals.records or not (ended or totals.records >= ENOUGH),
            f"bad records: {totals.bad:,} of {totals.records:,}, more than the {100 * self.allowed:.3g} % that "
            f"--allow-bad {self.allowed:g} allows; the first is {first}: check the files and --field, or raise "
            "--allow-bad.",
        )


@dataclass
class Batch:
    """Work for the tokenizer; what has been read and how far, once it is done."""

    work: Work
    totals: Totals
    place: Place
    enough: bool = False
    """Whether reading ends here because the corpus is large enough."""


Tell = Callable[[Totals, int, int], None]
"""Called after every record with the totals, the number of the shard and how many bytes of it are read."""


@dataclass(frozen=True)
class Job:
    """What is counted, and how."""

    corpus: Corpus
    shards: tuple[Shard, ...]
    cutter: Cutter | None
    rules: Rules = field(default_factory=Rules)

    def identity(self, encoder: Encoder) -> dict[str, str]:
        """What must be the same for counting to go on where it stopped."""
        facts = dataclasses.asdict(self.corpus)
        limits = {key: facts[key] for key in ("max_bytes", "max_documents", "sample", "seed")}
        files = [(s.path, s.size, s.stamp, s.start, s.stop) for s in self.shards]
        fields = sorted({(s.fields, s.format, s.encoding) for s in self.shards})
        reading = {"files": _digest(files), "fields or formats": _digest(fields), "limits": _digest(limits)}
        return {"tokenizer": encoder.sha256} | reading

    def digest(self, encoder: Encoder) -> str:
        """A checksum of that identity; empty where a source cannot be seen to be the same again."""
        seen = all(shard.stamp and shard.path != STDIN for shard in self.shards)
        return _digest(self.identity(encoder)) if seen else ""

    def batches(
        self,
        encoder: Encoder,
        start: Place,
        totals: Totals,
        tell: Tell | None = None,
        done: frozenset[int] = frozenset(),
    ) -> Iterator[Batch]:
        """Read from `start` to the end, or to where the corpus is large enough, but for shards that are `done`.

        `totals` are those of all that was read before.
        """
        tally, end = Tally(encoder, self.cutter), Place(len(self.shards))
        began, patience = time.monotonic(), min(2.0, BATCH_SECONDS)  # the first is short, to have something to show
        for number in (n for n in range(start.shard, end.shard) if n not in done):
            reader = Reader(self.shards[number])
            for record, data, place in _records(reader, start if number == start.shard else Place(number)):
                totals.records += record.lines
                if data is None:
                    self._note(Fault(reader.shard.path, record.line, record.why), totals)
                elif self._is_drawn(data):
                    size, documents = totals.bytes + len(data), totals.documents + 1
                    if taken := self.corpus.has_room_for(size, documents):
                        totals.bytes, totals.documents = size, documents
                        for text in record.texts:
                            tally.add(text)
                    if not taken or self.corpus.is_full_with(size, documents):
                        yield Batch(tally.take(), totals.copy(), end, enough=True)
                        return
                if tell is not None:
                    tell(totals, number, reader.position)
                if tally.full or time.monotonic() - began > patience:
                    yield Batch(tally.take(), totals.copy(), place)
                    began, patience = time.monotonic(), min(2 * patience, BATCH_SECONDS)
        yield Batch(tally.take(), totals.copy(), end)

    def _note(self, fault: Fault, totals: Totals) -> None:
        totals.bad += 1
        if len(totals.faults) < MAX_REPORTED:
            totals.faults.append(fault)
        self.rules.check(totals)

    def _is_drawn(self, data: bytes) -> bool:
        """Whether a document is in the sample: by its content, so wherever and in whatever order it is read."""
        if self.corpus.sample == 1:
            return True
        drawn = hashlib.blake2b(data, digest_size=8, key=str(self.corpus.seed).encode()[:64]).digest()
        return int.from_bytes(drawn, "little") < self.corpus.sample * 2**64


def _records(reader: Reader, start: Place) -> Iterator[tuple[Record, bytes | None, Place]]:
    """The records after `start`, each with its text in bytes, None if it is bad, and the place after it."""
    done = checksum = 0
    for read in reader:
        record, data = _in_bytes(read, reader)
        done += 1
        checksum = _checksum(data, checksum) if data is not None else checksum
        if done > start.records:
            yield record, data, Place(start.shard, done, checksum)
        elif done == start.records:
            require(checksum == start.checksum, _changed(reader))
    require(done >= start.records, _changed(reader))


def _checksum(data: bytes, before: int) -> int:
    """Of a document's length and both its ends: enough to see that a file has changed, and no second pass over it."""
    return zlib.crc32(b"%d %b %b" % (len(data), data[:1024], data[-1024:]), before)


def _in_bytes(record: Record, reader: Reader) -> tuple[Record, bytes | None]:
    if record.why:
        return record, None
    try:
        return record, "".join(record.texts).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, or a byte that could not be decoded
        return reader.placed(record._replace(why=not_text(reader.shard.encoding))), None


def _changed(reader: Reader) -> str:
    return f"'{reader.shard.path}' is no longer what was counted before: begin again with --restart."


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
