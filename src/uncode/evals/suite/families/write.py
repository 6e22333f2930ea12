"""Draw held-out problems and write them to files: `python -m uncode.evals.suite.families.write FOLDER [SEED]`.

Without a seed these are the published problems, which are part of the package: with them everybody tests on the same. A
seed gives a new draw from the same held-out side, without the published problems. Nobody has seen it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from ....util.paths import make_folder
from ....util.write import write_whole
from ...task import Example
from . import FAMILIES
from .family import TESTED, UNLABELLED

SEED = 2026
"""Of the published problems."""
COUNT = TESTED + UNLABELLED


def lines_of(name: str, count: int = COUNT) -> str:
    """The published file of a family, or its first `count` lines."""
    return _lines(FAMILIES[name].problems(count, SEED, testing=True))


def write_fresh(folder: Path, seed: int, names: Iterable[str] = FAMILIES, count: int = COUNT) -> None:
    """Write a draw of problems that nobody has seen, one file per family."""
    make_folder(folder)
    for name in names:
        write_whole(folder / f"{name}.jsonl", _lines(FAMILIES[name].fresh_problems(count, seed)))


def _lines(found: Iterable[Example]) -> str:
    rows = ({key: value for key, value in asdict(example).items() if key != "id"} for example in found)
    return "".join(json.dumps(row) + "\n" for row in rows)


def main(folder: Path, seed: int | None = None) -> None:
    make_folder(folder)
    for name in FAMILIES:
        if seed is None:
            write_whole(folder / f"{name}.jsonl", lines_of(name))
        else:
            write_fresh(folder, seed, [name])
        print(f"{name}: {COUNT} problems", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
