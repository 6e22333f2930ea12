"""The flows of the official client: chat, texts, streams, choices, log probabilities, stop strings, seeds, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import openai
import pytest
import torch

import uncode
from tests.covering import one_in
from tests.server.running import STORY, TINY, QuickModel, Running, running
from uncode.server.api.replies import TextReply
from uncode.server.api.sampler_list import sampler_list
from uncode.server.decoding.reader import Update
from uncode.server.decoding.samplers import Samplers
from uncode.testing.hash_model import HashSession


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.fixture
def client(server: Running) -> Iterator[openai.OpenAI]:
    with server.openai() as found:
        yield found


def alone(prompt: str, length: int, seed: int = 0, sampler: Any = "uncode") -> str:
    return uncode.generate(QuickModel(), prompt, sampler=sampler, length=length, seed=seed)


def test_tiny_solves_its_story() -> None:
    """The one test with a real network: the answer of the README."""
    with running(TINY()) as server, server.openai() as client:
        chunks = client.chat.completions.create(
            model="tiny",
            messages=[{"role": "user", "content": STORY}],
            max_tokens=96,
            stream=True,
            stream_options={"include_usage": True},
        )
        *parts, end, last = chunks
        text = "".join(chunk.choices[0].delta.content or "" for chunk in parts)
    assert end.choices[0].finish_reason == "stop" and last.usage is not None
    assert last.usage.completion_tokens < last.usage.completion_tokens_details.forwards < 96  # type: ignore
    assert text.startswith(" Cleo has 3 + 6 = 9 shells.") and text.endswith("#### 36")


def test_models(client: openai.OpenAI) -> None:
    (model,) = client.models.list().data
    assert model.id == "tiny" and client.models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError, match="there is no model 'tini' here: did you mean 'tiny'"):
        client.models.retrieve("tini")


def test_a_completion_is_what_generate_gives(client: openai.OpenAI) -> None:
    found = client.completions.create(model="tiny", prompt=STORY, max_tokens=60)
    (choice,) = found.choices
    assert choice.text == alone(STORY, 60)
    ids = QuickModel().tokenizer.encode(STORY, add_special_tokens=False)
    usage = found.usage
    assert usage is not None and usage.prompt_tokens == len(ids)
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.completion_tokens == usage.completion_tokens_details.forwards == 60  # type: ignore
    short = client.completions.create(model="tiny", prompt=STORY, max_tokens=7)
    assert short.choices[0].finish_reason == "length" and short.usage.completion_tokens == 7  # type: ignore


def test_a_chat_without_a_template_is_its_texts(client: openai.OpenAI) -> None:
    found = client.chat.completions.create(
        model="tiny",
        messages=[{"role": "user", "content": [{"type": "text", "text": STORY}]}],
        max_completion_tokens=60,
    )
    message = found.choices[0].message
    assert (message.role, message.content) == ("assistant", alone(STORY, 60))
    two = client.chat.completions.create(
        model="tiny",
        messages=[{"role": "system", "content": "Add."}, {"role": "user", "content": STORY}],
        max_tokens=9,
    )
    assert two.choices[0].message.content == alone(f"Add.\n\n{STORY}", 9)


def test_a_streamed_chat(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="tiny",
            messages=[{"role": "user", "content": STORY}],
            max_tokens=60,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == alone(STORY, 60) and sum(map(bool, texts)) > 5
    assert chunks[-2].choices[0].finish_reason == "length" and chunks[-2].choices[0].delta.content is None
    assert chunks[-1].choices == [] and chunks[-1].usage is not None and chunks[-1].usage.completion_tokens > 20
    assert len({chunk.id for chunk in chunks}) == 1


def test_choices_have_seeds_of_their_own(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "tiny", "prompt": [STORY, "Question: 2 + 2?\nAnswer:"], "max_tokens": 8}
    found = client.completions.create(**asked, n=2, temperature=1.0, seed=11)
    sampler = uncode.presets.uncode(frequency=QuickModel().frequency, temperature=1.0)
    prompts = [prompt for prompt in asked["prompt"] for _ in range(2)]
    wanted = [alone(prompt, 8, 11 + number, sampler) for number, prompt in enumerate(prompts)]
    assert [choice.text for choice in found.choices] == wanted and len(set(wanted)) == 4
    streamed = [""] * 4
    for chunk in client.completions.create(**asked, n=2, temperature=1.0, seed=11, stream=True):
        for choice in chunk.choices:
            streamed[choice.index] += choice.text
    assert streamed == wanted


def test_an_answer_without_a_seed_can_be_made_again(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "tiny", "prompt": STORY, "max_tokens": 8, "temperature": 1.5}
    first, second = client.completions.create(**asked), client.completions.create(**asked)
    assert first.seed != second.seed  # type: ignore
    again = client.completions.create(**asked, seed=first.seed)  # type: ignore
    assert again.choices[0].text == first.choices[0].text


def test_stop_strings(client: openai.OpenAI, server: Running) -> None:
    whole = alone(STORY, 60)
    stop = whole[20:23]
    cut = whole[: whole.index(stop)]
    server.wait_until_idle()
    before = server.metric("uncode_batch_rows_sum")
    found = client.completions.create(model="tiny", prompt=STORY, max_tokens=60, stop=[stop, "never"])
    assert found.choices[0].text == cut and found.choices[0].finish_reason == "stop"
    forwards = found.usage.completion_tokens_details.forwards  # type: ignore
    assert forwards < 50  # the row ended with the stop string
    server.wait_until_idle()
    assert server.metric("uncode_batch_rows_sum") - before == forwards
    chunks = client.completions.create(model="tiny", prompt=STORY, max_tokens=60, stop=stop, stream=True)
    texts = [chunk.choices[0].text for chunk in chunks]
    assert "".join(texts) == cut


def test_log_probabilities_are_those_at_the_commit(client: openai.OpenAI) -> None:
    model = QuickModel()
    ids = model.tokenizer.encode(STORY, add_special_tokens=False)
    canvas = uncode.Canvas.after_prompt([ids], length=9, mask_id=model.mask_id)
    trace = uncode.decode(model, canvas, uncode.presets.uncode(frequency=model.frequency), 0)
    wanted = trace.logp[0].tolist()
    chat = client.chat.completions.create(
        model="tiny", messages=[{"role": "user", "content": STORY}], max_tokens=9, logprobs=True, top_logprobs=1
    )
    logs = chat.choices[0].logprobs
    assert logs is not None and logs.content is not None
    assert [log.logprob for log in logs.content] == pytest.approx(wanted, abs=1e-6)
    assert "".join(log.token for log in logs.content) == chat.choices[0].message.content
    assert [log.top_logprobs[0].logprob for log in logs.content] == pytest.approx(wanted, abs=1e-6)
    found, offsets = [], []
    for chunk in client.completions.create(model="tiny", prompt=STORY, max_tokens=9, logprobs=0, stream=True):
        if chunk.choices[0].logprobs is not None:
            found += chunk.choices[0].logprobs.token_logprobs or []
            offsets += chunk.choices[0].logprobs.text_offset or []
    assert found == pytest.approx(wanted, abs=1e-6) and offsets == sorted(offsets)
    options = {"draft_steps": 2, "sampler": "left_to_right"}
    with pytest.raises(openai.BadRequestError, match="need draft_steps=1"):
        client.completions.create(model="tiny", prompt=STORY, max_tokens=9, logprobs=1, extra_body=options)


def test_the_most_probable_tokens_at_the_commit(client: openai.OpenAI) -> None:
    """Left to right, they are those of the model's logits for the text before."""
    model, length = QuickModel(), 6
    ids = model.tokenizer.encode(STORY, add_special_tokens=False)
    seen, plain = list[torch.Tensor](), HashSession.logits
    with patch.object(HashSession, "logits", lambda *given: seen.append(plain(*given)) or seen[-1]):
        uncode.decode(model, uncode.Canvas.after_prompt([ids], length, model.mask_id), "left_to_right")
    wanted = list[list[tuple[str, float]]]()
    for offset, logits in enumerate(seen):
        found, likely = logits[0, offset].log_softmax(-1).topk(4)
        wanted.append([*zip(map(model.tokenizer.decode, likely.tolist()), found.tolist(), strict=True)])
    asked: dict[str, Any] = {"model": "tiny", "max_tokens": length, "extra_body": {"sampler": "left_to_right"}}
    chat = client.chat.completions.create(
        messages=[{"role": "user", "content": STORY}], logprobs=True, top_logprobs=4, **asked
    )
    assert chat.choices[0].logprobs is not None and chat.choices[0].logprobs.content is not None
    logs = [[(one.token, one.logprob) for one in log.top_logprobs] for log in chat.choices[0].logprobs.content]
    assert [[text for text, _ in each] for each in logs] == [[text for text, _ in each] for each in wanted]
    assert [p for each in logs for _, p in each] == pytest.approx([p for each in wanted for _, p in each], abs=1e-4)
    whole = client.completions.create(prompt=STORY, logprobs=2, **asked).choices[0].logprobs
    streamed = [
        one
        for chunk in client.completions.create(prompt=STORY, logprobs=2, stream=True, **asked)
        for one in (chunk.choices[0].logprobs.top_logprobs if chunk.choices[0].logprobs else None) or []
    ]
    assert whole is not None and whole.top_logprobs == streamed
    assert [max(each.values()) for each in streamed] == pytest.approx([each[0][1] for each in wanted], abs=1e-4)
    drawn = client.completions.create(prompt=STORY, logprobs=3, temperature=1.5, seed=1, **asked).choices[0].logprobs
    assert drawn is not None and drawn.top_logprobs is not None and drawn.tokens is not None
    assert all(
        3 <= len(each) <= 4 and text in each for each, text in zip(drawn.top_logprobs, drawn.tokens, strict=True)
    )


