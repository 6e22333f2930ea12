"""A release without publishing it: `make release-check`.

Builds wheel and sdist, checks their metadata with twine, installs each into an empty environment outside the checkout,
runs the demo from the wheel, and builds the container image where there is an engine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import venv
from pathlib import Path

from uncode.version import __version__

from .trainings import ROOT

ENGINES = ("podman", "docker", "buildah")


def main() -> None:
    """Every step in turn; the first that fails ends it."""
    with tempfile.TemporaryDirectory(prefix="uncode-release-") as name:
        folder = Path(name)
        tools, built = _environment(folder / "tools"), folder / "built"
        _run("install the tools", *_pip(tools), "hatchling", "twine", cwd=folder)
        _run("build wheel and sdist", tools, "-m", "hatchling", "build", "-d", str(built), cwd=ROOT)
        files = sorted(built.iterdir())
        wanted = [f"uncode-{__version__}-py3-none-any.whl", f"uncode-{__version__}.tar.gz"]
        assert [file.name for file in files] == wanted, f"the build made {files}, not {wanted}"
        _run("check their metadata", tools, "-m", "twine", "check", "--strict", *map(str, files), cwd=folder)
        for file in files:
            _try(file, folder / f"from{file.suffix}")
    _image()
    print(f"{__version__} could be released; docs/releasing.md says what is next", flush=True)


def _try(file: Path, place: Path) -> None:
    """Install a file into an empty environment, and use it."""
    python = _environment(place)
    pinned = ("-c", str(ROOT / "constraints.txt"))
    _run(f"install {file.name} into an empty environment", *_pip(python), *pinned, "torch", str(file), cwd=place)
    uncode = str(place / "bin" / "uncode")
    _run("ask for its version", uncode, "--version", cwd=place)
    if file.suffix == ".whl":
        _run("run the demo from the wheel", uncode, "demo", "--view", "demo.html", cwd=place)
    else:
        _run("decode from the sdist", uncode, "decode", "add 3 4 5", "--model", "toy", "--length", "24", cwd=place)
    shutil.rmtree(place)


def _environment(folder: Path) -> str:
    """The Python of a new environment in `folder`."""
    venv.create(folder, with_pip=True)
    return str(folder / "bin" / "python")


def _pip(python: str) -> tuple[str, ...]:
    return (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")


def _image() -> None:
    """Build the Containerfile, where that is possible."""
    engine = next((name for name in ENGINES if _is_running(name)), None)
    if engine is None:
        print(f"no container engine is running ({', '.join(ENGINES)}): deploy/Containerfile is not built", flush=True)
        return
    words = ("build", "-f", "deploy/Containerfile", "--target", "cpu", "-t", f"uncode:{__version__}-cpu", ".")
    _run(f"build the image with {engine}", engine, *words, cwd=ROOT)


def _is_running(engine: str) -> bool:
    if shutil.which(engine) is None:
        return False
    return not subprocess.run([engine, "info"], capture_output=True, check=False).returncode


def _run(title: str, *words: str, cwd: Path) -> None:
    print(f"-- {title}", flush=True)
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run(words, cwd=cwd, env=clean, check=True)


if __name__ == "__main__":
    main()
