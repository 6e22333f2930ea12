"""The load test of the server: requests from this process to a server in another one, on loopback.

`bench/serve.py` runs it. Each answer is compared with the same request decoded alone, by the library.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import torch

import uncode
from uncode.evals.suite.families import FAMILIES

LENGTHS, MAX_PROMPT = (16, 64), 60
MIN_MEAN_BATCH = 8.0
MIN_SPEEDUP = 1.0
LONG, SHORT = 40, 16
"""Long requests, more than the server has rows, and the tokens of the short one behind them."""
SAMPLERS: tuple[dict[str, Any], ...] = (
    {"sampler": "tau_leaping", "tau": 4},
    {"sampler": "fast_dllm", "block_length": 16, "threshold": 0.8, "cache": "dual"},
    {"sampler": "uncode_tau", "tau": 2, "rate": 0.25},
    {"sampler": "eb", "gamma": 0.5},
    {"sampler": "semi_ar", "blocks": 2, "steps": 8, "cache": "prefix"},
    {"sampler": "tau_leaping", "tau": 4, "temperature": 0.7},
    {"sampler": "fast_dllm_factor", "block_length": 16, "factor": 1.0, "cache": "none"},
    {"sampler": "uniform", "steps": 8},
)


@dataclass(frozen=True)
class Case:
    """One request."""

    prompt: str
    length: int
    sampler: dict[str, Any]
    seed: int
    stream: bool

    @property
    def body(self) -> dict[str, Any]:
        asked = {"prompt": self.prompt, "max_tokens": self.length, "seed": self.seed, "stream": self.stream}
        return asked | self.sampler | {"stop_at_eos": False}


@dataclass
class Reply:
    """What came back."""

    text: str = ""
    status: int = 0
    problem: str = ""
    first: float | None = None
    """Seconds until the first settled text of a stream."""
    seconds: float = 0.0
    ended: float = 0.0
    """The time at which it was complete."""


@dataclass
class Load:
    """The replies to some requests, and how long all of them took."""

    cases: list[Case]
    replies: list[Reply] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return sum(case.length for case in self.cases) / self.seconds

    def followed_by(self, other: Load) -> Load:
        """Both as one. A machine that gets slower or faster meanwhile then counts half."""
        return Load([*self.cases, *other.cases], [*self.replies, *other.replies], self.seconds + other.seconds)


@cache
def tiny() -> Any:
    return uncode.load("tiny", device="cpu", dtype="float32")


def make_cases(count: int) -> list[Case]:
    """Requests with the prompts of the mini-suite, of all samplers in turn. Every second one streams."""
    random, encode = Random(0), tiny().tokenizer
    prompts = [family.prompt(example) for family in FAMILIES.values() for example in family.examples()[:20]]
    prompts = [prompt for prompt in prompts if len(encode(prompt)["input_ids"]) <= MAX_PROMPT]
    return [
        Case(random.choice(prompts), random.randint(*LENGTHS), sampler, seed, stream=bool(seed // len(SAMPLERS) % 2))
        for seed, sampler in zip(range(count), cycle(SAMPLERS), strict=False)
    ]


def decode_alone(case: Case) -> str:
    """The answer of the library, in its own process."""
    options, model = dict(case.sampler), tiny()
    name = options.pop("sampler")
    if name.startswith("uncode"):
        options["frequency"] = model.frequency
    sampler = getattr(uncode.presets, name)(**options)
    return uncode.generate(model, case.prompt, sampler=sampler, length=case.length, seed=case.seed, stop_at_eos=False)


def decode_all_alone(cases: list[Case]) -> list[str]:
    with ProcessPoolExecutor(
        2, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        return list(pool.map(decode_alone, cases, chunksize=10))


@contextmanager
def serving(command: list[str]) -> Iterator[str]:
    """A server in its own process. Yields its address."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with TemporaryDirectory() as folder, (Path(folder) / "log").open("w+") as log:
        process = subprocess.Popen([*command, "--port", str(port)], stdout=log, stderr=log)
        address = f"http://127.0.0.1:{port}"
        try:
            _wait_until_ready(address, process, Path(log.name))
            yield address
        finally:
            process.terminate()
            process.wait(60)


