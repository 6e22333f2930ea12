"""What each token of a tokenizer adds to a text, in bytes, and the tries of these."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.denoiser import Facts
from ..core.errors import UncodeError, require, shown

_BYTE = 6
"""Characters of a token that stands for a byte, `<0x0A>`."""
CHECKED = 64
"""Pairs of tokens that are decoded, to see whether their text follows from what the tokens add."""


@dataclass(frozen=True, eq=False)
class Trie:
    """Texts by their beginnings. A level holds the nodes of one depth: their parents a level above, and their bytes."""

    levels: list[tuple[NDArray[np.int64], NDArray[np.uint8]]]
    level: NDArray[np.int64]
    node: NDArray[np.int64]
    """Where each text ends, by its depth and its node there; depth 0 is the root, the empty text."""

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Trie:
        order = sorted(range(len(texts)), key=texts.__getitem__)
        lengths = np.array([len(texts[at]) for at in order], dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        flat = np.frombuffer(b"".join(texts[at] for at in order), dtype=np.uint8)
        level, node = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
        here, parent, levels = np.arange(len(texts)), np.zeros(len(texts), np.int64), []
        for depth in range(int(lengths.max(initial=0))):
            longer = lengths[here] > depth
            here, parent = here[longer], parent[longer]
            byte = flat[starts[here] + depth]
            is_new = np.ones(len(here), dtype=bool)
            is_new[1:] = (parent[1:] != parent[:-1]) | (byte[1:] != byte[:-1])
            levels.append((parent[is_new], byte[is_new]))
            parent = np.cumsum(is_new) - 1
            ends = lengths[here] == depth + 1
            level[here[ends]], node[here[ends]] = depth + 1, parent[ends]
        index = np.array(order, dtype=np.int64)
        by_text = np.empty((2, len(texts)), np.int64)
        by_text[:, index] = level, node
        return cls(levels, by_text[0], by_text[1])


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The tokens that a text may have. A token adds other bytes where the text begins, if it brings its space along."""

    size: int
    ids: NDArray[np.int64]
    """The tokens with a text; the model never needs another one, but for EOS."""
    later: list[bytes]
    """What each of them adds to a text before it."""
    first: list[bytes] | None
    """What each adds to an empty one; None where that is the same."""
    eos_ids: tuple[int, ...]

    @cached_property
    def tries(self) -> tuple[Trie, Trie | None]:
        return Trie.of(self.later), None if self.first is None else Trie.of(self.first)

    @cached_property
    def continued(self) -> Vocabulary:
        """The same behind a text."""
        return self if self.first is None else replace(self, first=None)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all of it."""
        digest = hashlib.sha256(repr((self.size, self.eos_ids)).encode() + self.ids.tobytes())
        for texts in (self.later, self.first or []):
            digest.update(np.array([len(text) for text in texts]).tobytes() + b"".join(texts))
        return digest.hexdigest()[:32]

    @classmethod
    def of(cls, facts: Facts) -> Vocabulary:
        """The vocabulary of a model. Special tokens have no text, and the mask token is never written."""
        require(facts.tokenizer is not None, "this model has no tokenizer, so a constraint cannot know its texts.")
        tokenizer, special = facts.tokenizer, {facts.mask_id, *facts.eos_ids}
        backend = getattr(tokenizer, "backend_tokenizer", None)
        special |= set(getattr(tokenizer, "all_special_ids", ()))
        size = min(facts.vocab_size, len(tokenizer)) if hasattr(tokenizer, "__len__") else facts.vocab_size
        if backend is not None:
            special |= {n for n, token in backend.get_added_tokens_decoder().items() if token.special}
        ids = [n for n in range(size) if n not in special]
        later, first = _texts(tokenizer, backend, ids)
        known = [at for at, text in enumerate(later) if text is not None]
        found = cls(
            facts.vocab_size,
            np.array([ids[at] for at in known], dtype=np.int64),
            [text for at in known if (text := later[at]) is not None],
            None if first is None else [first[at] for at in known],
            facts.eos_ids,
        )
        found._check(tokenizer)
        return found

    def _check(self, tokenizer: Any) -> None:
        """Raise unless texts follow from their tokens, for pairs all over the vocabulary."""
        count = len(self.ids)
        for at in np.linspace(0, count - 1, min(CHECKED, count)).astype(int).tolist():
            other = (at * 7919 + 13) % count
            ids, parts = [int(self.ids[at]), int(self.ids[other])], (self.first or self.later)[at] + self.later[other]
            text = str(tokenizer.decode(ids, skip_special_tokens=True))
            require(
                "\ufffd" in text or text == parts.decode(errors="replace"),
                f"this tokenizer writes {shown(text)} for tokens {ids[0]} and {ids[1]}, which alone are "
                f"{shown(parts.decode(errors='replace'))}: a constraint needs one whose texts follow from its tokens.",
            )


MAX_KEPT = 8
"""Vocabularies that a process keeps."""
_KEPT: dict[tuple[Any, ...], tuple[Any, Vocabulary]] = {}
"""Each with its tokenizer, so that no other gets its address."""


def vocabulary_of(facts: Facts) -> Vocabulary:
    """The vocabulary of a model; of the tokenizers that were used last it is kept."""
    key = (id(facts.tokenizer), facts.vocab_size, facts.mask_id, facts.eos_ids)
    if key not in _KEPT or _KEPT[key][0] is not facts.tokenizer:
        while len(_KEPT) >= MAX_KEPT:
            _KEPT.pop(next(iter(_KEPT)))
        _KEPT[key] = facts.tokenizer, Vocabulary.of(facts)
    return _KEPT[key][1]


def _texts(tokenizer: Any, backend: Any, ids: list[int]) -> tuple[list[bytes | None], list[bytes] | None]:
    """What tokens add later and first; None for a token that stands for nothing."""
    kinds = _decoders(backend)
    if "ByteLevel" in kinds:
        table = _byte_level()
        return [_of_byte_level(tokenizer.convert_ids_to_tokens(number), table) for number in ids], None
    if "ByteFallback" in kinds:
        later = [_of_byte_fallback(tokenizer.convert_ids_to_tokens(number)) for number in ids]
        word = next((at for at, text in enumerate(later) if text and text[:1] == b" " and text[1:].isalpha()), None)
        if word is None or str(tokenizer.decode([ids[word]])).startswith(" "):
            return later, None
        return later, [(text or b"").removeprefix(b" ") for text in later]
    return _by_decoding(getattr(tokenizer, "decode", None), ids)


def _decoders(backend: Any) -> set[str]:
    """The kinds of decoders that a tokenizer of the `tokenizers` library has."""
    decoder = None if backend is None else json.loads(backend.to_str()).get("decoder")
    found = [] if decoder is None else [decoder, *decoder.get("decoders", ())]
    return {str(one.get("type")) for one in found}


def _byte_level() -> dict[str, int]:
    """GPT-2's characters for bytes: printable ones stand for themselves, the others for later characters."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + at): byte for at, byte in enumerate(others)}


