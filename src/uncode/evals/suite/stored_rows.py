"""New rows beside the stored results of a model, so that a new sampler has its place without decoding every preset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...core.errors import require
from ...models import TINY, folder_of
from ..run.options import OnProgress
from .folder import SECOND_FOLDER, weights_digest
from .job import Job, problems_digest
from .results import RESULTS, Cell, Results


def stored_results(jobs: Sequence[Job]) -> list[Results]:
    """For each run the stored results of its model. Raise if they are of other weights, problems or seeds.

    They are in the model's folder. Those of another training run may be in the folder `second` of the first model, or
    of `tiny`.
    """
    folders = [folder_of(job.model) or Path() for job in jobs]
    return [_find(job, folder, (folders[0], TINY)) for job, folder in zip(jobs, folders, strict=True)]


def _find(job: Job, folder: Path, others: Sequence[Path]) -> Results:
    weights = weights_digest(folder)
    places = (folder, *(other / SECOND_FOLDER for other in others))
    files = [file for one in places if (file := one / RESULTS).is_file()]
    found = next((run for run in map(Results.load, files) if run.about.get("weights") == weights), None)
    require(
        found is not None,
        f"there are no stored results of the weights of '{job.model}': run `uncode mini --all --model {job.model} "
        f"--out DIR` and copy its {RESULTS} into the model's folder.",
    )
    assert found is not None
    about = found.about
    require(job.draw is None, "the stored rows are of the published problems: leave out --stored or --draw.")
    require(
        about["held_out"] == problems_digest(found.cells), "the stored rows are of other problems: leave out --stored."
    )
    missing = [family for family in job.families if family not in found.cells]
    require(not missing, f"there are no stored rows of {', '.join(missing)}: give --family, or leave out --stored.")
    require(
        job.problems <= about["problems"],
        f"the stored rows have {about['problems']} problems a family: give --problems {about['problems']} or fewer.",
    )
    require(job.seed == about["seed"], f"the stored rows were decoded with --seed {about['seed']}: use the same.")
    return found


def run_beside(job: Job, stored: Results, workers: int, on_progress: OnProgress) -> Results:
    """Run the samplers of the job alone, and put their rows beside the stored ones, also in its run folder."""
    labels = [entry.label for entry in job.config.samplers]
    known_rates = {family: stored.rate(family) for family in job.families if family in stored.entropies}
    results = replace(job, rates=known_rates).run(workers, on_progress)
    joined = beside_stored(results.of_samplers(labels), stored)
    if job.folder is not None:
        joined.save(job.folder / RESULTS)
    return joined


def beside_stored(new: Results, stored: Results) -> Results:
    """The new rows and the stored ones, on the families and problems of the new ones. A new row replaces a stored one
    of its name. The forwards of a stored row stay the mean of all its problems."""
    require(new.about["table"] == stored.about["table"], "the model's frequency table is not that of its stored rows.")
    problems = new.about["problems"]
    cells = {
        family: {name: _first(cell, problems) for name, cell in stored.cells[family].items()} | rows
        for family, rows in new.cells.items()
    }
    entropies = {family: stored.entropies[family] for family in cells if family in stored.entropies}
    left_out = stored.about.get("left_out", {}) | new.about["left_out"]
    origin = {name: stored.about[name] for name in ("device", "dtype", "problems")} | {
        "new": list(dict.fromkeys(name for rows in new.cells.values() for name in rows))
    }
    return replace(new, about=new.about | {"left_out": left_out, "stored": origin}, cells=cells, entropies=entropies)


def _first(cell: Cell, problems: int) -> Cell:
    return replace(cell, right=cell.right[:problems], hasty=cell.hasty[:problems])
