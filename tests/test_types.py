"""Types as users meet them: every Python example of README and docs passes `mypy --strict`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_docs import BLOCK, PAGES

ROOT = Path(__file__).parents[1]
WRONG = """
import uncode
model = uncode.load("tiny")
text: int = uncode.generate(model, "x", sampler="confidence", length=3)
texts: str = uncode.generate(model, ["x"], sampler="confidence", length=3)
table: int = model.frequency
uncode.presets.uncode(rte=0.5)
"""


@pytest.mark.slow
def test_the_examples_of_the_docs_are_well_typed(tmp_path: Path) -> None:
    """The blocks of a page are one program, as they are when they run. One page is wrong, to see that it is read."""
    for page in PAGES:
        blocks = [match.group(1) for match in BLOCK.finditer(page.read_text()) if match.group(1)]
        if blocks:
            (tmp_path / f"page_{page.stem.replace('-', '_').lower()}.py").write_text("\n".join(blocks))
    (tmp_path / "page_wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy"]  # with the project's settings, and what `make check` knows of torch
    pages = sorted(map(str, tmp_path.glob("page_*.py")))
    assert len(pages) > 5
    done = subprocess.run([*command, *pages], cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line for line in errors if "page_wrong" not in line] == [], done.stdout + done.stderr
    assert [int(line.split(":")[1]) for line in errors] == [4, 5, 6, 7], done.stdout
