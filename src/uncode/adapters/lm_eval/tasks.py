"""Our benchmarks as tasks of lm-eval: files for its index, and the functions that they name.

The files are written from the `Task` classes whenever lm-eval is started, so there is no second definition of a prompt
or of a grader. `uncode_NAME` is the task NAME.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...core.errors import require
from ...evals.names import TASK_NAMES
from ...evals.suite.families import FAMILIES
from ...evals.task import Example
from ...evals.tasks import find_task
from ...util.extras import needed

VERSION = 1.0


def task_file(name: str) -> str:
    """The YAML file of a task. A line is a key and a value in JSON, which is YAML too."""
    task = find_task(name)
    settings = task.settings
    values: dict[str, object] = {
        "task": f"uncode_{name}",
        "tag": ["uncode_mini" if name in FAMILIES else "uncode_paper"],
        "dataset_kwargs": {"uncode_task": name},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "prompt",
        "doc_to_target": "id",
        "num_fewshot": 0,  # the prompt holds the shots
        "generation_kwargs": {"until": [], "max_gen_toks": settings.length, "do_sample": False},
        "metric_list": [{"metric": metric, "aggregation": "mean", "higher_is_better": True} for metric in task.graders],
        "metadata": {"version": VERSION},
    }
    functions = {"custom_dataset": documents, "process_results": grades}
    lines = [f"{key}: {json.dumps(value)}" for key, value in values.items()]
    lines += [f"{key}: !function {__name__}.{function.__name__}" for key, function in functions.items()]
    return "\n".join(lines) + "\n"


@contextmanager
def task_files() -> Iterator[Path]:
    """A folder with the files of all tasks, for lm-eval's index."""
    with TemporaryDirectory(prefix="lm-eval-tasks-") as folder:
        for name in TASK_NAMES:
            (Path(folder) / f"uncode_{name}.yaml").write_text(task_file(name), encoding="utf-8")
        yield Path(folder)


def documents(uncode_task: str, data: str | None = None, **metadata: object) -> Mapping[str, Any]:
    """The examples of a task. `--metadata data=DIR` names a folder with the benchmarks' files.

    lm-eval passes the model arguments on as metadata too; they are not used.
    """
    datasets = needed("datasets", "lm-eval", "our tasks under lm-eval")
    task, folder = _task(uncode_task), "" if data is None else str(data)
    about = {"uncode_task": uncode_task, "data": folder}
    examples = _examples(uncode_task, folder).values()
    rows = [about | {"id": example.id, "prompt": task.prompt(example)} for example in examples]
    return {"test": datasets.Dataset.from_list(rows)}


def grades(doc: Mapping[str, str], results: Sequence[str]) -> dict[str, float]:
    """The grades of an answer by every metric of its task."""
    name, id = doc["uncode_task"], doc["id"]
    found = _examples(name, doc["data"])
    require(id in found, f"the task '{name}' has no example '{id}'.")
    task = _task(name)
    return {metric: float(task.grade(found[id], results[0], metric).correct) for metric in task.graders}


_task = cache(find_task)


@cache
def _examples(name: str, data: str) -> dict[str, Example]:
    return {example.id: example for example in _task(name).examples(data or None)}
