"""Runs in several processes: those that `accelerate launch` and torchrun start, and processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Queue
from typing import TypeVar

from ...core.errors import Advice, UncodeError, require
from .options import OnProgress, RunProgress

T = TypeVar("T")

REPORT_SECONDS = 0.5


@dataclass(frozen=True)
class ProcessPlace:
    """This process of a run, as `accelerate launch` and torchrun place it. `local` is its number on its own machine,
    which chooses its GPU."""

    process: int = 0
    processes: int = 1
    local: int = 0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> ProcessPlace:
        """Read RANK, WORLD_SIZE and LOCAL_RANK. Without them the run has one process."""
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        given = [name for name in names[:2] if environment.get(name)]
        if not given:
            return cls()
        require(len(given) == 2, f"{given[0]} is set and the other of RANK and WORLD_SIZE is not: set both or neither.")
        try:
            place = cls(*(int(environment.get(name) or 0) for name in names))
        except ValueError:
            raise UncodeError(f"{', '.join(names)} must be whole numbers: start the run with torchrun.") from None
        fits = 0 <= place.process < place.processes
        require(fits, f"RANK is {place.process}, but WORLD_SIZE is {place.processes}: start the run with torchrun.")
        return place

    def device(self, wanted: str | None) -> str | None:
        """The device of this process: its own GPU, unless a device was asked for."""
        import torch

        if wanted not in (None, "cuda") or self.processes == 1 or not torch.cuda.is_available():
            return wanted
        return f"cuda:{self.local % torch.cuda.device_count()}"


def run_processes(
    run_part: Callable[[int, int, OnProgress], T], processes: int, on_progress: OnProgress, share_cells: bool = False
) -> list[T]:
    """Call `run_part(number, processes, on_progress)` in each of some new processes, and return the results in the
    order of the numbers. With `share_cells` every process reports the total of all. The progress is that of all.

    A new process is started instead of a fork, because CUDA cannot be used in a fork.
    """
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(processes, context) as pool:
        reports: Queue[tuple[int, RunProgress]] = manager.Queue()
        futures = [pool.submit(_run, run_part, processes, _Reporter(n, reports)) for n in range(processes)]
        latest, running = dict[int, RunProgress](), set(futures)
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
    reports: Queue[tuple[int, RunProgress]]
    last: RunProgress | None = None
    sent: float = 0.0

    def __call__(self, progress: RunProgress) -> None:
        self.last = progress
        if time.monotonic() - self.sent >= REPORT_SECONDS:
            self.send()

    def send(self) -> None:
        if self.last is None:
            return
        self.sent = time.monotonic()
        with suppress(OSError, EOFError):  # the process that shows it was killed
            self.reports.put((self.process, self.last))


def _drain(reports: Queue[tuple[int, RunProgress]]) -> dict[int, RunProgress]:
    """The latest waiting report of each process, the newest last."""
    found = dict[int, RunProgress]()
    with suppress(Empty):
        while True:
            process, progress = reports.get_nowait()
            found.pop(process, None)
            found[process] = progress
    return found


def _together(parts: Collection[RunProgress], newest: RunProgress, share_cells: bool) -> RunProgress:
    """The progress of all processes, with the cell of the newest report."""
    totals = [part.total for part in parts]
    done, total = sum(part.done for part in parts), max(totals) if share_cells else sum(totals)
    return RunProgress(newest.cell, done, total, newest.right, newest.answered)
