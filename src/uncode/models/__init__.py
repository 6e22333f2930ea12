"""The models of the package, and the other files in a model's folder."""

from __future__ import annotations

from pathlib import Path

TINY = Path(__file__).parent / "tiny"
"""The model `tiny`: seven families of small problems, 7 M parameters. README.md is its card."""
BUILT_IN = ("tiny", "toy")
TABLE = "frequency.safetensors"
"""A model's folder may hold its own frequency table under this name."""
SAMPLER_FOLDER = "samplers"
"""A model's folder may hold sampler files here. `--sampler` takes them by name."""


def folder_of(name: str) -> Path | None:
    """The folder of a model on this machine: `tiny`, or a local folder; else None."""
    if name == "tiny":
        return TINY
    try:
        folder = Path(name).expanduser()
        return folder if name and folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # too long for a path, an unknown user, a NUL
        return None


def sampler_files(name: str) -> dict[str, Path]:
    """The sampler files in a model's folder, by name."""
    folder = folder_of(name)
    return {} if folder is None else {file.stem: file for file in sorted((folder / SAMPLER_FOLDER).glob("*.toml"))}


def table_of(name: str) -> Path | None:
    """The frequency table in the folder of a model on this machine (`tiny` or a local folder); else None."""
    folder = folder_of(name)
    return folder / TABLE if folder is not None and (folder / TABLE).is_file() else None
