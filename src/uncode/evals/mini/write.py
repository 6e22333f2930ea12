"""Write the card and the sampler files of a model from its results: `python -m uncode.evals.mini.write FOLDER`.

The card is README.md. Each family gets a sampler file (recipes/NAME.toml): Uncode with the rate that was chosen without
labels. `uncode decode --sampler NAME` finds it there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ...core.support.write import write_whole
from ...frequency import FrequencyTable
from ...models import SAMPLER_FOLDER, TABLE
from ..families import FAMILIES
from .card import card, results_of
from .report import short
from .sampler import at_rate


def sampler_files(folder: Path) -> dict[str, str]:
    """The content of the families' sampler files, by name."""
    results, table = results_of(folder), FrequencyTable.load(folder / TABLE)
    return {short(name): at_rate(table, results.rate(name)).to_toml() for name in FAMILIES}


def main(folder: Path) -> None:
    (folder / SAMPLER_FOLDER).mkdir(exist_ok=True)
    write_whole(folder / "README.md", card(folder))
    for name, text in sampler_files(folder).items():
        write_whole(folder / SAMPLER_FOLDER / f"{name}.toml", text)
    print(f"{folder}: README.md, and a sampler file for each of {len(FAMILIES)} families")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m uncode.evals.mini.write FOLDER")
    main(Path(sys.argv[1]))
