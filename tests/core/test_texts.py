"""Tokens one by one read as they do together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import uncode
from tests.small_tokenizers import gpt2, unigram, wordpiece
from uncode.core.trace.texts import token_texts


@pytest.mark.parametrize("make", [gpt2, wordpiece, unigram])
@pytest.mark.parametrize("text", ["2 + 3 = 5\n\n  and so on", "naïve 東京 🙂 and 🙂🙂", "x", ""])
def test_token_texts_concatenate_to_the_decoded_text(make: Callable[[], Any], text: str) -> None:
    tokenizer = make()
    ids = tokenizer.encode(text, add_special_tokens=False)
    texts = token_texts(tokenizer, ids)
    assert len(texts) == len(ids) and "".join(texts) == tokenizer.decode(ids)
    assert "\ufffd" not in "".join(texts)


def test_words_keep_their_space_and_partial_characters_are_shown() -> None:
    toy = uncode.load("toy").tokenizer
    assert token_texts(toy, toy.encode("add 3 4")) == ["add", " 3", " 4"]
    tokenizer = gpt2()
    half = tokenizer.encode("🙂", add_special_tokens=False)[:-1]
    assert len(half) > 0 and "".join(token_texts(tokenizer, half)) == tokenizer.decode(half)
    broken = half[:1] * 9 + tokenizer.encode("end", add_special_tokens=False)
    assert token_texts(tokenizer, broken)[-1].endswith("d") and len(token_texts(tokenizer, broken)) == len(broken)
