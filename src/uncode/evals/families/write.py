"""Draw the held-out problems and write them to files: `python -m uncode.evals.families.write FOLDER`.

The files are part of the package, because drawing story problems needs reasoning-gym, which is not needed to evaluate.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from ...core.support.paths import make_folder
from ...core.support.write import write_whole
from . import FAMILIES
from .family import TESTED, UNLABELLED

SEED = 2026


def lines_of(name: str, count: int = TESTED + UNLABELLED) -> str:
    """The content of a family's file, or its first `count` lines."""
    found = FAMILIES[name].problems(count, SEED, testing=True)
    rows = ({key: value for key, value in asdict(example).items() if key != "id"} for example in found)
    return "".join(json.dumps(row) + "\n" for row in rows)


def main(folder: Path) -> None:
    make_folder(folder)
    for name in FAMILIES:
        write_whole(folder / f"{name}.jsonl", lines_of(name))
        print(f"{name}: {TESTED + UNLABELLED} problems", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
