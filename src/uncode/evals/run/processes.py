"""Runs in several processes: those that `accelerate launch` and torchrun start, and processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
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

    One part runs in this process. A new process is started instead of a fork, because CUDA cannot be used in a fork.
    """
    if processes == 1:
        return [run_part(0, 1, on_progress)]
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(processes, context) as pool:
        reports: MutableMapping[int, tuple[float, RunProgress]] = manager.dict()
        futures = [pool.submit(_run, run_part, processes, _Reporter(n, reports)) for n in range(processes)]
        running, shown = set(futures), 0.0
        while running:
            done, running = wait(running, REPORT_SECONDS, FIRST_COMPLETED)
            for future in done:
                future.result()
            parts = sorted(reports.values(), key=lambda report: report[0])
            if parts and parts[-1][0] > shown:
                shown, newest = parts[-1]
                totals = [part.total for _, part in parts]
                total = max(totals) if share_cells else sum(totals)
                on_progress(replace(newest, done=sum(part.done for _, part in parts), total=total))
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
    reports: MutableMapping[int, tuple[float, RunProgress]]
    """For each process, when it reported and what. The clock is the machine's."""
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
            self.reports[self.process] = self.sent, self.last
