"""All that only a GPU can check, in one command of less than ten minutes: `make verify-gpu`.

It needs pytest beside what the package needs. It runs the tests of kernels, CUDA graphs and devices; decodes random
networks by kernels and by plain torch (agreement.py); decodes a part of the mini-suite and compares it with the stored
results; and measures steps (gpu.py) and the engine (serve.py) against their limits. The block at the end belongs into
docs/performance.md.

    python bench/verify_gpu.py
    python bench/verify_gpu.py --only agreement suite
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import torch

from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.folder import results_of
from uncode.models import TINY

ROOT = Path(__file__).parents[1]
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=")
SUITE, PROBLEMS = ("confidence", "certain_first"), 256
MAX_CHANGED = 0.02
"""The share of problems whose verdict may differ from the stored one: bfloat16 rounds by the size of a batch."""


@dataclass
class Check:
    """One command, and the part of its output that is a figure."""

    name: str
    command: tuple[str, ...]
    figure: str
    is_timed: bool = False
    """A benchmark: it runs alone, because others would slow it."""

    def run(self) -> tuple[bool, str]:
        """Whether it passed, and its figures."""
        began = time.monotonic()
        paths = os.pathsep.join(filter(None, (str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            [sys.executable, *self.command],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
        found = re.findall(self.figure, done.stdout, re.M)
        passed = done.returncode == 0 and bool(found)
        print(f"{'ok    ' if passed else 'failed'} {self.name} ({time.monotonic() - began:.0f} s)", flush=True)
        if not passed:
            print((done.stdout + done.stderr)[-6000:], flush=True)
        return passed, "\n".join(found)


def checks(out: Path) -> Iterator[Check]:
    backbones = tuple(f"tests/backbones/test_{name}.py" for name in ("gpu", "cuda_graph", "triton"))
    yield Check("kernels and graphs", (*PYTEST, *backbones), r"^.* passed.*$")
    yield Check("devices", (*PYTEST, "tests/test_devices.py"), r"^.* passed.*$")
    yield Check("agreement", ("bench/agreement.py", "--networks", "24", "--workers", "6"), r"^(?:float32|bfloat16).*$")
    suite = ("-m", "uncode.cli", "mini", "--all", "--samplers", ",".join(SUITE), "--problems", str(PROBLEMS))
    yield Check(
        "suite", (*suite, "--device", "cuda", "--workers", "2", "--out", str(out)), r"^\s*(?:\d+ )?certain_first.*$"
    )
    yield Check(
        "steps",
        ("bench/gpu.py", "--batches", "1", "--check"),
        r"^(?:floors|belief|none|prefix|dual|bf16| {6,}\d).*$",
        True,
    )
    yield Check(
        "engine",
        ("bench/serve.py", "--engine", "--device", "cuda", "--tokens", "1024", "--check"),
        r"^.* requests at a time.*$",
        True,
    )


def changed(out: Path) -> float:
    """The share of the suite's problems whose verdict is not the stored one."""
    new, stored, total, other = results_of(out), results_of(TINY), 0, 0
    for family in FAMILIES:
        for name in SUITE:
            found, before = new.cell(family, name), stored.cell(family, name)
            assert found is not None and before is not None
            total += len(found.right)
            other += sum(a != b for a, b in zip(found.right, before.right, strict=False))
    return other / total


def commit() -> str:
    shown = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return shown.stdout.strip() or "of no repository"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="names of checks, with - for spaces")
    parser.add_argument("--commit", default=commit(), help="for a copy of the tree without its repository")
    chosen = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("these checks need a CUDA GPU; without one, make test runs all that can be run.")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "suite"
        todo = [check for check in checks(out) if not chosen.only or check.name.replace(" ", "-") in chosen.only]
        with ThreadPoolExecutor() as pool:
            together = {check.name: pool.submit(check.run) for check in todo if not check.is_timed}
            results = {name: future.result() for name, future in together.items()}
        results |= {check.name: check.run() for check in todo if check.is_timed}
        if results.get("suite", (False,))[0]:
            share = changed(out)
            text = f"{share:.2%} of {len(FAMILIES) * len(SUITE) * PROBLEMS} verdicts differ from the stored ones"
            results["suite"] = share <= MAX_CHANGED, f"{results['suite'][1]}\n{text}"
    failed = [name for name, (passed, _) in results.items() if not passed]
    print(f"\n{date.today()}, {torch.cuda.get_device_name()}, torch {torch.__version__}, commit {chosen.commit}:\n")
    print("\n".join(f"{name}\n{figures}" for name, (_, figures) in results.items()))
    print(f"\n{time.monotonic() - began:.0f} s; " + (f"failed: {', '.join(failed)}" if failed else "all passed"))
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
