"""The toy model: three-number sums, remembered and read locally. It needs no weights and decodes in milliseconds.

It remembers every problem "add a b c" with three styles of answer, padded with EOS tokens as instruction
data is, and predicts each position from the remembered texts that agree with what it sees. A
disagreement counts less the farther away it is, so what it believes near the end of an answer hardly
depends on the question: the local bias and the early EOS tokens of real masked diffusion models.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from ..core.errors import UncodeError
from ..frequency import FrequencyTable
from .function import FunctionDenoiser

LENGTH = 28
_REACH, _STRICTNESS = 10.0, 2.0
_WORDS = ["<mask>", "<end>", "add", "first", "then", "so", "the", "answer", "is", "+", "=", ",", "."]


class WordTokenizer:
    """Words separated by spaces."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.ids = {word: i for i, word in enumerate(words)}
        self.all_special_ids = [0, 1]

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        for word in text.split():
            if word not in self.ids:
                raise UncodeError(f"the toy model does not know the word '{word}': try \"add 3 4 5\".")
        return [self.ids[word] for word in text.split()]

    def decode(self, ids: list[int] | Tensor, skip_special_tokens: bool = False) -> str:
        kept = (int(i) for i in ids if not (skip_special_tokens and int(i) in self.all_special_ids))
        return " ".join(self.words[i] for i in kept)

    def batch_decode(self, rows: list[list[int]]) -> list[str]:
        return [self.decode(row) for row in rows]

    def __len__(self) -> int:
        return len(self.words)


def _texts(a: int, b: int, c: int) -> list[str]:
    """A problem and its answer in each of the three styles."""
    ask, total = f"add {a} {b} {c}", a + b + c
    steps = f"{a} + {b} = {a + b} , then {a + b} + {c} = {total} ."
    return [f"{ask} {total} .", f"{ask} {steps}", f"{ask} first {steps} so the answer is {total} ."]


def _what_to_shorten(tokens: Tensor) -> str:
    """The answer, if the rows end with masks and leave room for one; else the prompt."""
    is_answer, room = bool((tokens[:, -1] == 0).all()), LENGTH - int((tokens != 0).sum(1).max())
    return f"the answer with `length={room}`" if is_answer and room > 0 else "the prompt"


def toy() -> FunctionDenoiser:
    """The toy model as a denoiser."""
    tokenizer = WordTokenizer(_WORDS + [str(n) for n in range(1, 28)])
    texts = [_texts(*abc) for abc in itertools.product(range(1, 10), repeat=3)]
    ids = [tokenizer.encode(text) for styles in texts for text in styles]
    memory = torch.tensor([row + [1] * (LENGTH - len(row)) for row in ids])
    positions = torch.arange(LENGTH)
    nearness = (-(positions[:, None] - positions).abs() / _REACH).exp() * _STRICTNESS

    def logits(tokens: Tensor) -> Tensor:
        rows, length = tokens.shape
        if length > LENGTH:
            raise UncodeError(
                f"prompt and answer have {length} tokens, and the toy model sees {LENGTH} at most: shorten "
                f"{_what_to_shorten(tokens)}, or take another model."
            )
        known = memory[:, :length]
        disagree = ((tokens[:, None] != known) & (tokens != 0)[:, None]).float()
        weight = (-disagree @ nearness[:length, :length]).softmax(1)
        share = torch.zeros(rows, len(tokenizer), length).scatter_add_(1, known.expand(rows, -1, -1), weight)
        return (share.transpose(1, 2) + 1e-6).log()

    counts = torch.bincount(memory.flatten(), minlength=len(tokenizer))
    counts[tokenizer.all_special_ids] = 0
    return FunctionDenoiser(
        logits,
        mask_id=0,
        vocab_size=len(tokenizer),
        eos_ids=(1,),
        tokenizer=tokenizer,
        frequency=FrequencyTable(counts, "toy", tuple(tokenizer.all_special_ids)),
        name="toy",
    )
