"""How many threads a step uses on a CPU.

torch's threads meet at a barrier after every operation and spin while they wait. A small forward is hundreds of
operations of microseconds each. On an idle machine a second thread makes it about a quarter faster; where another
process holds one of the cores, every barrier waits for a thread that does not run, and the forward takes five to ten
times as long (`bench/cpu.py` prints both). So a small step runs on one thread, and a large one on all of them.

A batch of many small rows is a large step that needs no barriers: rows are computed side by side, some of them on each
thread. A thread that has to wait for its core then holds up nobody else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

SMALL_FLOPS = 4e9
"""Work of a forward below which it runs on one thread: about 50 ms of one core."""


def is_small(parameters: int, tokens: int) -> bool:
    """Whether a forward of a model over so many tokens runs on one thread."""
    return 2.0 * parameters * tokens < SMALL_FLOPS


def threads_for(device: torch.device, parameters: int, tokens: int) -> int | None:
    """The most threads for a forward of a model over so many tokens; None where torch's own number stands.

    It stands on a GPU, for a model of unknown size, and where the user has set OMP_NUM_THREADS.
    """
    if device.type != "cpu" or not parameters or "OMP_NUM_THREADS" in os.environ:
        return None
    return 1 if is_small(parameters, tokens) else None


def at_most(threads: int | None) -> AbstractContextManager[None]:
    """Run on at most so many threads, then as before."""
    return nullcontext() if threads is None or torch.get_num_threads() <= threads else _on_threads(threads)


@contextmanager
def _on_threads(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def side_by_side(tasks: Sequence[Callable[[], None]], threads: int) -> None:
    """Run tasks on so many threads, each of which computes alone. The threads end with the last task: none is left to
    a process that forks."""
    with at_most(1):
        if threads == 1 or len(tasks) == 1:
            for task in tasks:
                task()
            return
        inference = torch.is_inference_mode_enabled()  # of this thread alone

        def run(task: Callable[[], None]) -> None:
            with torch.inference_mode(inference):
                task()

        count = min(threads, len(tasks))
        with ThreadPoolExecutor(count, "uncode-rows", initializer=torch.set_num_threads, initargs=(1,)) as pool:
            for done in [pool.submit(run, task) for task in tasks]:
                done.result()
