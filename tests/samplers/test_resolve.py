"""The doors agree: Python, --set, TOML and HTTP make the same sampler of the same name and options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import uncode
from tests.cli.running import run
from uncode import Sampler, UncodeError, presets
from uncode.cli.answering.choices import SamplerChoice
from uncode.cli.options import complete_setting, find_sampler, read_settings
from uncode.core.pieces.blocks import Blocks, BlockSchedule, SlidingWindow
from uncode.core.pieces.cache import DualCache
from uncode.core.pieces.propose import Adjust, Greedy, Sample
from uncode.evals.run.config import EvalConfig
from uncode.evals.run.models.diffusion import DiffusionModel
from uncode.evals.task import TaskSettings as Settings
from uncode.samplers.catalog import catalog
from uncode.samplers.options import DEFAULT_LENGTH, DEFAULT_SAMPLER, SHARED
from uncode.samplers.resolve import resolve
from uncode.server.api.fields import DecodeFields
from uncode.server.decoding.samplers import Choice, Samplers

MODEL = uncode.load("toy")
SETTINGS = Settings(shots=0, length=24, rate=0.0, chat=False, block_length=24)


def by_command(name: str, options: dict[str, Any]) -> Sampler:
    """As `--sampler NAME --set KEY=VALUE` makes it."""
    found = find_sampler(name, "toy")
    choice = SamplerChoice(found, read_settings(found, [f"{key}={value}" for key, value in options.items()]), None)
    return resolve(choice.build(MODEL.frequency), MODEL)


def by_config(name: str, options: dict[str, Any]) -> Sampler:
    """As a row of an evaluation's TOML makes it."""
    row = {"preset": name, "options": options, "stop_at_eos": False}
    config = EvalConfig.read({"name": "x", "title": "x", "models": ["toy"], "tasks": ["gsm8k"], "samplers": [row]})
    return DiffusionModel("toy", MODEL).prepare(config.samplers[0], SETTINGS, {}).sampler


def by_request(name: str, options: dict[str, Any]) -> Sampler:
    """As a request makes it, which names no files."""
    served = Samplers(MODEL, name, {}) if name.endswith(".toml") else Samplers(MODEL, DEFAULT_SAMPLER, {})
    body = DecodeFields.model_validate({} if name.endswith(".toml") else {"sampler": name} | options)
    return served.build(Choice(body.sampler, DecodeFields.model_validate(options).options()))


DOORS = (by_command, by_config, by_request)
GIVEN = {
    "cache": "none",
    "block_length": 8,
    "draft_steps": 1,
    "temperature": 0.5,
    "top_k": 4,
    "top_p": 0.9,
    "min_p": 0.1,
}
GIVEN |= {"frequency_penalty": 0.5, "presence_penalty": -0.5, "repetition_penalty": 1.2}


@pytest.mark.parametrize("name", ["uncode", "uncode_tau", "certain_first", "confidence", "left_to_right", "semi_ar"])
@pytest.mark.parametrize("blocks", [Blocks(length=8), SlidingWindow(8)])
def test_the_doors_make_the_same_sampler(name: str, blocks: BlockSchedule) -> None:
    given = dict(GIVEN)
    if isinstance(blocks, SlidingWindow):
        given["window"] = given.pop("block_length")
    assert {*GIVEN, "window"} == {*SHARED}
    made = resolve(name, MODEL, options=given)
    assert made.policy.blocks == blocks and made.propose == Sample((), 0.5, 4, 0.9, min_p=0.1)
    assert made.adjust == Adjust((), (), -0.5, 0.5, 1.2)
    for door in DOORS:
        assert door(name, given) == made, door.__doc__
    assert made == resolve(resolve(name), MODEL, options=given), "a complete sampler takes them too"


def test_blocks_replace_a_window_and_a_window_blocks() -> None:
    assert presets.fast_dllm(window=12).policy.blocks == SlidingWindow(12)
    assert presets.dsb(block_length=12).policy.blocks == Blocks(length=12)
    assert presets.dsb(window=8, window_columns=9).policy.blocks == SlidingWindow(8, 9)
    assert presets.dsb(window=None).policy.blocks == Blocks()
    assert presets.confidence(cache="window").policy.blocks == SlidingWindow()
    assert presets.confidence(cache="window", window=None).policy.blocks == Blocks()
    assert presets.fast_dllm(cache="window").policy.blocks == Blocks(length=32)
    for options in ({"block_length": 4, "window": 4}, {"blocks": 4, "window": 4}):
        with pytest.raises(UncodeError, match=r"'semi_ar' takes either block.* or window: leave one of the two out"):
            presets.semi_ar(**options)


