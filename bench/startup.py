"""The start-up time of commands, compared with `import torch` in one run.

python bench/startup.py            # half a minute
python bench/startup.py --check    # fails if a command without torch takes 0.6 s, or `import uncode` 0.3 s
python bench/startup.py --answers --device cuda --check    # two processes up to their first answers

With `--answers`, the first process finds no compiled kernel, and the second those of the first. Each makes the network
of bench/gpu.py (on a CPU it loads the embedded model), then answers twice. What the first answer takes longer than the
second are kernels that are loaded and CUDA graphs that are captured: in the second process it must be below a second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import uncode.models

TABLE = str(uncode.models.TINY / "frequency.safetensors")
COMMANDS = (
    ["--help"],
    ["--version"],
    ["samplers"],
    ["tasks"],
    ["table", "show", TABLE],
    ["decode", "--help"],
    ["decode", "x", "--sampler", "uncod"],
)
MAX_COMMAND_SECONDS, MAX_IMPORT_SECONDS = 0.6, 0.3
BEGAN, MAX_LATE_SECONDS = time.monotonic(), 1.0
PROMPT, SHORT, QUOTA = 60, 32, 4
"""Tokens of the prompt, of an answer on a CPU, and of a forward."""
COLUMNS = {"imports": 9, "weights": 9, "first answer": 14, "second answer": 15}
"""What a process takes, and how wide it is printed."""


def seconds(words: list[str], times: int) -> float:
    """The fastest of several runs, because other load can only make a run slower."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        found.append(time.perf_counter() - began)
    return min(found)


def answers(device: str, layers: int, weights: str) -> dict[str, float]:
    """Seconds of this process up to its first answer, and of its second."""
    import torch
    import workload
    from serve_engine import load_model, synchronize

    from uncode.core.canvas import Canvas
    from uncode.generation.decoding import decode

    found = {"imports": time.monotonic() - BEGAN}

    def timed(name: str, run: Callable[[], Any]) -> Any:
        began = time.monotonic()
        done = run()
        synchronize(model if name != "weights" else done)
        found[name] = time.monotonic() - began
        return done

    model = timed("weights", lambda: load_model(device, layers, weights))
    length = workload.LENGTH if device == "cuda" else SHORT
    prompt = torch.randint(100, 400, (PROMPT,), generator=torch.Generator().manual_seed(0)).tolist()
    canvas = Canvas.after_prompt([prompt], length=length, mask_id=model.mask_id)
    sampler = workload.sampler_of("dual", QUOTA)
    for name in ("first answer", "second answer"):
        timed(name, lambda: decode(model, canvas, sampler))
    return found


def processes(device: str, layers: int, weights: str) -> float:
    """Print what two processes take, one after the other. Returns by how much the first answer of the second takes
    longer than its second."""
    words = [sys.executable, __file__, "--answers", "--own", "--device", device]
    print("process  imports  weights  first answer  second answer, s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        caches = {name: f"{folder}/{name}" for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
        for number in (1, 2):
            given = [*words, "--layers", str(layers), "--weights", weights]
            done = subprocess.run(given, env=os.environ | caches, stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            line = "".join(f"{found[name]:{width}.2f}" for name, width in COLUMNS.items())
            print(f"{number:7}{line}", flush=True)
    late: float = found["first answer"] - found["second answer"]
    return late


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    second = parser.add_argument_group("two processes up to their first answers")
    second.add_argument("--answers", action="store_true")
    second.add_argument("--own", action="store_true", help="those of this process, as JSON")
    second.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    second.add_argument("--layers", type=int, default=32)
    second.add_argument("--weights", default="bf16")
    chosen = parser.parse_args()
    given = chosen.device, chosen.layers, chosen.weights
    if chosen.own:
        print(json.dumps(answers(*given)))
    elif chosen.answers:
        late = processes(*given)
        if chosen.check and late > MAX_LATE_SECONDS:
            sys.exit(f"the first answer of a second process takes {late:.2f} s longer than its second")
    else:
        commands(chosen.times, chosen.check)


def commands(times: int, check: bool) -> None:
    """Print how long commands take."""
    bare = seconds(["-c", "pass"], times)
    print(f"{'python -c pass':44}{bare:7.2f} s")
    slow = []
    for code, limit in (("import uncode", MAX_IMPORT_SECONDS), ("import torch", None)):
        took = seconds(["-c", code], times)
        print(f"{code:44}{took:7.2f} s")
        if limit is not None and took > limit:
            slow.append(code)
    for words in COMMANDS:
        took = seconds(["-m", "uncode.cli", *words], times)
        shown = "uncode " + " ".join("TABLE" if word == TABLE else word for word in words)
        print(f"{shown:44}{took:7.2f} s", flush=True)
        if took > MAX_COMMAND_SECONDS:
            slow.append(shown)
    if check and slow:
        sys.exit(f"too slow: {', '.join(slow)}; limits: {MAX_COMMAND_SECONDS} s, import {MAX_IMPORT_SECONDS} s")


if __name__ == "__main__":
    main()
