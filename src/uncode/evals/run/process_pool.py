"""A run in several processes of this machine. Each process makes its part of the samples."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

from .options import OnProgress, Progress

T = TypeVar("T")


def run_processes(run_part: Callable[[int, int], T], processes: int, on_progress: OnProgress) -> list[T]:
    """Call `run_part(number, processes)` in each process, and return the results in the order of the numbers.

    A new process is started instead of a fork, because CUDA cannot be used in a fork.
    """
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(run_part, number, processes) for number in range(processes)]
        for done, future in enumerate(as_completed(futures), 1):
            future.result()
            on_progress(Progress(f"process {done} of {processes} is done", done, processes, 0, 0))
    return [future.result() for future in futures]
