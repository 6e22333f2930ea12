"""Prompts, messages and texts with gaps, to rows and back."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import PreTrainedTokenizerFast

import uncode
from uncode import FunctionDenoiser, UncodeError, generate, presets
from uncode.generation.prompt import canvas_of, has_gaps, read_prompts

TEXT = "the cat sat on the mat and the dog sat on the log while cats and dogs sang songs of old 12 34 \n\t def f(x):"


def byte_level() -> PreTrainedTokenizerFast:
    """A byte-level BPE, in which a word carries the space before it, as in LLaDA and Dream."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator([TEXT] * 9, trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet))
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<eos>", mask_token="<m>")


TOKENIZER = byte_level()
MASK, EOS = TOKENIZER.mask_token_id, TOKENIZER.eos_token_id


def writes(*words: str) -> FunctionDenoiser:
    """A model that fills the masks of a row, from the left, with the tokens of some words."""
    ids = [i for word in words for i in ([EOS] if word == "<eos>" else TOKENIZER.encode(word))]

    def fn(tokens: Tensor) -> Tensor:
        logits = torch.zeros(*tokens.shape, len(TOKENIZER))
        for row in range(len(tokens)):
            masked = (tokens[row] == MASK).nonzero()[:, 0].tolist()
            for at, token in zip(masked, ids[len(ids) - len(masked) :], strict=True):
                logits[row, at, token] = 9.0
        return logits

    return FunctionDenoiser(fn, MASK, len(TOKENIZER), eos_ids=(EOS,), tokenizer=TOKENIZER)


def fill(text: str, *words: str, **settings: Any) -> str:
    return generate(writes(*words), text, sampler=presets.left_to_right(), **settings)


@pytest.mark.parametrize(
    ("text", "words", "filled"),
    [
        ("the <mask:1> sat", [" cat"], "the cat sat"),
        ("the cat<mask:1> sat", ["s"], "the cats sat"),
        ("the <mask:1> sat on the <mask:1>", [" cat", " mat"], "the cat sat on the mat"),
        ("<mask:1> cat", ["the"], "the cat"),
        ("the <m> sat", [" cat"], "the cat sat"),
        ("the <m><m>", [" cat", "s"], "the cats"),
        ("the <mask:1>", ["s"], "the s"),  # a space that was given stays, whatever the gap brings
        ("sat  <mask:1>", [" cat"], "sat  cat"),
        ("def f(x):\n    <mask:1>", [" cat"], "def f(x):\n    cat"),
        ("héllo 字 <mask:1>\n", [" cat"], "héllo 字 cat\n"),
        ("sat <mask:1><mask:3>", [" 字"], "sat 字"),  # a character over the border of two gaps
        ("the <mask:2> sat", [" cat", "<eos>"], "the cat sat"),  # an EOS token in a gap ends nothing
    ],
)
def test_gaps_are_filled_and_the_rest_is_untouched(text: str, words: list[str], filled: str) -> None:
    assert fill(text, *words) == filled


def test_an_answer_ends_at_its_first_eos() -> None:
    assert fill("the cat", " sat", "<eos>", " on", " the", length=4) == " sat"


def test_gaps_and_answers_in_one_batch_with_lengths_of_their_own() -> None:
    model = uncode.load("toy")
    sampler = presets.left_to_right()
    texts = ["add 1 2 3", "add 1 2 3 first <mask:5> , then 3 <mask:2> = 6 .", "add 4 4 4"]
    with pytest.raises(UncodeError, match="rows of equal length"):  # the toy model has no way to see padding
        generate(model, texts, sampler=sampler, length=8)
    rows = read_prompts(model, texts, [8, None, 3])
    canvas = canvas_of(model, rows)
    assert canvas.masked.sum(-1).tolist() == [8, 7, 3] and [row.is_continued for row in rows] == [True, False, True]


