"""Totals of a corpus: records, documents and bytes read so far, and bad records."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

MAX_REPORTED = 20
"""At most this many bad records are reported one by one."""


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
        return dataclasses.replace(self, faults=list(self.faults))

    def add(self, other: Totals) -> None:
        """Add the totals of another shard."""
        for name in ("records", "documents", "bytes", "bad"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults = (self.faults + other.faults)[:MAX_REPORTED]
