"""The process that asks math-verify; started by `formulas.py`, a line of JSON a question. Imports nothing of ours."""

from __future__ import annotations

import json
import logging
import resource
import sys

MEMORY = 3 << 30


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    logging.disable(logging.CRITICAL)
    reading = [LatexExtractionConfig(), ExprExtractionConfig()]
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:  # no time limits of its own: they need signals, and whoever asked has one
            gold, answer = (
                parse(f"${asked[name]}$", extraction_config=reading, parsing_timeout=None)
                for name in ("gold", "answer")
            )
            same = bool(answer) and verify(gold, answer, timeout_seconds=None)
        except (Exception, RecursionError, MemoryError):
            same = False
        print(json.dumps(same), flush=True)


if __name__ == "__main__":
    main()
