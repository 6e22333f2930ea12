"""A training config: all that decides the weights, as one TOML file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from ..core.errors import UncodeError, require, suggest
from ..core.pieces.piece import read_value
from ..toml_file import read_toml

T = TypeVar("T")
OLD_TABLES = {"lessons": "examples"}
"""Tables of a config by the names they had in 0.1.0; files and checkpoints with these names are still read."""


@dataclass(frozen=True)
class Network:
    """The shape of the network, which is LLaDA's."""

    width: int
    layers: int
    heads: int
    hidden: int
    vocab: int
    """Tokens of the vocabulary, the mask and the end token among them."""


@dataclass(frozen=True)
class Examples:
    """Which training examples are drawn, and how they are batched."""

    rows: tuple[int, ...]
    """Answers to draw from each family, in the families' order."""
    shares: tuple[float, ...]
    """How often each family is taught, in the same order."""
    lengths: tuple[int, ...]
    """Tokens of a batch's rows; each row is a prompt, its answer, and end tokens up to the length."""
    spare: int
    """End tokens that a row must have room for."""
    suffixes: float
    """The share of rows whose masks hide a suffix rather than random places."""


@dataclass(frozen=True)
class Schedule:
    """How it is taught: Muon and AdamW, a warm-up, a cosine down to nothing."""

    steps: int
    tokens: int
    """Of one batch."""
    peak: float
    """The largest learning rate."""
    warmup: int
    decay: float
    """Weight decay, of the layers' matrices."""
    clip: float
    """The largest norm of a gradient."""


@dataclass(frozen=True)
class TrainConfig:
    """A whole training config."""

    name: str
    seed: int
    network: Network
    examples: Examples
    schedule: Schedule

    @classmethod
    def load(cls, source: str | Path) -> TrainConfig:
        """The training config of that name (tiny, smoke), or in that TOML file."""
        own = package_configs()
        path = own.get(str(source), Path(source))
        if not path.is_file():
            near = suggest(str(source), own)
            raise UncodeError(f"no training config is named '{source}', and there is no such file: {near}")
        data = read_toml(path, "training config")
        try:
            return cls.read(data)
        except UncodeError as error:
            raise UncodeError(f"in the training config '{path}', {error}") from None

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> TrainConfig:
        config = _read(cls, with_new_names(data), "")
        examples, network = config.examples, config.network
        counts = {f"network.{key}": value for key, value in vars(network).items()}
        counts |= {
            f"schedule.{key}": getattr(config.schedule, key) for key in ("steps", "tokens", "warmup", "peak", "clip")
        }
        small = next((key for key, value in counts.items() if value <= 0), None)
        require(small is None, f"{small} must be above 0.")
        require(config.seed >= 0, f"the seed must be 0 or more, not {config.seed}.")
        whole = network.width % network.heads == 0 and (network.width // network.heads) % 2 == 0
        require(whole, "network.width must be an even multiple of network.heads.")
        require(len(examples.rows) == len(examples.shares), "examples.rows and examples.shares must be of one length.")
        used = [
            (rows, share) for rows, share in zip(examples.rows, examples.shares, strict=True) if rows > 0 or share > 0
        ]
        fits = len(used) > 0 and all(rows > 0 and share > 0 for rows, share in used)
        require(
            fits and min(examples.rows) >= 0,
            "for each family, examples.rows and examples.shares must both be above 0, or neither.",
        )
        require(0 <= examples.suffixes <= 1, "examples.suffixes is a share, from 0 to 1.")
        rising = sorted({length for length in examples.lengths if length > 0}) == list(examples.lengths)
        require(rising and len(examples.lengths) > 0, "examples.lengths needs lengths above 0, the shorter ones first.")
        require(config.schedule.tokens >= max(examples.lengths), "schedule.tokens must hold at least one row.")
        return config

    def seeded(self, seed: int) -> TrainConfig:
        """The same with another seed."""
        require(seed >= 0, f"the seed must be 0 or more, not {seed}.")
        return replace(self, seed=seed)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by their names in the file: `seed`, `network.width`, ..."""
        flat: dict[str, Any] = {}
        for key, value in asdict(self).items():
            inner = value.items() if isinstance(value, dict) else ()
            flat |= {f"{key}.{name}": part for name, part in inner} or {key: value}
        return flat

    @property
    def data_sha256(self) -> str:
        """A fingerprint of the settings that decide the shards."""
        return _digest([self.network.vocab, self.examples.rows, max(self.examples.lengths), self.examples.spare])

    @property
    def sha256(self) -> str:
        """A fingerprint of all settings, under the names of 0.1.0, whose runs can be resumed."""
        values = asdict(self)
        return _digest(values | {old: values.pop(new) for old, new in OLD_TABLES.items()})


def package_configs() -> dict[str, Path]:
    """Training configs of the package by name."""
    return {file.stem: file for file in sorted((Path(__file__).parent / "configs").glob("*.toml"))}


def with_new_names(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same tables (`lessons`) or settings (`lessons.rows`), under the names they have today."""
    found = {}
    for key, value in data.items():
        table, dot, setting = key.partition(".")
        name = f"{OLD_TABLES.get(table, table)}{dot}{setting}"
        found[key if name in data else name] = value
    return found


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _read(cls: type[T], data: Any, table: str) -> T:
    """A dataclass from a table of the file, or from the whole file ("").

    Every key is checked, and none may be missing.
    """
    where = f"[{table}]" if table else "the top level"
    require(isinstance(data, Mapping), f"{where} should be a table.")
    hints = get_type_hints(cls)
    known = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    for key in data:
        require(key in known, f"{where} has no setting '{key}': {suggest(key, known)}")
    missing = [key for key in known if key not in data]
    require(not missing, f"{where} needs a value for {', '.join(missing)}.")
    inner = {Network, Examples, Schedule}
    begins = f"{table}." if table else ""
    values = {
        key: _read(hints[key], value, key) if hints[key] in inner else read_value(value, hints[key], f"{begins}{key}")
        for key, value in data.items()
    }
    return cls(**values)
