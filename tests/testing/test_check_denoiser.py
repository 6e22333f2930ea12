"""`check_denoiser`: models that keep their promises pass, and every broken promise is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import uncode
from tests.checkpoints import like_the_toy
from tests.toy import ToyDenoiser, ToySession
from uncode import Canvas, FunctionDenoiser, Guided, UncodeError, decode, presets
from uncode.core.denoiser import Denoiser, Layout
from uncode.core.pieces.cache import Plan
from uncode.testing import ContractError, check_denoiser
from uncode.testing.hash_model import HashDenoiser, HashSession


def embedding(tokens: Tensor, valid: Tensor | None = None) -> Tensor:
    """A model that looks at its left neighbour; position i predicts position i."""
    before = torch.nn.functional.pad(tokens[:, :-1], (1, 0), value=0)
    if valid is not None:
        before = before * torch.nn.functional.pad(valid[:, :-1], (1, 0))
    return torch.sin(before[:, :, None] * 7.0 + torch.arange(12.0)) * 4


def test_our_denoisers_pass() -> None:
    dialects = (like_the_toy(name, 1) for name in ("llada", "dream", "sdar", "fast_dllm_v2"))
    for model in (ToyDenoiser(1), *dialects, HashDenoiser()):
        check_denoiser(model)
        check_denoiser(Guided(model, 1.0))


def test_the_shipped_models_pass() -> None:
    for name in ("toy", "tiny"):
        check_denoiser(uncode.load(name))


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
def test_a_function_needs_no_class(padding: bool, shifted: bool) -> None:
    model = FunctionDenoiser(embedding, mask_id=11, vocab_size=12, padding=padding, shifted=shifted)
    check_denoiser(model)
    prompts = [[1, 2, 3], [4]] if padding else [[1, 2], [3, 4]]
    canvas = Canvas.after_prompt(prompts, length=[5, 7] if padding else 6, mask_id=11)
    batch = decode(model, canvas, presets.confidence(), 3)
    for row, prompt in enumerate(prompts):
        length = int(canvas.lengths[row])
        alone = decode(model, Canvas.after_prompt([prompt], length=length, mask_id=11), presets.confidence(), [3 + row])
        assert torch.equal(batch.generated[row, :length], alone.generated[0])


def test_a_shifted_function_is_read_one_column_earlier() -> None:
    """The same model written both ways decodes alike; a row's first token predicts itself."""

    def of_next(tokens: Tensor) -> Tensor:
        return torch.sin(tokens[:, :, None] * 7.0 + torch.arange(12.0)) * 4

    def of_here(tokens: Tensor) -> Tensor:
        logits = of_next(tokens)
        return torch.cat([logits[:, :1], logits[:, :-1]], 1)

    canvas = Canvas.after_prompt([[1, 2], [5, 3]], length=9, mask_id=11)
    traces = [
        decode(FunctionDenoiser(fn, 11, 12, shifted=shifted), canvas, presets.semi_ar(blocks=3))
        for fn, shifted in ((of_next, True), (of_here, False))
    ]
    assert traces[0].to_json() == traces[1].to_json()
    one = Canvas.infill([[11, 11, 4]], 11)
    assert torch.equal(
        decode(FunctionDenoiser(of_next, 11, 12, shifted=True), one, presets.confidence()).tokens,
        decode(FunctionDenoiser(of_here, 11, 12), one, presets.confidence()).tokens,
    )


class Faulty(HashDenoiser):
    """The hash model with one fault."""

    def __init__(self, session: Callable[[HashDenoiser], Any], **facts: Any) -> None:
        super().__init__(20)
        self.session = session
        self.about = {"model": "mine"}
        self.__dict__.update(facts)

    def open(self, rows: int, length: int) -> Any:
        return self.session(self)


class WholeCanvas(HashSession):
    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        return torch.zeros(*tokens.shape, self.denoiser.vocab_size)


class Unbarred(HashSession):
    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        return super().logits(tokens, layout, plan).nan_to_num(nan=0.0, neginf=0.0)


class NotANumber(HashSession):
    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        return super().logits(tokens, layout, plan) * torch.nan


class Narrow(HashSession):
    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        return super().logits(tokens, layout, plan)[..., :-3]


class WritesTokens(HashSession):
    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        found = super().logits(tokens, layout, plan)
        tokens[:, 0] = 1
        return found


class IgnoresPadding(HashSession):
    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        everywhere = Layout(torch.ones_like(layout.valid), layout.given, layout.version)
        return super().logits(tokens, everywhere, plan)


class Dropout(HashSession):
    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        found = super().logits(tokens, layout, plan)
        return found + torch.rand_like(found)


class OneBuffer(HashSession):
    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        if not hasattr(self, "buffer"):
            self.buffer = super().logits(tokens, layout, plan)
        return self.buffer


class FirstColumns(HashSession):
    """Row 0's columns for all rows."""

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        whole = Plan(plan.window, plan.window, plan.store, plan.reuse)
        start, width = int(plan.wanted.start[0]), plan.wanted.width
        return super().logits(tokens, layout, whole)[:, start : start + width]


class MixesRows(HashSession):
    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        found = super().logits(tokens, layout, plan)
        return found + found.nan_to_num(neginf=0.0).mean(0, keepdim=True)


class ForgetsWhoLeft(HashSession):
    """It keeps each row's first token, and does not move them when rows leave."""

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        kept = getattr(self, "kept", tokens[:0, :1])
        self.kept = torch.cat([kept, tokens[len(kept) :, :1]])
        return super().logits(tokens, layout, plan) * (1 + self.kept[: len(tokens), :, None])


