"""The start-up time of commands, compared with `import torch` in one run.

python bench/startup.py            # half a minute
python bench/startup.py --check    # fails if a command without torch takes 0.6 s, or `import uncode` 0.3 s
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

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


def seconds(words: list[str], times: int) -> float:
    """The fastest of several runs, because other load can only make a run slower."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    bare = seconds(["-c", "pass"], chosen.times)
    print(f"{'python -c pass':44}{bare:7.2f} s")
    slow = []
    for code, limit in (("import uncode", MAX_IMPORT_SECONDS), ("import torch", None)):
        took = seconds(["-c", code], chosen.times)
        print(f"{code:44}{took:7.2f} s")
        if limit is not None and took > limit:
            slow.append(code)
    for words in COMMANDS:
        took = seconds(["-m", "uncode.cli", *words], chosen.times)
        shown = "uncode " + " ".join("TABLE" if word == TABLE else word for word in words)
        print(f"{shown:44}{took:7.2f} s", flush=True)
        if took > MAX_COMMAND_SECONDS:
            slow.append(shown)
    if chosen.check and slow:
        sys.exit(f"too slow: {', '.join(slow)}; limits: {MAX_COMMAND_SECONDS} s, import {MAX_IMPORT_SECONDS} s")


if __name__ == "__main__":
    main()
