"""The command line: one file per verb, errors as one sentence.

Verbs import torch when they run, not when they are listed: `--help` and a misspelt option answer at once.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType


def main() -> None:
    """Run a verb. Exit codes: 0 done, 1 a fault of ours, 2 an error the user can mend, 130 interrupted."""
    interrupted = _Interrupted()
    try:
        from .run import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        _say_interrupted()
    except Exception:  # an import that was interrupted can fail with an error of its own
        if not interrupted.yes:
            raise
        _say_interrupted()


class _Interrupted:
    """Remembers Ctrl-C, which libraries may turn into another error on its way."""

    def __init__(self) -> None:
        self.yes = False
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.yes = True
        signal.default_int_handler(number, frame)


def _say_interrupted() -> None:
    print("uncode: interrupted.", file=sys.stderr)
    sys.exit(130)