def test_penalties_and_biases_are_those_of_decode(client: openai.OpenAI) -> None:
    """One batch has all four; each is its decode alone, and an answer says how to get it again."""
    given: dict[str, Any] = {"presence_penalty": -2.0, "frequency_penalty": -2.0}
    space = QuickModel().tokenizer.encode(STORY, add_special_tokens=False)[1]
    asked: list[dict[str, Any]] = [
        {},
        given,
        {"logit_bias": {str(space): 4}},
        {"extra_body": {"repetition_penalty": 1.5, "min_p": 0.2}, "temperature": 1},
    ]
    samplers = [
        uncode.presets.uncode(frequency=QuickModel().frequency, **options)
        for options in ({}, given, {}, {"repetition_penalty": 1.5, "min_p": 0.2, "temperature": 1.0})
    ]
    samplers[2] = samplers[2].biasing({space: 4.0})
    with ThreadPoolExecutor(4) as pool:
        calls = [
            partial(client.completions.create, model="tiny", prompt=STORY, max_tokens=24, seed=3, **one)
            for one in asked
        ]
        found = list(pool.map(lambda call: call(), calls))
    texts = [one.choices[0].text for one in found]
    assert texts == [alone(STORY, 24, 3, sampler=sampler) for sampler in samplers]
    assert len(set(texts)) == 4
    recipe = found[2].model_extra["sampler_options"]  # type: ignore
    assert recipe == {"logit_bias": {str(space): 4}}
    again = client.completions.create(model="tiny", prompt=STORY, max_tokens=24, seed=3, extra_body=recipe)
    assert again.choices[0].text == texts[2]


