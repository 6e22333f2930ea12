"""Models by name: a built-in one, a local folder, a hub id; or one that is in memory already."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ...core.denoiser import Denoiser
from ...core.errors import require, shown
from ...core.pieces.tables import Table
from ...core.support.arguments import checks_arguments, whole_number
from ...frequency import FrequencyTable
from ...frequency.fingerprint import fingerprint
from ...frequency.names import RELEASED
from ...frequency.released import find_released
from ...models import TABLE, folder_of, sampler_files
from ...models.names import check_folder, check_name
from ...util.fetch import is_offline
from ..denoiser import TransformerDenoiser
from ..dialects.dialect import Config, Dialect
from ..dialects.registry import dialect_of, is_masked_lm, named_dialect
from ..toy import toy
from ..transformer.network import Transformer, dtype_of
from ..transformer.quantized import format_of
from . import hub
from .checkpoint import assign, check_dtypes, check_shapes, fill, read_headers, usual_dtype
from .device import Device, Dtype, parse_device, parse_dtype
from .device_map import DeviceMap, Placement
from .folder import read_json
from .memory import ModelSize, announce, check_memory
from .tokenizer import check_vocab, id_of, tokenizer_of

MAX_CONTEXTS = 16
"""The longest answer, in multiples of the model's training context."""


class OwnTable(NamedTuple):
    """The frequency table of a model, and the name of the paper's table for it."""

    table: Table | None
    released: str = ""


@checks_arguments()
def load(
    name: str | Path,
    *,
    device: Device = None,
    dtype: Dtype = None,
    weights: str | None = None,
    device_map: DeviceMap | None = None,
    revision: str | None = None,
    token: str | None = None,
) -> Denoiser:
    """The denoiser of a built-in model ("tiny", "toy"), a local folder or a hub id.

    `device` is the GPU where there is one; `dtype` the one the weights are stored in, but float32 on a CPU.
    `weights` packs the layers' matrices of a diffusion model while they are read: "fp8", "int8" or "int4".
    `device_map="auto"` spreads a model over several devices with accelerate. `revision` and `token` are the
    hub's. No code from a checkpoint is run and no pickle is read.
    """
    require(isinstance(name, str | Path), f"a model is named by a text or a path, not by {shown(name)}.")
    texts = {"revision": revision, "token": token}
    for option, value in texts.items():
        require(value is None or isinstance(value, str), f"{option} must be a text, not {shown(value)}.")
    if str(name) == "toy":
        given = any(option is not None for option in (device, dtype, weights, device_map, revision, token))
        require(not given, "the toy model takes no options: it runs on the CPU in float32.")
        return toy()
    require(device is None or device_map is None, "give a device or a device_map, not both.")
    chosen, kind = parse_device(device), parse_dtype(dtype)
    if weights is not None:
        format_of(weights)
    folder, about = _find(str(name), revision, token, chosen if device_map is None else None, kind, weights)
    config = _config(folder) | {"_name_or_path": about["model"]}
    dialect = dialect_of(config, about["model"])
    tokenizer = tokenizer_of(folder, general=dialect is None)
    if tokenizer is not None:
        about["tokenizer"] = fingerprint(tokenizer)
    own = _own_table(folder, config, dialect, tokenizer, is_from_hub="revision" in about)
    if dialect is not None:
        denoiser: Denoiser = _read(folder, dialect, config, tokenizer, about, chosen, kind, weights, device_map)
    else:
        require(weights is None, "`weights=` is for diffusion models, not for masked LMs: load this model without.")
        require(device_map is None, "device_map is for LLaDA and Dream: give this model a device.")
        from ..masked_lm import read

        denoiser = read(folder, tokenizer, chosen, kind, about)
    denoiser.frequency, denoiser.released_table = own
    denoiser.samplers = sampler_files(str(name))
    return denoiser


def _find(
    name: str,
    revision: str | None,
    token: str | None,
    device: torch.device | None,
    dtype: torch.dtype | None,
    weights: str | None,
) -> tuple[Path, dict[str, Any]]:
    """The folder that a name stands for, and what a trace says about where it came from.

    What cannot run on the device is refused before its weights are fetched.
    """
    folder = folder_of(name)
    if folder is not None:
        require(revision is None, f"'{name}' is on this machine, which has no revisions of it: leave the revision out.")
        return folder, {"model": folder.resolve().name}
    check_name(name)
    model = hub.HubModel(name, revision, token)
    config = _config(model.config().parent)
    dialect = dialect_of(config, name)
    if dialect is not None and device is not None:
        check_memory(name, ModelSize.of(dialect.shape(config), dtype or torch.bfloat16, weights), device)
    folder = model.snapshot()
    return folder, {"model": name, "revision": folder.name}


