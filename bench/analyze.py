"""What `uncode analyze` costs on many traces: processor time and peak memory, for every figure of any traces.

python bench/analyze.py                    # 10,000 traces of 1,024 positions, 1.6 GB of JSON in a temporary folder
python bench/analyze.py --traces 500
python bench/analyze.py --check            # fails if a figure takes a minute or 2 GB
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

POSITIONS = 1024
FIGURES = ("heatmap", "trivial", "answers", "entropy", "accuracy")
MAX_SECONDS, MAX_GIGABYTES = 60.0, 2.0
MASK, EOS = 9999, 9998
VARIANTS = 16
"""Different traces; they are repeated under other ids."""


def trace(seed: int) -> dict[str, Any]:
    """A trace as `uncode eval --traces --observe-span` writes it."""
    draw = random.Random(seed)
    order = draw.sample(range(POSITIONS), POSITIONS)
    numbers = [[round(draw.random(), 9) for _ in range(POSITIONS)] for _ in range(6)]
    words = [draw.choice((" the", " apples", ".", " 12", "\n")) for _ in range(POSITIONS)]
    return {
        "schema": 1,
        "model": "model",
        "dtype": "float32",
        "special_ids": [EOS, MASK],
        "observe": "span",
        "versions": {"uncode": "0"},
        "sampler": {"name": "confidence", "policy": {}},
        "seed": seed,
        "mask_id": MASK,
        "prompt_ids": list(range(100)),
        "canvas_ids": [MASK] * POSITIONS,
        "generated_ids": [draw.randrange(9000) for _ in range(POSITIONS)],
        "commit_step": order,
        **dict(zip(("logp", "entropy", "margin", "score"), numbers, strict=False)),
        "runner_up": [None] * POSITIONS,
        "terms": {"Confidence": numbers[4]},
        "forwards": POSITIONS,
        "committed": [1] * POSITIONS,
        "mean_entropy": numbers[5],
        "window": [[100, 100 + POSITIONS]] * POSITIONS,
        "generated_texts": words,
        "task": "task",
        "label": "confidence",
        "answer_span": [1000, 1003],
        "correct": bool(seed % 2),
    }


def write(path: Path, count: int) -> None:
    lines = [json.dumps(trace(seed)) for seed in range(VARIANTS)]
    with open(path, "w") as file:
        for number in range(count):
            file.write(f'{lines[number % VARIANTS][:-1]}, "id": "{number}"}}\n')


def measure(kind: str, path: Path) -> None:
    """Print the cost of one figure. Each figure has one process, so the peak is its peak."""
    from uncode.analysis.analyze import analyze

    began, cpu = time.monotonic(), time.process_time()
    found = analyze(kind, [path])
    seconds = time.process_time() - cpu
    print(json.dumps([kind, found.traces, seconds, time.monotonic() - began, peak_gigabytes()]))


def peak_gigabytes() -> float:
    """The peak of this process. The kernel's `ru_maxrss` begins with that of the process that started it."""
    status = Path("/proc/self/status")
    if status.is_file():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--figures", nargs="+", default=FIGURES, choices=FIGURES)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], Path(options.measure[1]))
        return 0
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.jsonl"
        write(path, options.traces)
        print(f"{options.traces:,} traces of {POSITIONS:,} positions, {path.stat().st_size / 1e9:.1f} GB of JSON")
        for kind in options.figures:
            command = [sys.executable, __file__, "--measure", kind, str(path)]
            line = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            _, _, cpu, wall, gigabytes = json.loads(line)
            print(f"{kind:10} {cpu:6.1f} s of processor time, {wall:6.1f} s, {gigabytes:.2f} GB", flush=True)
            failed |= cpu > MAX_SECONDS or gigabytes > MAX_GIGABYTES
    return int(options.check and failed)


if __name__ == "__main__":
    sys.exit(main())
