"""Checkpoints of autoregressive models: where they are, their kind, their tokenizer. No weights are read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ...backbones.dialects.dream import DREAM
from ...backbones.dialects.registry import DIALECTS
from ...backbones.loading import hub
from ...backbones.loading.checkpoint import read_json
from ...backbones.loading.tokenizer import tokenizer_of
from ...core.errors import UncodeError, require
from ...extras import check_installed
from ...models import BUILT_IN, folder_of
from ...models.names import looks_like_id

Kind = Literal["autoregressive", "diffusion"]
INSTEAD = "give a local folder or a .gguf file"


@dataclass(frozen=True)
class CausalCheckpoint:
    """A causal language model on this machine."""

    name: str
    folder: Path
    gguf: str | None = None
    """The file in the folder that holds the weights, the configuration and the tokenizer."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Its revision, if it is from the hub."""

    @property
    def options(self) -> dict[str, Any]:
        """What transformers is told besides the folder."""
        return {} if self.gguf is None else {"gguf_file": self.gguf}

    def tokenizer(self) -> Any:
        """The tokenizer, with its chat template. An evaluation cannot do without."""
        if self.gguf is None:
            found = tokenizer_of(self.folder)
            require(found is not None, f"'{self.name}' has no tokenizer, which an evaluation needs.")
            return found
        from transformers import AutoTokenizer

        try:
            return AutoTokenizer.from_pretrained(str(self.folder), gguf_file=self.gguf, local_files_only=True)
        except Exception as error:  # transformers raises many kinds
            first = (str(error).strip().splitlines() or [repr(error)])[0]
            raise UncodeError(f"the tokenizer in '{self.folder / self.gguf}' cannot be read: {first}") from error


def find_checkpoint(name: str, revision: str | None = None) -> CausalCheckpoint:
    """The checkpoint of a local folder, a GGUF file or a hub id.

    A model of the wrong kind is refused by its config.json, before its weights are fetched.
    """
    if (file := gguf_file(name)) is not None:
        require(revision is None, f"'{name}' is on this machine, which has no revisions of it: leave the revision out.")
        check_installed("gguf", "gguf", f"reading '{file.name}'")
        return CausalCheckpoint(name, file.parent, file.name)
    config = read_config(name, revision)
    kind = kind_of(config)
    require(kind != "diffusion", _is_diffusion(name, config))
    named = f"a '{config.get('model_type')}' model" if config.get("model_type") else "a model without model_type"
    known = "which transformers' AutoModelForCausalLM does not know, and code from a checkpoint is never run"
    require(kind == "autoregressive", f"'{name}' is {named}, {known}.")
    if (folder := folder_of(name)) is not None:
        return CausalCheckpoint(name, folder)
    folder = _hub_model(name, revision).snapshot()
    return CausalCheckpoint(name, folder, about={"revision": folder.name})


def check_is_diffusion(name: str, revision: str | None, config: str) -> None:
    """Raise if a model of a diffusion config is autoregressive. `config` is the config's name."""
    is_gguf = gguf_file(name) is not None
    require(
        not is_gguf and (name in BUILT_IN or kind_of(read_config(name, revision)) != "autoregressive"),
        f"'{name}' is an autoregressive model, and the samplers of the config '{config}' are for masked diffusion "
        "models: use the config 'autoregressive'.",
    )


def gguf_file(name: str) -> Path | None:
    """The GGUF file that a name stands for: the file itself, or the one in a folder without config.json."""
    path, folder = Path(name), folder_of(name)
    if folder is None:
        return path if path.suffix == ".gguf" and path.is_file() else None
    files = [] if (folder / "config.json").is_file() else sorted(folder.glob("*.gguf"))
    several = f"'{name}' holds {len(files)} GGUF files: name one of them, such as '{files[0] if files else ''}'."
    require(len(files) <= 1, several)
    return files[0] if files else None


def read_config(name: str, revision: str | None = None) -> dict[str, Any]:
    """The config.json of a model; that of a hub id is fetched alone."""
    if name == "toy":
        return {"model_type": "llada"}
    folder = folder_of(name)
    if folder is None:
        require(looks_like_id(name), f"there is no folder '{name}', and it cannot be a hub id: {INSTEAD}.")
        return read_json(_hub_model(name, revision).config())
    require(revision is None, f"'{name}' is on this machine, which has no revisions of it: leave the revision out.")
    require((folder / "config.json").is_file(), f"'{folder}' is no model: it has neither config.json nor a .gguf file.")
    return read_json(folder / "config.json")


def kind_of(config: Mapping[str, Any]) -> Kind | None:
    """What a config.json describes; None if neither a causal nor a masked language model is known by its model_type.

    Some types (BERT, RoBERTa) can be both: then the class in `architectures` decides, and masked is the usual one.
    """
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    kind, classes = str(config.get("model_type")), config.get("architectures") or []
    if any(kind.casefold() == dialect.family.casefold() for dialect in DIALECTS):
        return "diffusion"
    is_masked, is_causal = kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES, kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if is_masked and is_causal:
        is_masked = not any(str(one).endswith(("ForCausalLM", "LMHeadModel")) for one in classes)
    if is_masked:
        return "diffusion"
    return "autoregressive" if is_causal else None


def _is_diffusion(name: str, config: Mapping[str, Any]) -> str:
    is_dream = str(config.get("model_type")).casefold() == DREAM.family.casefold()
    other = "mini" if name in BUILT_IN else "dream" if is_dream else "main"
    return (
        f"'{name}' is a masked diffusion model, and the sampler 'autoregressive' is for autoregressive ones: use a "
        f"config with other samplers, such as '{other}'."
    )


def _hub_model(name: str, revision: str | None) -> hub.HubModel:
    model = hub.HubModel(name, revision, None)
    model.instead = INSTEAD
    return model
