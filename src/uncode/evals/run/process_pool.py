"""A run in several processes of this machine. Each process makes its part of the samples."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Queue
from typing import TypeVar

from ...core.errors import Advice
from .options import OnProgress, Progress

T = TypeVar("T")

REPORT_SECONDS = 0.5


def run_processes(
    run_part: Callable[[int, int, OnProgress], T], processes: int, on_progress: OnProgress, share_cells: bool = False
) -> list[T]:
    """Call `run_part(number, processes, on_progress)` in each process, and return the results in the order of the
    numbers. With `share_cells` every process reports the total of all. The progress is that of all together.

    A new process is started instead of a fork, because CUDA cannot be used in a fork.
    """
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(processes, context) as pool:
        reports: Queue[tuple[int, Progress]] = manager.Queue()
        futures = [pool.submit(_run, run_part, processes, _Reporter(n, reports)) for n in range(processes)]
        latest, running = dict[int, Progress](), set(futures)
        while running:
            done, running = wait(running, REPORT_SECONDS, FIRST_COMPLETED)
            for future in done:
                future.result()
            if news := _drain(reports):
                latest |= news
                on_progress(_together(latest.values(), list(news.values())[-1], share_cells))
    return [future.result() for future in futures]


def _run(run_part: Callable[[int, int, OnProgress], T], processes: int, reporter: _Reporter) -> T:
    """The work of a process. The one that started it gives the advice."""
    warnings.simplefilter("ignore", Advice)
    result = run_part(reporter.process, processes, reporter)
    reporter.send()
    return result


@dataclass
class _Reporter:
    """Sends a process's progress to the one that shows it, at most twice a second and at the end."""

    process: int
    reports: Queue[tuple[int, Progress]]
    last: Progress | None = None
    sent: float = 0.0

    def __call__(self, progress: Progress) -> None:
        self.last = progress
        if time.monotonic() - self.sent >= REPORT_SECONDS:
            self.send()

    def send(self) -> None:
        if self.last is None:
            return
        self.sent = time.monotonic()
        with suppress(OSError, EOFError):  # the process that shows it was killed
            self.reports.put((self.process, self.last))


def _drain(reports: Queue[tuple[int, Progress]]) -> dict[int, Progress]:
    """The latest waiting report of each process, the newest last."""
    found = dict[int, Progress]()
    with suppress(Empty):
        while True:
            process, progress = reports.get_nowait()
            found.pop(process, None)
            found[process] = progress
    return found


def _together(parts: Collection[Progress], newest: Progress, share_cells: bool) -> Progress:
    """The progress of all processes, with the cell of the newest report."""
    totals = [part.total for part in parts]
    done, total = sum(part.done for part in parts), max(totals) if share_cells else sum(totals)
    return Progress(newest.cell, done, total, newest.right, newest.answered)
