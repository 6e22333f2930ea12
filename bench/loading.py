"""The cost of loading a checkpoint: seconds, and peak memory beyond the model itself.

A checkpoint of random numbers with LLaDA's parameter names is written to a temporary folder and loaded from there.

    python bench/loading.py                        1 GB, on the CPU or the GPU
    python bench/loading.py --size 8b --dtype bfloat16     the shape of LLaDA-8B: 16 GB of disk, and of memory
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from dataclasses import replace
from math import prod
from pathlib import Path

import torch
from safetensors.torch import save_file

import uncode
from uncode.backbones.dialects.llada import LLADA, config_of
from uncode.backbones.loading.load import expected
from uncode.backbones.transformer.network import Shape, Transformer

LLADA_8B = LLADA.releases[0].shape
SIZES = {"1gb": replace(LLADA_8B, width=1024, layers=20, heads=8, key_heads=8, hidden=4096), "8b": LLADA_8B}


def write(folder: Path, shape: Shape, shards: int = 6) -> None:
    """Write a sharded checkpoint in bfloat16."""
    noise = torch.randn(1 << 22).mul(0.02).bfloat16()
    names = expected(Transformer(shape), LLADA)
    index: dict[str, str] = {}
    for shard in range(shards):
        part = {
            name: noise.repeat(-(-prod(size) // len(noise)))[: prod(size)].view(size)
            for name, size in list(names.items())[shard::shards]
        }
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        save_file(part, folder / file)
        index |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    (folder / "config.json").write_text(json.dumps(config_of(shape)))


def peak(device: torch.device) -> int:
    """The peak memory in bytes, of the GPU or of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return 1024 * int(found[1]) if found else 0


def main() -> None:
    """Write, load, print one line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", choices=SIZES, default="1gb")
    options.add_argument("--device")
    options.add_argument("--dtype")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, SIZES[chosen.size])
        _reset_peak(folder)
        device = torch.device(chosen.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        before, start = peak(device), time.perf_counter()
        model = uncode.load(folder, device=device, dtype=chosen.dtype)
        seconds = time.perf_counter() - start
        grown = peak(device) - before
    sizes = [p.numel() * p.element_size() for p in model.network.parameters()]  # type: ignore[attr-defined]
    beyond = max(grown - sum(sizes), 0)
    print(
        f"{sum(sizes) / 1e9:.1f} GB in {model.dtype} on {device}: {seconds:.1f} s, at the peak {beyond / 1e6:.0f} MB "
        f"beyond the model (largest tensor {max(sizes) / 1e6:.0f} MB)"
    )


def _reset_peak(folder: Path) -> None:
    """Reset the peak memory of this process, which has held the weights while writing them."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


if __name__ == "__main__":
    main()
