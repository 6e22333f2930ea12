"""Write what the folder of `tiny` says of its results, from the stored ones: `python -m studies.card`.

The card is README.md, with the figure accuracy.svg (extra `plots`); details.md has everything that does not fit on one
page. Each family gets a sampler file (samplers/NAME.toml): Uncode with the rate that was chosen without labels.
results.json keeps what `uncode mini --quick` and `uncode demo` read.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from uncode.evals.suite.names import UNCODE
from uncode.evals.suite.report import short
from uncode.evals.suite.results import RESULTS, Results
from uncode.frequency import FrequencyTable
from uncode.models import SAMPLER_FOLDER, TABLE, TINY
from uncode.samplers import presets
from uncode.util.write import write_whole

from ..trainings import trainings
from .details import details
from .page import DETAILS_FILE, FIGURE_FILE, card, draw_accuracy

SHIPPED = ("confidence", "semi_ar", "certain_first", UNCODE)
"""The rows that are part of the package: those of the demo's three orders, and Uncode at the chosen rates."""


def sampler_files(results: Results, table: FrequencyTable) -> dict[str, str]:
    """The content of the sampler file of each family that a rate was chosen for, by name."""
    rates = {short(name): results.rate(name) for name in results.entropies}
    # `special="neutral"`, because no corpus contains EOS
    return {name: presets.uncode(frequency=table, rate=r, special="neutral").to_toml() for name, r in rates.items()}


def shipped(results: Results) -> Results:
    """The rates of all families, and few rows."""
    cells = {family: {s: cell for s in SHIPPED if (cell := results.cell(family, s))} for family in results.cells}
    return replace(results, cells=cells, biases={})


def main(folder: Path = TINY) -> None:
    every_preset = trainings()
    runs = [run.of_main_presets() for run in every_preset]
    results = every_preset[0].results
    files: dict[str, str | bytes] = {
        FIGURE_FILE: draw_accuracy({run.seed: run.results for run in runs}),
        "README.md": card(runs),
        DETAILS_FILE: details(runs),
    }
    samplers = sampler_files(results, FrequencyTable.load(TINY / TABLE))
    files |= {f"{SAMPLER_FOLDER}/{name}.toml": text for name, text in samplers.items()}
    (folder / SAMPLER_FOLDER).mkdir(exist_ok=True)
    for name, content in files.items():
        write_whole(folder / name, content)
    shipped(results).save(folder / RESULTS)
    print(f"{folder}: {', '.join(files)}, {RESULTS}")


if __name__ == "__main__":
    main()
