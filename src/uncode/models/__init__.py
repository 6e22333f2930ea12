"""The models of the package, those it knows by name, and the other files in a model's folder."""

from __future__ import annotations

from pathlib import Path

TINY = Path(__file__).parent / "tiny"
"""The model `tiny`: seven families of small problems, 7 M parameters. README.md is its card."""
BUILT_IN = ("tiny", "toy")
TABLE = "frequency.safetensors"
"""A model's folder may hold its own frequency table under this name."""
SAMPLER_FOLDER = "samplers"
"""A model's folder may hold sampler files here. `--sampler` takes them by name."""
RELEASES: dict[str, str | None] = {
    "GSAI-ML/LLaDA-8B-Base": "llada",
    "GSAI-ML/LLaDA-8B-Instruct": "llada",
    "GSAI-ML/LLaDA-1.5": "llada",
    "d3LLM/d3LLM_LLaDA": "d3llm-llada",
    "Zigeng/dParallel-LLaDA-8B-instruct": "dparallel",
    "Dream-org/Dream-v0-Base-7B": "dream",
    "Dream-org/Dream-v0-Instruct-7B": "dream",
    "d3LLM/d3LLM_Dream": "d3llm-dream",
    "d3LLM/d3LLM_Dream_Coder": "d3llm-dream",
    "Zigeng/dParallel_Dream_7B_Instruct": "dparallel",
    "Dream-org/Dream-Coder-v0-Base-7B": "dream-coder-base",
    "Dream-org/Dream-Coder-v0-Instruct-7B": "dream-coder-instruct",
    "apple/DiffuCoder-7B-Base": "dream",
    "apple/DiffuCoder-7B-Instruct": "diffucoder-instruct",
    "apple/DiffuCoder-7B-cpGRPO": "diffucoder-cpgrpo",
    "Gen-Verse/MMaDA-8B-Base": "mmada",
    "Gen-Verse/MMaDA-8B-MixCoT": "mmada",
    "Salesforce/CoDA-v0-Base": "coda",
    "Salesforce/CoDA-v0-Instruct": "coda",
    "GSAI-ML/iLLaDA-8B-Base": "llada",
    "GSAI-ML/iLLaDA-8B-Instruct": "llada",
    "ByteDance-Seed/Stable-DiffCoder-8B-Base": "in-blocks",
    "ByteDance-Seed/Stable-DiffCoder-8B-Instruct": "in-blocks",
    "JetLM/SDAR-1.7B-Chat": "sdar",
    "JetLM/SDAR-4B-Chat": "sdar",
    "JetLM/SDAR-8B-Chat": "sdar",
    "JetLM/SDAR-8B-Chat-b32": "sdar",
    "Gen-Verse/TraDo-4B-Instruct": "trado",
    "Gen-Verse/TraDo-8B-Instruct": "trado",
    "Gen-Verse/TraDo-8B-Thinking": "trado",
    "Dream-org/DreamReasoner-8B": None,
    "nvidia/Nemotron-Labs-Diffusion-8B-Base": "nemotron",
    "nvidia/Nemotron-Labs-Diffusion-8B": "nemotron",
    "Efficient-Large-Model/Fast_dLLM_v2_1.5B": "fast-dllm-v2",
    "Efficient-Large-Model/Fast_dLLM_v2_7B": "fast-dllm-v2",
    "dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1": "llada",
    "dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1": "in-blocks",
    "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1": "llada",
    "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm-v0.1": "in-blocks",
    "inclusionAI/LLaDA-MoE-7B-A1B-Base": "llada-moe",
    "inclusionAI/LLaDA-MoE-7B-A1B-Instruct": "llada-moe",
    "inclusionAI/LLaDA2.0-mini": "llada2",
    "inclusionAI/LLaDA2.0-mini-CAP": "llada2",
    "inclusionAI/LLaDA2.1-mini": "llada2.1",
}
"""The published checkpoints by their hub id, and the sampler file of the package that decodes as their authors do,
where there is one. A test checks that they are those of the dialects."""
OWN_SAMPLER = "own"
"""The name of that sampler file for `--sampler`."""
_OWN_FILES = Path(__file__).parent / "own"


def folder_of(name: str) -> Path | None:
    """The folder of a model on this machine: `tiny`, or a local folder; else None."""
    if name == "tiny":
        return TINY
    try:
        folder = Path(name).expanduser()
        return folder if name and folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # too long for a path, an unknown user, a NUL
        return None


def sampler_files(name: str) -> dict[str, Path]:
    """The sampler files in a model's folder, by name; of a published checkpoint that of its authors, `own`."""
    folder = folder_of(name)
    if folder is not None:
        return {file.stem: file for file in sorted((folder / SAMPLER_FOLDER).glob("*.toml"))}
    own = RELEASES.get(name)
    return {} if own is None else {OWN_SAMPLER: _OWN_FILES / f"{own}.toml"}


def table_of(name: str) -> Path | None:
    """The frequency table in the folder of a model on this machine (`tiny` or a local folder); else None."""
    folder = folder_of(name)
    return folder / TABLE if folder is not None and (folder / TABLE).is_file() else None
