"""Samplers as files and by name: saved, loaded, taken wherever a Sampler is; an error names the file and the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import uncode
from uncode import Sampler, UncodeError, presets
from uncode.core.pieces.sampler_file import line_of

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
    with pytest.raises(UncodeError, match=r"'uncode' needs a frequency table.*presets\.uncode\(frequency=TABLE\)"):
        uncode.decode(plain, uncode.Canvas.after_prompt([[1]], length=2, mask_id=7), "uncode")


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


def test_a_sampler_of_0_1_0_is_read() -> None:
    """It calls the exponential of a score Linear."""
    sampler = uncode.legacy.llada_eos()
    now = json.dumps(sampler.to_dict())
    assert '"piece": "Exp"' in now
    assert uncode.Sampler.from_dict(json.loads(now.replace('"Exp"', '"Linear"'))) == sampler
