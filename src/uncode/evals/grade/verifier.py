"""The math-verify process of `formulas.py`. It reads one JSON line per comparison and imports nothing of uncode."""

from __future__ import annotations

import json
import logging
import resource
import signal
import sys

MEMORY_BYTES = 3 << 30


def main(cpu_seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    logging.disable(logging.CRITICAL)
    reading = [LatexExtractionConfig(), ExprExtractionConfig()]
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # the kernel ends the process: big integers ignore Python handlers
    print("ready", flush=True)
    for line in sys.stdin:
        pair = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)  # CPU time, so that a busy machine does not matter
        try:
            gold, answer = (
                parse(f"${pair[name]}$", extraction_config=reading, parsing_timeout=None) for name in ("gold", "answer")
            )
            same = bool(answer) and verify(gold, answer, timeout_seconds=None)
        except (Exception, RecursionError, MemoryError):
            same = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(same), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
