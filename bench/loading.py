"""The cost of loading a checkpoint: seconds, and peak memory beyond the model itself.

A checkpoint of random numbers with LLaDA's parameter names is written to a temporary folder and loaded from there: from
the page cache, and from the disk after its pages were dropped; beside safetensors' own `load_file`.

    python bench/loading.py                        1 GB, on the CPU or the GPU
    python bench/loading.py --size 8b --dtype bfloat16     the shape of LLaDA-8B: 16 GB of disk, and of memory
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

import uncode
from uncode.backbones.dialects.llada import LLADA, config_of
from uncode.backbones.loading.load import expected
from uncode.backbones.transformer.network import Transformer
from uncode.backbones.transformer.shape import Shape

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


def drop_pages(folder: Path) -> None:
    """Write the files to the disk, and drop them from the page cache."""
    for file in folder.iterdir():
        with file.open("rb") as stored:
            os.fsync(stored.fileno())
            os.posix_fadvise(stored.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def by_safetensors(folder: Path, device: torch.device, dtype: torch.dtype) -> None:
    """Load all tensors as safetensors does. It maps files, so on a CPU a copy reads them."""
    for file in sorted(folder.glob("*.safetensors")):
        for tensor in load_file(file, device=str(device)).values():
            tensor.to(dtype, copy=device.type == "cpu")


def seconds(run: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> float:
    """The better of two runs."""
    found = []
    for _ in range(2):
        prepare()
        began = time.perf_counter()
        run()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> None:
    """Write, load, print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", choices=SIZES, default="1gb")
    options.add_argument("--device")
    options.add_argument("--dtype")
    options.add_argument("--folder", type=Path, help="where the temporary folder is made: on the disk to be measured")
    chosen = options.parse_args()
    device = torch.device(chosen.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        write(folder, SIZES[chosen.size])
        _reset_peak()
        before = peak(device)
        model: Any = uncode.load(folder, device=device, dtype=chosen.dtype)
        sizes, dtype, grown = (
            [p.numel() * p.element_size() for p in model.network.parameters()],
            model.dtype,
            peak(device),
        )
        del model
        beyond = max(grown - before - sum(sizes), 0)
        print(f"{sum(sizes) / 1e9:.1f} GB in {dtype} on {device}: at the peak {beyond / 1e6:.0f} MB beyond the model")
        for place, prepare in (("page cache", lambda: None), ("cold disk", lambda: drop_pages(folder))):
            ours = seconds(lambda: uncode.load(folder, device=device, dtype=chosen.dtype), prepare)
            theirs = seconds(lambda: by_safetensors(folder, device, dtype), prepare)
            print(f"{place}: {ours:.2f} s; load_file of safetensors {theirs:.2f} s", flush=True)


def _reset_peak() -> None:
    """Reset the peak memory of this process, which has held the weights while writing them."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


if __name__ == "__main__":
    main()
