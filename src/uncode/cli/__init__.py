"""The command line: one file per verb, errors as one sentence.

Verbs import torch when they run, not when they are listed: `--help` and a misspelt option answer at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

from .exit_codes import INTERRUPTED

MESSAGE = "uncode: interrupted."


def main() -> None:
    """Run a verb, and exit with its code; see :mod:`.exit_codes`."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin starve each other on a busy machine
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from .run import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        print(MESSAGE, file=sys.stderr)
        code = INTERRUPTED
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C. While a module is being imported nothing is under way that could be lost, and an exception would be
    raised inside torch's C++ code, which aborts the process with a page of frames: leave at once."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            os.write(2, f"{MESSAGE}\n".encode())
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt
