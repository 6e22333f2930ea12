"""Masked LMs of every architecture in transformers: does a row in a padded batch equal the row alone?

`python -m tests.architectures` makes a tiny random model of each, decodes unequal rows with it and prints a line;
it ends with 1 if one of them gives other tokens in a batch. Architectures that a handful of common sizes does not
make are listed with the reason.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import warnings
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForMaskedLM
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from tests.backbones.test_masked_lm import SMALL, tokenizer
from uncode import generate, presets, wrap

logging.getLogger("transformers").setLevel(logging.ERROR)

PROMPTS, LENGTHS = ["the cat", "one two three four", "it ran"], [5, 8, 3]
LARGEST = 50_000_000
"""Parameters; beyond it an architecture ignores the sizes it is given."""
EXTRA: dict[str, dict[str, Any]] = {
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    **{kind: {"embedding_size": 32} for kind in ("albert", "convbert", "electra", "mobilebert", "rembert", "roformer")},
    "squeezebert": {"embedding_size": 32},
}
SKIPPED = {"modernvbert", "ultravbert"}
"""Models of images, which take minutes to make."""


def check(kind: str) -> str:
    torch.manual_seed(1)
    config = AutoConfig.for_model(kind, **SMALL, **EXTRA.get(kind, {}))
    with torch.device("meta"):
        if sum(p.numel() for p in AutoModelForMaskedLM.from_config(config).parameters()) > LARGEST:
            return "too large"
    model: Any = wrap(AutoModelForMaskedLM.from_config(config).double(), tokenizer())
    settings: Any = {"sampler": presets.confidence(), "stop_at_eos": False}
    together = generate(model, PROMPTS, length=LENGTHS, **settings)
    alone = [generate(model, p, length=n, **settings) for p, n in zip(PROMPTS, LENGTHS, strict=True)]
    return ("equal" if together == alone else "DIFFERENT") + ("" if model.pads else ", rows of one length at a time")


def main() -> None:
    found = {}
    for kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        if kind in SKIPPED:
            continue
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                found[kind] = check(kind)
            except Exception as error:
                found[kind] = f"not made: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:90]}"
        print(f"{kind:22}{found[kind]}", flush=True)
    print(f"{sum(result.startswith('equal') for result in found.values())} architectures equal")
    sys.exit(any(result.startswith("DIFFERENT") for result in found.values()))


if __name__ == "__main__":
    main()
