"""Training configs: TOML files with every setting that decides the weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..core.errors import UncodeError, require, suggest
from ..util.toml_file import read_record, read_toml


@dataclass(frozen=True)
class Network:
    """The shape of the network. Its architecture is LLaDA's."""

    width: int
    layers: int
    heads: int
    hidden: int
    vocab: int
    """Size of the vocabulary, including the mask token and EOS."""


@dataclass(frozen=True)
class Examples:
    """Which training examples are drawn, and how they are batched."""

    rows: tuple[int, ...]
    """Examples to draw from each family, in the order of the families."""
    shares: tuple[float, ...]
    """The share of each family in the batches, in the same order."""
    lengths: tuple[int, ...]
    """Row lengths in tokens. A row is a prompt, its answer, and EOS padding up to its length."""
    spare: int
    """The number of EOS tokens that must fit after the longest answer."""
    suffixes: float
    """The share of rows in which a suffix of the answer is masked, not random positions."""


@dataclass(frozen=True)
class OptimizerSchedule:
    """The optimizer's schedule: Muon and AdamW, linear warm-up, cosine decay to zero."""

    steps: int
    tokens: int
    """Tokens in one batch."""
    peak: float
    """The learning rate after the warm-up."""
    warmup: int
    """Steps of linear warm-up."""
    decay: float
    """Weight decay of the layers' matrices."""
    clip: float
    """Gradients with a larger norm are scaled down to this norm."""


@dataclass(frozen=True)
class TrainConfig:
    """A training config."""

    name: str
    seed: int
    network: Network
    examples: Examples
    schedule: OptimizerSchedule

    @classmethod
    def load(cls, source: str | Path) -> TrainConfig:
        """Load a training config by name (smoke), or from a TOML file."""
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
        """Build a config from the tables of a TOML file, and check its values."""
        inner = dict[str, Any]()
        for name, kind in (("network", Network), ("examples", Examples), ("schedule", OptimizerSchedule)):
            if name in data:
                require(isinstance(data[name], Mapping), f"[{name}] should be a table.")
                inner[name] = read_record(kind, data[name], f"[{name}]", f"{name}.{{}}")
        config = read_record(cls, data, "the top level", "{}", **inner)
        examples, network = config.examples, config.network
        positive = ("network.", *(f"schedule.{name}" for name in ("steps", "tokens", "warmup", "peak", "clip")))
        for key, value in config.settings.items():
            require(not key.startswith(positive) or value > 0, f"{key} is {value}: it must be above 0.")
        require(config.seed >= 0, f"the seed must be 0 or more, not {config.seed}.")
        is_even = network.width % network.heads == 0 and (network.width // network.heads) % 2 == 0
        require(is_even, "network.width must be an even multiple of network.heads.")
        require(
            len(examples.rows) == len(examples.shares), "examples.rows and examples.shares must have the same length."
        )
        pairs = list(zip(examples.rows, examples.shares, strict=True))
        fits = any(rows > 0 for rows, _ in pairs) and all((rows > 0) == (share > 0) for rows, share in pairs)
        require(
            fits and min(examples.rows) >= 0 and min(examples.shares) >= 0,
            "for each family, examples.rows and examples.shares must both be above 0, or neither.",
        )
        require(0 <= examples.suffixes <= 1, "examples.suffixes must be a share, from 0 to 1.")
        is_rising = sorted({length for length in examples.lengths if length > 0}) == list(examples.lengths)
        require(
            is_rising and len(examples.lengths) > 0,
            "examples.lengths must be lengths above 0, the shorter ones first.",
        )
        require(
            config.schedule.tokens >= max(examples.lengths),
            "schedule.tokens must be at least the largest of examples.lengths.",
        )
        return config

    def with_seed(self, seed: int) -> TrainConfig:
        """The same config with another seed."""
        require(seed >= 0, f"the seed must be 0 or more, not {seed}.")
        return replace(self, seed=seed)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by the names that the file gives them: `seed`, `network.width`, ..."""
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
        """A fingerprint of all settings."""
        return _digest(asdict(self))


def package_configs() -> dict[str, Path]:
    """The paths of the package's own training configs, by name."""
    return {file.stem: file for file in sorted((Path(__file__).parent / "configs").glob("*.toml"))}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
