"""Answering prompts on a Ray cluster: an actor for each GPU (or CPU) answers shards of the prompts, and writes each to
a file of its own. A shard whose file is there is not answered again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...adapters.ray_data import Decoder, PromptError
from ...core.errors import UncodeError, require
from ...util.arrow_files import ArrowPath
from ...util.files import require_same_job
from ...util.progress import item_bar
from ...util.ray_cluster import connected, one_sentence, one_worker, worker_count
from .finished_answers import report_done
from .prompts import PromptLine, read_lines

MAX_SHARD = 256
"""Prompts of a shard: what a worker that dies has answered for nothing, at most."""
SHARDS_PER_WORKER = 8
ENDINGS = (".jsonl", ".json", ".txt")
JOB = "job.json"
"""The file beside the shards that says what they are answers to."""


@dataclass(frozen=True)
class RayRun:
    """What is answered, by whom, and where to."""

    source: ArrowPath
    out: ArrowPath
    decoder: Mapping[str, Any]
    """The arguments of :class:`~uncode.adapters.ray_data.Decoder`."""
    address: str
    workers: int | None = None
    """Actors; None is one for each GPU of the cluster, or for each CPU where it has none."""
    kind: type[Decoder] = Decoder


def answer_with(
    source: str, out: str, options: Mapping[str, Any], address: str, workers: int | None, as_json: bool
) -> None:
    """Answer prompts with the options of `uncode decode`."""
    renamed = {name: value for name, value in options.items() if name not in ("settings", "whole")}
    decoder = renamed | {"options": options["settings"], "stop_at_eos": not options["whole"]}
    for name in ("model", "sampler"):  # a worker may run in another folder
        decoder[name] = os.path.abspath(decoder[name]) if os.path.exists(decoder[name]) else decoder[name]
    answer_on_ray(RayRun(ArrowPath(source), ArrowPath(out), decoder, address, workers), as_json)


def answer_on_ray(run: RayRun, as_json: bool = False) -> None:
    """Answer the shards that have no file yet."""
    began = time.monotonic()
    lines = _prompts(run.source)
    with connected(run.address, "cluster", "decoding on a cluster") as ray:
        workers = run.workers or worker_count(ray)
        size = _begin(run, lines, workers)
        shards = [lines[first : first + size] for first in range(0, len(lines), size)]
        there = run.out.names()
        missing = [number for number in range(len(shards)) if shard_name(number) not in there]
        answers = resumed = len(lines) - sum(len(shards[number]) for number in missing)
        forwards = 0
        with item_bar("answering") as on_progress, one_sentence(ray, "answer the prompts"):
            for done in _answered(ray, run, {number: shards[number] for number in missing}, workers):
                answers, forwards = answers + int(done["answers"]), forwards + int(done["forwards"])
                on_progress(answers, len(lines))
    report_done(run.out.uri, len(lines), resumed, forwards, time.monotonic() - began, as_json)


def shard_name(number: int) -> str:
    return f"part-{number:06}.jsonl"


def _prompts(source: ArrowPath) -> list[PromptLine]:
    """The prompts of all files, in the order of their names."""
    files = source.files()
    try:
        texts = [(name, files[name].decode().removeprefix("\ufeff")) for name in files if name.endswith(ENDINGS)]
    except UnicodeDecodeError as error:
        raise UncodeError(f"'{source.uri}' is not UTF-8 text ({error}): convert it first.") from None
    return read_lines(texts)


def _begin(run: RayRun, lines: list[PromptLine], workers: int) -> int:
    """Say beside the shards what they are, or check that they are of this job. Returns the prompts of a shard."""
    content = json.dumps([asdict(line) for line in lines], default=list).encode()
    settings = {name: value for name, value in run.decoder.items() if name not in ("batch", "device")}
    job = json.loads(json.dumps({"input": sha256(content).hexdigest()} | settings))
    there = run.out.names()
    if JOB in there:
        try:
            theirs = dict(json.loads(run.out.read(JOB)))
        except (ValueError, TypeError):
            raise UncodeError(f"'{run.out.uri}/{JOB}' is damaged: restore it, or remove the folder.") from None
        require_same_job(Path(run.out.uri), "a job", job, theirs, "remove the folder")
        return int(theirs["shard"])
    require(not there, f"'{run.out.uri}' has files of something else: choose another `out=`.")
    size = max(1, min(MAX_SHARD, len(lines) // (SHARDS_PER_WORKER * workers)))
    run.out.write(JOB, (json.dumps(job | {"shard": size}, indent=2) + "\n").encode())
    return size


def _answered(ray: Any, run: RayRun, shards: Mapping[int, list[PromptLine]], workers: int) -> Iterator[dict[str, Any]]:
    """The shards as they are finished."""
    if not shards:
        return
    from ray.data import ActorPoolStrategy, DataContext

    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = False
    items = [{"shard": number, "lines": json.dumps([asdict(line) for line in of])} for number, of in shards.items()]
    data = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        ShardWorker,
        fn_constructor_args=(run.out, dict(run.decoder), run.kind),
        batch_size=1,
        batch_format="numpy",
        compute=ActorPoolStrategy(size=min(workers, len(items))),
        **one_worker(ray),
    )
    for done in data.iter_rows():
        require(not done["fault"], str(done["fault"]))
        yield done


class ShardWorker:
    """An actor: it loads the model once, and answers one shard after the other."""

    def __init__(self, out: ArrowPath, options: dict[str, Any], kind: type[Decoder]) -> None:
        self.out, self.seed, self.fault = out, int(options.get("seed", 0)), ""
        try:
            self.decoder = kind(**options)
        except UncodeError as error:  # the first shard reports it: Ray would start the actor again and again
            self.fault = str(error)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Answer a shard and write it. One that was written before its worker died is not answered again."""
        name, lines = shard_name(int(batch["shard"][0])), [PromptLine(**one) for one in json.loads(batch["lines"][0])]
        rows, fault = list[dict[str, Any]](), self.fault
        try:
            if name in self.out.names():
                rows = [json.loads(row) for row in self.out.read(name).splitlines()]
            elif not fault:
                rows = self._answer(lines)
                self.out.write(name, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
        except PromptError as error:
            fault = f"{lines[error.at].where}: {error.why}"
        except UncodeError as error:
            fault = str(error)
        forwards = sum(row["forwards"] for row in rows)
        return {"fault": [fault], "answers": [len(rows)], "forwards": [forwards]}

    def _answer(self, lines: list[PromptLine]) -> list[dict[str, Any]]:
        seeds = [self.seed + line.number if line.seed is None else line.seed for line in lines]
        answers = self.decoder.answers([line.prompt for line in lines], [line.length for line in lines], seeds)
        return [line.as_row() | answer._asdict() for line, answer in zip(lines, answers, strict=True)]
