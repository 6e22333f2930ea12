"""Export of the trained network as a checkpoint folder in LLaDA's format, which `uncode.load` reads."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from ..backbones.dialects.llada import LLADA, config_of
from ..backbones.loading.folder import SINGLE
from ..backbones.loading.hub import TOKENIZER_FILES
from ..util.write import write_whole
from .checkpoint import RECORD_FILE
from .run import EOS_ID, MASK_ID, Run


def export(run: Run, data: Path, folder: Path) -> None:
    """Write the weights in bfloat16, config.json, the tokenizer and the record of the run to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        LLADA.published(name): parameter.detach().to(torch.bfloat16).contiguous().cpu()
        for name, parameter in run.network.named_parameters()
    }
    file = save(weights, {"format": "pt"})
    write_whole(folder / SINGLE, file)
    special = {"mask_token_id": MASK_ID, "eos_token_id": EOS_ID}
    _write_json(folder / "config.json", config_of(run.network.shape) | special)
    _write_json(folder / RECORD_FILE, _record(run) | {"weights_sha256": hashlib.sha256(file).hexdigest()})
    for name in TOKENIZER_FILES:
        if (data / name).is_file():
            shutil.copyfile(data / name, folder / name)


def _record(run: Run) -> dict[str, Any]:
    progress = run.progress
    where = torch.cuda.get_device_name(run.device) if run.device.type == "cuda" else "CPU"
    return {
        "config": run.config.name,
        "sha256": run.config.sha256,
        "seed": run.config.seed,
        "device": where,
        "torch": torch.__version__,
        "parameters": run.network.shape.parameters,
        "steps": progress.step,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 1),
        "curve": progress.curve,
    }


def _write_json(path: Path, value: dict[str, Any]) -> None:
    write_whole(path, json.dumps(value, indent=1) + "\n")
