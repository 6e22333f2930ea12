from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import pytest
import torch

from tests.toy import MASK, VOCAB, ToyDenoiser
from uncode import Canvas, FrequencyTable, Sampler, UncodeError, decode, interventions, legacy, presets, steps
from uncode.core.pieces.cache import PrefixCache
from uncode.core.pieces.score import ExponentialPosition, Informativeness
from uncode.samplers import calibration
from uncode.samplers.catalog import catalog
from uncode.samplers.legacy import QUIRKS
from uncode.samplers.options import OPTIONS, SHARED
from uncode.samplers.presets import PRESETS
from uncode.samplers.resolve import resolve
from uncode.testing.hash_model import HashDenoiser

TABLE = FrequencyTable(torch.arange(1, VOCAB + 1), "counted")


def build(name: str) -> Sampler:
    return resolve(name, table=TABLE)


@pytest.mark.parametrize("name", [*PRESETS, *QUIRKS])
def test_every_preset_decodes_and_round_trips(name: str) -> None:
    sampler = build(name)
    canvas = Canvas.after_prompt([[1, 2], [3]], length=[40, 33], mask_id=MASK)
    model = ToyDenoiser(4)
    run = steps(model, canvas, sampler)
    forwards = sum(1 + step.probes for step in run)
    trace = run.trace()
    assert not (trace.tokens == MASK).any()
    assert model.forwards == forwards >= len(trace) and (forwards == len(trace) or sampler.max_probes)
    assert sampler.name in {name, name.removeprefix("legacy."), "fast_dllm_factor_release"}
    text = sampler.to_toml()
    assert Sampler.from_toml(text, frequency=TABLE) == sampler
    assert tomllib.loads(text)["name"] == sampler.name


@pytest.mark.parametrize("name", [*PRESETS, *QUIRKS])
def test_every_preset_cites_its_source_and_its_defaults(name: str) -> None:
    entry = catalog()[name]
    assert entry.summary.endswith(".") and entry.source
    if name in PRESETS:
        assert entry.cost
        parameters = inspect.signature(PRESETS[name]).parameters.values()
        own = {p.name for p in parameters} - {*SHARED, *inspect.signature(calibration.calibrated).parameters}
        missing = sorted(name for name in own if name not in entry.defaults)
        assert not missing, f"the defaults of {entry.name} do not name {missing}"


def test_the_catalog_says_what_the_functions_take() -> None:
    """And the table of options has a row for each, and no other."""
    functions = PRESETS | QUIRKS
    assert list(catalog()) == list(functions)
    for name, entry in catalog().items():
        parameters = inspect.signature(functions[name]).parameters.values()
        assert [option.name for option in entry.options] == [p.name for p in parameters]
        for option, parameter in zip(entry.options, parameters, strict=True):
            assert option.default == parameter.default and option.meaning == OPTIONS[option.name].meaning
            kind, _, optional = str(parameter.annotation).partition(" | ")
            if parameter.annotation is not inspect.Parameter.empty and option.type in (int, float, bool):
                assert kind == option.type.__name__ and (not optional or option.can_be_none or option.default is None)
    assert set(OPTIONS) == {option.name for entry in catalog().values() for option in entry.options}


def test_modules_complete_to_their_public_functions_alone() -> None:
    assert dir(presets) == sorted(PRESETS) == presets.__all__
    assert [f"legacy.{name}" for name in dir(legacy)] == sorted(QUIRKS)
    assert dir(interventions) == ["insert_anchor", "reject_trivial", "trivial_ids"]


def test_defaults_are_those_of_the_paper() -> None:
    uncode = presets.uncode(frequency=TABLE)
    assert uncode.policy.score.terms[1:] == (
        Informativeness(TABLE, clip=10.0, special="unseen"),
        ExponentialPosition(0.25),
    )
    assert presets.semi_ar().policy.blocks.count == 8  # type: ignore[attr-defined]
    assert presets.eb().policy.select.gamma == 0.01  # type: ignore[attr-defined]
    assert presets.fast_dllm().policy.select.threshold == 0.9  # type: ignore[attr-defined]
    fast = presets.uncode_fast_dllm(frequency=TABLE)
    assert (fast.policy.select.threshold, fast.policy.select.of) == (0.6, "score")  # type: ignore[attr-defined]
    assert isinstance(fast.cache, PrefixCache)
    assert fast.policy.score.terms[-1] == ExponentialPosition(0.25, "block")
    assert presets.tau_leaping().policy.select.quota.count == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("proxy", ["confidence", "entropy", "margin"])
