"""What has been read of a corpus: how much, and what of it was bad."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

MAX_REPORTED = 20
"""Bad records that are reported one by one."""


@dataclass(frozen=True)
class Fault:
    """A bad record, and where it is."""

    file: str
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.why}"


@dataclass
class Totals:
    """What has been read so far."""

    records: int = 0
    documents: int = 0
    bytes: int = 0
    bad: int = 0
    faults: list[Fault] = field(default_factory=list)

    def copy(self) -> Totals:
        """As it is now."""
        return dataclasses.replace(self, faults=list(self.faults))

    def add(self, other: Totals) -> None:
        """Those of another shard."""
        for name in ("records", "documents", "bytes", "bad"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults = (self.faults + other.faults)[:MAX_REPORTED]
