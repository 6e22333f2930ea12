"""A sampler on logits that are handed in: the same as `decode`, and nothing of the inside is needed."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import uncode
from tests.constraints.vocabularies import model as vocabulary_model
from tests.toy import EOS, MASK, VOCAB
from uncode import presets

DRAW = torch.Generator().manual_seed(0)
TOKENS, PLACES, HEAD = (torch.randn(n, generator=DRAW) for n in ((VOCAB, 16), (64, 16), (16, VOCAB)))
TABLE = torch.rand(VOCAB, generator=DRAW).double()


def logits(tokens: Tensor) -> Tensor:
    x = TOKENS[tokens] + PLACES[: tokens.shape[1]]
    found: Tensor = (x + (x @ x.transpose(1, 2) / 4).softmax(-1) @ x).tanh() @ HEAD * 2
    return found


def canvas() -> uncode.Canvas:
    return uncode.Canvas.after_prompt([[1, 2, 3, 4, 5], [2, 4, 6, 1, 1], [5, 4, 3, 2, 1]], length=24, mask_id=MASK)


SAMPLERS: dict[str, Any] = {
    "steps": presets.confidence(steps=9),
    "prior": presets.uncode(steps=12, frequency=TABLE),
    "budget": presets.eb(gamma=0.5),
    "blocks": presets.fast_dllm(threshold=0.5, block_length=7, cache="none"),
    "random": presets.uniform(temperature=0.7),
    "remask": presets.remdm(steps=12),
    "window": presets.confidence(window=5),
    "stops": presets.confidence().stopping(uncode.core.pieces.stop.AfterEos()),
    "looks at all": presets.prophet(),
    "one per row": [presets.confidence(), presets.semi_ar(blocks=3, steps=10), presets.eb(gamma=1.0)],
}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("whole", [True, False])
def test_the_same_as_decode(name: str, whole: bool) -> None:
    """Tokens, trace and forwards, whether the logits are of the whole canvas or of the columns that are asked for."""
    model = uncode.FunctionDenoiser(logits, MASK, VOCAB, eos_ids=(EOS,))
    want = uncode.decode(model, canvas(), SAMPLERS[name], 7)
    decider, forwards = uncode.Decider(canvas(), SAMPLERS[name], 7, vocab_size=VOCAB, eos_ids=(EOS,)), 0
    while not decider.done:
        given = logits(decider.tokens)
        given[..., MASK] = 9.0  # the mask token is never written
        before = given.clone()
        decider.decide(given if whole else given[:, decider.columns])
        assert given.equal(before)
        forwards += 1
    trace = decider.trace()
    assert decider.tokens.equal(want.tokens) and forwards == len(want) and decider.finished.all()
    for field in ("tokens", "commit_step", "forwards"):
        assert getattr(trace, field).equal(getattr(want, field))
    torch.testing.assert_close(trace.score, want.score, equal_nan=True)


def test_a_step_is_that_of_steps() -> None:
    decider = uncode.Decider(canvas(), "left_to_right", vocab_size=VOCAB)
    step = decider.decide(logits(decider.tokens))
    assert isinstance(step, uncode.Step) and step.committed.sum() == 3
    assert decider.columns == slice(5, 29) and repr(decider) == "Decider(3 of 3 rows in decoding)"
    assert not decider.finished.any() and (decider.tokens[:, 5] != MASK).all()


def test_wrong_logits_are_named() -> None:
    decider = uncode.Decider(canvas(), "confidence", vocab_size=VOCAB)
    for wrong, message in (
        ([1.0], "the logits must be a tensor"),
        (torch.zeros(3, 4, VOCAB), "of shape (3, 4, 32), not floats of shape (3, 24, 32) or (3, 29, 32)"),
        (torch.zeros(3, 29, VOCAB, dtype=torch.long), "torch.int64"),
        (torch.full((3, 29, VOCAB), torch.nan), "'logits handed in' returned NaN logits"),
    ):
        with pytest.raises(uncode.UncodeError, match=re.escape(message)):
            decider.decide(wrong)  # type: ignore[arg-type]
    with pytest.raises(uncode.UncodeError, match="rows are not finished"):
        decider.trace()


def test_it_says_what_it_cannot_run() -> None:
    for sampler, message in (
        (presets.confidence(draft_steps=2), "runs forwards of its own (draft steps)"),
        (presets.info_gain(), "runs forwards of its own (probes)"),
        (presets.fast_dllm(cache="dual"), "no KV cache"),
        ("confidense", "did you mean 'confidence'?"),
        (5, "a sampler was expected"),
    ):
        with pytest.raises(uncode.UncodeError, match=re.escape(message)):
            uncode.Decider(canvas(), sampler, vocab_size=VOCAB)  # type: ignore[arg-type]
    with pytest.raises(uncode.UncodeError, match=r"has no option 'vocab': did you mean 'vocab_size'\?"):
        uncode.Decider(canvas(), "confidence", vocab=VOCAB)  # type: ignore[call-arg]


def test_the_surface_is_frozen() -> None:
    """What other programs call. A change here is a change for all of them."""
    parameters = inspect.signature(uncode.Decider.__init__).parameters
    assert list(parameters) == [
        "self", "canvas", "sampler", "seed", "vocab_size", "eos_ids", "tokenizer", "frequency", "block_length",
        "constraint",
    ]  # fmt: skip
    decider = uncode.Decider(canvas(), "confidence", vocab_size=VOCAB)
    public = {name for name in dir(decider) if not name.startswith("_")}
    assert public == {"tokens", "finished", "columns", "done", "decide", "trace"}


PUBLIC = {
    "core.canvas", "core.errors", "core.pieces.policy", "core.pieces.stop", "generation.decider", "generation.decoding",
    "backbones.loading.load", "samplers.resolve", "samplers.options", "samplers.calibration",
}  # fmt: skip
"""Where public names, and types and defaults of their arguments, are."""


@pytest.mark.parametrize("name", ["diffusers", "transformers", "sglang"])
def test_adapters_are_thin(name: str) -> None:
    """They use public names, and have fewer than 120 lines."""
    file = Path(uncode.__file__).parent / "adapters" / f"{name}.py"
    used = {
        node.module for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom) and node.level
    }
    assert used <= PUBLIC and len(file.read_text().splitlines()) < 120


def test_a_constraint_holds() -> None:
    """As in a decode with the same logits; it needs the tokenizer."""
    like, rule = vocabulary_model("texts", 0, 28), uncode.constraint(regex="[ab1]+日?")
    facts = {"vocab_size": like.vocab_size, "eos_ids": like.eos_ids}
    start = uncode.Canvas.after_prompt([1, 2, 3], length=12, mask_id=like.mask_id)

    def scores(tokens: Tensor) -> Tensor:
        return torch.cos(tokens[..., None] + torch.arange(like.vocab_size) * 1.7)

    model = uncode.FunctionDenoiser(scores, mask_id=like.mask_id, tokenizer=like.tokenizer, **facts)
    want = uncode.decode(model, start, presets.confidence(steps=4), 7, rule)
    decider = uncode.Decider(start, presets.confidence(steps=4), 7, constraint=rule, tokenizer=like.tokenizer, **facts)
    while not decider.done:
        decider.decide(scores(decider.tokens))
    assert decider.trace().tokens.equal(want.tokens)
    assert re.fullmatch(rule.expression, want.texts(like.tokenizer)[0])
    with pytest.raises(uncode.UncodeError, match="has no tokenizer, so a constraint cannot know its texts"):
        uncode.Decider(start, presets.confidence(), 7, constraint=rule, **facts)
