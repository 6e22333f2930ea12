"""The server under load.

    python bench/serve.py            # the load test: tiny in float32, a server in a process of its own
    python bench/serve.py --check    # the same, and exit code 1 if a bar is missed
    python bench/serve.py --engine --device cuda --check    # the engine alone, on a GPU with 80 GB: 2 to 3 minutes

The engine alone needs torch and triton, and nothing that only a server needs. An 8.0 B network of LLaDA's shape with
random weights decodes with the dual cache, in blocks of 32, one token per forward: 16 requests at a time against one
alone, at least 3.5 times the tokens per second. `--device cpu` runs it with the embedded model, without a bar.
"""

from __future__ import annotations

import argparse
import sys


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit code 1 if a bar is missed")
    parser.add_argument("--engine", action="store_true", help="the engine alone, without a server")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="of --engine")
    parser.add_argument("--layers", type=int, default=32, help="of the network of --engine --device cuda")
    parser.add_argument("--concurrency", type=int, default=16, help="of --engine")
    parser.add_argument("--tokens", type=int, default=2048, help="of --engine: tokens per measurement")
    options = parser.parse_args()
    import serve_engine

    speedup = serve_engine.compare(options.device, options.layers, options.concurrency, options.tokens)
    return int(options.check and options.device == "cuda" and speedup < serve_engine.MIN_SPEEDUP)


if __name__ == "__main__":
    sys.exit(main())
