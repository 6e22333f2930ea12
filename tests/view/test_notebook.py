"""The notebooks of the docs run from top to bottom, and print what is stored in them.

`python tests/view/test_notebook.py` writes what their cells print today. Figures and HTML are not stored.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import json
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
MAX_OUTPUT_CHARACTERS = 1000
CELL_KEYS = {
    "markdown": {"cell_type", "id", "metadata", "source"},
    "code": {"cell_type", "execution_count", "id", "metadata", "outputs", "source"},
}
"""What nbformat 4.5 requires of a cell."""


@contextlib.contextmanager
def display_modules() -> Iterator[None]:
    """IPython's `Image`, which every notebook has and the tests' environment need not have."""
    if importlib.util.find_spec("IPython") is not None:
        yield
        return

    class Image:
        def __init__(self, filename: str, width: int) -> None:
            self.data = Path(filename).read_bytes()

        def _repr_png_(self) -> bytes:
            return self.data

    display = types.ModuleType("IPython.display")
    display.Image = Image  # type: ignore[attr-defined]
    sys.modules["IPython.display"] = display
    yield
    del sys.modules["IPython.display"]  # and nothing that the cells imported


def shown(value: Any) -> None:
    """What a notebook does with the last line of a cell, as far as it can fail."""
    for name in ("_repr_html_", "_repr_png_"):
        if hasattr(value, name):
            assert len(getattr(value, name)()) > 100


def run_cell(source: str, name: str, space: dict[str, Any]) -> str:
    """What the cell prints. A last expression is drawn."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), space)
        if isinstance(last, ast.Expr):
            shown(eval(compile(ast.Expression(last.value), name, "eval"), space))
    return printed.getvalue()


def rewritten(path: Path) -> str:
    """The notebook with what its cells print, run in order in one namespace."""
    notebook, space = json.loads(path.read_text()), {"__name__": "__main__"}
    with display_modules():
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                text = run_cell("".join(cell["source"]), cell["id"], space)
                stream = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
                cell["outputs"] = [stream] if text else []
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_a_notebook_prints_what_it_says(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/analysis.md, which `make test` runs, makes the same calls."""
    pytest.importorskip("matplotlib", reason="pip install 'uncode[plots]'")
    pytest.importorskip("pandas", reason="pip install 'uncode[frames]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)  # read TMPDIR again
    assert rewritten(path) == path.read_text()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_a_notebook_is_valid(path: Path) -> None:
    notebook = json.loads(path.read_text())
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one) for one in ids)
    for cell in notebook["cells"]:
        assert set(cell) == CELL_KEYS[cell["cell_type"]] and cell["metadata"] == {}
        assert all(isinstance(line, str) for line in cell["source"]) and "".join(cell["source"]).strip()
        assert cell.get("execution_count") is None
        for output in cell.get("outputs", []):
            assert set(output) == {"name", "output_type", "text"} and output["output_type"] == "stream"
            assert len("".join(output["text"])) <= MAX_OUTPUT_CHARACTERS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_a_notebook_names_no_machine(path: Path) -> None:
    folders = "|".join(("home", "Users", "root", "tmp", "var", "mnt"))
    assert not re.search(rf"/({folders})/|[A-Z]:\\\\|localhost|\w@\w", path.read_text())


def test_there_is_a_notebook() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["analysis", "why-order-matters", "your-own-sampler"]


if __name__ == "__main__":
    for each in NOTEBOOKS:
        each.write_text(rewritten(each))
