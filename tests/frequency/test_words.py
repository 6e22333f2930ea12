"""Counting by words gives the tokens of the whole text, or is not done."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, normalizers

from tests.small_tokenizers import TEXT, TOKENIZERS
from uncode import UncodeError
from uncode.frequency.counting import tally as tallies
from uncode.frequency.counting import words
from uncode.frequency.counting.encoder import Encoder, tokenizer_from_json
from uncode.frequency.counting.tally import Tally
from uncode.frequency.counting.words import RULES, Cutter, cutter_for

SCRIPTS = [
    "abcdefghijklmnopqrstuvwxyzABCXYZ", "0123456789", ".,;:!?'\"()[]{}<>-_/\\@#$%^&*+=|~`", "äöüßéèñçøåłőİıſﬁ",
    "абвгдежзиклмнЯЮЭ", "αβγδεζσςΣΩ", "אבגדהו", "ابتثجحـ", "अआइईकखगिी्", "ไทยกขค",
    "漢字中文日本語", "ひらがなカタカナー", "한국어조선글", "👍🏽👨\u200d👩🇩🇪", "\u0301\u0308\u0327\u20e3\ufe0f",
    "€£→∑∞½²Ⅷ①", "\x00\x07\x1b\x7f\x85\xad\ufeff\ufffd\ue000",
    "\t\n\r\x0b\x0c\x1c\x1f\xa0\u1680\u2003\u2028\u202f\u3000\u200b\u2060",
]  # fmt: skip
WORDS = ["the", " of", "don't", "it's", "WE'LL", "3.14", "f(x)", "a_b", "http://x.y/z?q=1", "<|end|>", "[MASK]", "</s>"]
BLANKS = st.sampled_from(
    [" ", " ", " ", "  ", "    ", "\n", "\r\n", "\n\n", " \n", "\n ", "\t", " \t", "\t\t", "\xa0", ""]
)
PIECES = st.one_of(
    st.sampled_from(SCRIPTS).flatmap(lambda letters: st.text(letters, min_size=1, max_size=6)),
    st.sampled_from(WORDS),
    st.text(max_size=4),
)
DOCUMENT = st.lists(st.tuples(PIECES, BLANKS), max_size=12).map(lambda pairs: "".join(itertools.chain(*pairs)))


@cache
def ready(kind: str) -> tuple[Encoder, Cutter | None]:
    encoder = Encoder(TOKENIZERS[kind]())
    return encoder, cutter_for(encoder.backend)


def naive(tokenizer: Any, documents: list[str]) -> Counter[int]:
    """One document after the other, by the tokenizer alone."""
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return Counter(
        itertools.chain.from_iterable(
            tokenizer.backend_tokenizer.encode(d, add_special_tokens=False).ids for d in documents
        )
    )


def counted(encoder: Encoder, cutter: Cutter | None, documents: list[str]) -> Counter[int]:
    tally = Tally(encoder, cutter)
    for document in documents:
        tally.add(document)
    counts = tally.take()()
    return Counter({int(token): int(counts[token]) for token in np.flatnonzero(counts)})


@given(documents=st.lists(DOCUMENT, min_size=10, max_size=10))
def test_counts_are_those_of_a_naive_loop(documents: list[str]) -> None:
    """Thirty draws of ten documents for each kind. To draw them takes longer than to count them."""
    for kind, tokenizer in TOKENIZERS.items():
        encoder, cutter = ready(kind)
        expected = naive(tokenizer(), documents)
        assert counted(encoder, cutter, documents) == expected, kind
        assert counted(encoder, None, documents) == expected, kind


@pytest.mark.parametrize(
    ("kind", "rule"),
    [("byte-level", "breaks 2"), ("split", "lines 2"), ("wordpiece", "lines 2"), ("unigram", "breaks 0")],
)
def test_the_finest_cuts_are_found(kind: str, rule: str) -> None:
    _, cutter = ready(kind)
    assert cutter is not None and cutter.rule == rule


def test_a_tokenizer_that_reaches_over_spaces_is_not_cut() -> None:
    assert ready("whole")[1] is None


@pytest.mark.parametrize("kind", ["byte-level", "split", "wordpiece", "unigram"])
def test_every_short_text_is_the_same(kind: str) -> None:
    """All texts of four of the characters that matter."""
    encoder, cutter = ready(kind)
    assert cutter is not None
    texts = ["".join(four) for four in itertools.product(" \n\ta1.'\xa0", repeat=4)]
    words = [cutter.words(text) for text in texts]
    assert list(map("".join, words)) == texts
    whole = encoder.backend.encode_batch_fast(texts, add_special_tokens=False)
    cut = encoder.backend.encode_batch_fast(words, is_pretokenized=True, add_special_tokens=False)
    assert [encoding.ids for encoding in cut] == [encoding.ids for encoding in whole]


@given(st.text())
def test_words_are_the_text(text: str) -> None:
    for rule in RULES:
        assert "".join(Cutter(rule).words(text)) == text


@pytest.mark.parametrize(
    "token",
    [
        AddedToken("two words"),
        AddedToken("two words", normalized=False),
        AddedToken("<x>", rstrip=True, normalized=False),
        AddedToken("\n\n", normalized=False),
    ],
)
def test_added_tokens_that_forbid_a_cut_are_heeded(token: AddedToken) -> None:
    tokenizer = Tokenizer.from_str(TOKENIZERS["split"]().backend_tokenizer.to_str())
    tokenizer.add_tokens([token])
    encoder = Encoder(tokenizer)
    text = f"a {token.content}  b{token.content}\n c two words\n\n d"
    cutter = cutter_for(encoder.backend)
    assert cutter is None or (cutter.words(text) == [text] and len(cutter.words("a b c")) == 3)
    assert (cutter is None) == token.normalized
    assert counted(encoder, cutter, [text]) == counted(encoder, None, [text])


def test_few_distinct_words_are_tokenized() -> None:
    """The point of it: the tokenizer sees each word once."""
    encoder, cutter = ready("split")
    seen: list[str] = []
    real = encoder.count_words
    tally = Tally(encoder, cutter)
    tally.add("".join(TEXT))  # the audit
    tally.add("the quick brown fox jumps. " * 1000)
    encoder.count_words = lambda words: (seen.extend(words), real(words))[1]  # type: ignore[method-assign, func-returns-value]
    counts = tally.take()()
    del encoder.count_words  # type: ignore[method-assign]
    assert len(seen) < 200 and counts.sum() > 5000


def test_a_cut_that_is_not_safe_is_noticed_while_counting() -> None:
    encoder, _ = ready("whole")
    with pytest.raises(UncodeError, match="count with `plain=True`"):
        Tally(encoder, Cutter("spaces 0")).add("the then there these of the in the and the")


def test_a_tally_reports_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "MAX_DISTINCT_WORDS", 8)
    monkeypatch.setattr(tallies, "MAX_WORD_CHARACTERS", 1000)
    monkeypatch.setattr(tallies, "MAX_TEXT_CHARACTERS", 50)
    encoder, cutter = ready("split")
    distinct, repeated, plain = Tally(encoder, cutter), Tally(encoder, cutter), Tally(encoder, None)
    distinct.add("a b c d e f g h i")
    assert distinct.is_full and distinct.take()().sum() > 8 and not distinct.is_full
    repeated.add("a " * 499)
    assert not repeated.is_full
    repeated.add("a a")
    assert repeated.is_full
    plain.add("x" * 49)
    assert not plain.is_full
    plain.add("x")
    assert plain.is_full


def test_tokenizers_without_a_backend_are_counted_too() -> None:
    class Letters:
        def get_vocab(self) -> dict[str, int]:
            return {letter: number for number, letter in enumerate("abc")}

        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            assert not add_special_tokens
            return ["abc".index(letter) for letter in re.findall("[abc]", text)]

    encoder = Encoder(Letters())
    assert encoder.backend is None and encoder.count(["abba", "c!"]).tolist() == [2, 2, 1]


def test_dropout_is_refused() -> None:
    tokenizer = TOKENIZERS["split"]()
    tokenizer.backend_tokenizer.model.dropout = 0.1
    try:
        with pytest.raises(UncodeError, match="at random"):
            Encoder(tokenizer)
    finally:
        tokenizer.backend_tokenizer.model.dropout = None


@pytest.mark.parametrize("kind", ["byte-level", "split", "wordpiece", "unigram"])
def test_long_texts_are_cut_in_slices_that_change_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, cutter = ready(kind)
    assert cutter is not None
    monkeypatch.setattr(words, "SLICE_CHARACTERS", 50)
    text = "".join(TEXT) + "<|end|> [MASK] </s>" + "".join(TEXT) + "x" * 200
    slices = list(cutter.slices(text))
    assert "".join(slices) == text and len(slices) > 5
    assert counted(encoder, cutter, [text]) == counted(encoder, None, [text])


def test_a_normalizer_that_may_look_anywhere_is_not_trusted() -> None:
    tokenizer = Tokenizer.from_str(TOKENIZERS["split"]().backend_tokenizer.to_str())
    tokenizer.normalizer = normalizers.Replace(Regex(r"-\s*\n\s*"), "")
    assert cutter_for(tokenizer) is None
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    assert cutter_for(tokenizer) is not None


def test_a_copy_keeps_how_special_tokens_are_read() -> None:
    tokenizer = Tokenizer.from_str(TOKENIZERS["split"]().backend_tokenizer.to_str())
    before = Encoder(tokenizer)
    tokenizer.encode_special_tokens = True
    after = Encoder(tokenizer)
    assert after.splits_special and after.sha256 != before.sha256
    copied = Encoder(tokenizer_from_json(after.json, after.splits_special))
    assert counted(copied, None, ["a <|end|>"]) == counted(after, None, ["a <|end|>"])
