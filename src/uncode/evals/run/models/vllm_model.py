"""Autoregressive models under evaluation on vLLM, where that is installed.

Written against vLLM's documented interface for offline inference (`LLM.generate` with `TokensPrompt` and one
`SamplingParams` for each row). The tests run it with a fake module, because vLLM needs a GPU and its own torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from ....backbones.loading.checkpoint import read_headers, usual_dtype
from ....backbones.loading.device import parse_dtype
from ....core.errors import UncodeError, require
from ....frequency.fingerprint import fingerprint
from .causal import CausalModel, LeftToRight, context_of, eos_ids_of
from .causal_checkpoint import find_checkpoint
from .model import Question, weights_fingerprint

MAX_TEMPERATURE = 2.0
"""vLLM refuses more."""


class VllmModel(CausalModel):
    """A causal language model on vLLM. Its engine reads the same folder and is given the same token ids."""

    rows_per_call = 256
    """vLLM schedules the rows of a call itself, so a call has many. Each call's answers are saved when it ends."""

    def __init__(self, name: str, engine: Any, tokenizer: Any, fingerprint: str, eos_ids: tuple[int, ...]) -> None:
        self.name, self.engine, self.tokenizer = name, engine, tokenizer
        self.fingerprint, self.eos_ids = fingerprint, eos_ids

    @classmethod
    def load(
        cls, name: str, *, device: str | None = None, dtype: str | None = None, revision: str | None = None
    ) -> VllmModel:
        """Load a local folder or a hub id. `dtype` is by default the one the weights are stored in."""
        vllm = _vllm()
        require(device in (None, "cuda"), f"vLLM runs on the GPU that it finds, not on '{device}': leave device out.")
        kind = parse_dtype(dtype)
        checkpoint = find_checkpoint(name, revision)
        unread = f"'{name}' is a GGUF file, which uncode reads with transformers only: leave backend='vllm' out."
        require(checkpoint.gguf is None, unread)
        kind = kind or usual_dtype(read_headers(checkpoint.folder), torch.device("cuda"))
        tokenizer, (generation, config) = checkpoint.tokenizer(), _configs(checkpoint.folder)
        eos_ids = eos_ids_of(generation, config, tokenizer)
        facts = {"backend": "vllm", "dtype": kind, "tokenizer": fingerprint(tokenizer), "eos_ids": eos_ids}
        found = weights_fingerprint(_stored(checkpoint.folder), dict(checkpoint.about) | facts)
        try:
            engine = vllm.LLM(
                model=str(checkpoint.folder),
                dtype=str(kind).removeprefix("torch."),
                load_format="safetensors",  # no pickle
                trust_remote_code=False,
                generation_config="vllm",  # no penalties from the checkpoint; the EOS ids are passed with each row
            )
        except Exception as error:  # vLLM raises many kinds
            first = (str(error).strip().splitlines() or [repr(error)])[0]
            raise UncodeError(f"vLLM cannot load '{name}': {first}") from error
        model = cls(name, engine, tokenizer, found, eos_ids)
        model.context = context_of(config)
        return model

    def generate(self, questions: Sequence[Question], how: LeftToRight) -> list[list[int]]:
        vllm = _vllm()
        limit = f"vLLM takes temperatures up to {MAX_TEMPERATURE:g}, not {how.temperature:g}."
        require(how.temperature <= MAX_TEMPERATURE, limit)
        prompts = [vllm.TokensPrompt(prompt_token_ids=list(one.prompt_ids)) for one in questions]
        params = [
            vllm.SamplingParams(
                temperature=how.temperature,
                max_tokens=one.length,
                seed=one.seed,
                stop_token_ids=list(self.eos_ids) if how.stop_at_eos else [],
                ignore_eos=not how.stop_at_eos,
                detokenize=False,
            )
            for one in questions
        ]
        outputs = self.engine.generate(prompts, params, use_tqdm=False)
        return [list(output.outputs[0].token_ids) for output in outputs]


def _vllm() -> Any:
    try:
        return importlib.import_module("vllm")
    except ImportError as error:
        raise UncodeError("backend='vllm' needs vllm: pip install vllm, or leave the backend out.") from error


def _configs(folder: Path) -> tuple[Any, Any]:
    """The generation config of a folder, if it has one, and the configuration."""
    from transformers import AutoConfig, GenerationConfig

    has_one = (folder / "generation_config.json").is_file()
    generation = GenerationConfig.from_pretrained(str(folder), local_files_only=True) if has_one else None
    return generation, AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)


def _stored(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """The parameters in a folder's files, one at a time."""
    entries = read_headers(folder)
    for file in sorted({entry.file for entry in entries.values()}):
        with safe_open(file, framework="pt") as opened:
            for name in sorted(opened.keys()):
                yield name, opened.get_tensor(name)
