"""The server under load, and the engine behind it.

    python bench/serve.py                                   # the load test
    python bench/serve.py --check                           # the same, and exit code 1 if a bar is missed
    python bench/serve.py --engine --device cuda --check    # the engine alone, on a GPU with 80 GB: 2 to 3 minutes

The load test runs `uncode serve` in its own process, with the embedded model in float32 on a CPU, and sends it 500
requests of 16 to 64 tokens, 64 at a time, of eight samplers, half of them streamed. The bars: none is lost, each answer
equals the request decoded alone, the mean batch of /metrics is at least 8, the throughput is not below that of one
request at a time, and a short request behind long ones ends before them.

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
    parser.add_argument("--concurrency", type=int, help="requests at a time; default: 64, and 16 with --engine")
    load = parser.add_argument_group("the load test")
    load.add_argument("--requests", type=int, default=500)
    load.add_argument("--sample", type=int, default=40, help="requests that are sent one at a time, for comparison")
    engine = parser.add_argument_group("the engine alone")
    engine.add_argument("--engine", action="store_true")
    engine.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    engine.add_argument("--layers", type=int, default=32, help="of the network on a GPU")
    engine.add_argument("--tokens", type=int, default=2048, help="per measurement")
    options = parser.parse_args()
    if options.engine:
        import serve_engine

        speedup = serve_engine.compare(options.device, options.layers, options.concurrency or 16, options.tokens)
        return int(options.check and options.device == "cuda" and speedup < serve_engine.MIN_SPEEDUP)
    import serve_load

    missed = serve_load.run(options.requests, options.concurrency or 64, options.sample)
    return int(options.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
