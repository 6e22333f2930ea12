"""Calls that cannot work: one sentence that says what was wrong, whatever was passed; and the signatures stay."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import uncode
from uncode import Canvas, FunctionDenoiser, Guided, UncodeError, decode, generate, legacy, presets, steps
from uncode.core.denoiser import Denoiser
from uncode.core.support.arguments import ArgumentError

TOY = uncode.load("toy")
CANVAS = Canvas.after_prompt([[2, 3]], length=4, mask_id=TOY.mask_id)
SAMPLER = presets.confidence()
TRACE = decode(TOY, CANVAS, SAMPLER)


def zeros(tokens: torch.Tensor) -> torch.Tensor:
    return torch.zeros(*tokens.shape, 5)


def run(model: Any) -> Any:
    return decode(model, Canvas.after_prompt([[1]], length=2, mask_id=0), SAMPLER)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: decode(TOY, CANVAS, SAMPLER, obzerve="span"),
            "^decode has no option 'obzerve': did you mean 'observe'",
        ),
        (lambda: steps(TOY, CANVAS, SAMPLER, draft=True), "^steps has no option 'draft': did you mean 'drafts'"),
        (
            lambda: generate(TOY, "add 1 2 3", sampler=SAMPLER, lenght=3),
            "^generate has no option 'lenght': .* 'length'",
        ),
        (lambda: uncode.load("toy", devise="cpu"), "^load has no option 'devise': did you mean 'device'"),
        (lambda: uncode.wrap(zeros, tokeniser=None), "^wrap has no option 'tokeniser': did you mean 'tokenizer'"),
        (lambda: FunctionDenoiser(zeros, 0, vocab=5), "^FunctionDenoiser has no option 'vocab': .*vocab_size"),
        (lambda: Guided(TOY, scal=1.0), "^Guided has no option 'scal': did you mean 'scale'"),
        (lambda: Canvas.after_prompt([[1]], lenght=3, mask_id=0), "^Canvas.after_prompt has no option 'lenght'"),
        (lambda: Canvas.infill([[1]], mask=1), "^Canvas.infill has no option 'mask': .*mask_id"),
        (lambda: presets.uncode(rat=0.1), "^the sampler 'uncode' has no option 'rat': did you mean 'rate'"),
        (lambda: legacy.llada_eos(step=3), "^llada_eos has no option 'step': did you mean 'steps'"),
    ],
)
def test_a_misspelt_option_has_a_near_name(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as error:
        call()
    assert isinstance(error.value, UncodeError) and isinstance(error.value, TypeError)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decode(TOY, CANVAS), "^decode needs a value for sampler: it takes denoiser, canvas, sampler"),
        (lambda: generate(TOY, "a", SAMPLER), "^generate got too many values without a name: it takes denoiser"),
        (lambda: presets.confidence(8), "^the sampler 'confidence' got too many values without a name: it takes"),
        (lambda: decode(TOY, CANVAS, SAMPLER, sampler=SAMPLER), "^decode got a wrong value .*'sampler'"),
        (lambda: Canvas.after_prompt([[1]], 3), "needs a value for mask_id: it takes ids, length, mask_id"),
    ],
)
def test_a_missing_argument_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


IDS = [
    "abc",
    ["abc"],
    [["abc"]],
    b"abc",
    5,
    None,
    {"input_ids": [1]},
    [[1], 2],
    [1, [2]],
    [None],
    [1.5],
    [[1.5]],
    [True],
    [2**70],
    torch.zeros(2),
    torch.ones(2, dtype=torch.bool),
    np.array(["a"]),
    np.zeros(2),
    {1, 2},
    iter([1]),
    [[[1]]],
]


@pytest.mark.parametrize("ids", IDS)
def test_prompts_that_are_not_token_ids_are_refused(ids: Any) -> None:
    for call in (lambda: Canvas.after_prompt(ids, length=2, mask_id=0), lambda: Canvas.infill(ids, mask_id=0)):
        with pytest.raises(
            UncodeError, match=r"prompts are token ids, .*, not .*: encode texts with the model's tokenizer"
        ):
            call()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    "ids", [[np.int64(1), 2], [torch.tensor(1), 2], (1, 2), range(1, 3), np.array([1, 2], np.int32)]
)
def test_token_ids_of_every_type_are_accepted(ids: Any) -> None:
    assert Canvas.after_prompt(ids, length=np.int64(1), mask_id=np.int64(0)).tokens.tolist() == [[1, 2, 0]]
    assert Canvas.after_prompt([ids, []], length=1, mask_id=0).tokens.tolist() == [[1, 2, 0], [1, 1, 0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Canvas.after_prompt([[1]], length=2, mask_id=None),
            "mask_id must be a whole number of at least 0, not None",
        ),
        (lambda: Canvas.after_prompt([[1]], length=2, mask_id=True), "mask_id must be a whole number"),
        (lambda: Canvas.after_prompt([[1]], length=2, mask_id=2**80), "mask_id .* of 64 bits, not a number of 81 bits"),
        (lambda: Canvas.after_prompt([[1]], length=2, mask_id=0, pad_id="x"), "pad_id must be a whole number"),
        (
            lambda: Canvas.after_prompt([[1]], length=10**30, mask_id=0),
            r"length to generate must be below 2\^31",
        ),
        (lambda: Canvas.after_prompt([[1]], length="3", mask_id=0), "whole number or one per row, not '3'"),
        (lambda: Canvas([[1]], [[True]], 0, 0), "a canvas holds tensors"),
        (lambda: Canvas(torch.ones(1, 2), torch.ones(1, 1), 0, 0), "must have one shape"),
        (lambda: CANVAS.with_anchors(5), "anchors are {offset: token}"),
        (lambda: CANVAS.with_anchors({0: "x"}), "an anchor's token must be a whole number"),
        (lambda: decode(None, CANVAS, SAMPLER), "a model from uncode.load or uncode.wrap was expected, not NoneType"),
        (lambda: decode(torch.nn.Linear(1, 1), CANVAS, SAMPLER), "uncode.load or uncode.wrap was expected, not Linear"),
        (lambda: decode(TOY, torch.ones(1, 2), SAMPLER), "a Canvas was expected"),
        (lambda: decode(TOY, CANVAS, presets.confidence), r"a sampler was expected.*: call it, confidence\(...\)"),
        (lambda: decode(TOY, CANVAS, SAMPLER, ["a"]), "a seed must be a whole number"),
        (lambda: decode(TOY, CANVAS, SAMPLER, [2**70]), "a seed must be a whole number"),
        (lambda: decode(TOY, CANVAS, SAMPLER, observe=np.zeros(2)), "observe must be 'open' or 'span'"),
        (lambda: decode(TOY, CANVAS, SAMPLER, drafts="yes"), "drafts must be True or False, not 'yes'"),
        (lambda: decode(TOY, CANVAS, SAMPLER, noise=3), "noise makes a Noise of seeds and steps"),
        (lambda: generate(TOY, [1, 2], sampler=SAMPLER, length=3), "prompt 1 must be a text or messages .*, not 1"),
        (lambda: generate(TOY, [None], sampler=SAMPLER, length=3), "the prompt must be a text or messages"),
        (lambda: generate(TOY, [{"text": "x"}], sampler=SAMPLER, length=3), "the prompt must be a text or messages"),
        (lambda: generate(TOY, ["add 1 2 3"] * 2, sampler=SAMPLER, length="55"), "one per prompt, not '55'"),
        (lambda: generate(TOY, ["add 1 2 3"], sampler=SAMPLER, length=10**30), r"must be below 2\^31"),
        (lambda: generate(TOY, "add 1 2 3", sampler=SAMPLER, length=True), "length of one answer .* number, not True"),
        (lambda: generate(TOY, ["add 1 2 3"], sampler=SAMPLER, length=[True]), r"one per prompt, not \[True\]"),
        (lambda: generate(TOY, " ", sampler=SAMPLER, length=3), "the prompt is empty: to generate without a prompt"),
        (lambda: generate(TOY, ["add 1 2 3", ""], sampler=SAMPLER, length=3), "prompt 2 is empty"),
        (lambda: decode(TOY, Canvas.after_prompt([[2]], 3, mask_id=5), SAMPLER), "made with mask_id=5, .* id is 0"),
        (lambda: decode(TOY, Canvas.after_prompt([[2], [2, 3]], 3, mask_id=0), SAMPLER), "length, not of 4 and 5 tok"),
        (lambda: run(FunctionDenoiser(zeros, 0, 2**40)), "positions needs about 8.8 TB"),
        (lambda: run(FunctionDenoiser(zeros, 0, 10**15)), "positions needs more memory than any machine has: use"),
        (lambda: TRACE.replay(-1), "steps to replay must be a whole number of at least 0, not -1"),
        (lambda: TRACE.replay("x"), "steps to replay must be a whole number"),
        (lambda: TRACE.row(5), "this trace has rows 0 to 0, not 5"),
        (lambda: TRACE.row("x"), "this trace has rows 0 to 0, not 'x'"),
        (lambda: uncode.Sampler.from_dict({}, frequency=5), "frequency must be a frequency table, not 5"),
        (
            lambda: generate(TOY, "add 1 2 3", sampler=SAMPLER, length=4, stop_at_eos=[]),
            "stop_at_eos must be True or False",
        ),
        (lambda: uncode.load(5), "a model is named by a text or a path, not by 5"),
        (lambda: uncode.load("tiny", revision=5), "revision must be a text, not 5"),
        (lambda: uncode.load("tiny", device=[]), r"\[\] is no device"),
        (lambda: uncode.load("tiny", dtype=5), "5 is no dtype"),
        (lambda: uncode.wrap(5), "wrap takes a model of transformers, not int"),
        (lambda: FunctionDenoiser(5, 0, 5), "fn must be a function"),
        (lambda: FunctionDenoiser(zeros, "0", 5), "mask_id must be a whole number"),
        (lambda: FunctionDenoiser(zeros, 0, 0), "vocab_size must be a whole number of at least 1"),
        (lambda: FunctionDenoiser(zeros, 0, 5, eos_ids=3), "eos_ids must be a list of token ids, not 3"),
        (lambda: FunctionDenoiser(zeros, 0, 5, eos_ids=(9,)), r"eos_ids \(9,\) are outside"),
        (lambda: FunctionDenoiser(zeros, 0, 5, dtype="float32"), "dtype must be a torch dtype"),
        (lambda: FunctionDenoiser(zeros, 0, 5, device="gpu"), "'gpu' is no device"),
        (lambda: run(FunctionDenoiser(lambda tokens: [1.0], 0, 5)), "the function must return a tensor of logits"),
        (lambda: Guided(5, 1.0), "uncode.load or uncode.wrap was expected, not int"),
        (lambda: presets.confidence(steps=[1]), r"the option steps of the sampler 'confidence' must be .*, not \[1\]"),
        (lambda: presets.confidence(steps="five"), "the option steps of the sampler 'confidence' must be a whole"),
        (lambda: presets.eb(gamma=float("inf")), "the option gamma of the sampler 'eb' must be a number from -3e"),
        (lambda: presets.fast_dllm(cache="dul"), "the option cache of .* cannot be 'dul': did you mean 'dual'"),
        (lambda: presets.dream(alg=5), "the option alg of the sampler 'dream' cannot be 5: known"),
        (lambda: presets.llada(remasking="randm"), "remasking of .* cannot be 'randm': did you mean 'random'"),
        (lambda: legacy.remdm_release(ratio="x"), "the option ratio of remdm_release must be a number, not 'x'"),
        (lambda: uncode.log_likelihood(TOY, "abc", [2]), "prompt and answer must be lists of token ids"),
        (lambda: uncode.log_likelihood(TOY, [1.5], [2]), "a token id of prompt and answer must be a whole number"),
        (lambda: uncode.log_likelihood(5, [1], [2]), "uncode.load or uncode.wrap was expected"),
        (lambda: uncode.Trace.from_json(5), "a trace is read from text, not from 5"),
    ],
)
def test_values_of_another_type_are_one_sentence(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UncodeError, match=message) as error:
        call()
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


class Half(Denoiser):
    """A model that lacks a fact."""

    mask_id = 0


class Stranger:
    mask_id, vocab_size = 0, 5

    def open(self, rows: int, length: int) -> None: ...


def test_a_model_of_ones_own_that_lacks_a_fact() -> None:
    with pytest.raises(UncodeError, match="the model Half has no vocab_size"):
        decode(Half(), CANVAS, SAMPLER)
    with pytest.raises(UncodeError, match=r"the model Stranger must be a subclass of uncode\.core\.denoiser\.Denoiser"):
        decode(Stranger(), CANVAS, SAMPLER)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["\ud800", "add 1 \udfff", "x <mask:2> \ud800", "\ud83d alone"])
def test_half_of_a_surrogate_pair_is_no_prompt(text: str) -> None:
    tiny = uncode.load("tiny", device="cpu")
    length = None if "<mask" in text else 4
    for prompt in (text, [text]):
        with pytest.raises(
            UncodeError, match=r"half of a surrogate pair \(U\+D[8F][0-9A-F]{2}\) at character \d+: remove"
        ):
            generate(tiny, prompt, sampler=SAMPLER, length=length)
    if length:
        chat = [{"role": "user", "content": text}]
        tiny.tokenizer.chat_template = "{{ messages[0]['content'] }}"
        with pytest.raises(UncodeError, match="half of a surrogate pair"):
            generate(tiny, chat, sampler=SAMPLER, length=length)


def test_signatures_stay_for_editors() -> None:
    assert list(inspect.signature(decode).parameters) == [
        "denoiser", "canvas", "sampler", "seed", "constraint", "observe", "drafts", "noise",
    ]  # fmt: skip
    assert inspect.signature(decode).parameters["observe"].default == "open"
    assert list(inspect.signature(Canvas.after_prompt).parameters) == ["ids", "length", "mask_id", "pad_id"]
    assert inspect.signature(presets.uncode).parameters["rate"].default == 0.25
    assert next(iter(inspect.signature(FunctionDenoiser).parameters)) == "fn"
    assert decode.__doc__ and decode.__name__ == "decode"