def _of_byte_level(token: str | None, table: dict[str, int]) -> bytes | None:
    if token is None:
        return None
    try:
        return bytes([table[character] for character in token])
    except KeyError:  # an added token stands there as it is
        return token.encode()


def _of_byte_fallback(token: str | None) -> bytes | None:
    if token is None:
        return None
    if len(token) == _BYTE and token.startswith("<0x") and token.endswith(">"):
        return bytes([int(token[3:5], 16)])
    return token.replace("\u2581", " ").encode()


def _by_decoding(decode: Any, ids: list[int]) -> tuple[list[bytes | None], list[bytes] | None]:
    """The same for any other tokenizer, by decoding: each token alone, and behind one that is a plain word."""
    try:
        alone = [str(decode([number], skip_special_tokens=True)) for number in ids]
        word = next((at for at, text in enumerate(alone) if text.isalnum() and text.isascii()), None)
        require(word is not None, "this tokenizer has no token that is a plain word, so a constraint cannot read it.")
        assert word is not None
        before, later = alone[word], list[bytes | None]()
        for number in ids:
            whole = str(decode([ids[word], number], skip_special_tokens=True))
            later.append(whole[len(before) :].encode() if whole.startswith(before) and "\ufffd" not in whole else None)
    except (TypeError, IndexError, AttributeError) as error:
        raise UncodeError(f"this tokenizer cannot decode single tokens, which a constraint needs: {error}.") from None
    first = [text.encode() for text in alone]
    return later, None if later == first else first
