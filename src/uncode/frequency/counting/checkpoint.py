"""Checkpoints of a count: a file next to the output table, written atomically, from which the count is resumed."""

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
from ...util.files import exclusive_lock, require_same_job
from ...util.write import write_whole
from ..corpora.corpus import BadRecord, Totals
from .job import ResumePoint

SAVE_SECONDS = 5.0
"""The checkpoint is written at most this often."""
CHECKPOINT_VERSION = 1


def checkpoint_of(out: Path) -> Path:
    """The file from which a killed count of the table `out` is resumed."""
    return out.with_name(out.name + ".counting")


class CountState(NamedTuple):
    """What is counted so far."""

    counts: Ints
    totals: Totals
    resume_point: ResumePoint
    ahead: frozenset[int]
    """Shards after the resume point that are counted already. A cluster finishes shards in any order."""


class Checkpoint:
    """The counts so far and the resume point up to which they reach, in memory and in a file."""

    def __init__(self, path: Path, identity: dict[str, str], size: int) -> None:
        self.path, self.identity = path, identity
        self.state = CountState(np.zeros(size, dtype=np.int64), Totals(), ResumePoint(), frozenset())
        self._saved = time.monotonic()

    @classmethod
    @contextmanager
    def open(cls, out: Path, identity: dict[str, str], size: int, restart: bool = False) -> Iterator[Checkpoint]:
        """Open the checkpoint of the table `out`, or create it. Only one process at a time can hold it open."""
        path = checkpoint_of(out)
        with exclusive_lock(path.with_name(path.name + ".lock"), out, "counting"):
            checkpoint = cls(path, identity, size)
            if restart:
                path.unlink(missing_ok=True)
            if path.is_file():
                checkpoint._read()
            try:
                yield checkpoint
            except UncodeError as error:
                if checkpoint.state.totals.documents == 0:
                    checkpoint.done()  # there is nothing to resume
                if not path.is_file():
                    raise
                raise UncodeError(
                    f"{error} The counts so far are in '{path}': the same command resumes there, or starts again with "
                    "`restart=True`."
                ) from error

    def advance(self, counts: Ints, totals: Totals, resume_point: ResumePoint, counted: int | None = None) -> None:
        """Add the counts of a batch.

        `totals` are the totals of everything counted, up to `resume_point`. `counted` is a shard counted out of order.
        """
        ahead = self.state.ahead | ({counted} if counted is not None else set())
        while resume_point.shard in ahead:
            resume_point = ResumePoint(resume_point.shard + 1)
        beyond = frozenset(number for number in ahead if number > resume_point.shard)
        # one assignment, so that an interrupt cannot split it
        self.state = CountState(self.state.counts + counts, totals, resume_point, beyond)
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write the checkpoint atomically, unless nothing was read yet."""
        if self.state.totals.records == 0:
            return
        counts, totals, resume_point, ahead = self.state
        state = {
            "version": CHECKPOINT_VERSION,
            "identity": self.identity,
            "totals": dataclasses.asdict(totals),
            "place": dataclasses.asdict(resume_point),
            "ahead": sorted(ahead),
        }
        write_whole(self.path, save({"so_far": counts}, {"state": json.dumps(state)}))
        self._saved = time.monotonic()

    def done(self) -> None:
        """Delete the checkpoint. Call this after the table is written."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> None:
        try:
            with safe_open(self.path, framework="np") as file:
                state, counts = json.loads((file.metadata() or {})["state"]), file.get_tensor("so_far")
        except (SafetensorError, KeyError, ValueError) as error:
            raise UncodeError(f"'{self.path}' cannot be read ({error}): start again with `restart=True`.") from error
        theirs = state["identity"] if state["version"] == CHECKPOINT_VERSION else {}
        require_same_job(self.path, "a count", self.identity, theirs, "start again with `restart=True`")
        faults = [BadRecord(**fault) for fault in state["totals"].pop("faults")]
        totals = Totals(**state["totals"], faults=faults)
        self.state = CountState(counts, totals, ResumePoint(**state["place"]), frozenset(state["ahead"]))
