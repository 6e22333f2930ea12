"""The process that asks math-verify; started by `formulas.py`, a line of JSON a question. Imports nothing of ours."""

from __future__ import annotations

import json
import logging
import resource
import signal
import sys

MEMORY = 3 << 30
SECONDS = 10.0


def _give_up(*_: object) -> None:
    raise TimeoutError


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    logging.disable(logging.CRITICAL)
    reading = [LatexExtractionConfig(), ExprExtractionConfig()]
    signal.signal(signal.SIGPROF, _give_up)
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of processor time, so that a busy machine changes nothing
        try:
            gold, answer = (
                parse(f"${asked[name]}$", extraction_config=reading, parsing_timeout=None)
                for name in ("gold", "answer")
            )
            same = bool(answer) and verify(gold, answer, timeout_seconds=None)
        except (Exception, RecursionError, MemoryError):
            same = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(same), flush=True)


if __name__ == "__main__":
    main()
