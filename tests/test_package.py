"""The wheel is whole: what help texts and docs name is in it, and its page on an index has links that work."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_every_file_of_the_package_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    wanted = {name.removeprefix("src/") for name in listed.stdout.splitlines()}
    assert wanted and wanted <= set(wheel.namelist())
    data = {"uncode/train/configs/smoke.toml", "uncode/frequency/corpora/specs/c4-16gb.toml", "uncode/py.typed"}
    assert data <= wanted
    assert not [name for name in wheel.namelist() if name.startswith("tests")]


def test_the_page_on_an_index_has_links_that_work(wheel: zipfile.ZipFile) -> None:
    name = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
    about, _, page = wheel.read(name).decode().partition("\n\n")
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert links and all(link.startswith(("https://", "#")) for link in links)
    urls = dict(line.removeprefix("Project-URL: ").split(", ") for line in about.splitlines() if "Project-URL" in line)
    assert {"Homepage", "Documentation", "Changelog", "Issues", "Paper"} <= set(urls)
    base = urls["Homepage"] + "/blob/main/"
    inside = [link.removeprefix(base).partition("#")[0] for link in links if link.startswith(base)]
    assert inside and all((ROOT / path).exists() for path in inside)
    assert "pip install uncode" in page.split("##")[0] or "pip install uncode" in page.split("##")[1]


def test_extras_are_those_that_something_imports() -> None:
    import tomllib

    from uncode.extras import EXTRAS

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(declared) == {*EXTRAS, "dev"}
    sources = "\n".join(file.read_text() for file in (ROOT / "src").rglob("*.py"))
    for modules, _ in EXTRAS.values():
        for module in modules:
            assert re.search(rf"""(import {module}|from {module}|["']{module}["'])""", sources), module
