"""Preparation of a run: draw the training examples of a config and train the tokenizer on them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from ...backbones.loading.tokenizer import tokenizer_of
from ...core.errors import require
from ...evals.suite.families import FAMILIES
from ...util.write import write_whole
from ..config import TrainConfig
from .curriculum import curriculum
from .shards import EXAMPLES_FILE, Shards, tokenize

MASK, END = "<|mask|>", "<|end|>"
TEXTS_FILE = "curriculum.jsonl"
TOKENIZER_EXAMPLES = 60_000
"""The tokenizer is trained on about this many examples, which hold every word of the families."""
CURRICULUM_SEED = 0
"""Runs with different seeds learn from the same examples."""


def prepare(
    config: TrainConfig, folder: Path, on_progress: Callable[[str, int], None], workers: int | None = None
) -> Shards:
    """Draw the training examples, train the tokenizer on them, and write both to a folder.

    The folder also gets the examples as text, from which `uncode count` makes the model's frequency table.
    """
    check_can_draw(config)
    folder.mkdir(parents=True, exist_ok=True)
    examples = list(curriculum(config.examples.rows, CURRICULUM_SEED, workers or os.cpu_count() or 1, on_progress))
    stride = max(1, len(examples) // TOKENIZER_EXAMPLES)
    texts = (text for _, example in examples[::stride] for text in example)
    train_tokenizer(texts, config.network.vocab, folder)
    tokenizer = tokenizer_of(folder)
    require(
        len(tokenizer) == config.network.vocab,
        f"the examples give the tokenizer only {len(tokenizer)} of {config.network.vocab} tokens: lower network.vocab.",
    )
    spare = config.examples.spare
    longest, longest_answers = max(config.examples.lengths) - spare, [f.length - spare for f in FAMILIES.values()]
    by = made_by(config, folder)
    shards = tokenize(examples, tokenizer, longest, longest_answers, by, lambda count: on_progress("tokens", count))
    texts = (example.prompt + example.response for _, example in examples)
    write_whole(folder / TEXTS_FILE, "".join(json.dumps({"text": text}) + "\n" for text in texts))
    shards.save(folder / EXAMPLES_FILE)
    return shards


def train_tokenizer(texts: Iterable[str], size: int, folder: Path) -> None:
    """Train a byte-level BPE tokenizer and write its files to a folder. Each digit is a token; common words are single
    tokens. The mask token has id 0, EOS has id 1."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\d|\n[ ]*|[ ]?[A-Za-z]+|[ ]?[^\sA-Za-z\d]+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[MASK, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, mask_token=MASK, eos_token=END, pad_token=END, clean_up_tokenization_spaces=False
    )
    wrapped.save_pretrained(str(folder))


def check_can_draw(config: TrainConfig) -> None:
    """Raise if a config's examples cannot be drawn here, because a setting or a package is missing."""
    given = len(config.examples.rows)
    require(
        given == len(FAMILIES),
        f"examples.rows has {given} numbers: give {len(FAMILIES)}, one for each of {', '.join(FAMILIES)}.",
    )


def made_by(config: TrainConfig, folder: Path) -> str:
    """A fingerprint of what the examples depend on: config, tokenizer and held-out problems."""
    parts = [config.data_sha256.encode(), (folder / "tokenizer.json").read_bytes()]
    parts += [json.dumps([family.key(e) for e in family.examples()]).encode() for family in FAMILIES.values()]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def load_examples(config: TrainConfig, folder: Path) -> Shards:
    """Load the training examples in a folder. Raise if they were drawn for another config or tokenizer."""
    shards = Shards.load(folder / EXAMPLES_FILE)
    require(
        (folder / "tokenizer.json").is_file() and shards.made_by == made_by(config, folder),
        f"the examples in '{folder}' are of another config, tokenizer or version: draw them again with "
        "`uncode train CONFIG --prepare`.",
    )
    return shards