def check_exists(name: str, revision: str | None = None, length: int = 0) -> OwnTable:
    """Raise unless there is a model of that name, or if an answer of this length is too long for it.

    Returns the model's frequency table. No weights are read, and of a hub id none are fetched.
    """
    check_name(name)
    if name == "toy":
        return OwnTable(toy().frequency)
    local = folder_of(name)
    folder = hub.HubModel(name, revision, None).config_and_table() if local is None else local
    config = _config(folder)
    dialect = dialect_of(config, name)
    context = config.get("max_position_embeddings") if dialect is None else dialect.shape(config).context
    if isinstance(context, int):
        require(
            length <= MAX_CONTEXTS * context,
            f"a length of {length:,} tokens is more than {MAX_CONTEXTS} times the {context:,} tokens '{name}' was "
            "trained on: give a smaller one.",
        )
    return _own_table(folder, config, dialect, None, is_from_hub=local is None)


def _own_table(
    folder: Path, config: dict[str, Any], dialect: Dialect | None, tokenizer: Any, is_from_hub: bool
) -> OwnTable:
    """The table in the model's folder, or the paper's. Of a model from the hub, the paper's table is fetched too."""
    released = "" if dialect is None else _released_name(dialect, dialect.shape(config).vocab)
    if (folder / TABLE).is_file():
        return OwnTable(FrequencyTable.load(folder / TABLE, tokenizer), released)
    fetches = is_from_hub and not is_offline()
    return OwnTable(find_released(released, fetches) if released else None, released)


def _released_name(dialect: Dialect, vocab: int) -> str:
    """The paper's table for a dialect and a size of the vocabulary; empty if there is none."""
    name = dialect.model_type.casefold()
    return name if name in RELEASED and RELEASED[name].vocab_size == vocab else ""


def _config(folder: Path) -> dict[str, Any]:
    check_folder(folder)
    return read_json(folder / "config.json")


def _read(
    folder: Path,
    dialect: Dialect,
    config: Config,
    tokenizer: Any,
    about: dict[str, Any],
    device: torch.device,
    dtype: torch.dtype | None,
    weights: str | None,
    device_map: DeviceMap | None,
) -> TransformerDenoiser:
    """A checkpoint of a dialect. All that can be wrong is found before the first parameter is allocated."""
    network, entries = Transformer(dialect.shape(config)), read_headers(folder)
    check_shapes({name: entry.shape for name, entry in entries.items()}, expected(network, dialect), str(folder))
    check_dtypes(entries)
    if tokenizer is not None:
        check_vocab(tokenizer, network.shape.vocab, folder)
    ids = special_tokens(dialect, config, tokenizer, network.shape.vocab)
    dtype = dtype or usual_dtype(entries, device)
    if weights is not None:
        network.quantize(weights)
    placed = None if device_map is None else Placement(network, device_map, dtype)
    devices = [device] if placed is None else placed.devices
    announce(about["model"], ModelSize.of(network.shape, dtype, weights), *devices)
    fill(
        network,
        entries,
        partial(dialect.parts, shape=network.shape),
        (lambda _: device) if placed is None else placed.device_of,
        partial(dtype_of, dtype=dtype),
    )
    if placed is not None:
        placed.attach()
    if len(devices) == 1:
        network.fuse()
        if network.embed.weight.is_cuda:  # return the memory of the unfused matrices to the GPU
            torch.cuda.empty_cache()
    return _denoiser(network, dialect, config, ids, tokenizer, about)


def _denoiser(
    network: Transformer,
    dialect: Dialect,
    config: Config,
    ids: tuple[int, tuple[int, ...]],
    tokenizer: Any,
    about: dict[str, Any],
) -> TransformerDenoiser:
    denoiser = TransformerDenoiser(
        network,
        dialect,
        mask_id=ids[0],
        eos_ids=ids[1],
        text_vocab=dialect.text_vocab(config, network.shape.vocab),
        tokenizer=tokenizer,
        about=about,
    )
    denoiser.is_mask_assumed = not says_mask(config, tokenizer)
    return denoiser


def expected(network: Transformer, dialect: Dialect) -> dict[str, tuple[int, ...]]:
    """Published names and shapes of all parameters."""
    found: dict[str, tuple[int, ...]] = {}
    for own, parameter in network.named_parameters():
        for name, size, start in dialect.parts(own, tuple(parameter.shape), network.shape):
            found[name] = (max(start + size[0], *found.get(name, ())[:1], 0), *size[1:])
    return found


