"""Expressions, tokenizers and automata: what they accept is what Python accepts, and what is allowed completes."""

from __future__ import annotations

import re
import zipfile
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.constraints.test_constrained_decoding import EXPRESSIONS
from tests.constraints.vocabularies import ALPHABET, TextTokenizer
from tests.small_tokenizers import TOKENIZERS
from uncode import UncodeError, constraint
from uncode.constraints.compiled import byte_dfa, compiled
from uncode.constraints.completions import Automaton
from uncode.constraints.vocabulary import Vocabulary
from uncode.core.denoiser import Facts

SPECIAL = [
    r"a|b+",
    r"\d{2,3}",
    r"\s*\S",
    r"^x(?:y|)$",
    r"\A[^\n]+\Z",
    r"(?a:\w+)\W",
    r"(?s).*a",
    r"é?[à-ü]+|日*?",
    "(?x) a b",
    "",
]


@given(
    st.one_of(EXPRESSIONS, st.sampled_from(SPECIAL)), st.lists(st.text(ALPHABET + "xy0٣_ü", max_size=7), max_size=20)
)
def test_an_expression_means_what_it_means_to_python(found: str, texts: list[str]) -> None:
    rule = constraint(regex=found)
    assert all(rule.accepts(text) == bool(re.fullmatch(found, text)) for text in texts)


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("(?=a)b", "look-ahead"),
        ("(?<!a)b", "negative look-ahead or look-behind"),
        (r"(a)\1", "a back-reference"),
        ("(?>a)b", "an atomic group"),
        ("a*+", "a possessive repeat"),
        ("(?i)a", r"the flag \(\?i\)"),
        (r"a\bb", "a word boundary"),
        ("a$b", "an anchor inside the text"),
        ("(a", "cannot be read: missing"),
        ("(?:(?:(?:[^a]{2,5}){2,5}){2,5}){2,5}", "to compile: nest fewer repeats|nest fewer repeats"),
        ("(a|b)*a(a|b){14}", "more than 8,192 states"),
        ("a|" * 600_000, "more than 1,000,000 characters"),
    ],
)
def test_what_is_refused(expression: str, what: str) -> None:
    with pytest.raises(UncodeError, match=what):
        constraint(regex=expression)


def facts(tokenizer: object, size: int, eos_ids: tuple[int, ...]) -> Facts:
    return Facts(size + 1, size, eos_ids, torch.device("cpu"), tokenizer=tokenizer)


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("expression", ["the [a-z ]{3,20}", r"[\s\S]*", "[^x]*é.*", r"\d+(, \d+)*\.?"])
def test_real_kinds_of_tokenizers_in_any_order(kind: str, expression: str) -> None:
    tokenizer = TOKENIZERS[kind]()
    eos = () if tokenizer.eos_token_id is None else (tokenizer.eos_token_id,)
    known = facts(tokenizer, len(tokenizer), eos)
    automaton = Automaton(compiled(expression, Vocabulary.of(known)), known.mask_id, (), known.device)
    random = Random(0)
    for length in (1, 4, 11):
        tokens = np.full(length, known.mask_id)
        row = automaton.open(tokens)
        for at in random.sample(range(length), length if row.exist else 0):
            allowed = row.allowed(at, at + 1)[0][automaton.class_of]
            tokens[at] = random.choice(np.flatnonzero(allowed).tolist())
            assert row.write(at, int(tokens[at]))
        if row.exist:
            text = tokenizer.decode([one for one in tokens.tolist() if one not in eos], skip_special_tokens=True)
            assert re.fullmatch(expression, text)


