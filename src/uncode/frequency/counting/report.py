"""How far a count has come, for progress bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..corpora.totals import Totals
from .job import Job


@dataclass(frozen=True)
class Report:
    """How far counting has come."""

    totals: Totals
    tokens: int
    """Those that are counted already; the tokenizer is a batch behind the reader."""
    share: float
    """Of the whole, from 0 to 1; 0 where that is not known."""


OnProgress = Callable[[Report], None]


def share(job: Job, totals: Totals, read: int) -> float:
    """Which part of the whole is done: by the files' bytes, or by a limit that will be reached before."""
    whole, corpus = sum(shard.size for shard in job.shards), job.corpus
    parts = [read / whole if whole and all(shard.size for shard in job.shards) else 0.0]
    parts += [totals.bytes / corpus.max_bytes] if corpus.max_bytes else []
    parts += [totals.documents / corpus.max_documents] if corpus.max_documents else []
    return min(max(parts), 1.0)
