"""What constraints cost over a tokenizer, in processor time: compiling them, and a first look at a canvas of masks.

The constraints are the schemas of `tests/constraints/schemas.py`, any JSON, and `[A-Za-z ,.]{1,80}`. Compiled
constraints on the disk are not read, and a new cache folder is removed at the end.

    python bench/constraints.py tokenizer.json                 a file, a folder, or a model of Hugging Face
    python bench/constraints.py Qwen/Qwen2.5-7B --masks 256
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

import uncode
from uncode.backbones.loading.tokenizer import load_tokenizer
from uncode.constraints.compiled import byte_dfa, compiled
from uncode.constraints.completions import Automaton
from uncode.constraints.vocabulary import Vocabulary
from uncode.core.denoiser import Facts

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.constraints.schemas import SCHEMAS

LINE = "{:<22}{:>10}{:>8}{:>9}{:>16}"


def rules() -> dict[str, Any]:
    """What each constraint is made of."""
    found = {name: {"json_schema": schema} for name, schema in SCHEMAS.items()}
    return found | {"any JSON": {"kind": "json"}, "[A-Za-z ,.]{1,80}": {"regex": "[A-Za-z ,.]{1,80}"}}


def facts_of(tokenizer: Any) -> Facts:
    """A model that has this tokenizer. Its mask is one id more."""
    eos = getattr(tokenizer, "eos_token_id", None)
    size = len(tokenizer) + 1
    return Facts(size, size - 1, () if eos is None else (eos,), torch.device("cpu"), tokenizer=tokenizer)


def measured(given: dict[str, Any], vocabulary: Vocabulary, mask_id: int, masks: int) -> tuple[float, int, int, float]:
    """Seconds to compile a constraint, its states, its classes of tokens, and seconds of the first look at masks."""
    byte_dfa.cache_clear()
    began = time.process_time()
    expression = uncode.constraint(**given).expression
    automaton = Automaton(compiled(expression, vocabulary), mask_id, (), torch.device("cpu"))
    compiling, began = time.process_time() - began, time.process_time()
    row = automaton.open(np.full(masks, mask_id))
    if row.exist:
        row.allowed(0, masks)
    return compiling, len(compiled(expression, vocabulary).table), automaton.count, time.process_time() - began


def main() -> None:
    """Read the vocabulary, compile, print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("tokenizer", help="a tokenizer.json, a folder with one, or a model of Hugging Face")
    options.add_argument("--masks", type=int, default=256)
    chosen = options.parse_args()
    before = os.environ.get("UNCODE_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UNCODE_CACHE"] = folder
        try:
            _measure(facts_of(load_tokenizer(chosen.tokenizer).tokenizer), chosen.masks)
        finally:
            os.environ.pop("UNCODE_CACHE")
            os.environ |= {} if before is None else {"UNCODE_CACHE": before}


def _measure(facts: Facts, masks: int) -> None:
    began = time.process_time()
    vocabulary = Vocabulary.of(facts)
    _ = vocabulary.content
    print(f"vocabulary of {facts.vocab_size - 1:,} tokens: read in {time.process_time() - began:.2f} s")
    print(LINE.format("constraint", "compile s", "states", "classes", f"{masks} masks ms"))
    found = list[tuple[float, int, int, float]]()
    for name, given in rules().items():
        found.append(measured(given, vocabulary, facts.mask_id, masks))
        print(_line(name, found[-1]), flush=True)
    columns = list(zip(*found, strict=True))
    print(_line("median", [median(column) for column in columns]))
    print(_line("largest", [max(column) for column in columns]))
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def _line(name: str, values: Any) -> str:
    compiling, states, classes, looking = values
    return LINE.format(name, f"{compiling:.2f}", f"{states:.0f}", f"{classes:.0f}", f"{1e3 * looking:.1f}")


if __name__ == "__main__":
    main()