def test_samplers_by_name_and_as_data(client: openai.OpenAI) -> None:
    sampler = uncode.presets.semi_ar(blocks=3, cache="dual")
    wanted = alone(STORY, 24, sampler=sampler)
    for options in ({"sampler": "semi_ar", "blocks": 3, "cache": "dual"}, {"sampler": sampler.to_dict()}):
        found = client.completions.create(model="tiny", prompt=STORY, max_tokens=24, extra_body=options)
        assert found.choices[0].text == wanted
        assert {"sampler": found.sampler, **found.sampler_options} == options  # type: ignore
    table = QuickModel().frequency
    data = uncode.presets.uncode(frequency=table, rate=0.1).to_dict()
    wanted = alone(STORY, 24, sampler=uncode.presets.uncode(frequency=table, rate=0.1))
    for options in ({"rate": 0.1}, {"sampler": data}, {"sampler": "uncode", "rate": 0.1}):
        found = client.completions.create(model="tiny", prompt=STORY, max_tokens=24, extra_body=options)
        assert found.choices[0].text == wanted
    own = client.completions.create(model="tiny", prompt=STORY, max_tokens=24, extra_body={"sampler": "story"})
    assert own.choices[0].text == alone(STORY, 24, sampler="story")


def repeated(server: Running, answer: dict[str, Any], **body: Any) -> dict[str, Any]:
    """Ask again with what an answer says of its sampler and its seed."""
    options = {"sampler": answer["sampler"], "seed": answer["seed"], **answer["sampler_options"]}
    return dict(server.post("/v1/completions", **body, **options).json())


