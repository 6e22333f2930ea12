"""Counting on a cluster: a Ray task counts each shard, and the driver adds up. The counts are those of one machine."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from ...core.errors import UncodeError, require
from ...core.support.arrays import Ints
from ...util.ray_cluster import MAX_RETRIES, connected
from ..corpora.corpus import BadRecord, Corpus, Totals
from ..corpora.shards import STDIN, Shard
from .checkpoint import Checkpoint, CountState
from .encoder import Encoder, tokenizer_from_json
from .job import BadRecordRules, CountJob, CountProgress, OnProgress, ResumePoint
from .words import Cutter

SHARDS_PER_CPU = 4
"""With limits, shards are counted in waves of this many per CPU, so that few counted shards are discarded."""
TASKS_PER_CPU = 2
"""Tasks per CPU, running or queued, so that no CPU waits for the driver."""


@dataclass(frozen=True)
class ShardCounts:
    """The counts of one shard."""

    counts: Ints
    totals: Totals
    reached_limit: bool
    """Whether counting stopped within the shard at a limit of the corpus."""


def count_on_ray(
    job: CountJob, encoder: Encoder, checkpoint: Checkpoint, address: str, on_progress: OnProgress | None
) -> None:
    """Count the rest of a job. The checkpoint advances with every finished shard."""
    backend, paths = encoder.backend, {shard.path for shard in job.shards}
    require(
        backend is not None,
        "a cluster cannot use this tokenizer, which is not of the `tokenizers` library: count without `ray=`.",
    )
    require(STDIN not in paths, "a cluster cannot read standard input: write the text to files.")
    with connected(address, "cluster", "counting on a cluster") as ray:
        run = _Tasks(ray, job, ray.put((encoder.json, encoder.splits_special)), encoder.size)
        limited = bool(job.corpus.limits())
        try:
            results = _in_order(job, run, checkpoint) if limited else _in_any_order(job, run, checkpoint)
            for result, resume_point, number in results:
                totals = checkpoint.state.totals.copy()
                totals.add(result.totals)
                checkpoint.advance(result.counts, totals, resume_point, number)
                job.rules.check(totals)
                if on_progress is not None:
                    on_progress(_progress(job, checkpoint.state))
        finally:
            checkpoint.save()


Advance = tuple[ShardCounts, ResumePoint, int | None]
"""The result of a shard, the resume point after it, and the number of the shard if it came out of order."""


def _in_any_order(job: CountJob, run: _Tasks, checkpoint: Checkpoint) -> Iterator[Advance]:
    """The results of all remaining shards, as they finish."""
    start, ahead = checkpoint.state.resume_point, checkpoint.state.ahead
    left = [number for number in range(start.shard, len(job.shards)) if number not in ahead]
    for number, result in run(left, start, job.corpus):
        yield result, checkpoint.state.resume_point, number


def _in_order(job: CountJob, run: _Tasks, checkpoint: Checkpoint) -> Iterator[Advance]:
    """The results of the first shards, a wave at a time, until a limit of the corpus is reached."""
    end = ResumePoint(len(job.shards))
    while (start := checkpoint.state.resume_point).shard < end.shard:
        given = job.corpus.remaining_after(checkpoint.state.totals)
        if given is None:
            return
        wave = range(start.shard, min(start.shard + SHARDS_PER_CPU * run.cpus, end.shard))
        results = dict(run(wave, start, given))
        for number in wave:
            left, result = job.corpus.remaining_after(checkpoint.state.totals), results[number]
            if left is None:
                return
            size, documents = result.totals.bytes, result.totals.documents
            fits = left.allows(size, documents) and not left.is_reached_by(size, documents)
            if left != given and (result.reached_limit or not fits):
                # count it again: its limits were larger than what remains now
                result = dict(run([number], checkpoint.state.resume_point, left))[number]
            yield result, end if result.reached_limit else ResumePoint(number + 1), None
            if result.reached_limit:
                return


def _progress(job: CountJob, state: CountState) -> CountProgress:
    done = sum(job.shards[n].size for n in {*range(state.resume_point.shard), *state.ahead})
    return CountProgress(state.totals, int(state.counts.sum()), job.share_done(state.totals, done))


class _Tasks:
    """Counts shards on the cluster, one task each. Ray reruns the tasks of workers and nodes that die."""

    def __init__(self, ray: Any, job: CountJob, tokenizer: Any, size: int) -> None:
        self.ray, self.job, self.tokenizer, self.size = ray, job, tokenizer, size
        self.task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(count_shard)

    @property
    def cpus(self) -> int:
        """CPUs of the cluster now: nodes may come and go."""
        return max(int(self.ray.cluster_resources().get("CPU", 1)), 1)

    def __call__(self, numbers: Iterable[int], start: ResumePoint, corpus: Corpus) -> Iterator[tuple[int, ShardCounts]]:
        """Count these shards, the first one from `start`, each up to the limits of `corpus`.

        If the caller stops early, its tasks are not cancelled: they run to their end, or until this process ends. Ray
        aborts the driver if a task ends while Ray cancels it.
        """
        settings = self.ray.put((self.tokenizer, self.job.cutter, replace(corpus, sources=corpus.sources[:1])))
        left, running = iter(numbers), dict[Any, int]()
        while True:
            for number in islice(left, max(TASKS_PER_CPU * self.cpus - len(running), 0)):
                shard = _absolute(self.job.shards[number])
                at = replace(start if number == start.shard else ResumePoint(), shard=0)
                running[self.task.remote(shard, at, settings)] = number
            if not running:
                return
            for done in self.ray.wait(list(running))[0]:
                number = running.pop(done)
                yield number, self._read(number, self._result(done, number))

    def _result(self, done: Any, number: int) -> bytes:
        try:
            fault, content = self.ray.get(done)
        except self.ray.exceptions.RayError as error:
            reason, path = getattr(error, "cause", error), self.job.shards[number].path
            first = str(reason).partition("\n")[0].rstrip(".")
            raise UncodeError(f"the cluster could not count '{path}' ({type(reason).__name__}: {first}).") from error
        require(not fault, fault)
        return bytes(content)

    def _read(self, number: int, content: bytes) -> ShardCounts:
        tensors, counts = load(content), np.zeros(self.size, dtype=np.int64)
        counts[tensors["ids"]] = tensors["counts"]
        totals = json.loads(tensors["totals"].tobytes())
        path = self.job.shards[number].path  # as the user wrote it
        faults = [BadRecord(path, fault["line"], fault["why"]) for fault in totals.pop("faults")]
        return ShardCounts(counts, Totals(**totals, faults=faults), bool(tensors["enough"][0]))


TaskSettings = tuple[Any, Cutter | None, Corpus]
"""A reference to the tokenizer, how texts are cut, and the corpus with the limits of a shard."""


def count_shard(shard: Shard, start: ResumePoint, settings: TaskSettings) -> tuple[str, bytes]:
    """Count one shard, on a worker. Returns an error, or the counts. The driver checks the share of bad records."""
    os.environ.setdefault("RAYON_NUM_THREADS", "1")  # a task has one CPU
    tokenizer, cutter, corpus = settings
    encoder, counts = _encoder(tokenizer), None
    job = CountJob(corpus, (shard,), cutter, BadRecordRules(allow_bad=1.0))
    try:
        for batch in job.batches(encoder, start, Totals()):
            new = batch.work()
            counts = new if counts is None else counts + new
    except UncodeError as error:
        return str(error), b""
    assert counts is not None
    ids = counts.nonzero()[0]
    totals = json.dumps(dataclasses.asdict(batch.totals)).encode()
    tensors: dict[str, Any] = {
        "ids": ids,
        "counts": counts[ids],
        "totals": np.frombuffer(totals, np.uint8),
        "enough": np.array([batch.reached_limit]),
    }
    return "", save(tensors)


@lru_cache(maxsize=1)
def _encoder(tokenizer: Any) -> Encoder:
    """The tokenizer, built once per worker process."""
    import ray

    return Encoder(tokenizer_from_json(*ray.get(tokenizer)))


def _absolute(shard: Shard) -> Shard:
    """The shard with an absolute path, because a worker may run in another folder."""
    return shard if "://" in shard.path else replace(shard, path=os.path.abspath(shard.path))