def test_the_toy_model_fills_sums() -> None:
    model = uncode.load("toy")
    text = "add 3 4 5 first 3 + 4 = <mask:1> , then <mask:3> = <mask:2>"
    assert generate(model, text, sampler=presets.confidence()) == "add 3 4 5 first 3 + 4 = 7 , then 7 + 5 = 12 ."


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("add 3 4 5 first 3 + 4 = <mask:?> , then 7 + 5 = 12 .", [1]),
        ("add 3 4 5 first 3 + 4 = 7 , then <mask:?> = 12 .", [3]),
        ("add 3 4 5 first 3 + 4 = <mask:?> , then <mask:?> = 12", [1, 3]),
        ("add 3 4 5 first 3 <mask:?><mask:1> = 7 , then <mask:1> + 5 = 12 .", [2, 1]),  # adjacent gaps are one
    ],
)
def test_the_model_chooses_the_size_of_a_gap(text: str, sizes: list[int]) -> None:
    model = uncode.load("toy")
    (row,) = read_prompts(model, [text], None)
    assert [stop - start for start, stop in row.gaps] == sizes
    whole = "add 3 4 5 first 3 + 4 = 7 , then 7 + 5 = 12 ."
    assert whole.startswith(generate(model, text, sampler=presets.confidence()).rstrip(" ."))


def test_a_gap_without_a_size_is_not_filled_with_blanks_or_an_end() -> None:
    """The model is surest of a blank, and of an EOS token, at sizes at which it proposes nothing else."""
    certain, blank, cat = 9.0, TOKENIZER.encode(" ")[0], TOKENIZER.encode(" cat")
    assert len(cat) == 1

    def fn(tokens: Tensor) -> Tensor:
        logits = torch.zeros(*tokens.shape, len(TOKENIZER))
        masked = (tokens[0] == MASK).nonzero()[:, 0].tolist()
        wanted = {1: [blank], 2: [blank, *cat]}.get(len(masked), [*cat] * (len(masked) - 1) + [EOS])
        for at, token in zip(masked, wanted, strict=True):
            logits[0, at, token] = certain if len(masked) != 2 else certain - 3
        return logits

    model = FunctionDenoiser(fn, MASK, len(TOKENIZER), eos_ids=(EOS,), tokenizer=TOKENIZER)
    (row,) = read_prompts(model, ["the <mask:?>"], None)
    assert row.gaps[0][1] - row.gaps[0][0] == 2


def test_a_gap_filled_with_nothing_visible_says_how_many_tokens_it_needs() -> None:
    model = uncode.load("tiny", device="cpu")
    text = "Mia has 3 shells. Cleo has 6 more.\nCleo has <mask:1> + 6 = 9 shells."
    with pytest.warns(UserWarning, match=r"gap 1 \(1 token\) was filled with nothing visible: a number .* 2 tokens"):
        generate(model, text, sampler="confidence")


def test_a_canvas_from_texts() -> None:
    model = uncode.load("toy")
    canvas = uncode.canvas_from_texts(model, ["add 1 2 3", "add 4 5 6"], length=24)
    prompts = [model.tokenizer.encode(text) for text in ("add 1 2 3", "add 4 5 6")]
    assert canvas.tokens.equal(uncode.Canvas.after_prompt(prompts, length=24, mask_id=model.mask_id).tokens)
    trace = uncode.decode(model, canvas, "left_to_right")
    assert trace.texts(model.tokenizer)[0].endswith("so the answer is 6 .")
    gap = uncode.canvas_from_texts(model, "add 1 2 3 first 1 + 2 = <mask:?> , then")
    assert gap.masked.sum() == 1
    with pytest.raises(UncodeError, match="canvas_from_texts has no option 'lenght'"):
        uncode.canvas_from_texts(model, "add 1 2 3", lenght=3)  # type: ignore[call-arg]


def test_rows_and_texts_of_a_trace_have_no_padding() -> None:
    model = writes(" sat", "<eos>", " on", " the")
    model.sees_padding = True
    model.fn = lambda tokens, valid, fn=model.fn: fn(tokens)
    texts = ["the cat", "the cat and the dog", "the <mask:1> sat<mask:1>"]
    canvas = uncode.canvas_from_texts(model, texts, length=[4, 4, None])
    trace = uncode.decode(model, canvas, presets.left_to_right())
    assert [row.tolist() for row in trace.rows] == [
        trace.row(n)["prompt_ids"] + trace.row(n)["generated_ids"] for n in range(3)
    ]
    assert trace.texts(TOKENIZER) == [" sat", " sat", " on sat the"]