class NoAdd(HashSession):
    def add(self, rows: int, left: int, right: int) -> None:
        raise NotImplementedError("rows cannot join")


class NoCacheAtAll(HashSession):
    """It computes what the plan says, and reuses nothing."""

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        seen = torch.from_numpy(plan.window.mask(tokens.shape[1]))
        return super().logits(torch.where(seen, tokens, 0), layout, plan)


class KeepsNoOrder(ToySession):
    """Its cache is cut when rows leave, not re-indexed."""

    def keep(self, rows: Tensor) -> None:
        super().keep(torch.arange(len(rows)))


class CopiesInOrder(ToySession):
    """It copies the first rows of the other's cache, not those that are named."""

    def copy_rows(self, session: ToySession, rows: Tensor) -> None:
        super().copy_rows(session, rows.sort().values)


class GrowsOnTheWrongSide(ToySession):
    """Its cache grows on the right where the canvas grows on the left."""

    def add(self, rows: int, left: int, right: int) -> None:
        super().add(rows, right, left)


class NewRowsFirst(ToySession):
    """New rows come first in its cache."""

    def add(self, rows: int, left: int, right: int) -> None:
        old = len(self.stored[0][0])
        super().add(rows, left, right)
        super().keep(torch.arange(old + rows).roll(rows))


class FaultyToy(ToyDenoiser):
    """The toy network with a faulty session."""

    def __init__(self, session: type[ToySession]) -> None:
        super().__init__(1)
        self.session, self.about = session, {"model": "mine"}

    def open(self, rows: int, length: int) -> ToySession:
        return self.session(self, rows, length)


class NotOpened(Denoiser):
    mask_id, vocab_size = 5, 6


FAULTS: list[tuple[Denoiser, str]] = [
    (FaultyToy(KeepsNoOrder), r"mine: after keep\(\) its KV cache holds other rows than those that stayed"),
    (FaultyToy(CopiesInOrder), r"mine: after copy_rows\(\) its KV cache holds other rows than those named"),
    (FaultyToy(GrowsOnTheWrongSide), r"mine: after add\(\) its KV cache is in other columns or rows than the tokens"),
    (FaultyToy(NewRowsFirst), r"mine: after add\(\) its KV cache is in other columns or rows than the tokens"),
    (NotOpened(), r"NotOpened defines no open\(rows, length\): return a session from it"),
    (Faulty(WholeCanvas), r"mine returns logits of shape \(2, 11, 20\), not \(2, 5, 20\): return the columns of plan"),
    (Faulty(Unbarred), "mine gives the mask token a probability"),
    (Faulty(NotANumber), "mine gives the mask token a probability|mine returns NaN or infinite logits"),
    (Faulty(Narrow), r"mine returns logits of shape \(2, 5, 17\), not \(2, 5, 20\)"),
    (Faulty(WritesTokens), "mine writes into the tokens that it is given"),
    (
        Faulty(IgnoresPadding),
        "mine gives a row other logits beside a longer one: hide the columns outside",
    ),
    (Faulty(IgnoresPadding, sees_padding=False), "mine ignores padding in silence: raise an error"),
    (Faulty(Dropout), "mine returns other logits for the same tokens: switch dropout off"),
    (Faulty(OneBuffer), "mine returns other logits for the same tokens"),
    (Faulty(FirstColumns), "mine returns other columns than plan.wanted"),
    (Faulty(MixesRows), "mine gives a row other logits alone than in a batch"),
    (Faulty(ForgetsWhoLeft), r"mine: after keep\(\) the rows that stay have other logits than alone"),
    (Faulty(NoAdd), "mine raised NotImplementedError in add"),
    (Faulty(NoCacheAtAll), "mine gives other logits with its KV cache, although no token has changed"),
    (Faulty(HashSession, block_length=4), "mine sees later blocks than a position's own, which its block_length of 4"),
    (Faulty(HashSession, eos_ids=(19,)), "mine: the mask token is among eos_ids"),
    (Faulty(HashSession, eos_ids=(25,)), r"mine: eos_ids \[25\] are outside the vocabulary of 20"),
]


@pytest.mark.parametrize(("model", "sentence"), FAULTS)
def test_a_broken_promise_is_named(model: Denoiser, sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence):
        check_denoiser(model)


@pytest.mark.parametrize(
    ("session", "sentence"),
    [
        (
            WholeCanvas,
            r"the model 'mine' returned logits of shape \(1, 7, 20\), not \(1, 5, 20\): return the columns",
        ),
        (Unbarred, r"the model 'mine' gives the mask token \(19\) a probability: set its logit to -inf"),
        (NotANumber, "the model 'mine' returned NaN logits at position 2 of row 0"),
        (Narrow, r"the model 'mine' returned logits of shape \(1, 5, 17\), not \(1, 5, 20\)"),
    ],
)
def test_the_first_forward_of_a_decode_checks_the_logits(session: type[HashSession], sentence: str) -> None:
    with pytest.raises(UncodeError, match=sentence):
        decode(Faulty(session), Canvas.after_prompt([[1, 2]], 5, 19), presets.confidence())


def test_no_model_at_all_is_one_sentence() -> None:
    with pytest.raises(UncodeError, match=r"a model from uncode\.load or uncode\.wrap was expected, not int"):
        check_denoiser(3)  # type: ignore[arg-type]
