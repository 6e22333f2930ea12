"""What a cache costs in accuracy, and what it saves: samplers of `tiny` without a cache and with each of them.

Every sampler decodes the mini-suite without a cache, with a prefix and a dual cache in blocks, and with a window cache
in a window that slides. The table has its accuracy, the soundness of its reasoning, its forwards, and the columns that
its forwards compute for each token of an answer. Differences are paired, from the sampler's own row without a cache.

    python bench/caches.py --device cuda --workers 12 --problems 1024 --out caches
    python bench/caches.py --problems 8 --samplers dsb,certain_first   # a trial on a CPU
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from uncode.core.errors import suggest
from uncode.core.pieces.policy import Sampler
from uncode.core.pieces.stop import AfterEos
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.results import CellResults, Results
from uncode.evals.suite.run import SuiteRun
from uncode.samplers import presets
from uncode.util.stats import newcombe

SEEDS = {"seed 0": "tiny", "seed 1": str(Path(__file__).parent.parent / "studies/tiny-seed-1")}
BLOCK = 32
"""Tokens of a block and masks of a window, as published. The answers of the suite have 40 to 112 tokens."""
SAMPLERS = (
    "left_to_right", "semi_ar", "confidence", "fast_dllm", "uncode", "certain_first", "dsb", "dcd"
)  # fmt: skip
CACHES = ("none", "prefix", "dual", "window")
SLIDES = ("dsb", "dcd")
"""Their windows slide, which no block cache follows."""


def rows(names: tuple[str, ...]) -> Iterator[tuple[str, Sampler]]:
    """The rows of the table, each with its label."""
    for name in names:
        make = getattr(presets, name)
        for cache in CACHES:
            if cache in ("prefix", "dual") and name in SLIDES:
                continue
            own = {"blocks": 8} if name == "semi_ar" else {"block_length": BLOCK} if name == "fast_dllm" else {}
            placed = {"window": BLOCK} if cache == "window" or name in SLIDES else own or {"block_length": BLOCK}
            options = own if cache == "none" and name not in SLIDES else placed
            yield f"{name}, {cache}", make(cache=cache, **options).stopping(AfterEos())


def run(out: Path, made: Mapping[str, Sampler], args: argparse.Namespace) -> dict[str, Results]:
    """The results of every row, by seed."""
    files = []
    for label, sampler in made.items():
        files.append(str(out / "samplers" / f"{label}.toml"))
        Path(files[-1]).parent.mkdir(parents=True, exist_ok=True)
        sampler.save(files[-1], force=True)
    found = {}
    for seed, model in SEEDS.items():
        suite = SuiteRun(
            model=model,
            device=args.device,
            dtype=None,
            problems=args.problems,
            batch=args.batch,
            seed=0,
            rates=None,
            folder=out / seed,
            families=tuple(args.families.split(",")),
            draw=args.draw,
            every_preset=True,
            samplers=tuple(files),
        )
        found[seed] = suite.run(args.workers, on_progress=lambda progress: None)
        print(f"{seed}: {found[seed].about['seconds']} s of decoding", file=sys.stderr)
    return found


def table(labels: list[str], found: Mapping[str, Results]) -> list[str]:
    """The table in Markdown: a row for each sampler and cache, both seeds side by side."""
    lines = [
        "| sampler | cache | right | from none | sound | forwards | columns a token |",
        "|---|---|---|---|---|---|---|",
    ]
    for label in labels:
        name, _, cache = label.rpartition(", ")
        cells = {seed: [of[label] for of in results.cells.values()] for seed, results in found.items()}
        right = " / ".join(f"{100 * np.concatenate([c.solved for c in of]).mean():.1f}" for of in cells.values())
        parts = [one_difference(results, label, f"{name}, none") for results in found.values()]
        sound = " / ".join(
            f"{100 * np.mean(np.concatenate(marks)):.1f}" for marks in map(reasoned, cells.values()) if marks
        )
        forwards = " / ".join(f"{np.mean([c.forwards for c in of]):.1f}" for of in cells.values())
        columns = " / ".join(
            f"{sum(c.columns or np.nan for c in of) / sum(c.tokens for c in of):.0f}" for of in cells.values()
        )
        lines.append(f"| {name} | {cache} | {right} | {' / '.join(parts)} | {sound} | {forwards} | {columns} |")
    return lines


def one_difference(results: Results, label: str, reference: str) -> str:
    """The difference in accuracy from the row without a cache, with its interval, in points."""
    if label == reference or results.solved(reference) is None:
        return "-"
    first, second = results.solved(label), results.solved(reference)
    assert first is not None and second is not None
    found = newcombe(first, second)
    return f"{100 * found.estimate:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def reasoned(cells: list[CellResults]) -> list[np.ndarray]:
    """The soundness of the families that have it."""
    return [marks for cell in cells if (marks := cell.reasoned) is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samplers", default=",".join(SAMPLERS), help="which samplers, of these: %(default)s")
    parser.add_argument("--families", default=",".join(FAMILIES), help="which families of the suite; default: all")
    parser.add_argument("--problems", type=int, default=64, help="problems of each family; default: %(default)s")
    parser.add_argument("--draw", type=int, help="a draw of new problems; default: the published ones")
    parser.add_argument("--device", help="default: the GPU if there is one")
    parser.add_argument("--workers", type=int, default=2, help="processes; default: %(default)s")
    parser.add_argument("--batch", type=int, default=256, help="rows of a batch; default: %(default)s")
    parser.add_argument("--out", type=Path, help="a folder that keeps the answers; the run resumes there")
    args = parser.parse_args()
    names = tuple(args.samplers.split(","))
    for name in names:
        if name not in SAMPLERS:
            sys.exit(f"no sampler is named '{name}': {suggest(name, SAMPLERS)}")
    made = dict(rows(names))
    with tempfile.TemporaryDirectory() as temporary:
        found = run(args.out or Path(temporary), made, args)
        print("\n".join(table(list(made), found)))


if __name__ == "__main__":
    main()
