"""Random tokenizers, and models that have them, for tests of constraints."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models

from uncode.testing.hash_model import HashDenoiser

ALPHABET = "ab1 -é\n日😀"


class _Encodes:
    """What samplers with tokens in their settings ask: any token for each character."""

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return [ord(character) % 28 for character in text]


class TextTokenizer(_Encodes):
    """Tokens are texts, written one after the other; with `words`, with a space between them."""

    def __init__(self, texts: list[str], words: bool = False) -> None:
        self.texts, self._between = texts, " " if words else ""
        self.all_special_ids = list[int]()

    def __len__(self) -> int:
        return len(self.texts)

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        return self._between.join(self.texts[one] for one in ids if one < len(self.texts))


class ByteTokenizer(_Encodes):
    """Tokens are bytes, in GPT-2's characters: a character may need several tokens."""

    def __init__(self, texts: list[bytes]) -> None:
        plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
        letter = {byte: chr(byte) for byte in plain}
        letter |= {byte: chr(256 + at) for at, byte in enumerate(b for b in range(256) if b not in plain)}
        vocab = {"".join(letter[byte] for byte in text): at for at, text in enumerate(texts)}
        self.backend_tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="a"))
        self.backend_tokenizer.decoder = decoders.ByteLevel()
        self.backend_tokenizer.add_special_tokens([AddedToken("<end>", special=True)])
        self.all_special_ids = [len(vocab)]

    def __len__(self) -> int:
        return self.backend_tokenizer.get_vocab_size()

    def convert_ids_to_tokens(self, one: int) -> str | None:
        found: str | None = self.backend_tokenizer.id_to_token(one)
        return found

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        return str(self.backend_tokenizer.decode(ids, skip_special_tokens=skip_special_tokens))


def texts(seed: int, count: int) -> list[str]:
    """Different texts, the characters of the alphabet first."""
    random, found = Random(seed), dict.fromkeys(ALPHABET)
    while len(found) < count:
        found["".join(random.choice(ALPHABET) for _ in range(random.randint(2, 5)))] = None
    return list(found)


@cache
def model(kind: str, seed: int, size: int, has_eos: bool = True) -> HashDenoiser:
    """A random network with a random tokenizer of one kind; its last ids are those of EOS and of the mask."""
    if kind == "bytes":
        random, found = Random(seed), dict.fromkeys(bytes([byte]) for byte in {*"".join(ALPHABET).encode()})
        written = "".join(texts(seed, size)).encode()
        while len(found) < size:
            start = random.randrange(len(written) - 9)
            found[written[start : start + random.randint(2, 9)]] = None
        tokenizer: Any = ByteTokenizer(list(found))
    else:
        known = size if has_eos else size + 3  # without EOS, every token but the mask is a text
        tokenizer = TextTokenizer(texts(seed, known), words=kind == "words")
    denoiser = HashDenoiser(size + 4)  # the mask and two EOS tokens, and one that the tokenizer does not know
    denoiser.tokenizer = tokenizer
    if not has_eos:
        denoiser.eos_ids = ()
    return denoiser
