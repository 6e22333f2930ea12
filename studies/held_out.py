"""Draw the published held-out problems, which are part of the package: `python -m studies.held_out`.

With them everybody tests on the same. A new draw is made by `uncode mini --draw SEED`.
"""

from __future__ import annotations

from pathlib import Path

from uncode.evals.suite import families
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.families.family import COUNT, json_lines
from uncode.util.write import write_whole

SEED = 2026


def lines_of(name: str, count: int = COUNT) -> str:
    """The published file of a family, or its first `count` lines."""
    return json_lines(FAMILIES[name].problems(count, SEED, testing=True))


def main() -> None:
    for name in FAMILIES:
        write_whole(Path(families.__file__).parent / "held_out" / f"{name}.jsonl", lines_of(name))
        print(f"{name}: {COUNT} problems", flush=True)


if __name__ == "__main__":
    main()