def _wait_until_ready(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        try:
            if httpx.get(f"{address}/ready").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            time.sleep(0.2)
        if process.poll() is not None:
            break
    sys.exit(f"the server did not start:\n{log.read_text()}")


async def ask(client: httpx.AsyncClient, case: Case) -> Reply:
    """Send one request."""
    reply, began = Reply(), time.perf_counter()
    try:
        async with client.stream("POST", "/v1/completions", json=case.body) as response:
            reply.status = response.status_code
            if case.stream and reply.status == httpx.codes.OK:
                async for text in _chunks(response):
                    reply.first = reply.first or time.perf_counter() - began
                    reply.text += text
            else:
                answer = json.loads(await response.aread())
                reply.text = answer["choices"][0]["text"] if reply.status == httpx.codes.OK else ""
                reply.problem = "" if reply.status == httpx.codes.OK else answer["error"]["message"]
    except (httpx.HTTPError, ValueError, KeyError) as error:
        reply.problem = f"{type(error).__name__}: {error}"
    reply.ended = time.perf_counter()
    reply.seconds = reply.ended - began
    return reply


async def _chunks(response: httpx.Response) -> AsyncIterator[str]:
    """The texts of a stream. A stream without its end is an error."""
    async for line in response.aiter_lines():
        if line == "data: [DONE]":
            return
        if line.startswith("data: "):
            chunk = json.loads(line[6:])
            if "error" in chunk:
                raise ValueError(chunk["error"]["message"])
            if text := chunk["choices"][0]["text"]:
                yield text
    raise ValueError("the stream broke off")


async def send(address: str, cases: list[Case], concurrency: int) -> Load:
    """Send all requests, so many at a time."""
    load, waiting = Load(cases, [Reply()] * len(cases)), iter(enumerate(cases))
    limits = httpx.Limits(max_connections=concurrency)
    async with httpx.AsyncClient(base_url=address, timeout=600, limits=limits) as client:

        async def worker() -> None:
            for number, case in waiting:
                load.replies[number] = await ask(client, case)

        began = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
        load.seconds = time.perf_counter() - began
    return load


async def short_behind_long(address: str) -> tuple[float, int]:
    """One short request behind many long ones. Returns its seconds, and how many long ones ended before it. The long
    ones are then cancelled."""
    slow, quick = {"sampler": "confidence"}, {"sampler": "tau_leaping", "tau": 4}
    async with httpx.AsyncClient(
        base_url=address, timeout=600, limits=httpx.Limits(max_connections=LONG + 1)
    ) as client:
        cases = [Case("Question: 2 + 3 =", 4 * SHORT, slow, seed, stream=False) for seed in range(LONG)]
        long = [asyncio.create_task(ask(client, case)) for case in cases]
        await asyncio.sleep(1)
        reply = await ask(client, Case("1 + 1 =", SHORT, quick, 0, stream=True))
        ended = sum(task.done() for task in long)
        for task in long:
            task.cancel()
        await asyncio.gather(*long, return_exceptions=True)
    if reply.problem:
        sys.exit(f"the short request failed: {reply.problem}")
    return reply.seconds, ended


def metrics(address: str) -> dict[str, float]:
    """The values of /metrics that have no labels."""
    text = httpx.get(f"{address}/metrics").text
    return {name: float(value) for name, value in re.findall(r"^(\w+) ([-+.\de]+)$", text, re.M)}


def wait_until_idle(address: str) -> bool:
    """Whether the rows of clients that left are dropped within 10 seconds."""
    for _ in range(100):
        now = metrics(address)
        if now["uncode_rows_running"] == 0 and now["uncode_rows_waiting"] == 0:
            return True
        time.sleep(0.1)
    return False


def mean_batch(before: dict[str, float], after: dict[str, float]) -> float:
    count, total = (
        after[f"uncode_batch_rows_{kind}"] - before[f"uncode_batch_rows_{kind}"] for kind in ("count", "sum")
    )
    return total / max(count, 1.0)


def percentiles(name: str, values: list[float]) -> str:
    ordered = sorted(values)
    shown = (f"p{share} {ordered[min(len(ordered) - 1, share * len(ordered) // 100)]:.2f} s" for share in (50, 95, 99))
    return f"{name}: {', '.join(shown)}"


def run(requests: int, concurrency: int, sample: int) -> list[str]:
    """Run the load test and print it. Returns the bars that were missed."""
    cases, missed = make_cases(requests), []

    def bar(holds: bool, what: str) -> None:
        print(f"{'ok  ' if holds else 'MISS'}  {what}", flush=True)
        missed.extend([] if holds else [what])

    print(f"{requests} requests are decoded alone, in two processes", flush=True)
    wanted = decode_all_alone(cases)
    with serving([sys.executable, "-m", "uncode", "serve", "--dtype", "float32", "--device", "cpu"]) as address:
        asyncio.run(send(address, cases[: len(SAMPLERS)], 1))  # warm-up
        one = asyncio.run(send(address, cases[: sample // 2], 1))
        before = metrics(address)
        load = asyncio.run(send(address, cases, concurrency))
        batch = mean_batch(before, metrics(address))
        one = one.followed_by(asyncio.run(send(address, cases[sample // 2 : sample], 1)))
        seconds, ended = asyncio.run(short_behind_long(address))
        idle = wait_until_idle(address)
    print(f"one at a time: {one.rate:.1f} tokens/s ({len(one.cases)} requests)")
    pace = f"{load.rate:.1f} tokens/s, {len(cases) / load.seconds:.2f} requests/s"
    print(f"{concurrency} at a time: {pace}, {load.seconds:.0f} s")
    print(percentiles("latency", [reply.seconds for reply in load.replies]))
    print(percentiles("time to first settled token", [reply.first for reply in load.replies if reply.first]))
    lost = [reply for reply in load.replies if reply.problem or reply.status != httpx.codes.OK]
    bar(not lost, f"{len(lost)} of {requests} requests lost{f' ({lost[0].status} {lost[0].problem})' if lost else ''}")
    differ = sum(reply.text != text for reply, text in zip(load.replies, wanted, strict=True))
    bar(not differ, f"{differ} of {requests} answers differ from decoding alone")
    bar(batch >= MIN_MEAN_BATCH, f"mean batch {batch:.1f}, at least {MIN_MEAN_BATCH:.0f}")
    speedup = load.rate / one.rate
    bar(speedup >= MIN_SPEEDUP, f"throughput {speedup:.2f} times one at a time, at least {MIN_SPEEDUP:.0f}")
    bar(not ended, f"a short request behind {LONG} long ones took {seconds:.1f} s; {ended} of them ended before it")
    bar(idle, "rows of clients that left are dropped")
    return missed