@given(EXPRESSIONS, st.integers(1, 4), st.lists(st.sampled_from([-1, 0, 1, 2, 3, 4]), min_size=4, max_size=4))
def test_allowed_is_what_completes(found: str, length: int, canvas: list[int]) -> None:
    """All texts of a small vocabulary, one by one."""
    texts = ["a", "b", "1é", "日-", "ab"]
    known = facts(TextTokenizer(texts), 6, (5,))
    automaton = Automaton(compiled(found, Vocabulary.of(known)), known.mask_id, (), known.device)
    tokens = np.array([known.mask_id if one < 0 else one for one in canvas[:length]])
    choices = [range(6) if one == known.mask_id else [one] for one in tokens.tolist()]
    texts_of = {ids: [one for one in ids if one != 5] for ids in product(*choices)}
    complete = [
        ids
        for ids, kept in texts_of.items()
        if ids == (*kept, *[5] * (length - len(kept))) and re.fullmatch(found, "".join(texts[one] for one in kept))
    ]
    row = automaton.open(tokens)
    assert row.exist == bool(complete)
    for at in range(length if complete else 0):
        allowed = np.flatnonzero(row.allowed(at, at + 1)[0][automaton.class_of]).tolist()
        open_here = {ids[at] for ids in complete} if tokens[at] == known.mask_id else None
        assert open_here is None or set(allowed) == open_here


def test_compiled_constraints_are_kept_on_disk(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNCODE_CACHE", str(tmp_path))
    monkeypatch.setattr("uncode.constraints.compiled.LARGE", 1)
    vocabulary = Vocabulary.of(facts(TextTokenizer(list(ALPHABET)), 9, ()))
    first = compiled("a+é?", vocabulary)
    compiled.cache_clear()
    monkeypatch.setattr("uncode.constraints.compiled.token_dfa", lambda dfa, vocabulary: None)
    again = compiled("a+é?", vocabulary)
    compiled.cache_clear()
    assert np.array_equal(first.table, again.table)
    assert np.array_equal(first.class_of, again.class_of)
    assert (first.start, first.accepts.tolist()) == (again.start, again.accepts.tolist())


@pytest.mark.parametrize("damage", ["cut", "byte", "array", "number", "size"])
def test_damaged_files_of_compiled_constraints_are_not_read(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNCODE_CACHE", str(tmp_path))
    monkeypatch.setattr("uncode.constraints.compiled.LARGE", 1)
    vocabulary = Vocabulary.of(facts(TextTokenizer(list(ALPHABET)), 9, ()))
    first = compiled("a+é?", vocabulary)
    compiled.cache_clear()
    (file,) = (tmp_path / "constraints").iterdir()
    content, arrays = file.read_bytes(), dict(np.load(file))
    with zipfile.ZipFile(file) as members:
        within = members.infolist()[1].header_offset + 60
    if damage in ("cut", "byte"):
        file.write_bytes(content[:50] if damage == "cut" else content[:within] + b"\xff" * 9 + content[within + 9 :])
    elif damage == "array":
        with file.open("wb") as out:
            np.save(out, arrays["table"])
    else:
        arrays |= {"start": np.array(99)} if damage == "number" else {"class_of": arrays["class_of"][:3]}
        np.savez(file, **arrays)
    again = compiled("a+é?", vocabulary)
    compiled.cache_clear()
    assert np.array_equal(first.table, again.table)
    assert (first.start, first.class_of.tolist()) == (again.start, again.class_of.tolist())


def test_an_empty_part_repeated_often_and_a_long_text() -> None:
    assert constraint(regex="a(?:){2000000000}(?:(?:){3}){2000000000}b").accepts("ab")
    long = constraint(regex="[a-z]{0,8000}")
    assert long.accepts("a" * 8000)
    assert not long.accepts("a" * 8001)


def test_tables_of_tokens_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncode.constraints.token_dfa.MAX_CELLS", 20)
    with pytest.raises(UncodeError, match="classes of tokens: repeat less"):
        compiled("ab1-é日", Vocabulary.of(facts(TextTokenizer(list(ALPHABET)), 9, ())))


def test_the_smallest_automaton() -> None:
    assert len(byte_dfa("(?:a|b|c)*abb").table) == 5
    assert len(byte_dfa("[A-Za-z ,.]{1,80}").table) == 82
