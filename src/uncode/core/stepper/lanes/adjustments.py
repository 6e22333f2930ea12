"""The adjustments of a lane's logits: each row has its own bias and penalties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from torch import Tensor

from ...denoiser import Facts
from ...pieces.propose import Adjust
from ...support.transfer import upload
from ...view import View
from ..rows import Batch

NOTHING = Adjust()


class Adjustments:
    """The adjustments of a lane's rows. Rows without any are not touched."""

    def __init__(self, each: Sequence[Adjust], batch: Batch, members: Tensor | None, facts: Facts) -> None:
        """`members` are the indices of the rows in the batch; None where they are all of it."""
        index = slice(None) if members is None else members
        rows = np.array([row for row, one in enumerate(each) if one != NOTHING])
        mine = [each[row] for row in rows.tolist()]
        self._each, self._rows, self._facts = mine, rows, facts
        self._eos = torch.tensor(facts.eos_ids, dtype=torch.long, device=facts.device)
        tokens, given = batch.tokens[index], batch.given[index] & batch.valid[index]
        self._own = ~batch.given[index][:, batch.start :]
        names = ("presence_penalty", "frequency_penalty", "repetition_penalty")
        numbers = np.array([[[[getattr(one, name)]] for one in mine] for name in names])
        self._numbers = upload(numbers, facts.device)
        bias = np.zeros((len(mine), 1, facts.vocab_size))
        for row, one in enumerate(mine):
            bias[row, 0, list(one.tokens)] = one.bias
        self._bias = upload(bias, facts.device)
        here = upload(rows, facts.device)
        self._given = self._counts(tokens[here], (given & self._counted(tokens))[here])
        """How often the prompt, and other given text, has each token, `[n, 1, V]`."""

    @classmethod
    def of(cls, each: Sequence[Adjust], batch: Batch, members: Tensor | None, facts: Facts) -> Self | None:
        """None where no row has any."""
        return cls(each, batch, members, facts) if any(one != NOTHING for one in each) else None

    def __call__(self, logits: Tensor, view: View) -> Tensor:
        """The logits `[b, W, V]` of the rows, each perhaps followed by its drafts."""
        copies = len(logits) // len(self._own)
        rows = upload((self._rows[:, None] * copies + np.arange(copies)).ravel(), logits.device)
        span, tokens = view.span[rows], view.tokens[rows]
        written = self._counted(span) & self._own[rows // copies]
        counts, given = self._counts(span, written), self._repeated(self._given, copies)
        bias = self._repeated(self._bias, copies).to(_wide(logits))
        x = logits[rows].to(_wide(logits))
        found = self._adjusted(x, bias, counts, given, copies)
        # a position does not count the token that stands there itself
        here, at = tokens[..., None], view.offsets.expand(len(view.tokens), -1)[rows]
        less = written.gather(1, at)[..., None].to(counts.dtype)
        by_column = [part.expand(-1, here.shape[1], -1).gather(2, here) for part in (bias, counts, given)]
        value = self._adjusted(x.gather(2, here), by_column[0], by_column[1] - less, by_column[2], copies)
        found.scatter_(2, here, value)
        return found if len(rows) == len(logits) else logits.to(found.dtype).index_copy(0, rows, found)

    def _adjusted(self, x: Tensor, bias: Tensor, counts: Tensor, given: Tensor, copies: int) -> Tensor:
        presence, frequency, repetition = self._repeated(self._numbers.to(x.dtype), copies, 1)
        x, seen = x + bias, counts > 0
        if any(one.repetition_penalty != 1 for one in self._each):
            x = torch.where(seen | (given > 0), torch.where(x > 0, x / repetition, x * repetition), x)
        penalty: Tensor = counts.to(x.dtype) * frequency + seen * presence
        return x - penalty

    def _counted(self, tokens: Tensor) -> Tensor:
        return (tokens != self._facts.mask_id) & ~torch.isin(tokens, self._eos)

    def _counts(self, tokens: Tensor, which: Tensor) -> Tensor:
        """How often each token stands among those, `[n, 1, V]`."""
        counts = torch.zeros(len(tokens), self._facts.vocab_size, device=tokens.device)
        counts.scatter_add_(1, tokens, which.float())
        return counts[:, None]

    def _repeated(self, values: Tensor, copies: int, dim: int = 0) -> Tensor:
        return values if copies == 1 else values.repeat_interleave(copies, dim)


def _wide(logits: Tensor) -> torch.dtype:
    """A bias is not rounded to half precision."""
    return torch.promote_types(logits.dtype, torch.float32)
