"""What tells one published architecture from another: parameter names, configuration, special ids, the shift."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...core.errors import require
from ..transformer.shape import Shape

Config = Mapping[str, Any]
COMPARED = "logits within 1e-5 of NVlabs/Fast-dLLM's modelling code on five small random checkpoints"
"""What was checked of LLaDA's network and of Dream's; tests/parity holds the recordings."""


class Part(NamedTuple):
    """A published tensor, or some of its rows: a part of one of our parameters, whose parts lie one below the other."""

    name: str
    shape: tuple[int, ...]
    start: int = 0
    """The first of these rows in the published tensor."""


@dataclass(frozen=True)
class Release:
    """A published checkpoint."""

    name: str
    """Its id on the hub."""
    shape: Shape
    chat: bool
    """Whether it was tuned to follow a chat template."""
    licence: str = "licence not verified"
    """Of the weights, as the hub names it."""
    sampler: str = ""
    """How its authors decode, and the file that says so. It is the sampler file `own`, where there is one."""
    checked: str = ""
    """What was read of its ids, template and licence, and what could not be verified."""


@dataclass(frozen=True)
class Dialect:
    """A published architecture over the one transformer."""

    title: str
    """What a person calls these models."""
    model_type: str
    """As in its config.json."""
    shift: int
    """1 where the network's output at a position predicts the next one."""
    shape: Callable[[Config], Shape]
    blocks: str
    """The published prefix of the layers."""
    names: Mapping[str, str]
    """Published names of our modules, those of a layer within the layer. `qkv` are joined projections. `expert`
    has {} for an expert's number, `experts.bias` is a tensor."""
    end_of_turn: str
    """The token that ends an answer in a chat, besides EOS."""
    template: str
    """The chat template, for tokenizers that come without their own."""
    ids: Mapping[str, int]
    """Special ids of the published vocabulary: mask, eos, and turn where a token ends a turn."""
    checked: str
    """What was compared with the published code, and how."""
    releases: tuple[Release, ...]
    end_tokens: tuple[str, ...] = ()
    """Further tokens that end an answer, in the tokenizers that have them."""
    replaces_template: bool = False
    """Whether `template` is used even where the tokenizer has its own."""
    text_vocab_key: str = ""
    """The key of the number of text tokens, in configurations whose vocabulary goes on with others."""
    architecture: str = ""
    """The published class, where `model_type` is another architecture's too."""
    other_types: tuple[str, ...] = ()
    """Further model types that public copies of its config.json have."""
    mask_source: str = ""
    """Who says the mask id, where config.json does not."""

    @property
    def family(self) -> str:
        """What config.json calls it: its class where `model_type` is another's too."""
        return self.architecture or self.model_type

    @property
    def eos_ids(self) -> list[int]:
        """The published ids that end an answer."""
        return [self.ids[key] for key in ("eos", "turn") if key in self.ids]

    def speaks(self, config: Config) -> bool:
        """Whether a configuration is of this dialect."""
        kind = str(config.get("model_type")).casefold()
        if kind in self.other_types:
            return True
        return kind == self.model_type.casefold() and (
            not self.architecture or self.architecture in (config.get("architectures") or [])
        )

    def published(self, own: str) -> str:
        """The published name of one of our parameters."""
        *path, kind = own.split(".")
        prefix = f"{self.blocks}.{path[1]}." if len(path) > 1 else ""
        return f"{prefix}{self.names['.'.join(path[2:] or path)]}.{kind}"

    def parts(self, own: str, size: tuple[int, ...], shape: Shape) -> list[Part]:
        """The published tensors that one of our parameters, of that size, is made of."""
        *path, module, kind = own.split(".")
        prefix = f"{self.blocks}.{path[1]}." if path else ""
        if module == "experts" and kind == "bias":
            return [Part(prefix + self.names["experts.bias"], size)]
        if module == "experts":
            names = ("gate", "up") if kind == "gate_ups" else ("down",)
            each = (size[1] // len(names), size[2])
            stems = [f"{prefix}{self.names['expert'].format(expert)}" for expert in range(size[0])]
            return [Part(f"{stem}.{name}_proj.weight", each) for stem in stems for name in names]
        if module in ("q", "k", "v") and "qkv" in self.names:
            queries, keys = shape.heads * shape.head_width, shape.key_heads * shape.head_width
            start = {"q": 0, "k": queries, "v": queries + keys}[module]
            return [Part(f"{prefix}{self.names['qkv']}.{kind}", size, start)]
        return [Part(self.published(own), size)]

    def text_vocab(self, config: Config, vocab: int) -> int:
        """The number of text tokens of a vocabulary."""
        found: int = number(config, self.text_vocab_key, default=vocab)
        return min(found, vocab)

    def special(self, config: Config, vocab: int) -> tuple[int, tuple[int, ...]]:
        """The mask id and the EOS ids that a configuration gives; the published ones where it is silent."""
        published = vocab > max(self.ids.values())
        mask, eos = config.get("mask_token_id"), config.get("eos_token_id")
        if published:
            mask, eos = (self.ids[key] if found is None else found for key, found in (("mask", mask), ("eos", eos)))
        require(mask is not None, "config.json names no mask_token_id: add it.")
        eos_ids = list(eos) if isinstance(eos, list | tuple) else [] if eos is None else [eos]
        require(
            all(isinstance(i, int) for i in (mask, *eos_ids)),
            f"mask_token_id and eos_token_id in config.json should be numbers, not {mask!r} and {eos!r}.",
        )
        if published and eos_ids[:1] == [self.ids["eos"]] and "turn" in self.ids:
            eos_ids.append(self.ids["turn"])
        return mask, tuple(dict.fromkeys(eos_ids))  # type: ignore[return-value]


def demand(config: Config, model_type: str, **wanted: Any) -> None:
    """Raise unless the configuration has these values, or leaves them open."""
    for key, value in wanted.items():
        found = config.get(key)
        require(
            found is None or found == value,
            f"this {model_type} checkpoint has {key}={found!r}; uncode runs {key}={value!r} only.",
        )


def number(config: Config, *keys: str, default: float | None = None) -> Any:
    """The first of these keys that has a value, which must be a number above 0."""
    found = next((config[key] for key in keys if config.get(key) is not None), default)
    require(found is not None, f"config.json has no '{keys[0]}': the checkpoint is not complete.")
    fits = isinstance(found, int | float) and not isinstance(found, bool) and found > 0
    require(fits, f"'{keys[0]}' in config.json should be a number above 0, not {found!r}.")
    return found
