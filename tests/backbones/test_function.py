from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
import torch

import uncode
from uncode import Canvas, FunctionDenoiser, UncodeError, decode, generate, presets


def zeros(tokens: torch.Tensor) -> torch.Tensor:
    return torch.zeros(*tokens.shape, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FunctionDenoiser(zeros, mask_id=5, vocab_size=5), "outside the vocabulary"),
        (
            lambda: decode(
                FunctionDenoiser(zeros, 0, 5),
                Canvas.after_prompt([[1], [2, 3]], length=2, mask_id=0),
                presets.confidence(),
            ),
            "rows of equal length",
        ),
        (
            lambda: decode(
                FunctionDenoiser(zeros, 0, 5),
                Canvas.after_prompt([[1]], length=4, mask_id=0),
                presets.fast_dllm(cache="dual", block_length=2),
            ),
            "a sampler without a cache",
        ),
        (
            lambda: decode(
                FunctionDenoiser(zeros, 0, 6), Canvas.after_prompt([[1]], length=4, mask_id=0), presets.confidence()
            ),
            r"shape \(1, 5, 5\), expected \(1, 5, 6\)",
        ),
        (
            lambda: generate(FunctionDenoiser(zeros, 0, 5), "hi", sampler=presets.confidence(), length=3),
            "has no tokenizer",
        ),
        (lambda: generate(uncode.load("toy"), [], sampler=presets.confidence(), length=3), "no prompt"),
        (lambda: uncode.load("tooy"), "no model is named 'tooy': did you mean toy"),
        (lambda: uncode.load("toy", device="cpu"), "takes no options"),
        (
            lambda: generate(
                uncode.load("toy"), [{"role": "user", "content": "hi"}], sampler=presets.confidence(), length=3
            ),
            "no chat template",
        ),
    ],
)
def test_mistakes_are_one_sentence(call: object, message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        call()  # type: ignore[operator]


def padded(tokens: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    return zeros(tokens)


def test_a_function_of_other_arguments_is_refused() -> None:
    with pytest.raises(UncodeError, match=r"^fn takes \(tokens, valid\), .* alone: pass `padding=True`\.$"):
        FunctionDenoiser(padded, 0, 5)
    with pytest.raises(UncodeError, match=r"^fn takes \(tokens\), .*, or leave `padding=True` out\.$"):
        FunctionDenoiser(zeros, 0, 5, padding=True)


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize(
    "fn",
    [
        lambda tokens, valid=None: zeros(tokens),
        lambda *args: zeros(args[0]),
        functools.wraps(padded)(lambda *args: zeros(args[0])),
        functools.wraps(zeros)(lambda *args: zeros(args[0])),
        torch.no_grad()(lambda tokens, valid=None: zeros(tokens)),
        torch.nn.Embedding(5, 5),
        torch.sin,  # its signature is unknown
    ],
)
def test_a_function_that_may_fit_is_taken(fn: Callable[..., torch.Tensor], padding: bool) -> None:
    assert FunctionDenoiser(fn, 0, 5, padding=padding).sees_padding is padding


def test_the_mask_is_never_proposed() -> None:
    def eager(tokens: torch.Tensor) -> torch.Tensor:
        logits = zeros(tokens)
        logits[..., 0] = 99.0
        return logits

    trace = decode(FunctionDenoiser(eager, 0, 5), Canvas.after_prompt([[1]], length=4, mask_id=0), presets.confidence())
    assert trace.generated.tolist() == [[1, 1, 1, 1]]


def test_generate_takes_prompts_messages_and_lists() -> None:
    model, sampler = uncode.load("toy"), presets.left_to_right()
    answer = generate(model, "add 2 3 4", sampler=sampler, length=24)
    assert answer == "first 2 + 3 = 5 , then 5 + 4 = 9 . so the answer is 9 ."
    assert generate(model, ["add 2 3 4", "add 1 1 1"], sampler=sampler, length=24) == [
        answer,
        "first 1 + 1 = 2 , then 2 + 1 = 3 . so the answer is 3 .",
    ]
    whole = generate(model, ["add 2 3 4"], sampler=sampler, length=24, stop_at_eos=False)
    assert whole == [answer]


def test_messages_go_through_the_chat_template() -> None:
    model = uncode.load("toy")
    seen = []

    def template(messages: object, add_generation_prompt: bool, tokenize: bool) -> str:
        seen.append((messages, add_generation_prompt, tokenize))
        return "add 2 3 4"

    model.tokenizer.apply_chat_template = template
    chat = [{"role": "user", "content": "2 + 3 + 4?"}]
    assert generate(model, chat, sampler=presets.left_to_right(), length=24).endswith("9 .")
    assert seen == [(chat, True, False)]
    assert isinstance(generate(model, [chat, chat], sampler=presets.left_to_right(), length=24), list)


def test_the_toy_model_carries_its_own_table() -> None:
    model = uncode.load("toy")
    table = model.frequency  # type: ignore[attr-defined]
    assert len(table) == model.vocab_size and table.special_ids == (0, 1)
    text = generate(model, "add 2 3 4", sampler=presets.uncode(frequency=table, special="neutral"), length=24)
    assert text == "first 2 + 3 = 5 , then 5 + 4 = 9 . so the answer is 9 ."


def test_order_matters_on_the_toy_model() -> None:
    """Confidence writes the EOS tokens first and answers without reasoning; a positional prior reasons first."""
    model = uncode.load("toy")
    problems = [(a, b, c) for a in (1, 9) for b in range(1, 10) for c in (1, 8)]
    prompts = [f"add {a} {b} {c}" for a, b, c in problems]

    def right(sampler: uncode.Sampler) -> int:
        answers = generate(model, prompts, sampler=sampler, length=24)
        return sum(text.split()[-2] == str(sum(abc)) for text, abc in zip(answers, problems, strict=True))

    calibrated = presets.uncode(frequency=model.frequency, special="neutral")  # type: ignore[attr-defined]
    assert right(calibrated) == len(problems) > right(presets.confidence()) + 5
