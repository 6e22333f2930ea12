"""New rows beside the stored results of a model, so that a new sampler has its place without decoding every preset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...core.errors import require
from ...models import folder_of
from .folder import SECOND_FOLDER, weights_digest
from .job import Job, problems_digest
from .results import RESULTS, Cell, Results


def stored_results(jobs: Sequence[Job]) -> list[Results]:
    """For each run the stored results of its model. Raise if they are of other weights, problems or seeds.

    They are in the model's folder. Those of a second model may be in the folder `second` of the first.
    """
    folders = [folder_of(job.model) or Path() for job in jobs]
    return [_find(job, folder, folders[0] / SECOND_FOLDER) for job, folder in zip(jobs, folders, strict=True)]


def _find(job: Job, folder: Path, second: Path) -> Results:
    weights = weights_digest(folder)
    files = [file for one in (folder, second) if (file := one / RESULTS).is_file()]
    found = next((run for run in map(Results.load, files) if run.about.get("weights") == weights), None)
    require(
        found is not None,
        f"there are no stored results of the weights of '{job.model}': run `uncode mini --all --model {job.model} "
        f"--out DIR` and copy its {RESULTS} into the model's folder.",
    )
    assert found is not None
    about = found.about
    require(
        job.draw is None and about["held_out"] == problems_digest(),
        "the stored rows are of the published problems: leave out --stored or --draw.",
    )
    require(
        job.problems <= about["problems"],
        f"the stored rows have {about['problems']} problems a family: give --problems {about['problems']} or fewer.",
    )
    require(job.seed == about["seed"], f"the stored rows were decoded with --seed {about['seed']}: use the same.")
    return found


def add_stored(new: Results, stored: Results, folder: Path | None) -> Results:
    """The new rows beside the stored ones, also in the results of a run folder."""
    results = beside_stored(new, stored)
    if folder is not None:
        results.save(folder / RESULTS)
    return results


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
    origin = {name: stored.about[name] for name in ("device", "dtype", "problems")} | {"new": new.samplers()}
    return replace(new, about=new.about | {"left_out": left_out, "stored": origin}, cells=cells, entropies=entropies)


def _first(cell: Cell, problems: int) -> Cell:
    return replace(cell, right=cell.right[:problems], hasty=cell.hasty[:problems])
