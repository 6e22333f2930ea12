"""Write the card and the sampler files of a model from its results: `python -m uncode.evals.suite.write FOLDER`.

The card is README.md, with the figure accuracy.svg; details.md has everything that does not fit on one page. Each
family gets a sampler file (recipes/NAME.toml): Uncode with the rate that was chosen without labels. `uncode decode
--sampler NAME` finds it there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ...frequency import FrequencyTable
from ...models import SAMPLER_FOLDER, TABLE
from ...util.write import write_whole
from .card.accuracy_figure import draw_accuracy
from .card.details import details
from .card.page import DETAILS_FILE, FIGURE_FILE, card
from .folder import load_runs, results_of
from .report import short
from .sampler import at_rate


def sampler_files(folder: Path) -> dict[str, str]:
    """The content of the sampler file of each family that a rate was chosen for, by name."""
    results, table = results_of(folder), FrequencyTable.load(folder / TABLE)
    return {short(name): at_rate(table, results.rate(name)).to_toml() for name in results.entropies}


def main(folder: Path) -> None:
    files: dict[str, str | bytes] = {
        FIGURE_FILE: draw_accuracy({run.seed: run.results for run in load_runs(folder)}),
        "README.md": card(folder),
        DETAILS_FILE: details(folder),
    }
    samplers = sampler_files(folder)
    for name, content in files.items():
        write_whole(folder / name, content)
    (folder / SAMPLER_FOLDER).mkdir(exist_ok=True)
    for name, text in samplers.items():
        write_whole(folder / SAMPLER_FOLDER / f"{name}.toml", text)
    print(f"{folder}: {', '.join(files)}, and the sampler files of {len(samplers)} families")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m uncode.evals.suite.write FOLDER")
    main(Path(sys.argv[1]))
