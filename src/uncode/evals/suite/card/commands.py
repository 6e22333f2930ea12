"""The commands that make a model and its card again."""

from __future__ import annotations

from collections.abc import Sequence

from ....models import TABLE
from ..folder import SECOND_FOLDER, TrainedModel


def commands(runs: Sequence[TrainedModel]) -> str:
    """A code block in Markdown."""
    first, *others = runs
    name = first.name
    lines = [
        (f"uncode train {name} --out mine --prepare", "draws the training examples"),
        (f"uncode train {name} --out mine --device cuda", "writes mine/model"),
        (f"uncode count mine/examples/curriculum.jsonl --tokenizer mine/model --out mine/model/{TABLE}", ""),
        ("uncode mini --all --model mine/model --device cuda --workers 7 --out mini", ""),
        ("cp mini/results.json mine/model/", ""),
    ]
    for run in others:
        at = SECOND_FOLDER
        lines += [
            (f"uncode train {name} --seed {run.seed} --out {at} --data mine/examples --device cuda", f"{at}/model"),
            (f"cp mine/model/{TABLE} {at}/model/", ""),
            (f"uncode mini --all --model {at}/model --device cuda --workers 7 --out mini-{at}", ""),
            (f"mkdir mine/model/{at} && cp {at}/model/training.json mini-{at}/results.json mine/model/{at}/", ""),
        ]
    lines.append(("python -m uncode.evals.suite.write mine/model", "writes the card (extra `plots`)"))
    code = "\n".join(f"{command}   # {comment}" if comment else command for command, comment in lines)
    return f"```sh\n{code}\n```"
