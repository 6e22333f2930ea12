"""`uncode paper`: the paper's whole analysis on one model, with figures and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....core.errors import require
from ....util.extras import check_installed
from ....util.paths import check_folder_can_be_made
from ...options import Data, Device, Dtype, Frequency, Weights, complete_model
from ...printing import loading, resumable

if TYPE_CHECKING:
    from ....evals.run.folder import RunFolder
    from ....paper.run import PaperRun

SUMMARY = "Run the paper's analysis on a model: every figure, one report."
CPU_BATCH, GPU_BATCH = 32, 200
Option = typer.Option

ModelName = Annotated[
    str,
    Option("--model", metavar="MODEL", help="A built-in model, a folder or a hub id.", autocompletion=complete_model),
]
Tasks = Annotated[str | None, Option(metavar="NAME,...", help="The tasks.  [default: the seven mini families]")]
Examples = Annotated[
    int | None, Option("--n", min=2, metavar="N", help="Problems of each task.  [default: 200; quick: 3]")
]
Quick = Annotated[bool, Option("--quick", help="Two tasks and few problems: every figure, but wide intervals.")]
Batch = Annotated[int | None, Option(min=1, metavar="N", help="Answers at a time.  [default: 32; on a GPU 200]")]
Workers = Annotated[int, Option(min=1, max=64, metavar="N", help="Number of processes, which share the tasks.")]
Out = Annotated[
    Path | None, Option(metavar="DIR", help="The report's folder; a run is resumed there.  [default: paper/MODEL]")
]


def command(
    model: ModelName = "tiny",
    tasks: Tasks = None,
    examples: Examples = None,
    quick: Quick = False,
    data: Data = None,
    frequency: Frequency = None,
    device: Device = None,
    dtype: Dtype = None,
    weights: Weights = None,
    batch: Batch = None,
    workers: Workers = 1,
    out: Out = None,
) -> None:
    """Decode with every sampler that the paper's figures compare, draw all figures, and write a report.

    DIR/report.html says under each figure what the paper found, what this model shows, and whether it agrees. DIR also
    holds the figures (PNG, SVG), their arrays (CSV), the findings (JSON) and the run with all traces. The same command
    resumes a run that was stopped. All samplers fill every mask, as in the paper.

    Examples:

      uncode paper --quick
      uncode paper --device cuda --workers 7 --out paper/tiny
      uncode paper --model GSAI-ML/LLaDA-8B-Instruct --frequency llada --tasks gsm8k,sudoku --n 100 --data ./data
    """
    check_installed("matplotlib", "plots", "a figure")
    from ....models import names
    from ....paper.config import EXAMPLES, QUICK_EXAMPLES, QUICK_TASKS, TASKS

    names.check_name(model)
    chosen = [name.strip() for name in (tasks or "").split(",") if name.strip()]
    require(tasks is None or bool(chosen), "--tasks names nothing: give names with commas, or leave it out.")
    require(not (quick and chosen), "--quick chooses its own tasks: leave --tasks or --quick out.")
    folder = out or Path("paper") / Path(model).name
    check_folder_can_be_made(folder)
    with loading():
        from ....paper.run import PaperRun, config_for

        config = config_for(model, tuple(chosen) or (QUICK_TASKS if quick else TASKS), with_tables=frequency is None)
        count = examples or (QUICK_EXAMPLES if quick else EXAMPLES)
        run = PaperRun(config, folder, device, dtype, weights, frequency, data, count, batch or _batch_size(device))
    page = _write(_decode(run, workers), folder)
    typer.echo(f"{page}: open it in a browser.", err=True)


def _batch_size(device: str | None) -> int:
    from ....backbones.loading.device import usual_device

    return GPU_BATCH if (device or usual_device()).startswith("cuda") else CPU_BATCH


def _decode(run: PaperRun, workers: int) -> RunFolder:
    from ...progress import eval_bar
    from ...run_time import announce_time

    with resumable(run.out), eval_bar("paper") as on_progress:
        return run.decode(workers, on_progress, announce_time)


def _write(folder: RunFolder, out: Path) -> Path:
    from ....paper.arrays import arrays_of
    from ....paper.findings import findings
    from ....paper.report import summary, write_report
    from ....util.progress import item_bar

    with item_bar("reading traces") as on_item:
        arrays = arrays_of(folder, lambda name, done, total: on_item(done, total))
    with item_bar("drawing figures") as on_item:
        found = findings(arrays)
        page = write_report(out, folder, arrays, found, lambda name, done, total: on_item(done, total))
    typer.echo(summary(found))
    return page