@pytest.mark.parametrize(
    ("prompts", "length", "message"),
    [
        (["the <mask:??>"], None, r"is no gap: write <mask:N> .* or <mask:\?>"),
        (["the <mask:2>"], 5, "leave the length out"),
        (["the <mask:2>", "cat"], [5, 5], "leave the length out"),
        (["the cat", "sat"], [5], "1 length for 2 prompts: give one for each"),
        (["the cat"], 0, "at least 1"),
        (["the <mask:0>"], None, "'<mask:0>' is no gap: write <mask:N> with a whole number N from 1 to 100000"),
        (["the <mask:99999999999999999999>"], None, "is no gap"),
        (["the <mask:-3>"], None, "'<mask:-3>' is no gap"),
        (["the <mask:a> cat"], None, "'<mask:a>' is no gap"),
        (["the <mask:> cat"], None, "'<mask:>' is no gap"),
        (["the <mask: 3> cat"], None, "'<mask: 3>' is no gap"),
        (["the <mask:٣> cat"], None, "is no gap"),
        ([], 5, "no prompt"),
        ([[{"role": "user", "content": "the <m>"}]], 5, "contains the mask token"),
    ],
)
def test_mistakes_are_one_sentence(prompts: list[Any], length: Any, message: str) -> None:
    TOKENIZER.chat_template = "{{ messages[0]['content'] }}"
    with pytest.raises(UncodeError, match=message):
        read_prompts(writes("the"), prompts, length)


def test_markers_in_messages_are_text() -> None:
    TOKENIZER.chat_template = "{{ messages[0]['content'] }}"
    (row,) = read_prompts(writes("the"), [[{"role": "user", "content": "what is <mask:3>?"}]], 4)
    assert row.is_continued and row.ids.count(MASK) == 4


def test_one_prompt_has_one_length() -> None:
    with pytest.raises(UncodeError, match="length of one answer must be a whole number"):
        generate(writes("the"), "the", sampler=presets.confidence(), length=[3])


def test_what_counts_as_a_gap() -> None:
    model = writes("the")
    assert has_gaps(model, "a <mask:12> b") and has_gaps(model, "a <m> b")
    assert not has_gaps(model, "a <mask> b") and has_gaps(model, "<mask:x>"), (
        "a misspelt gap is refused, not read as text"
    )


def test_a_sampler_and_a_seed_for_each_prompt() -> None:
    model, prompts = uncode.load("toy"), ["add 1 2 3", "add 4 5 6"]
    samplers = [presets.left_to_right(), presets.uniform()]
    together = generate(model, prompts, sampler=samplers, seed=[7, 8], length=24)
    for row in range(2):
        assert together[row] == generate(model, prompts[row], sampler=samplers[row], seed=[7, 8][row], length=24)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: generate(m, "the", sampler=0.5, length=3), "a sampler was expected"),
        (lambda m: generate("bert", "the", sampler=presets.confidence(), length=3), "uncode.load or uncode.wrap"),
        (lambda m: generate(m, 5, sampler=presets.confidence(), length=3), "a prompt is a text"),
        (lambda m: generate(m, "the", sampler=presets.confidence(), length=6.5), "must be a whole number, not 6.5"),
        (lambda m: uncode.decode(m, [[1, 2]], presets.confidence()), "a Canvas was expected"),
        (
            lambda m: uncode.Trace.load("nowhere.jsonl"),
            "the file 'nowhere.jsonl' does not exist: give the path of a trace",
        ),
    ],
)
def test_arguments_of_the_wrong_type_are_one_sentence(call: Any, message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        call(writes("the"))


def test_a_trace_is_read_back(tmp_path: Any) -> None:
    model = uncode.load("toy")
    canvas = uncode.Canvas.after_prompt([model.tokenizer.encode("add 1 2 3")], length=24, mask_id=model.mask_id)
    trace = uncode.decode(model, canvas, presets.confidence())
    trace.save(tmp_path / "t.jsonl")
    again = uncode.Trace.load(tmp_path / "t.jsonl")
    assert again.to_json() == trace.to_json() and repr(again) == "Trace(1 row of 24 tokens, 24 forwards, confidence)"