def test_a_sampler_file_takes_the_shared_options_at_every_door(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    presets.semi_ar(blocks=3).save(file)
    made = resolve(file, MODEL, options=GIVEN)
    assert made.policy.blocks == Blocks(length=8) and isinstance(made.propose, Sample)
    for door in DOORS:
        assert door(str(file), GIVEN) == made, door.__doc__
    for refuse in (lambda: resolve(file, options={"steps": 3}), lambda: by_command(str(file), {"steps": 3})):
        with pytest.raises(UncodeError, match=r"^the sampler 'mine.toml' is complete and takes .* leave steps out"):
            refuse()
    with pytest.raises(UncodeError, match="is complete and takes"):
        by_config(str(file), {"steps": 3})


def test_a_cache_is_given_at_every_door() -> None:
    """It was refused by the command line and taken by the server."""
    tiny = uncode.load("tiny", device="cpu")
    wanted = presets.uncode(cache="dual", block_length=8, frequency=tiny.frequency)
    assert wanted.cache == DualCache() and wanted.policy.blocks == Blocks(length=8)
    assert resolve("uncode", tiny, options={"cache": "dual", "block_length": 8}) == wanted
    assert (
        SamplerChoice("uncode", read_settings("uncode", ["cache=dual", "block_length=8"]), None).build(tiny.frequency)
        == wanted
    )
    assert Samplers(tiny, "uncode", {}).build(Choice(None, {"cache": "dual", "block_length": 8})) == wanted


@pytest.mark.parametrize("name", list(catalog()))
def test_every_sampler_takes_the_shared_options(name: str) -> None:
    entry = catalog()[name]
    assert set(SHARED) <= {option.name for option in entry.options}
    made = resolve(name, options={"cache": "dual", "block_length": 8, "temperature": 0.0})
    assert made.cache == DualCache() and made.to_dict()["policy"]["blocks"]["length"] == 8
    assert resolve(name, options={option.name: option.default for option in entry.options}) == resolve(name)
    if name != "credit":
        drawn = resolve(name, options={"temperature": 0.7}).propose
        assert isinstance(drawn, Sample) and drawn.temperature == 0.7


def test_what_does_not_go_together_is_said() -> None:
    with pytest.raises(UncodeError, match=r"^the sampler 'semi_ar' takes either blocks or block_length"):
        presets.semi_ar(blocks=4, block_length=8)
    assert presets.semi_ar(block_length=8).policy.blocks == Blocks(length=8)
    with pytest.raises(UncodeError, match="the proposal Credit of this sampler takes no temperature"):
        presets.credit(temperature=0.5)
    assert presets.credit(temperature=0.0) == presets.credit()
    assert presets.remdm(temperature=0.0).propose == Greedy()
    with pytest.raises(UncodeError, match="'confidence' has no option 'frequency'"):
        resolve("confidence", MODEL, options={"frequency": MODEL.frequency})


def test_generate_has_the_defaults_of_the_command_line() -> None:
    tiny, prompt = uncode.load("tiny", device="cpu"), "Problem: Compute 1 + 2\nSolution:"
    text = uncode.generate(tiny, prompt)
    assert text == uncode.generate(tiny, prompt, sampler=DEFAULT_SAMPLER, length=DEFAULT_LENGTH)
    assert text.strip() == run("decode", prompt, "--device", "cpu").stdout.strip()
    assert uncode.canvas_from_texts(tiny, prompt).lengths.tolist() == [DEFAULT_LENGTH]


NEW_OPTION = """
from __future__ import annotations
from types import SimpleNamespace
from typing import Unpack
from uncode.samplers import pieces as p
from uncode.samplers.options import AT_LEAST_1, OPTIONS, Option
from uncode.samplers.preset import Shared, preset

OPTIONS["reach"] = Option("reach", int, "masks that are open", AT_LEAST_1, (1, 64, 1))

@preset(source="this test")
def window(*, reach: int = 16, **shared: Unpack[Shared]) -> p.Policy:
    "A window."
    return p.Policy(p.Confidence(), p.TopK(p.Even(reach)))

from uncode.cli.options import complete_setting, read_settings
assert ("reach=", "masks that are open") in complete_setting(SimpleNamespace(params={"sampler": "window"}), "re")
assert read_settings("window", ["reach=3"]) == {"reach": 3}
import sys
assert "torch" not in sys.modules
import uncode
from uncode.samplers.resolve import resolve
from uncode.server.api.fields import DecodeFields
from uncode.server.api.sampler_list import sampler_list
from uncode.server.decoding.samplers import Choice, Samplers

model = uncode.load("toy")
assert resolve("window", model, options={"reach": 3}).policy.select.quota.steps == 3
served = Samplers(model, "window", {})
body = DecodeFields.model_validate({"sampler": "window", "reach": 3})
assert served.build(Choice(body.sampler, body.options())) == resolve("window", model, options={"reach": 3})
(listed,) = [one for one in sampler_list(served) if one["id"] == "window"]
(option,) = [one for one in listed["options"] if one["name"] == "reach"]
assert option == {
    "name": "reach", "kind": "int", "default": 16, "meaning": "masks that are open",
    "slider": {"min": 1, "max": 64, "step": 1},
}
for call in (lambda: read_settings("window", ["reach=0"]), lambda: resolve("window", options={"reach": 0})):
    try:
        call()
    except uncode.UncodeError as error:
        print(error)
"""


def test_a_new_option_is_one_row_and_a_preset() -> None:
    """Every door lists, completes, checks and takes it, without a further line."""
    done = subprocess.run([sys.executable, "-c", NEW_OPTION], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.splitlines()
        == [
            "the option reach of the sampler 'window' must be at least 1, not 0.",
        ]
        * 2
    )


def test_the_shell_completes_shared_options() -> None:
    context = SimpleNamespace(params={"sampler": "uncode"})
    names = [name for name, _ in complete_setting(context, "cache=")]  # type: ignore[arg-type]
    assert names == ["cache=auto", "cache=none", "cache=prefix", "cache=dual", "cache=window", "cache=window-never"]
