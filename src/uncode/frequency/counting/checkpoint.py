"""What has been counted so far, in a file beside the table to be: whole or not at all, and of one job."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ...core.errors import UncodeError
from ...core.support.arrays import Ints
from ...core.support.write import write_whole
from ...files import only_one, require_same_job
from ..corpora.totals import Fault, Totals
from .job import Place

SAVE_SECONDS = 5.0
"""It is not written more often than this."""
VERSION = 1


def checkpoint_of(out: Path) -> Path:
    """The file that a killed count of the table `out` goes on from."""
    return out.with_name(out.name + ".counting")


class _Reached(NamedTuple):
    counts: Ints
    totals: Totals
    place: Place
    ahead: frozenset[int]


class Checkpoint:
    """The counts and the place they reach, in memory and in a file."""

    def __init__(self, path: Path, identity: dict[str, str], size: int) -> None:
        self.path, self.identity = path, identity
        self._reached = _Reached(np.zeros(size, dtype=np.int64), Totals(), Place(), frozenset())
        self._saved = time.monotonic()

    @property
    def counts(self) -> Ints:
        return self._reached.counts

    @property
    def totals(self) -> Totals:
        return self._reached.totals

    @property
    def place(self) -> Place:
        return self._reached.place

    @property
    def ahead(self) -> frozenset[int]:
        """Shards beyond the place that are counted too; a cluster does not keep the order."""
        return self._reached.ahead

    @classmethod
    @contextmanager
    def open(cls, out: Path, identity: dict[str, str], size: int, restart: bool = False) -> Iterator[Checkpoint]:
        """That of a table to be written to `out`: as it was left, or a new one. One process at a time."""
        path = checkpoint_of(out)
        with only_one(path.with_name(path.name + ".lock"), out, "counting"):
            state = cls(path, identity, size)
            if restart:
                path.unlink(missing_ok=True)
            if path.is_file():
                state._read()
            try:
                yield state
            except UncodeError as error:
                if state.totals.documents == 0:
                    state.done()  # there is nothing to go on from
                if not path.is_file():
                    raise
                raise UncodeError(
                    f"{error} What was counted is in '{path}': the same command goes on from it, or begins again with "
                    "--restart."
                ) from error

    def advance(self, counts: Ints, totals: Totals, place: Place, counted: int | None = None) -> None:
        """Add what a batch gave; `totals` are those of everything up to `place`, and of the shard that is `counted`."""
        ahead = self.ahead | ({counted} if counted is not None else set())
        while place.shard in ahead:
            place = Place(place.shard + 1)
        beyond = frozenset(number for number in ahead if number > place.shard)
        self._reached = _Reached(self.counts + counts, totals, place, beyond)  # all at once, whatever interrupts
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write it all, if there is anything: to a new file that then takes the place of the old one."""
        if self.totals.records == 0:
            return
        state = {
            "version": VERSION,
            "identity": self.identity,
            "totals": dataclasses.asdict(self.totals),
            "place": dataclasses.asdict(self.place),
            "ahead": sorted(self.ahead),
        }
        write_whole(self.path, save({"so_far": self.counts}, {"state": json.dumps(state)}))
        self._saved = time.monotonic()

    def done(self) -> None:
        """The table is written: the file is not needed any more."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> None:
        try:
            with safe_open(self.path, framework="np") as file:
                state, counts = json.loads((file.metadata() or {})["state"]), file.get_tensor("so_far")
        except (SafetensorError, KeyError, ValueError) as error:
            raise UncodeError(f"'{self.path}' cannot be read ({error}): begin again with --restart.") from error
        theirs = state["identity"] if state["version"] == VERSION else {}
        require_same_job(self.path, "a count", self.identity, theirs, "begin again with --restart")
        faults = [Fault(**fault) for fault in state["totals"].pop("faults")]
        totals = Totals(**state["totals"], faults=faults)
        self._reached = _Reached(counts, totals, Place(**state["place"]), frozenset(state["ahead"]))
