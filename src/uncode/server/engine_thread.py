"""The engine in its own thread. The event loop hands it rows; it hands back events."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from typing import Literal

from ..engine import Engine
from .decoding.served_request import Outcome, ServedRow
from .errors import shutting_down
from .logs import Log
from .metrics import Metrics

MAX_FAILURES = 3
"""Forwards that fail one after the other. Then the server says that it is not healthy."""
MAX_STEP_SECONDS = 120.0
"""A step may always take so long. One that takes much longer than those before has stalled."""
STALLED_STEPS = 10
"""How many of the longest steps so far a step may take. Before any has ended, each counts as MAX_STEP_SECONDS: on a CPU
the first step of a large model may be long, and a restart would only begin it again."""
AVERAGING = 0.1
"""Weight of the latest value in a moving average."""
Command = tuple[Literal["submit", "cancel"], ServedRow]


class EngineThread:
    """Runs the engine while it has rows, and sleeps otherwise. All methods may be called from any thread."""

    def __init__(self, engine: Engine[ServedRow], metrics: Metrics, log: Log) -> None:
        self._engine, self._metrics, self._log = engine, metrics, log
        self._commands: deque[Command] = deque()
        self._wake, self._lock = threading.Event(), threading.Lock()
        self._rows: dict[int, ServedRow] = {}
        """Rows that the engine has, by ticket."""
        self.outstanding = 0
        """Rows that have been submitted and have not ended."""
        self._stopping = False
        self._failures = 0
        self._step_began: float | None = None
        self._longest_step: float | None = None
        """Seconds; None before a step has ended."""
        self._busy = 0.0
        """Seconds of forwards since the last row ended."""
        self.seconds_per_row = 0.1
        """Between the ends of two rows under load, as a moving average."""
        self._thread = threading.Thread(target=self._run, name="uncode-engine", daemon=True)
        metrics.show_engine(engine, lambda: self.step_age)

    def start(self) -> None:
        self._thread.start()

    def give_up(self) -> None:
        """End the thread after the forward that runs. Rows that it still has are answered with an error."""
        self._stopping = True
        self._wake.set()

    def stop(self) -> None:
        """The same, and wait for it."""
        self.give_up()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def is_healthy(self) -> bool:
        """Whether the thread runs, its forwards work and its step makes progress."""
        return self.is_alive and self._failures < MAX_FAILURES and not self.has_stalled

    @property
    def has_stalled(self) -> bool:
        """Whether the step that runs began too long ago."""
        longest = MAX_STEP_SECONDS if self._longest_step is None else self._longest_step
        return self.step_age > max(MAX_STEP_SECONDS, STALLED_STEPS * longest)

    @property
    def step_age(self) -> float:
        """Seconds since the step that runs began; 0 between steps. A step is a forward and all that follows from it."""
        began = self._step_began
        return 0.0 if began is None else time.monotonic() - began

    @property
    def is_alive(self) -> bool:
        """Whether rows that are submitted will end."""
        return self._thread.is_alive() and not self._stopping

    def submit(self, rows: list[ServedRow], most: int) -> bool:
        """Submit the rows of a request, unless more than `most` would be outstanding. Returns whether it did.

        Raises once the thread ends: its last look at the commands takes the same lock, so no row can come after it.
        """
        with self._lock:
            if not self.is_alive:
                raise shutting_down()
            fits = self.outstanding + len(rows) <= most
            if fits:
                self.outstanding += len(rows)
                self._commands.extend(("submit", row) for row in rows)
        if fits:
            self._wake.set()
        else:
            for row in rows:
                self._metrics.row_left(row.waited, "refused")
        return fits

    def cancel(self, rows: list[ServedRow]) -> None:
        """Drop rows before the next forward. Rows that have ended already stay as they are."""
        self._commands.extend(("cancel", row) for row in rows)
        self._wake.set()

    # -- in the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._wake.clear()
                self._obey()
                if self._engine.is_idle:
                    self._wake.wait()
                else:
                    self._step_began = time.monotonic()
                    self._step(self._step_began)
                    self._longest_step = max(self._longest_step or 0.0, self.step_age)
                    self._step_began = None
        finally:
            self._stopping = True
            self._end()

    def _obey(self) -> None:
        while self._commands:
            command, row = self._commands.popleft()
            if command == "submit":
                row.ticket = self._engine.submit(row.request)
                self._rows[row.ticket] = row
            elif row.ticket is not None and self._rows.pop(row.ticket, None) is not None:
                row.waited = self._engine.waited(row.ticket)
                self._engine.cancel(row.ticket)
                self._left(row, row.served.cancelled_as)

    def _step(self, began: float) -> None:
        forwards = self._engine.forwards
        try:
            results = self._engine.step()
        except Exception as error:
            self._failures += 1
            self._metrics.failed_forwards.inc()
            self._log.write("forward_failed", rows=self._engine.running, traceback=traceback.format_exc())
            results = self._engine.abandon(error)
        else:
            taken = self._engine.forwards - forwards
            if taken:
                self._failures = 0
                self._metrics.step(self._engine.last_rows, time.monotonic() - began, taken)
        self._busy += time.monotonic() - began
        if results:
            self.seconds_per_row += AVERAGING * (self._busy / len(results) - self.seconds_per_row)
            self._busy = 0.0
        for result in results:
            row = result.request.key
            if row.ticket is not None:
                self._rows.pop(row.ticket, None)
            self._left(row, row.finish(result))

    def _left(self, row: ServedRow, outcome: Outcome) -> None:
        self._metrics.row_left(row.waited, outcome)
        with self._lock:
            self.outstanding -= 1

    def _end(self) -> None:
        """The server stops: whatever has not ended gets an error that a client can retry on."""
        with self._lock:
            waiting = [row for command, row in self._commands if command == "submit"]
        for row in [*self._rows.values(), *waiting]:
            row.waited = 0.0 if row.ticket is None else self._engine.waited(row.ticket)
            self._metrics.row_left(row.waited, "shutdown")
            row.fail(shutting_down())
