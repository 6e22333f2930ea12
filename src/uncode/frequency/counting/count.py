"""Counting: from a corpus and a tokenizer to a frequency table. A kill at any moment costs a few seconds of work."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

from ...core.errors import UncodeError, require
from ...core.support.arrays import Ints
from ...version import __version__
from ..corpora.corpus import Corpus, Totals
from ..corpora.shards import Shard
from ..fingerprint import Tokenizer, fingerprint, special_ids
from ..provenance import Provenance
from ..table import FrequencyTable
from .checkpoint import Checkpoint, CountState, checkpoint_of
from .encoder import Encoder
from .job import BadRecordRules, CountBatch, CountJob, CountProgress, OnProgress
from .words import cutter_for


@dataclass(frozen=True)
class Counted:
    """The table, and how it was counted."""

    table: FrequencyTable
    totals: Totals
    resumed: bool
    """Whether the count was resumed from an earlier run."""
    by_words: bool
    reused: bool = False
    """Whether the same job had written the table already, so that nothing was counted."""


def count(
    corpus: Corpus,
    tokenizer: Tokenizer,
    out: str | Path,
    *,
    tokenizer_name: str = "",
    revision: str = "",
    rules: BadRecordRules | None = None,
    plain: bool = False,
    restart: bool = False,
    reuse: bool = False,
    shards: Sequence[Shard] | None = None,
    ray: str | None = None,
    on_progress: OnProgress | None = None,
) -> Counted:
    """Count a corpus and write the table to `out`. A killed count is resumed.

    With `reuse`, a table at `out` from the same job is returned as it is. `shards` are the shards of the corpus, if the
    caller has them already. `plain` tokenizes whole texts instead of distinct words (the same counts, slower). `ray` is
    the address of a Ray cluster; "local" starts one on this machine, and "" uses a running one or starts one.
    """
    encoder = Encoder(tokenizer)
    cutter = None if plain or encoder.backend is None else cutter_for(encoder.backend)
    job = CountJob(corpus, tuple(corpus.shards() if shards is None else shards), cutter, rules or BadRecordRules())
    made_by = {"tokenizer": tokenizer_name, "revision": revision, "job": job.digest(encoder), "version": __version__}
    if reuse and (found := _existing_table(corpus, Path(out), made_by)) is not None:
        return Counted(found, Totals(), resumed=False, by_words=cutter is not None, reused=True)
    with Checkpoint.open(Path(out), job.identity(encoder), encoder.size, restart) as checkpoint:
        resumed = checkpoint.state.totals.records > 0
        if ray is None:
            _count_here(job, encoder, checkpoint, on_progress)
        else:
            from .cluster import count_on_ray

            count_on_ray(job, encoder, checkpoint, ray, on_progress)
        job.rules.check(checkpoint.state.totals, ended=True)
        require(checkpoint.state.totals.documents > 0, _nothing_counted(corpus))
        table = _table(job, checkpoint.state, tokenizer, made_by)
        table.save(out, force=True)
        checkpoint.done()
    return Counted(table, checkpoint.state.totals, resumed, cutter is not None)


def _existing_table(corpus: Corpus, out: Path, made_by: dict[str, str]) -> FrequencyTable | None:
    """The table that this job wrote earlier, or None. A table with bad records is counted again, to report them."""
    if not made_by["job"] or not out.is_file() or checkpoint_of(out).exists():
        return None
    try:
        table = FrequencyTable.load(out)
    except UncodeError:  # not a table; the caller has checked that it may be replaced
        return None
    same = made_by.items() <= vars(table.made).items()
    return table if same and table.name == corpus.name and not table.made.bad else None


def _nothing_counted(corpus: Corpus) -> str:
    limit = f", or the first document is larger than `max_bytes=` ({corpus.max_bytes:,})" if corpus.max_bytes else ""
    return f"nothing was counted: the sources hold no document that could be read{limit}."


def _count_here(job: CountJob, encoder: Encoder, checkpoint: Checkpoint, on_progress: OnProgress | None) -> None:
    """Count on this machine. This thread reads and splits a batch while the tokenizer's threads encode the last one."""
    start, progress = checkpoint.state, _Progress(job, checkpoint, on_progress)
    pending = deque[tuple[CountBatch, Future[Ints]]]()

    def add_first() -> None:
        batch, counts = pending[0]
        checkpoint.advance(counts.result(), batch.totals, batch.resume_point)
        pending.popleft()  # only now: an interrupt must not lose the batch
        progress.show()

    with ThreadPoolExecutor(1) as thread:
        try:
            for batch in job.batches(encoder, start.resume_point, start.totals.copy(), progress.on_record, start.ahead):
                pending.append((batch, thread.submit(batch.work)))
                if len(pending) > 1:
                    add_first()
        finally:  # also after an error or Ctrl-C, so that batches already read are counted
            try:
                while pending:
                    add_first()
            finally:
                checkpoint.save()


class _Progress:
    """Calls `on_progress` with the bytes read, at most ten times per second, and after every counted batch."""

    def __init__(self, job: CountJob, checkpoint: Checkpoint, on_progress: OnProgress | None) -> None:
        self.job, self.checkpoint, self.on_progress = job, checkpoint, on_progress
        self.before = [0, *accumulate(shard.size for shard in job.shards)]
        self.totals, self.share, self.last = checkpoint.state.totals, 0.0, 0.0

    def on_record(self, totals: Totals, shard: int, bytes_read: int) -> None:
        if self.on_progress is not None and time.monotonic() - self.last > 0.1:
            self.totals, self.last = totals, time.monotonic()
            self.share = self.job.share_done(totals, self.before[shard] + bytes_read)
            self.show()

    def show(self) -> None:
        if self.on_progress is not None:
            self.on_progress(CountProgress(self.totals, int(self.checkpoint.state.counts.sum()), self.share))


def _table(job: CountJob, state: CountState, tokenizer: Tokenizer, made_by: dict[str, str]) -> FrequencyTable:
    corpus = job.corpus
    settings: dict[str, object] = {**corpus.limits()}
    if corpus.sample < 1:
        settings |= {"sample": corpus.sample, "seed": corpus.seed}
    fields = {shard.path: list(shard.fields) for shard in job.shards if shard.format != "text"}
    chosen = list(dict.fromkeys(name for names in fields.values() for name in names))
    made = Provenance(
        fingerprint=fingerprint(tokenizer),
        corpus=corpus.name,
        files=tuple(dict.fromkeys(shard.path for shard in job.shards)),
        bytes=state.totals.bytes,
        documents=state.totals.documents,
        tokens=int(state.counts.sum()),
        bad=state.totals.bad,
        settings=json.dumps(settings | ({"fields": chosen} if chosen else {})),
        date=datetime.now(UTC).date().isoformat(),
        **made_by,
    )
    return FrequencyTable(state.counts, corpus.name, special_ids(tokenizer), made)
