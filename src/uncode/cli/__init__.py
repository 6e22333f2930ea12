"""The command line: one file per verb. An error is one sentence.

Verbs import torch when they run, not when they are listed, so `--help` and usage errors answer at once.
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
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve each other on a busy machine
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from .run import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        print(MESSAGE, file=sys.stderr)
        code = INTERRUPTED
        eval("None")  # else `python -m uncode` dies of the signal if it came during an eval() of text, as typer's is
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C: exit at once during an import, else raise KeyboardInterrupt.

    An exception inside an import of torch would abort its C++ code with a page of frames. Nothing is lost during an
    import, so the process can exit.
    """
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            os.write(2, f"{MESSAGE}\n".encode())
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt
