"""Progress of a count, for progress bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..corpora.totals import Totals
from .job import Job


@dataclass(frozen=True)
class Report:
    """The progress of a count."""

    totals: Totals
    tokens: int
    """Tokens counted so far. The tokenizer is one batch behind the reader."""
    share: float
    """The share of the corpus that is done, from 0 to 1; 0 if unknown."""


OnProgress = Callable[[Report], None]


def share_done(job: Job, totals: Totals, read: int) -> float:
    """The share of the corpus that is done, by bytes of the files or by the limit that is nearer to its end."""
    total, corpus = sum(shard.size for shard in job.shards), job.corpus
    parts = [read / total if total and all(shard.size for shard in job.shards) else 0.0]
    parts += [totals.bytes / corpus.max_bytes] if corpus.max_bytes else []
    parts += [totals.documents / corpus.max_documents] if corpus.max_documents else []
    return min(max(parts), 1.0)
