"""What each token of a tokenizer adds to a text, in bytes, and the tries of these."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import UncodeError, require, shown

if TYPE_CHECKING:  # the process that compiles needs no torch
    from ..core.denoiser import Facts

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

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it."""
        none = [(np.zeros(0, np.int64), np.zeros(0, np.uint8))]
        parents, bytes_ = (np.concatenate([level[part] for level in self.levels or none]) for part in (0, 1))
        sizes = np.array([len(parent) for parent, _ in self.levels])
        return {"parents": parents, "bytes": bytes_, "sizes": sizes, "level": self.level, "node": self.node}

    @classmethod
    def read(cls, arrays: Mapping[str, NDArray[Any]]) -> Trie:
        """The trie with these arrays."""
        ends = np.cumsum(arrays["sizes"])[:-1]
        pairs = zip(np.split(arrays["parents"], ends), np.split(arrays["bytes"], ends), strict=True)
        return cls(list(pairs), arrays["level"], arrays["node"])


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The tokens that a text may have. A token adds other bytes where the text begins, if it brings its space along."""

    size: int
    ids: NDArray[np.int64]
    """The tokens with a text; the model never needs another one, but for EOS."""
    eos_ids: tuple[int, ...]
    tries: tuple[Trie, Trie | None]
    """What each token adds to a text before it, and what to an empty one; None where that is the same."""
    fingerprint: str
    """A hash of all of it."""

    @cached_property
    def content(self) -> bytes:
        """All of it, for the process that compiles."""
        facts = {"size": np.array(self.size), "eos_ids": np.array(self.eos_ids, np.int64), "ids": self.ids}
        facts["fingerprint"] = np.array(self.fingerprint)
        for name, trie in zip(("later", "first"), self.tries, strict=True):
            facts |= {} if trie is None else {f"{name}_{part}": one for part, one in trie.arrays.items()}
        content = io.BytesIO()
        np.savez(content, **facts)  # type: ignore[arg-type]
        return content.getvalue()

    @cached_property
    def continued(self) -> Vocabulary:
        """The same behind a text."""
        later, first = self.tries
        digest = hashlib.sha256(f"{self.fingerprint} continued".encode()).hexdigest()[:32]
        return self if first is None else replace(self, tries=(later, None), fingerprint=digest)

    @classmethod
    def read(cls, content: bytes) -> Vocabulary:
        """The vocabulary with this content."""
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            arrays = dict(found)
        later, first = (
            {key.removeprefix(f"{name}_"): one for key, one in arrays.items() if key.startswith(name)}
            for name in ("later", "first")
        )
        tries = Trie.read(later), Trie.read(first) if first else None
        eos_ids = tuple(arrays["eos_ids"].tolist())
        return cls(int(arrays["size"]), arrays["ids"], eos_ids, tries, str(arrays["fingerprint"]))

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
        numbers = np.array([ids[at] for at in known], dtype=np.int64)
        texts = [text for at in known if (text := later[at]) is not None]
        at_start = None if first is None else [first[at] for at in known]
        _check(tokenizer, numbers, texts, at_start)
        digest = hashlib.sha256(repr((facts.vocab_size, facts.eos_ids)).encode() + numbers.tobytes())
        for each in (texts, at_start or []):
            digest.update(np.array([len(text) for text in each]).tobytes() + b"".join(each))
        tries = Trie.of(texts), None if at_start is None else Trie.of(at_start)
        return cls(facts.vocab_size, numbers, facts.eos_ids, tries, digest.hexdigest()[:32])


def _check(tokenizer: Any, numbers: NDArray[np.int64], later: list[bytes], first: list[bytes] | None) -> None:
    """Raise unless texts follow from their tokens, for pairs all over the vocabulary."""
    count = len(numbers)
    for at in np.linspace(0, count - 1, min(CHECKED, count)).astype(int).tolist():
        other = (at * 7919 + 13) % count
        ids, parts = [int(numbers[at]), int(numbers[other])], (first or later)[at] + later[other]
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
