"""Checkpoints of autoregressive models: where they are, their kind, their tokenizer. No weights are read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ....backbones.dialects.dream import DREAM
from ....backbones.dialects.registry import is_dialect, without_model_type
from ....backbones.loading import hub
from ....backbones.loading.folder import read_json
from ....backbones.loading.tokenizer import tokenizer_of
from ....core.errors import UncodeError, require
from ....models import BUILT_IN, folder_of
from ....models.names import check_name, looks_like_id
from ....util.extras import check_installed

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
        """The arguments of transformers besides the folder."""
        return {} if self.gguf is None else {"gguf_file": self.gguf}

    def tokenizer(self) -> Any:
        """The tokenizer, with its chat template. An evaluation cannot do without."""
        if self.gguf is None:
            found = tokenizer_of(self.folder)
            require(found is not None, f"'{self.name}' has no tokenizer, which an evaluation needs.")
            return found
        from transformers import AutoTokenizer

        try:
            return AutoTokenizer.from_pretrained(
                str(self.folder), gguf_file=self.gguf, local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # transformers raises many kinds
            first = (str(error).strip().splitlines() or [repr(error)])[0]
            raise UncodeError(f"the tokenizer in '{self.folder / self.gguf}' cannot be read: {first}") from error


def find_checkpoint(name: str, revision: str | None = None) -> CausalCheckpoint:
    """The checkpoint of a local folder, a GGUF file or a hub id.

    A model of the wrong kind is refused by its config.json, before its weights are fetched.
    """
    file, folder = gguf_file(name), folder_of(name)
    if file is not None or folder is not None:
        require(revision is None, f"'{name}' is on this machine, which has no revisions of it: leave the revision out.")
    if file is not None:
        check_installed("gguf", "gguf", f"reading '{file.name}'")
        return CausalCheckpoint(name, file.parent, file.name)
    require(name not in BUILT_IN, _use_another("mini", name))
    if folder is not None:
        has_config = (folder / "config.json").is_file()
        require(has_config, f"'{folder}' is no model: it has neither config.json nor a .gguf file.")
        _check_is_causal(name, read_json(folder / "config.json"))
        return CausalCheckpoint(name, folder)
    require(looks_like_id(name), f"there is no folder '{name}', and it cannot be a hub id: {INSTEAD}.")
    model = hub.HubModel(name, revision, None)
    model.instead = INSTEAD
    _check_is_causal(name, read_json(model.config()))
    folder = model.snapshot()
    return CausalCheckpoint(name, folder, about={"revision": folder.name})


def check_model_name(name: str) -> None:
    """Raise unless a name is a built-in model, a folder with a model, a GGUF file, or possibly a hub id."""
    if gguf_file(name) is None:
        check_name(name)


def check_is_diffusion(name: str, revision: str | None, config: str) -> None:
    """Raise if a model of a diffusion config is autoregressive. `config` is the config's name."""
    check_model_name(name)
    if gguf_file(name) is None:
        if name in BUILT_IN:
            return
        folder = folder_of(name)
        file = hub.HubModel(name, revision, None).config() if folder is None else folder / "config.json"
        if kind_of(read_json(file)) != "autoregressive":
            return
    raise UncodeError(
        f"'{name}' is an autoregressive model, and the samplers of the config '{config}' are for masked diffusion "
        "models: use the config 'autoregressive'."
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


def kind_of(config: Mapping[str, Any]) -> Kind | None:
    """What a config.json describes; None if neither a causal nor a masked language model is known by its model_type.

    Some types (BERT, RoBERTa) can be both: then the class in `architectures` decides, and masked is the usual one.
    """
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    kind, classes = str(config.get("model_type")), config.get("architectures") or []
    if is_dialect(config):
        return "diffusion"
    is_masked, is_causal = kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES, kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if is_masked and is_causal:
        is_masked = not any(str(one).endswith(("ForCausalLM", "LMHeadModel")) for one in classes)
    if is_masked:
        return "diffusion"
    return "autoregressive" if is_causal else None


def _check_is_causal(name: str, config: Mapping[str, Any]) -> None:
    kind, found = config.get("model_type"), kind_of(config)
    is_dream = str(kind).casefold() == DREAM.model_type.casefold()
    require(found != "diffusion", _use_another("dream" if is_dream else "main", name))
    require(bool(kind), without_model_type(config, name))
    require(
        found == "autoregressive",
        f"'{name}' is a '{kind}' model, which transformers' AutoModelForCausalLM does not know: uncode runs no code "
        "from a checkpoint.",
    )


def _use_another(config: str, name: str) -> str:
    return (
        f"'{name}' is a masked diffusion model, and the sampler 'autoregressive' is for autoregressive ones: use a "
        f"config with other samplers, such as '{config}'."
    )
