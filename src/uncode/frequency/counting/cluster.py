"""Counting on a cluster: Ray Data maps over the shards, the driver adds. The same counts as on one machine."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from ...core.errors import UncodeError, require
from ...core.support.arrays import Ints
from ...extras import needed
from ..corpora.corpus import Corpus
from ..corpora.shards import STDIN, Shard
from ..corpora.totals import Fault, Totals
from .checkpoint import Checkpoint
from .encoder import Encoder, revived
from .job import Job, Place, Rules
from .report import OnProgress, Report, share
from .words import Cutter

WAVE = 4
"""Where only the first documents are wanted, so many shards for each processor are counted at a time."""


@dataclass(frozen=True)
class Result:
    """What one shard gave."""

    counts: Ints
    totals: Totals
    enough: bool
    """Whether it was left because the corpus is large enough."""


def count_on_ray(job: Job, encoder: Encoder, state: Checkpoint, address: str, on_progress: OnProgress | None) -> None:
    """Count what is left of a job; the checkpoint is kept up as shards come in."""
    backend, paths = encoder.backend, {shard.path for shard in job.shards}
    require(backend is not None, "a cluster needs a tokenizer of the `tokenizers` library: count without --ray.")
    require(STDIN not in paths, "a cluster cannot read standard input: write it to files.")
    with _connected(address) as ray:
        run = _Pipeline(ray, job, ray.put((encoder.json, encoder.splits_special)), encoder.size)
        limited = job.corpus.max_bytes is not None or job.corpus.max_documents is not None
        try:
            for result, place, number in _in_order(job, run, state) if limited else _in_any_order(job, run, state):
                totals = state.totals.copy()
                totals.add(result.totals)
                state.advance(result.counts, totals, place, number)
                job.rules.check(totals)
                if on_progress is not None:
                    on_progress(_report(job, state))
        finally:
            state.save()


Advance = tuple[Result, Place, int | None]
"""What a shard gave, the place that is reached with it, and its number where it is not in order."""


def _in_any_order(job: Job, run: _Pipeline, state: Checkpoint) -> Iterator[Advance]:
    """Every shard that is left, as it is done."""
    left = [number for number in range(state.place.shard, len(job.shards)) if number not in state.ahead]
    for number, result in run(left, state.place, job.corpus):
        yield result, state.place, number


def _in_order(job: Job, run: _Pipeline, state: Checkpoint) -> Iterator[Advance]:
    """The first shards, a wave at a time, until the corpus is large enough."""
    end = Place(len(job.shards))
    while state.place.shard < end.shard and (given := job.corpus.less(state.totals)) is not None:
        first = state.place.shard
        wave = range(first, min(first + run.wave, end.shard))
        results = dict(run(wave, state.place, given))
        for number in wave:
            left, result = job.corpus.less(state.totals), results[number]
            if left is None:
                break
            size, documents = result.totals.bytes, result.totals.documents
            fits = left.has_room_for(size, documents) and not left.is_full_with(size, documents)
            if left != given and (result.enough or not fits):
                result = dict(run([number], state.place, left))[number]  # it was given more than is left by now
            yield result, end if result.enough else Place(number + 1), None
            if result.enough:
                return


def _report(job: Job, state: Checkpoint) -> Report:
    done = sum(job.shards[n].size for n in {*range(state.place.shard), *state.ahead})
    return Report(state.totals, int(state.counts.sum()), share(job, state.totals, done))


class _Pipeline:
    """Shards in, results out, as Ray Data hands them over. Tasks of nodes that die are run again elsewhere."""

    def __init__(self, ray: Any, job: Job, tokenizer: Any, size: int) -> None:
        self.ray, self.job, self.tokenizer, self.size = ray, job, tokenizer, size
        self.wave = WAVE * max(int(ray.cluster_resources().get("CPU", 1)), 1)

    def __call__(self, numbers: Iterable[int], start: Place, corpus: Corpus) -> Iterator[tuple[int, Result]]:
        """Count these shards, the first of them from `start` on, each up to the limits of `corpus`."""
        data = needed("ray.data", "cluster", "counting on a cluster")
        items = [
            {
                "number": number,
                "shard": json.dumps(dataclasses.asdict(_absolute(self.job.shards[number]))),
                "start": json.dumps(dataclasses.asdict(replace(start if number == start.shard else Place(), shard=0))),
            }
            for number in numbers
        ]
        if not items:
            return
        settings = {
            "tokenizer": self.tokenizer,
            "cutter": self.job.cutter,
            "corpus": replace(corpus, sources=corpus.sources[:1]),
        }
        done = data.from_items(items, override_num_blocks=len(items)).map(count_shard, fn_kwargs=settings, num_cpus=1)
        for row in done.iter_rows():
            require(not row["error"], row["error"])
            yield int(row["number"]), self._read(int(row["number"]), row["result"])

    def _read(self, number: int, content: bytes) -> Result:
        tensors, counts = load(content), np.zeros(self.size, dtype=np.int64)
        counts[tensors["ids"]] = tensors["counts"]
        totals = json.loads(tensors["totals"].tobytes())
        path = self.job.shards[number].path  # as the user wrote it
        faults = [Fault(path, fault["line"], fault["why"]) for fault in totals.pop("faults")]
        return Result(counts, Totals(**totals, faults=faults), bool(tensors["enough"][0]))


def count_shard(item: dict[str, Any], tokenizer: Any, cutter: Cutter | None, corpus: Corpus) -> dict[str, Any]:
    """Count one shard, on a worker. Bad records are judged by the driver, which sees those of all shards."""
    os.environ.setdefault("RAYON_NUM_THREADS", "1")  # a task has one processor
    encoder, counts = _encoder(tokenizer), None
    shard, start = json.loads(item["shard"]), Place(**json.loads(item["start"]))
    job = Job(corpus, (Shard(**shard | {"fields": tuple(shard["fields"])}),), cutter, Rules(allowed=1.0))
    try:
        for batch in job.batches(encoder, start, Totals()):
            some = batch.work()
            counts = some if counts is None else counts + some
    except UncodeError as error:
        return {"number": item["number"], "error": str(error), "result": b""}
    assert counts is not None
    ids = counts.nonzero()[0]
    totals = json.dumps(dataclasses.asdict(batch.totals)).encode()
    tensors: dict[str, Any] = {
        "ids": ids,
        "counts": counts[ids],
        "totals": np.frombuffer(totals, np.uint8),
        "enough": np.array([batch.enough]),
    }
    return {"number": item["number"], "error": "", "result": save(tensors)}


@lru_cache(maxsize=1)
def _encoder(tokenizer: Any) -> Encoder:
    """The tokenizer, made once in a worker's life."""
    import ray

    return Encoder(revived(*ray.get(tokenizer)))


def _absolute(shard: Shard) -> Shard:
    """A worker may stand in another folder."""
    return shard if "://" in shard.path else replace(shard, path=os.path.abspath(shard.path))


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Ray, connected to a cluster; one that this process is connected to already is used and left as it is."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics
    ray = needed("ray", "cluster", "counting on a cluster")
    needed("ray.data", "cluster", "counting on a cluster")
    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address=address or None, log_to_driver=False, logging_level="ERROR")
        except Exception as error:  # each kind of address fails in its own way
            said = " ".join(str(error).split())
            raise UncodeError(
                f"no Ray cluster answers at '{address or 'this machine'}': {said.rstrip('.')}."
            ) from error
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()
