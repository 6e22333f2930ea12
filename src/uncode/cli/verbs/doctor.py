"""`uncode doctor`: what is installed, and what is missing."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
from typing import Any

import typer

from ...util.extras import EXTRAS
from ...version import __version__
from ..options import Json
from ..printing import facts, loading, printing

SUMMARY = "Show what is installed, and what is missing."

PACKAGES = ("torch", "numpy", "transformers", "tokenizers", "safetensors", "huggingface_hub")


def command(as_json: Json = False) -> None:
    """Print versions, devices, dtypes, kernels, caches, sandboxes and extras, and what is missing.

    Examples:

      uncode doctor
      uncode doctor --json
    """
    with loading():
        found: dict[str, Any] = {"versions": _versions(), "devices": _devices(), "hub": _hub(), "extras": _extras()}
        found["kernels"], found["sandbox"] = {"on a GPU": _kernels()}, _jails()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    sections: dict[str, dict[str, str]] = {
        "versions": found["versions"],
        "devices": {d["name"]: f"{d['what']}; {d['memory']}; {', '.join(d['dtypes'])}" for d in found["devices"]},
        "kernels": found["kernels"],
        "hub": found["hub"],
        "sandbox for generated programs": found["sandbox"],
        "extras": {extra["name"]: _extra_in_words(extra) for extra in found["extras"]},
    }
    with printing() as console:
        for title, lines in sections.items():
            console.print(f"[bold]{title}[/bold]")
            console.print(facts(lines.items(), indent=2), "")


def _kernels() -> str:
    from ...core.support.triton_support import why_not

    missing = why_not()
    return "fused" if missing is None else f"plain, which is slower: {missing}"


def _jails() -> dict[str, str]:
    """The jails of the sandbox, best first, and whether they work here."""
    from ...sandbox import JAILS

    in_words = {kind: "works" if kind.walled else "resource limits only, no isolation" for kind in JAILS.values()}
    return {name: in_words[kind] if kind().works() else "does not work here" for name, kind in JAILS.items()}


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"uncode": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _devices() -> list[dict[str, Any]]:
    """Every device with its free memory and recommended dtypes."""
    import torch

    from ...core.support.memory import free_bytes, gigabytes

    free = free_bytes(torch.device("cpu"))
    cpu = {
        "name": "cpu",
        "what": f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}",
        "memory": "free memory unknown" if free is None else f"{gigabytes(free)} free",
        "dtypes": ["float32", "float64", "bfloat16 (slow)" if not _cpu_has_bfloat16() else "bfloat16"],
    }
    return [cpu, *(_gpu(number) for number in range(torch.cuda.device_count()))]


def _cpu_has_bfloat16() -> bool:
    import torch

    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):  # a torch built without it
        return False


def _gpu(number: int) -> dict[str, object]:
    import torch

    from ...core.support.memory import gigabytes

    facts = torch.cuda.get_device_properties(number)
    available, total = torch.cuda.mem_get_info(number)
    bfloat16 = ["bfloat16"] if torch.cuda.is_bf16_supported() else []
    return {
        "name": f"cuda:{number}",
        "what": f"{facts.name}, compute capability {facts.major}.{facts.minor}",
        "memory": f"{gigabytes(available)} of {gigabytes(total)} free",
        "dtypes": [*bfloat16, "float16", "float32", "float64"],
    }


def _hub() -> dict[str, str]:
    from huggingface_hub import constants, get_token

    return {
        "address": constants.ENDPOINT,
        "cache": constants.HF_HUB_CACHE,
        "mode": "offline (HF_HUB_OFFLINE)" if constants.HF_HUB_OFFLINE else "online",
        "token": "found" if get_token() else "none; `hf auth login` for private and gated models",
    }


def _extras() -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "enables": purpose,
            "missing": [module for module in modules if importlib.util.find_spec(module) is None],
        }
        for name, (modules, purpose) in EXTRAS.items()
    ]


def _extra_in_words(extra: dict[str, Any]) -> str:
    if not extra["missing"]:
        return f"found: {extra['enables']}"
    return f"{', '.join(extra['missing'])} missing: {extra['enables']}; pip install 'uncode[{extra['name']}]'"