def special_tokens(dialect: Dialect, config: Config, tokenizer: Any, vocab: int) -> tuple[int, tuple[int, ...]]:
    """Mask and EOS ids, from the configuration and the tokenizer; gives the tokenizer the dialect's chat template.

    A mask id that neither of them says is the published one. The tokenizer must call that token a mask.
    """
    if config.get("mask_token_id") is None and says_mask(config, tokenizer):
        config = {**config, "mask_token_id": tokenizer.mask_token_id}
    mask_id, eos_ids = dialect.special(config, vocab)
    if tokenizer is not None:
        token = next((name for name, at in tokenizer.get_vocab().items() if at == mask_id), "")
        require(
            says_mask(config, tokenizer) or "mask" in token.casefold(),
            f"config.json names no mask_token_id, and token {mask_id} of the tokenizer is '{token}': add the right id "
            f"({mask_id} is from {dialect.mask_source or 'us'}).",
        )
        turn, *others = (id_of(tokenizer, token) for token in (dialect.end_of_turn, *dialect.end_tokens))
        eos_ids = tuple(dict.fromkeys((*eos_ids, *(i for i in (turn, *others) if i is not None))))
        if turn is not None and (dialect.replaces_template or not tokenizer.chat_template):
            tokenizer.chat_template = dialect.template
    require(
        all(0 <= i < vocab for i in (mask_id, *eos_ids)),
        f"special ids {(mask_id, *eos_ids)} do not lie inside the vocabulary of {vocab}: mend config.json.",
    )
    return mask_id, eos_ids


def says_mask(config: Config, tokenizer: Any) -> bool:
    """Whether a checkpoint says its mask id."""
    return isinstance(config.get("mask_token_id"), int) or getattr(tokenizer, "mask_token_id", None) is not None


@checks_arguments()
def wrap(model: Any, tokenizer: Any = None, *, mask_id: int | None = None) -> Denoiser:
    """A model already in memory as a denoiser: LLaDA or Dream in the published class, or any masked LM by its class.

    The class of a masked LM is called `...MaskedLM`, or transformers knows its `model_type`. Where it does not, one
    forward checks that a position sees what follows it.

    A published LLaDA or Dream shares its weights with the denoiser; only those of experts are copied. Its tokenizer
    gets the dialect's chat template if it has none.
    """
    config: Any = getattr(model, "config", None)
    require(
        config is not None and callable(model),
        f"wrap takes a model of transformers, not {type(model).__name__}: make a function a uncode.FunctionDenoiser.",
    )
    known = tokenizer is None or hasattr(tokenizer, "get_vocab")
    require(known, f"wrap takes a tokenizer of transformers, not {tokenizer!r}.")
    if mask_id is not None:
        mask_id = whole_number(mask_id, "mask_id")
    about = {"model": getattr(config, "name_or_path", "") or type(model).__name__}
    if tokenizer is not None:
        about["tokenizer"] = fingerprint(tokenizer)
    values: dict[str, Any] = config.to_dict() if hasattr(config, "to_dict") else vars(config)
    kind = type(model).__name__
    dialect = named_dialect(values, kind)
    if dialect is not None:
        return _adopt(
            model, dialect, values if mask_id is None else values | {"mask_token_id": mask_id}, tokenizer, about
        )
    is_known = is_masked_lm(values.get("model_type"))
    if not is_known and "MaskedLM" not in kind:
        dialect_of({**values, "auto_map": None}, kind)  # the error for what it is instead
    require(
        "MaskedLM" in kind or getattr(model, "get_output_embeddings", lambda: None)() is not None,
        f"{kind} has no language model head: load it with AutoModelForMaskedLM.",
    )
    from ..masked_lm import MaskedLMDenoiser

    denoiser = MaskedLMDenoiser(model, tokenizer, mask_id=mask_id, about=about)
    require(
        is_known or denoiser.sees_what_follows,
        f"{kind} does not see what follows a position, so it cannot fill masks in any order: it is no masked language "
        "model.",
    )
    return denoiser


def _adopt(model: Any, dialect: Dialect, config: Config, tokenizer: Any, about: dict[str, Any]) -> TransformerDenoiser:
    """Our network over the parameters of a published model. Those of experts are copied: ours are one tensor."""
    network, state = Transformer(dialect.shape(config)), dict(model.state_dict())
    head, embed = (dialect.published(f"{name}.weight") for name in ("head", "embed"))
    if network.shape.tied and {head, embed} <= state.keys() and state[head].is_set_to(state[embed]):
        del state[head]  # a module lists it twice, a file once
    check_shapes({name: tuple(t.shape) for name, t in state.items()}, expected(network, dialect), about["model"])
    for name, parameter in dict(network.named_parameters()).items():
        parts = [
            state[p.name][p.start :][: p.shape[0]] for p in dialect.parts(name, tuple(parameter.shape), network.shape)
        ]
        assign(network, name, parts[0] if len(parts) == 1 else torch.cat(parts).view(parameter.shape))
    ids = special_tokens(dialect, config, tokenizer, network.shape.vocab)
    denoiser = _denoiser(network, dialect, config, ids, tokenizer, about)
    denoiser.released_table = _released_name(dialect, network.shape.vocab)
    denoiser.frequency = find_released(denoiser.released_table, fetches=False) if denoiser.released_table else None
    return denoiser
