"""A byte-level BPE tokenizer, trained on the curriculum. Each digit is a token; common words are single tokens."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

MASK, END = "<|mask|>", "<|end|>"


def train_tokenizer(texts: Iterable[str], size: int, folder: Path) -> None:
    """Train a tokenizer and write its files to a folder. The mask token has id 0, EOS has id 1."""
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
