"""Models that are part of the package, and what a model's folder may hold beside the weights."""

from __future__ import annotations

from pathlib import Path

TINY = Path(__file__).parent / "tiny"
"""Seven families of little problems, 7 M parameters; its README.md is the card."""
BUILT_IN = ("tiny", "toy")
TABLE = "frequency.safetensors"
"""A table in a model's folder is the model's own."""
SAMPLER_FOLDER = "recipes"
"""A model's folder may hold sampler files here. `--sampler` takes them by name."""


def folder_of(name: str) -> Path | None:
    """The folder of a model that is on this machine and has one: `tiny`, or a local folder."""
    if name == "tiny":
        return TINY
    try:
        folder = Path(name).expanduser()
        return folder if name and folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # too long for a path, of a user who does not exist, a NUL
        return None


def sampler_files(name: str) -> dict[str, Path]:
    """The sampler files in a model's folder, by the name `--sampler` takes."""
    folder = folder_of(name)
    return {} if folder is None else {file.stem: file for file in sorted((folder / SAMPLER_FOLDER).glob("*.toml"))}


def table_of(name: str) -> Path | None:
    """The file of the frequency table that a model on this machine carries: `tiny`'s, or a local folder's own."""
    folder = folder_of(name)
    return folder / TABLE if folder is not None and (folder / TABLE).is_file() else None
