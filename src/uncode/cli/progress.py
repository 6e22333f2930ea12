"""Progress bars on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from ..core.support.reprs import counted

if TYPE_CHECKING:
    from ..evals.run.options import RunProgress
    from ..frequency.counting.job import CountProgress, OnProgress
    from ..train.run import Progress as TrainProgress

P = TypeVar("P")
Update = Callable[..., None]
MIN_ANSWERS = 16
"""Answers from which the time that is left is estimated."""


def _lines(console: Console, sentence: Callable[[P], str], every_seconds: float = 30.0) -> Callable[[P], None]:
    """Without a terminal: what to call with the progress. It prints a line about it every half minute."""
    last = time.monotonic()

    def on_progress(progress: P) -> None:
        nonlocal last
        line = sentence(progress)  # also when it is not printed: it may measure the speed
        if time.monotonic() - last >= every_seconds:
            last = time.monotonic()
            console.print(line, highlight=False, soft_wrap=True)

    return on_progress


@contextmanager
def _bar(
    console: Console, *columns: ProgressColumn, description: str = "", total: float | None = None
) -> Iterator[Update]:
    """A bar that is gone at its end, and nothing without a terminal. Yields what updates its task."""
    columns = (*columns, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield partial(bar.update, bar.add_task(description, total=total, status=""))


@contextmanager
def eval_bar(name: str) -> Iterator[Callable[[RunProgress], None]]:
    """A bar for `uncode eval`: the cell, its accuracy, time left. Without a terminal, a line every half minute."""
    console, what = Console(stderr=True), TextColumn("{task.description}", markup=False)
    if not console.is_terminal:
        yield _eval_lines(console)
        return
    columns = (what, BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.fields[status]}"))
    with _bar(console, *columns, description=name) as update:
        yield lambda report: update(
            description=report.cell, completed=report.done, total=report.total, status=_accuracy(report)
        )


def _accuracy(report: RunProgress) -> str:
    return f"{100 * report.right / report.answered:.1f} % right" if report.answered and report.right >= 0 else ""


def _eval_lines(console: Console) -> Callable[[RunProgress], None]:
    estimate = _TimeLeft()

    def sentence(report: RunProgress) -> str:
        minutes = estimate.minutes(report)
        left = "" if minutes is None else f", about {minutes:.0f} min left"
        accuracy = f", {_accuracy(report)}" if report.answered else ""
        return f"{report.cell}: {report.done:,} of {counted(report.total, 'answer')}{accuracy}{left}"

    return _lines(console, sentence)


class _TimeLeft:
    """The time that a run still takes, by its speed since its first new answers: before these it loaded a model."""

    def __init__(self) -> None:
        self.found: int | None = None
        """Answers that a resumed run had already."""
        self.start: tuple[float, int] | None = None
        """The time and the number of answers at the first new ones."""

    def minutes(self, report: RunProgress) -> float | None:
        """None until there are answers to tell the speed from."""
        now = time.monotonic()
        if self.found is None:
            self.found = report.done
        if self.start is None and report.done > self.found:
            self.start = now, report.done
        if self.start is None or report.done - self.start[1] < MIN_ANSWERS:
            return None
        began, first = self.start
        return (now - began) / (report.done - first) * (report.total - report.done) / 60


@contextmanager
def counting_bar(name: str) -> Iterator[OnProgress]:
    """A bar for `uncode count`: bytes, tokens/s, time left. Without a terminal, a line every half minute."""
    console, speed = Console(stderr=True), _Speed()
    if not console.is_terminal:
        yield _lines(console, speed.sentence)
        return
    what = TextColumn("counting {task.description}", markup=False)
    columns = (what, BarColumn(bar_width=24), TextColumn("{task.fields[status]}"))
    with _bar(console, *columns, description=name) as update:
        yield lambda report: update(
            total=1.0 if report.share else None, completed=report.share, status=speed.status(report)
        )


class _Speed:
    """Formats the bytes and tokens so far, and the tokens/s since the first report."""

    def __init__(self) -> None:
        self.began, self.first = time.monotonic(), -1

    def status(self, report: CountProgress) -> str:
        self.first = report.tokens if self.first < 0 else self.first
        rate = (report.tokens - self.first) / max(time.monotonic() - self.began, 1e-3)
        tokens = f", {report.tokens / 1e6:,.1f} M tokens" if report.tokens else ""
        speed = f", {rate / 1e3:,.0f} k/s" if rate else ""
        bad = f", {report.totals.bad:,} bad" if report.totals.bad else ""
        return f"{decimal(report.totals.bytes)}{tokens}{speed}{bad}"

    def sentence(self, report: CountProgress) -> str:
        return f"counting: {f'{report.share:.0%}, ' if report.share else ''}{self.status(report)}"


@contextmanager
def drawing_bar(total: int) -> Iterator[Callable[[str, int], None]]:
    """A bar for the training examples that `uncode train` draws: the family, and how many of all."""
    columns = (TextColumn("drawing {task.description}"), BarColumn(), MofNCompleteColumn())
    with _bar(Console(stderr=True), *columns, description="examples", total=total) as update:
        yield lambda name, count: update(advance=count, description=name.removeprefix("mini_"))


@contextmanager
def training_bar(steps: int) -> Iterator[Callable[[TrainProgress], None]]:
    """A bar for `uncode train`: loss and tokens/s. Without a terminal, a line after every twentieth of the steps."""
    console = Console(stderr=True)

    def status(progress: TrainProgress) -> str:
        speed = progress.tokens / max(progress.seconds, 1e-3)
        return f"step {progress.step:,}, loss {progress.curve[-1][1]:.4f}, {speed / 1e3:,.0f} k tokens a second"

    if not console.is_terminal:
        yield lambda p: console.print(status(p), highlight=False) if p.step % max(50, steps // 20) < 50 else None
        return
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with _bar(console, *columns, total=steps) as update:
        yield lambda progress: update(completed=progress.step, description=status(progress))
