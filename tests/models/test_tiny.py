"""The model that is part of the package: it does what its card says. tests/studies holds the card itself."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import uncode
from tests.cli.running import run
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.families.family import Family
from uncode.evals.suite.folder import results_of
from uncode.frequency import FrequencyTable
from uncode.models import TINY

ROOT = Path(__file__).parents[2]
SHELLS = (
    "Question: Mia has 3 shells. Cleo has 6 more shells than Mia. Mia is 32 years old. "
    "Ian has 16 more shells than Cleo. Gus has twice as many shells as Ian. "
    "Ben has 14 fewer shells than Gus. How many shells does Ben have?\nAnswer:"
)


@pytest.fixture(scope="module")
def tiny() -> uncode.Denoiser:
    return uncode.load("tiny")


def test_its_tables_were_counted_with_its_tokenizer(tiny: uncode.Denoiser) -> None:
    files = [TINY / "frequency.safetensors", *sorted((TINY / "tables").glob("*.safetensors"))]
    names = [FrequencyTable.load(file, tiny.tokenizer).name for file in files]
    assert names == ["tiny", "code", "prose"]
    for file in files:
        text = run("table", "show", str(file)).stdout
        assert "/" not in text.partition("sha256")[0].replace("curriculum.jsonl", ""), "no path of any machine"


def test_its_results_are_of_these_weights_and_problems(tiny: uncode.Denoiser) -> None:
    results = results_of(TINY)
    assert results.about["problems"] == 1024 and list(results.cells) == list(FAMILIES)
    assert all(len(cell.right) == 1024 for cells in results.cells.values() for cell in cells.values())
    weights = hashlib.sha256((TINY / "model.safetensors").read_bytes()).hexdigest()
    assert results.about["weights"] == weights[:16]
    assert results.about["table"] == tiny.frequency.sha256[:16]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_held_out_problem_fits_into_its_context(name: str, tiny: uncode.Denoiser) -> None:
    family: Family[object] = FAMILIES[name]
    context = json.loads((TINY / "config.json").read_text())["max_sequence_length"]
    prompts = [family.prompt(example) for example in family.examples() + family.unlabelled()]
    assert max(map(len, tiny.tokenizer(prompts)["input_ids"])) + family.length <= context


@pytest.mark.slow
def test_the_order_decides() -> None:
    """At the length of the docs; docs/first-decode.md decodes the same problem under `make test`."""
    shown = json.loads(run("compare", SHELLS, "--length", "96", "--json").stdout)
    hasty, blocks, calibrated = (row["text"] for row in shown)
    assert "36" not in hasty and shown[0]["first_end"] == 0, "confidence ends the answer before it begins"
    assert blocks.endswith("#### 36") and calibrated.endswith("#### 36")


def test_a_problem_goes_from_the_tasks_to_the_model_by_its_own_sampler() -> None:
    problem = run("tasks", "mini_choice", "--example", "4").stdout
    answered = run("decode", "-", "--sampler", "choice", "--json", stdin=problem)
    row = json.loads(answered.stdout)
    family = FAMILIES["mini_choice"]
    assert row["model"] == "tiny" and row["prompt_text"] == problem.removesuffix("\n")
    assert family.grade(family.examples()[4], row["text"]).correct
    rate = results_of(TINY).rate("mini_choice")
    assert f'"rate": {rate}' in json.dumps(row["sampler"])


@pytest.mark.slow
@pytest.mark.parametrize("length", [88, 128])
def test_the_first_example_holds_at_every_length(tiny: Any, length: int) -> None:
    """It does not hinge on one length: confidence is wrong and Uncode right at both, and at the docs' own.

    Length 96 is above.
    """
    page = (ROOT / "docs" / "first-decode.md").read_text()
    found = re.search(r"problem = (\(\n.*?\n\))", page, re.S)
    assert found
    prompt = eval(found[1])
    assert prompt == SHELLS
    for sampler, right in (("confidence", False), ("uncode", True)):
        text = uncode.generate(tiny, prompt, sampler=sampler, length=length)
        assert text.endswith("#### 36") == right, text