def test_uncode_with_each_proxy_and_each_prior_alone(proxy: str) -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=12, mask_id=MASK)
    orders = set()
    for options in ({"frequency": TABLE, "rate": 0.0}, {"informativeness": False}, {"frequency": TABLE}):
        trace = decode(ToyDenoiser(4), canvas, presets.uncode(proxy=proxy, **options))  # type: ignore[arg-type]
        orders.add(tuple(trace.commit_step[0].tolist()))
    assert len(orders) == 3
    base = {"confidence": presets.confidence(), "entropy": presets.entropy(), "margin": presets.margin()}[proxy]
    plain = presets.uncode(proxy=proxy, informativeness=False, rate=0.0)  # type: ignore[arg-type]
    assert (
        decode(ToyDenoiser(4), canvas, plain).to_json()[-300:] == decode(ToyDenoiser(4), canvas, base).to_json()[-300:]
    )


def test_left_to_right_goes_left_to_right() -> None:
    model = HashDenoiser()
    canvas = Canvas.after_prompt([[1]], length=300, mask_id=model.mask_id)
    assert decode(model, canvas, presets.left_to_right()).commit_step[0].tolist() == list(range(300))


def test_uncode_eb_spends_its_budget_along_its_own_order() -> None:
    canvas = Canvas.after_prompt([[1]], length=24, mask_id=MASK)
    trace = decode(ToyDenoiser(4), canvas, presets.uncode_eb(gamma=0.8, frequency=TABLE))
    assert len(trace) < 24
    for step in range(len(trace)):
        entropy = trace.entropy[0][trace.commit_step[0] == step]
        assert float(entropy.sum() - entropy.max()) <= 0.8 + 1e-9


def test_the_calibrated_threshold_counts_from_the_block() -> None:
    """From the start of the answer nothing past offset 11 could pass 0.6 at rate 0.25; from the block it can."""
    canvas = Canvas.after_prompt([[1]], length=64, mask_id=MASK)
    sampler = presets.uncode_fast_dllm(frequency=TABLE, block_length=16, cache="none")
    trace = decode(ToyDenoiser(4), canvas, sampler)
    late = trace.commit_step[0, 48:]
    assert len(set(late.tolist())) < 16


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resolve("uncod"), "did you mean 'uncode'"),
        (lambda: resolve("confidence", options={"step": 3}), "did you mean 'steps'"),
        (lambda: resolve("confidence", options={"steps": "many"}), "must be a whole number"),
        (lambda: resolve("nowhere.toml"), "the file 'nowhere.toml' does not exist"),
        (lambda: Sampler.from_toml("= 3"), "the sampler file, line 1, is not TOML: invalid statement."),
        (lambda: Sampler.from_toml(build("uncode").to_toml()), "needs the frequency table"),
        (
            lambda: Sampler.from_toml(build("uncode").to_toml(), frequency=FrequencyTable(torch.arange(2, VOCAB + 2))),
            "names the table 'counted'",
        ),
    ],
)
def test_wrong_names_and_files_are_one_sentence(call: object, message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        call()  # type: ignore[operator]


def numbers() -> list[tuple[str, str]]:
    """Every option of every sampler that is a number."""
    return [(name, one.name) for name, entry in catalog().items() for one in entry.options if one.type in (int, float)]


@pytest.mark.parametrize(("name", "option"), numbers())
@pytest.mark.parametrize("value", ["x", -3, 10**400])
def test_a_wrong_number_names_the_option_before_a_missing_table(name: str, option: str, value: object) -> None:
    needed = {"frequency": TABLE} if name in ("legacy.uncode_release", "legacy.linear_position") else {}
    short = name.removeprefix("legacy.")
    with pytest.raises(UncodeError, match=f"^the option {option} of (the sampler '{short}'|{short}) must be ") as error:
        (PRESETS | QUIRKS)[name](**needed, **{option: value})
    assert "Even" not in str(error.value) and "\n" not in str(error.value)


def test_every_number_has_a_range() -> None:
    for option in OPTIONS.values():
        assert (option.type in (int, float)) == (option.range is not None) == (option.slider is not None), option.name


def test_options_beside_a_file_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    presets.confidence(steps=3).save(file)
    assert resolve(file) == presets.confidence(steps=3)
    with pytest.raises(UncodeError, match="complete"):
        resolve(file, options={"steps": 4})