def sampler_options() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every sampler that a server lists, with other choices and another threshold than its own."""
    for one in sampler_list(Samplers(QuickModel(), "uncode", {})):
        options = {option["name"]: option["choices"][-1] for option in one["options"] if "choices" in option}
        if one["id"] == "prophet":  # it reads the logits of the whole span
            options["cache"] = "prefix"
        if one["id"] in ("edit", "core", "legacy.linear_position", "legacy.remdm_release"):
            options["cache"] = "dual"  # they read committed positions, which a window cache leaves out
        numbers = {option["name"]: 0.4 for option in one["options"] if option["name"] == "threshold"}
        yield one["id"], options | numbers | {"top_p": 0.9}


@pytest.mark.parametrize(("sampler", "options"), one_in(3, sampler_options()))
def test_an_answer_makes_itself_again(server: Running, sampler: str, options: dict[str, Any]) -> None:
    """On a server with another default too. Every third sampler, and all under `make verify`."""
    asked = {"prompt": STORY, "max_tokens": 16}
    first = server.post("/v1/completions", **asked, sampler=sampler, **options).json()
    assert (first["sampler"], first["sampler_options"]) == (sampler, options)
    again = repeated(server, first, **asked)
    assert again["choices"] == first["choices"] and again["seed"] == first["seed"]


@pytest.mark.parametrize(
    ("default", "options"),
    [
        ("uncode", {}),
        ("legacy.llada_eos", {"steps": None, "temperature": 0.8}),
        ("fast_dllm", {"threshold": 0.3, "cache": "dual"}),
        ("file.toml", {}),
    ],
)
def test_the_default_sampler_has_its_options_in_the_answer(
    default: str, options: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / default
    if file.suffix == ".toml":
        uncode.presets.margin(steps=5).save(file)
    asked = {"prompt": STORY, "max_tokens": 16, "top_k": 5}
    with running(sampler=str(file) if file.is_file() else default, options=options) as server:
        first = server.post("/v1/completions", **asked).json()
        again = repeated(server, first, prompt=STORY, max_tokens=16)
        path = server.post("/v1/completions", **asked, sampler=str(file))
    assert first["sampler"] == default and again["choices"] == first["choices"]
    assert first["sampler_options"]["top_k"] == 5 and path.status_code == 400, "a client names no file"


def test_a_stream_says_once_what_makes_it_again(server: Running) -> None:
    data = uncode.presets.semi_ar(blocks=3).to_dict()
    asked = {"prompt": STORY, "max_tokens": 9, "stream": True, "n": 2}
    for options in ({"sampler": data}, {"sampler": data, "commits": True}, {"sampler": "fast_dllm", "threshold": 0.5}):
        lines = server.post("/v1/completions", **asked, **options).text.splitlines()
        first, *rest = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        assert first["sampler"] == options["sampler"] and not any("sampler" in chunk for chunk in rest)
        whole = repeated(server, first, prompt=STORY, max_tokens=9)["choices"][0]["text"]
        texts = [chunk["choices"][0]["text"] for chunk in [first, *rest] if chunk["choices"][0]["index"] == 0]
        assert "".join(texts) == whole


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tempreature": 1}, "unknown field 'tempreature': did you mean 'temperature'?"),
        ({"messages": []}, "unknown field 'messages': see /docs."),
        ({"sampler": "confidense"}, "no sampler is named 'confidense': did you mean 'confidence'?"),
        ({"sampler": "confidence", "rate": 0.2}, "the sampler 'confidence' has no option 'rate'"),
        ({"sampler": "/etc/passwd.toml"}, "no sampler is named '/etc/passwd.toml'"),
        ({"sampler": "story", "rate": 0.2}, "the sampler 'story' is complete"),
        ({"sampler": {"policy": {"score": {"piece": "Confidense"}}}}, "no score is named 'Confidense': did you mean"),
        ({"sampler": {"polciy": {}}}, "Sampler has no setting 'polciy': did you mean 'policy'?"),
        ({"rate": -1}, "the option rate of the sampler 'uncode' must be at least 0"),
        ({"presence_penalty": 2.5}, "presence_penalty of the sampler 'uncode' must be from -2 to 2, not 2.5."),
        ({"repetition_penalty": 0}, "repetition_penalty of the sampler 'uncode' must be above 0, not 0"),
        ({"min_p": 1.5}, "min_p of the sampler 'uncode' must be from 0 to 1, not 1.5."),
        ({"min_p": -0.5}, "min_p is wrong: "),
        ({"logit_bias": {"05": 1}}, "send at most 1024 token ids, each with a number from -100 to 100, not {'05': 1}."),
        ({"logit_bias": {"5": 101}}, "each with a number from -100 to 100, not {'5': 101}."),
        ({"logit_bias": [5]}, "logit_bias is wrong: send at most 1024 token ids"),
        ({"logit_bias": {"70000": 1}}, "a bias of token 70000 means nothing to this model"),
        ({"best_of": 3}, "best_of cannot be honoured: leave it out, or send n."),
        ({"echo": True, "logprobs": 0}, "echo goes with a plain answer: leave out logprobs."),
        ({"min_tokens": 4}, "min_tokens cannot be honoured"),
        ({"top_k": -2}, "top_k is wrong"),
        ({"temperature": 3}, "temperature is wrong"),
        ({"n": 0}, "n is wrong"),
        ({"n": 100}, "100 choices are too many"),
        ({"max_tokens": 4, "max_completion_tokens": 5}, "max_tokens is 4 and max_completion_tokens 5"),
        ({"max_tokens": 5000}, "5000 tokens are too many"),
        ({"max_tokens": 190}, "exceed the context of 192"),
        ({"stop": list("abcde")}, "stop has too many items: send at most 4."),
        ({"commits": True}, "commits needs a streamed answer"),
        ({"stream_options": {"include_usage": True}}, "stream_options needs a streamed answer"),
        ({"prompt": "a <|mask|> b"}, "contains the mask token"),
        ({"prompt": [5, 700000]}, "token id 700000 is not the model's"),
        ({"prompt": ""}, "the prompt is empty"),
        ({"model": "gpt"}, "there is no model 'gpt' here"),
    ],
)
def test_what_cannot_be_honoured_is_refused(client: openai.OpenAI, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(openai.APIStatusError) as raised:
        client.completions.create(**({"model": "tiny", "prompt": STORY} | {"extra_body": options}))
    assert raised.value.status_code in (400, 404)
    assert set(raised.value.body) == {"message", "type", "param", "code"}  # type: ignore
    assert sentence in raised.value.body["message"]  # type: ignore


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"sampler": "fast_dllm", "threshold": 2}, "threshold"),
        ({"sampler": "confidence", "rate": 0.2}, "rate"),
        ({"sampler": "story", "rate": 0.2}, "rate"),
        ({"sampler": uncode.presets.margin().to_dict(), "block_length": 0}, "block_length"),
        ({"sampler": "credit", "temperature": 0.5}, "temperature"),
        ({"sampler": "semi_ar", "blocks": 3, "block_length": 4}, "block_length"),
        ({"sampler": "confidense", "steps": 3}, "sampler"),
        ({"sampler": {"cache": {"piece": "None"}}, "cache": "none"}, "sampler"),
    ],
)
def test_a_wrong_option_of_a_sampler_is_named(server: Running, options: dict[str, Any], place: str) -> None:
    refused = server.post("/v1/completions", prompt=STORY, **options)
    assert refused.status_code == 400 and refused.json()["error"]["param"] == place, refused.text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"tools": [{"type": "function"}]},
            "tools cannot be honoured: tools are not supported; leave it out, or send [].",
        ),
        ({"tool_choice": {"type": "function"}}, "tool_choice cannot be honoured: tools are not supported"),
        ({"functions": [{"name": "f"}]}, "functions cannot be honoured: tools are not supported"),
        ({"messages": [{"role": "tool", "content": "5"}]}, "messages[0] cannot be honoured: tools are not supported"),
        (
            {"messages": [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}]},
            "messages[0].tool_calls cannot be honoured: tools are not supported",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[0].content[0] cannot be honoured: images are not supported; send text.",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]},
            "messages[0].content[0] cannot be honoured: sounds are not supported; send text.",
        ),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content is wrong"),
    ],
)
def test_tools_and_images_are_refused_by_name(server: Running, options: dict[str, Any], sentence: str) -> None:
    refused = server.post("/v1/chat/completions", **({"messages": [{"role": "user", "content": "x"}]} | options))
    assert refused.status_code == 400 and sentence in refused.json()["error"]["message"], refused.text


def test_what_clients_send_without_meaning_it_is_accepted(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "tiny", "max_tokens": 4, "seed": 0}
    turns: list[Any] = [{"role": "user", "content": "1 + 1 ="}, {"role": "assistant", "content": ""}]
    plain = client.chat.completions.create(messages=turns, **asked)
    turns = [{"role": "user", "content": "1 + 1 =", "name": "eve"}, {"role": "assistant", "content": None}]
    extra = {"top_k": -1, "min_tokens": 0, "tool_choice": "auto"}
    other = client.chat.completions.create(messages=turns, metadata={"run": "7"}, extra_body=extra, **asked)
    assert other.choices[0].message.content == plain.choices[0].message.content
    two = client.completions.create(prompt="1 + 1 =", n=2, best_of=2, extra_body={"top_k": 0}, **asked)
    assert len(two.choices) == 2


def test_echo(client: openai.OpenAI, server: Running) -> None:
    asked: dict[str, Any] = {"model": "tiny", "max_tokens": 4, "seed": 0}
    plain = client.completions.create(prompt=STORY, **asked).choices[0].text
    assert client.completions.create(prompt=STORY, echo=True, **asked).choices[0].text == STORY + plain
    parts = client.completions.create(prompt=STORY, echo=True, stream=True, **asked)
    assert "".join(part.choices[0].text for part in parts) == STORY + plain
    ids = server.post("/tokenize", prompt=STORY).json()["tokens"]
    two = client.completions.create(prompt=[ids, ids], echo=True, **asked).choices
    assert two[0].text == STORY + plain and two[1].text.startswith(STORY)


def test_stop_token_ids_and_ignore_eos() -> None:
    """A text ends before a token that ends it, and a row that ignores EOS fills all of its masks."""
    model = QuickModel()
    ids = uncode.decode(model, uncode.canvas_from_texts(model, STORY, length=24), "uncode").generated[0].tolist()
    stop = ids[7]
    asked: dict[str, Any] = {"prompt": STORY, "max_tokens": 24, "seed": 0, "sampler": "uncode"}
    with running(model) as server:
        plain = server.post("/v1/completions", **asked).json()["choices"][0]
        cut = server.post("/v1/completions", stop_token_ids=[stop], **asked).json()
        lines = server.post("/v1/completions", stop_token_ids=[stop], stream=True, **asked).text.splitlines()
        gap = server.post("/v1/completions", infill=["a", 2], stop_token_ids=[stop])
    ended = ids.index(stop)
    assert cut["choices"][0]["finish_reason"] == "stop" and cut["usage"]["completion_tokens"] == ended
    assert plain["text"].startswith(cut["choices"][0]["text"])
    parts = [json.loads(line[6:])["choices"][0]["text"] for line in lines if line.startswith("data: {")]
    assert "".join(parts) == cut["choices"][0]["text"]
    assert "takes no stop_token_ids" in gap.json()["error"]["message"]
    model = QuickModel()
    model.eos_ids = (stop,)
    with running(model) as server:
        early = server.post("/v1/completions", **asked).json()
        whole = server.post("/v1/completions", ignore_eos=True, **asked).json()
    assert early["usage"]["completion_tokens"] == ended and early["choices"][0]["finish_reason"] == "stop"
    assert whole["choices"][0]["finish_reason"] == "length" and whole["usage"]["completion_tokens"] == 24


def test_tokenize(server: Running) -> None:
    found = server.post("/tokenize", model="tiny", prompt=STORY).json()
    tokenizer = QuickModel().tokenizer
    assert found == {"count": len(found["tokens"]), "max_model_len": 192, "tokens": tokenizer.encode(STORY)}
    assert server.post("/detokenize", tokens=found["tokens"]).json() == {"prompt": STORY}
    chat = server.post("/tokenize", messages=[{"role": "user", "content": STORY}]).json()
    assert chat["tokens"] == found["tokens"]
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("/tokenize", {}, "send a prompt or messages, one of them."),
        ("/tokenize", {"promt": "x"}, "unknown field 'promt': did you mean 'prompt'?"),
        ("/detokenize", {"tokens": [700000]}, "token id 700000 is not the model's"),
        ("/tokenize", {"prompt": "x", "model": "gpt"}, "there is no model 'gpt' here"),
    ]
    for path, body, sentence in wrong:
        assert sentence in server.post(path, **body).json()["error"]["message"]


def test_responses(client: openai.OpenAI, server: Running) -> None:
    """The newer interface of OpenAI, for texts: an input, messages, a stream; what it has no meaning for is refused."""
    asked: dict[str, Any] = {"model": "tiny", "max_output_tokens": 9, "extra_body": {"seed": 0}}
    chat = client.chat.completions.create(
        model="tiny", messages=[{"role": "user", "content": STORY}], max_tokens=9, seed=0
    )
    found = client.responses.create(input=STORY, **asked)
    assert found.output_text == chat.choices[0].message.content and found.usage is not None
    assert found.status == "incomplete" and found.incomplete_details is not None
    assert found.incomplete_details.reason == "max_output_tokens" and found.usage.output_tokens == 9
    turn: Any = {"role": "user", "content": [{"type": "input_text", "text": STORY}]}
    client.responses.create(input=[turn, found.output[0].model_dump()], instructions="Add.", **asked)  # type: ignore
    events = list(client.responses.create(input=[turn], stream=True, **asked))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == found.output_text
    kinds = [event.type.removeprefix("response.") for event in events if "delta" not in event.type]
    assert kinds == [
        *("created", "in_progress", "output_item.added", "content_part.added", "output_text.done"),
        *("content_part.done", "output_item.done", "incomplete"),
    ]
    assert events[-1].response.output_text == found.output_text  # type: ignore
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"tools": [{"type": "web_search"}]}, "tools are not supported"),
        ({"previous_response_id": "resp_1"}, "stored answers are not supported"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "images are not supported"),
        ({"n": 2}, "n cannot be honoured"),
    ]
    for options, sentence in wrong:
        refused = server.post("/v1/responses", **({"input": "x"} | options))
        assert refused.status_code == 400 and sentence in refused.json()["error"]["message"], refused.text


def test_neutral_values_are_accepted(client: openai.OpenAI) -> None:
    client.chat.completions.create(
        model="tiny",
        messages=[{"role": "user", "content": "1 + 1 ="}],
        max_tokens=2,
        presence_penalty=0,
        frequency_penalty=0.0,
        n=1,
        top_p=1,
        logit_bias={},
        user="someone",
        store=False,
        response_format={"type": "text"},
        service_tier="auto",
        tools=[],
    )


def test_the_same_seed_gives_the_same_text_under_load(client: openai.OpenAI, server: Running) -> None:
    samplers = ["uncode", "confidence", "eb", "semi_ar", "fast_dllm"]
    asked = [
        {
            "prompt": f"{STORY[: 40 + 7 * number]}",
            "max_tokens": 6 + 5 * (number % 4),
            "seed": number,
            "temperature": 0.7,
        }
        for number in range(10)
    ]

    def text(number: int) -> str:
        body = {"sampler": samplers[number % len(samplers)]}
        return client.completions.create(model="tiny", extra_body=body, **asked[number]).choices[0].text  # type: ignore

    quiet = [text(number) for number in range(len(asked))]
    before = server.metric("uncode_batch_rows_sum"), server.metric("uncode_batch_rows_count")
    with ThreadPoolExecutor(15) as pool:
        assert list(pool.map(text, range(len(asked)))) == quiet
    after = server.metric("uncode_batch_rows_sum"), server.metric("uncode_batch_rows_count")
    assert (after[0] - before[0]) / (after[1] - before[1]) > 2


def test_a_cancelled_stream_drops_its_row() -> None:
    with running(QuickModel(seconds=0.01)) as server, server.openai() as client:
        stream = client.completions.create(model="tiny", prompt=STORY, max_tokens=120, stream=True)
        next(iter(stream))
        stream.close()
        server.wait_until_idle()
        assert server.ended("client_gone") == 1
        assert server.metric("uncode_batch_rows_count") < 120


def test_a_client_that_leaves_drops_its_rows() -> None:
    with running(QuickModel(seconds=0.01)) as server, server.openai(timeout=0.3) as impatient:
        with pytest.raises(openai.APITimeoutError):
            impatient.completions.create(model="tiny", prompt=STORY, max_tokens=120, n=3)
        server.wait_until_idle()
        assert server.ended("client_gone") == 3
        assert server.metric("uncode_batch_rows_count") < 120


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ('"sigma": 1e999, "sampler": "certainty_density"', "sigma"),
        ('"sampler": {"name": NaN}', "sampler"),
        ('"top_p": NaN', "top_p"),
    ],
)
def test_a_number_that_no_answer_can_say_is_refused(server: Running, options: str, place: str) -> None:
    """Python reads NaN and infinities, which JSON does not have."""
    with server.http() as client:
        headers = {"Content-Type": "application/json"}
        found = client.post("/v1/completions", content=f'{{"prompt": "x", {options}}}', headers=headers)
    assert found.status_code == 400 and found.json()["error"]["param"] == place, found.text


def test_the_listed_defaults_of_every_sampler_are_accepted(server: Running) -> None:
    """The live page sends them."""
    for sampler in server.get("/v1/samplers").json()["data"]:
        options = {one["name"]: one["default"] for one in sampler["options"] if one["default"] is not None}
        found = server.post("/v1/completions", prompt="1 + 1 =", max_tokens=4, sampler=sampler["id"], **options)
        assert found.status_code == 200, (sampler["id"], found.text)


def test_the_options_of_the_server_are_accepted_from_its_clients() -> None:
    with running(sampler="uncode_fast_dllm", options={"cache": "auto"}) as server:
        asked = {"prompt": STORY, "max_tokens": 8, "seed": 1}
        first = server.post("/v1/completions", **asked).json()
        assert first["sampler_options"] == {"cache": "auto"}
        again = server.post("/v1/completions", **asked, sampler=first["sampler"], **first["sampler_options"])
    assert again.status_code == 200 and again.json()["choices"] == first["choices"]


def test_an_answer_can_be_written_twice() -> None:
    reply = TextReply("tiny", "", {"seed": 1}, 2, id="x", created=0)
    assert reply.answer([]) == reply.answer([]) and reply.answer([])["seed"] == 1
    assert "seed" not in reply.chunk(0, Update("text"))
