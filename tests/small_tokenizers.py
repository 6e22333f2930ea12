"""Small tokenizers of every kind that counting must be right for, trained on the spot."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEXT = [
    "The quick brown fox jumps over the lazy dog; it doesn't mind, and they're friends.\n",
    "In 2024, f(x) = 3.14 * x + y[0] -- isn't that nice?\r\n\r\n    return self.value  # a comment\n\tpass\n",
    "Größe über naïve café — 中文字符与日本語 テキスト, русский текст, العربية, हिन्दी, ไทย, 👍🏽 emoji.\n\n",
    "the then there these of the in the and the to the is the that the   spaces    many  \n \n  x",
]


def _fast(tokenizer: Tokenizer, **special: str) -> Any:
    kind: Any = PreTrainedTokenizerFast
    return kind(tokenizer_object=tokenizer, **special)


def _byte_level(split: Any, normalizer: Any = None) -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, split, decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<|end|>"], initial_alphabet=letters, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT * 3, trainer)
    return _fast(tokenizer, eos_token="<|end|>")


def gpt2() -> Any:
    """Byte-level BPE over GPT-2's words."""
    return _byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))


def qwen() -> Any:
    """Byte-level BPE over the words of Qwen, Dream and LLaMA-3."""
    split = pre_tokenizers.Split(Regex(QWEN), "isolated")
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return _byte_level(pre_tokenizers.Sequence([split, plain]), normalizers.NFC())


def whole() -> Any:
    """Byte-level BPE without words: a token may reach over a space, so nothing may be cut."""
    return _byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))


def wordpiece() -> Any:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        TEXT, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    )
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=16)
    return _fast(tokenizer, unk_token="[UNK]", pad_token="[PAD]", mask_token="[MASK]")


def unigram() -> Any:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=220, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return _fast(tokenizer, unk_token="<unk>", eos_token="</s>")


TOKENIZERS: dict[str, Callable[[], Any]] = {
    "byte-level": cache(gpt2),
    "split": cache(qwen),
    "whole": cache(whole),
    "wordpiece": cache(wordpiece),
    "unigram": cache(unigram),
}
