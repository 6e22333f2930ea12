"""Samplers as files and by name: saved, loaded, taken wherever a Sampler is; an error names the file and the line."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import uncode
from uncode import Sampler, UncodeError, presets
from uncode.core.errors import Advice
from uncode.core.pieces.cache import DualCache, NoCache, PrefixCache
from uncode.core.pieces.sampler_file import line_of
from uncode.samplers.catalog import find
from uncode.samplers.resolve import for_model, resolve

MODEL = uncode.load("toy")
PROMPT = "add 3 4 5"


def test_a_sampler_is_saved_and_loaded(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    for sampler in (presets.semi_ar(blocks=3), presets.uncode(frequency=MODEL.frequency, rate=0.1)):
        sampler.save(file)
        assert Sampler.load(file, frequency=MODEL.frequency) == sampler
    with pytest.raises(UncodeError, match=r"needs the frequency table 'toy': pass that table as"):
        Sampler.load(file)


def test_a_name_or_a_file_works_wherever_a_sampler_does(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    presets.confidence().save(file)
    wanted = uncode.generate(MODEL, PROMPT, sampler=presets.confidence(), length=24)
    for sampler in ("confidence", str(file), file):
        assert uncode.generate(MODEL, PROMPT, sampler=sampler, length=24) == wanted
    canvas = uncode.Canvas.after_prompt([MODEL.tokenizer.encode(PROMPT)] * 2, length=24, mask_id=MODEL.mask_id)
    trace = uncode.decode(MODEL, canvas, ["left_to_right", presets.left_to_right()])
    assert trace.tokens[0].equal(trace.tokens[1])
    assert next(uncode.steps(MODEL, canvas, "uncode")).index == 0, "with the model's own table"
    plain = uncode.FunctionDenoiser(
        lambda tokens: tokens.new_zeros((*tokens.shape, 8)).float(), mask_id=7, vocab_size=8
    )
    for sampler in ("uncode", presets.uncode(), "legacy.uncode_release"):
        with pytest.raises(
            UncodeError, match=r"'uncode\w*' needs a frequency table, and this model has none: pass `freq"
        ):
            uncode.decode(plain, uncode.Canvas.after_prompt([[1]], length=2, mask_id=7), sampler)


@pytest.mark.parametrize("name", ["uncode", "uncode_fast_dllm", "certain_first", "legacy.uncode_release"])
def test_a_preset_without_a_table_takes_the_models_own(name: str) -> None:
    """Also where it was saved before it met a model. The trace names the table."""
    made = resolve(name)
    assert Sampler.from_dict(made.to_dict()) == Sampler.from_toml(made.to_toml()) == made
    canvas = uncode.Canvas.after_prompt([[5, 6]], length=6, mask_id=MODEL.mask_id)
    options = {"cache": "none"} if name == "uncode_fast_dllm" else {}
    by_name, wanted = resolve(name, options=options), resolve(name, table=MODEL.frequency, options=options)
    trace = uncode.decode(MODEL, canvas, by_name)
    assert trace.samplers == (wanted,) and trace.tokens.equal(uncode.decode(MODEL, canvas, wanted).tokens)
    assert MODEL.frequency is not None and MODEL.frequency.sha256 in json.dumps(trace.samplers[0].to_dict())


def bare(kv_cache: bool = False) -> uncode.FunctionDenoiser:
    """A model without a frequency table."""
    denoiser = uncode.FunctionDenoiser(lambda tokens: tokens.new_zeros((*tokens.shape, 8)).float(), 7, 8)
    denoiser.has_kv_cache = kv_cache
    return denoiser


@pytest.mark.parametrize("make", [presets.certain_first, presets.certain_first_fast])
def test_without_a_table_certain_first_goes_by_the_position_and_says_so(make: Any) -> None:
    canvas = uncode.Canvas.after_prompt([[1]], length=4, mask_id=7)
    wanted = make(informativeness=False)
    for sampler in (make(), make.__name__, Sampler.from_toml(make().to_toml())):
        with pytest.warns(Advice, match=rf"'{make.__name__}' orders by confidence and position alone; `uncode count`"):
            trace = uncode.decode(bare(), canvas, sampler)
        assert trace.samplers == (wanted,) and "Informativeness" not in json.dumps(trace.samplers[0].to_dict())
        assert trace.tokens.equal(uncode.decode(bare(), canvas, wanted).tokens)
    named = bare()
    named.released_table = "llada"
    with pytest.warns(Advice, match="`uncode table get llada` fetches its table"):
        for_model(make(), named)


def test_a_default_cache_is_left_out_where_the_model_has_none() -> None:
    canvas = uncode.Canvas.after_prompt([[1]], length=4, mask_id=7)
    for make, options in (
        (presets.uncode_fast_dllm, {"informativeness": False}),
        (uncode.legacy.fast_dllm_dream, {}),
    ):
        with pytest.warns(Advice, match="this model has no KV cache: '.*' decodes without one"):
            trace = uncode.decode(bare(), canvas, make(**options))
        assert trace.samplers[0].cache == NoCache()
        cached = for_model(make(**options), bare(kv_cache=True))
        assert cached.cache.to_dict() == PrefixCache().to_dict() and cached == make(**options, cache="prefix")
        with pytest.raises(UncodeError, match="this model has no KV cache, and PrefixCache needs one"):
            uncode.decode(bare(), canvas, make(**options, cache="prefix"))


def test_an_optional_cache_that_is_left_out_gets_no_other_advice() -> None:
    sentences = list[str]()
    optional = presets.confidence().caching(DualCache(optional=True))
    assert Sampler.from_dict(optional.to_dict()).to_dict() == optional.to_dict()  # equality does not see it
    assert for_model(optional, bare(), on_advice=sentences.append).cache == NoCache()
    assert sentences == ["this model has no KV cache: 'confidence' decodes without one."]


@pytest.mark.parametrize("name", ["legacy.uncode_release", "legacy.linear_position", "uncode"])
def test_the_sentence_for_a_missing_table_names_an_option_that_exists(name: str) -> None:
    with pytest.raises(UncodeError, match="needs a frequency table") as error:
        for_model(resolve(name), bare())
    takes = "informativeness" in {option.name for option in find(name).options}
    assert ("informativeness" in str(error.value)) == takes


def test_a_dual_cache_without_blocks_is_advised_against_once() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default", Advice)
        for _ in range(3):
            for_model(presets.semi_ar(blocks=1).caching(DualCache()), bare(kv_cache=True))
            for_model(presets.confidence().caching(DualCache()), bare(kv_cache=True))
    assert [str(one.message) for one in found if "a dual cache without blocks" in str(one.message)] == [
        "a dual cache without blocks saves the keys and values of the prompt alone, which grow stale and cost "
        "accuracy: set block_length, or take no cache."
    ]
    for_model(presets.fast_dllm(cache="dual"), bare(kv_cache=True))
    for_model(presets.confidence().caching(DualCache(refresh=1)), bare(kv_cache=True))


@pytest.mark.parametrize(
    ("module", "name", "near"),
    [
        (presets, "confidance", "confidence"),
        (uncode.legacy, "uncode_releas", "uncode_release"),
        (uncode.interventions, "insert_ancor", "insert_anchor"),
    ],
)
def test_a_misspelt_name_of_a_module_has_a_near_one(module: Any, name: str, near: str) -> None:
    with pytest.raises(AttributeError, match=f"has no '{name}': did you mean '{near}'") as error:
        getattr(module, name)
    assert isinstance(error.value, UncodeError) and not hasattr(module, "__path_of_nothing__")


def test_a_models_own_sampler_files_go_by_name() -> None:
    tiny = uncode.load("tiny", device="cpu")
    file = tiny.samplers["story"]
    wanted = Sampler.load(file, frequency=tiny.frequency)
    for model in (tiny, uncode.Guided(tiny, 1.0)):
        canvas = uncode.Canvas.after_prompt([[5, 6]], length=3, mask_id=tiny.mask_id)
        assert uncode.decode(model, canvas, "story").samplers == (wanted,)
    assert uncode.generate(tiny, PROMPT, sampler="story", length=4) == uncode.generate(
        tiny, PROMPT, sampler=file, length=4
    )
    with pytest.raises(UncodeError, match=r"^no sampler, and no sampler file of this model, .*did you mean 'story'\?$"):
        uncode.generate(tiny, PROMPT, sampler="stroy", length=4)
    with pytest.raises(UncodeError, match=r"^no sampler is named 'stroy': "):
        uncode.generate(MODEL, PROMPT, sampler="stroy", length=4)


def test_one_prompt_is_a_text_and_a_list_is_a_list() -> None:
    assert isinstance(uncode.generate(MODEL, PROMPT, sampler="uniform", length=24), str)
    assert isinstance(uncode.generate(MODEL, [PROMPT], sampler="uniform", length=24), list)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = = 3\n", "line 1, is not TOML: invalid value."),
        ('name = "x"\n[policy\n', "line 2, is not TOML"),
        ('[policy]\nscore = { piece = "Confidense" }\n', "line 2: no score is named 'Confidense': did you mean"),
        ('[policy.score]\npiece = "Margin"\n\n[policy.select]\npiece = "TopK"\nquotaa = 3\n', "line 6: TopK has no"),
        ('[policy.score]\npiece = "Margin"\n[policy.blocks]\ncount = 2\n', "line 3: a block schedule needs a 'piece'"),
        ('[policy.score]\npiece = "Margin"\n[policy.blocks]\npiece = "Blocks"\ncount = 0\n', "line 3: the number of"),
        ('limit = "many"\n[policy.score]\npiece = "Margin"\n', "line 1: Sampler.limit must be a whole number"),
        ('nam = "x"\n[policy.score]\npiece = "Margin"\n', "line 1: Sampler has no setting 'nam'"),
    ],
)
def test_an_error_names_the_file_and_the_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(UncodeError) as error:
        Sampler.load(file)
    assert str(error.value).startswith(f"'{file}', ") and message in str(error.value)


def test_the_line_of_a_setting() -> None:
    text = 'name = "x"\n[a.b]\nc = { d = 1 }\n[a.e]\nd = 2\n'
    assert line_of(text, ("a", "b", "c", "d")) == 3
    assert line_of(text, ("a", "e", "d")) == 5
    assert line_of(text, ("a", "e", "z")) == 4
    assert line_of(text, ()) == 1
