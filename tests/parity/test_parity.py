"""Token for token against the published functions, on recorded outputs of toy networks.

Each file under `data/` holds what one published function wrote: repository, commit, function, settings, network
seed, a hash of the first logits, the tokens and the number of forwards. The functions' random numbers were
our stateless noise, so ours are the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.toy import EOS, EOT, MASK, ToyDenoiser, fingerprint
from uncode import Canvas, FrequencyTable, Policy, Sampler, Trace, decode, legacy, presets
from uncode.core.pieces.blocks import OverlappingBlocks
from uncode.core.pieces.cache import WindowCache
from uncode.core.pieces.propose import Greedy
from uncode.core.pieces.score import NegEntropy
from uncode.core.pieces.select import EntropyThreshold, Exactly, Threshold, TopK
from uncode.core.pieces.stop import AtTheEnd, FromFirstEos

DATA = Path(__file__).parent / "data"
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
Settings = dict[str, Any]


@cache
def load(name: str) -> dict[str, Any]:
    return json.loads((DATA / f"{name}.json").read_text())


def table(record: dict[str, Any]) -> FrequencyTable:
    return FrequencyTable(torch.tensor(record["counts"]))


def blocks(s: Settings) -> int:
    return s["gen_length"] // s["block_length"]


def of_llada(s: Settings) -> Sampler:
    options = {k: v for k, v in s.items() if k != "gen_length"}
    if options.pop("confidence_eos_eot_inf", False):
        return legacy.llada_eos(**options)
    return presets.llada(**options)


def of_fast_dllm(s: Settings, cache: str = "none") -> Sampler:
    if s.get("factor") is not None:
        return legacy.fast_dllm_factor(factor=s["factor"], block_length=s["block_length"])
    if s.get("threshold") is not None:
        temperature = s.get("temperature", 0.0)
        return presets.fast_dllm(
            threshold=s["threshold"], block_length=s["block_length"], cache=cache, temperature=temperature
        )
    return presets.semi_ar(blocks=blocks(s), steps=s["steps"], cache=cache)


def of_release(s: Settings, frequency: FrequencyTable) -> Sampler:
    sampler = legacy.uncode_release(
        steps=s["steps"], frequency=frequency, rate=float(s["lambd"]), clip=float(s["alpha"]), blocks=blocks(s)
    )
    return drawn(sampler, s)


def drawn(sampler: Sampler, s: Settings) -> Sampler:
    return replace(sampler, propose=presets.confidence(temperature=s.get("temperature", 0.0)).propose)


def of_remdm(s: Settings) -> Sampler:
    return presets.remdm(steps=s["sampling_steps"], block_length=s["block_size"], count=s["remdm_number"])


def of_adablock(s: Settings, cache: str = "none") -> Sampler:
    """The preset with token ids as delimiters: the toy network has no text."""
    sampler = presets.adablock(
        threshold=s["threshold"],
        delimiter_threshold=s["delimiter_threshold"],
        block_length=s["init_block_length"],
        cache=cache,
    )
    blocks = replace(sampler.policy.blocks, tokens=tuple(s["delimiter_ids"]))
    return replace(sampler, policy=replace(sampler.policy, blocks=blocks))


def of_dream(s: Settings) -> Sampler:
    return presets.dream(**{k: v for k, v in s.items() if k != "max_new_tokens"})


def of_dsb(s: Settings) -> Sampler:
    columns = None if s["max_block_length"] == -1 else s["max_block_length"]
    return presets.dsb(threshold=s["threshold"], window=s["block_length"], window_columns=columns)


def of_dcd(s: Settings) -> Sampler:
    """The preset for a network with one EOS token; its rule is a threshold or a number of tokens a step."""
    sampler = presets.dcd(window=s["initial_window_length"], window_columns=s["max_window_length"])
    fixed = s["decode_algo"] == "fixed"
    select = TopK(Exactly(s["decode_param"])) if fixed else Threshold(s["decode_param"])
    return replace(sampler, policy=replace(sampler.policy, select=select), propose=Greedy((EOT,)))


def of_multi_block(s: Settings, best: bool) -> Sampler:
    """The sampler files of d3LLM's releases, with other settings. Another EOS token than the network's is barred."""
    select = EntropyThreshold(s["threshold"], s["block_size"], best)
    blocks, stop = OverlappingBlocks(s["block_size"], s["block_add_threshold"]), AtTheEnd()
    if not s["early_stop"]:
        return Sampler(Policy(NegEntropy(), select, blocks, stop=stop))
    return Sampler(Policy(NegEntropy(), select, blocks, stop=FromFirstEos()), Greedy((EOT,)))


def of_freedave(s: Settings) -> Sampler:
    preset = presets.left_to_right if s["alg_temp"] == -1 else presets.confidence
    cache = "dual" if s["dual_cache"] else "prefix"
    return preset(block_length=s["block_length"], cache=cache, draft_steps=s["draft_steps"])


SamplerOf = Callable[[Settings, dict[str, Any]], Sampler]
"""A sampler from recorded settings and the recording."""


def options(preset: Callable[..., Sampler], *same: str, **theirs: str) -> SamplerOf:
    """A preset whose options are settings of the same name, or of the name that the published function has for them."""
    names = {name: name for name in same} | theirs
    return lambda s, r: preset(**{ours: s[name] for ours, name in names.items()})


SAMPLERS: dict[str, SamplerOf] = {
    "uncode-generate": lambda s, r: of_llada(s),
    "uncode-generate_with_pc_sampler": lambda s, r: of_release(s, table(r)),
    "uncode-generate_with_eb_sampler": lambda s, r: presets.eb(gamma=s["gamma"]),
    "uncode-generate_with_fast_dllm": lambda s, r: of_fast_dllm(s),
    "uncode-generate_with_entropy": lambda s, r: presets.entropy(steps=s["steps"]),
    "uncode-generate_with_margin": lambda s, r: presets.margin(steps=s["steps"]),
    "uncode-generate_with_linear_position": lambda s, r: legacy.linear_position(
        steps=s["steps"], frequency=table(r), rate=s["lambd"], clip=float(s["alpha"]), blocks=blocks(s)
    ),
    "uncode-generate_with_remdm": lambda s, r: legacy.remdm_release(
        ratio=s["init_unmask_ratio"], count=s["unmask_k"], loops=s["loop_steps"]
    ),
    "fast-dllm-llada-generate": lambda s, r: of_fast_dllm(s),
    "fast-dllm-llada-generate_with_prefix_cache": lambda s, r: of_fast_dllm(s, "prefix"),
    "fast-dllm-llada-generate_with_dual_cache": lambda s, r: of_fast_dllm(s, "dual"),
    "llada-generate": lambda s, r: of_llada(s),
    "d3llm-generate": options(presets.entropy_threshold, "threshold", "block_length"),
    "dparallel-generate": options(presets.entropy_threshold, "threshold", "block_length"),
    "dparallel-_sample": options(presets.entropy_threshold, "threshold", "block_length"),
    "d3llm-generate_multi_block": lambda s, r: of_multi_block(s, best=True),
    "d3llm-_sample_multi_block": lambda s, r: of_multi_block(s, best=False),
    "dinfer-get_transfer_index_hierarchy_fast_v2": options(
        presets.hierarchy, "threshold", "block_length", low="low_threshold"
    ),
    "dlmserve-commit_with_local_leap": options(
        presets.local_leap,
        *("steps", "radius", "block_length"),
        anchor="anchor_threshold",
        neighbour="neighbor_threshold",
    ),
    "sdar-block_diffusion_generate": lambda s, r: presets.dynamic(
        threshold=s["confidence_threshold"],
        steps=s["denoising_steps"] * blocks(s),
        block_length=s["block_length"],
    ),
    "d2cache-certainty_density": options(presets.certainty_density, "sigma", "block_length"),
    "klass-stable_confident_decode": options(
        presets.klass,
        "block_length",
        threshold="conf_threshold",
        drift="kl_threshold",
        history="kl_history_length",
    ),
    "dinfer-CreditThresholdParallelDecoder": options(
        presets.credit,
        *("threshold", "block_length"),
        strength="credit_alpha",
        decay="decay_beta",
        boost="boost_gamma",
    ),
    "core-generate": options(
        presets.core, "steps", "block_length", candidates="CANDIDATE_M", every="REVISE_EVERY", count="remask_k"
    ),
    "eoser-eoser_generate": options(presets.eoser, "steps", "block_length", eos_factor="eos_min_gamma"),
    "saber-generate_with_saber": options(presets.saber, count="n"),
    "prophet-generate": options(
        presets.prophet, "early", "late", "steps", "block_length", answer_start="answer_offset", middle="mid"
    ),
    "sglang-JointThreshold_step": options(
        presets.edit, "threshold", "edit_threshold", "block_length", rounds="max_post_edit_steps"
    ),
    "adablock-generate_adablock": lambda s, r: of_adablock(s),
    "adablock-generate_adablock_prefix_cache": lambda s, r: of_adablock(s, "prefix"),
    "adablock-generate_adablock_dual_cache": lambda s, r: of_adablock(s, "dual"),
    "infogain-InfoGainSampler_sample": lambda s, r: options(
        getattr(presets, s["variant"]),
        *("position_temperature", "threshold"),
        candidates="candidate_number",
        block_length="block_size",
    )(s, r),
    "lopa-_generate_enhanced_speculative": options(
        presets.lopa, candidates="branching_factor", threshold="skip_threshold", block_length="block_size"
    ),
    "dsb-generate_dsb": lambda s, r: of_dsb(s),
    "dsb-generate_dsb_cache": lambda s, r: of_dsb(s).caching(
        WindowCache(margin=s["prefix_window"], every=s["block_length"], prompt_every=s["block_length"])
    ),
    "dcd-window_bidirectional_decode": lambda s, r: of_dcd(s),
    "dream-_sample": lambda s, r: of_dream(s),
    "freedave-block_decode_with_full_attention_FreeDave": lambda s, r: of_freedave(s),
    "remdm-llada-llada_remdm_sample": lambda s, r: of_remdm(s),
    "remdm-llada-llada_conf_sample": lambda s, r: presets.semi_ar(
        blocks=s["mask_length"] // s["block_size"], steps=s["sampling_steps"], temperature=1.0
    ),
}


def denoiser(case: dict[str, Any]) -> ToyDenoiser:
    """The network of a case, which must still give the logits it gave at the first step of the recording."""
    prompts = tuple(map(tuple, case.get("prompts", [case.get("prompt")])))
    first = first_logits(case["network"], case.get("eos_boost", 0.0), prompts)
    assert first == case["first_logits"], "the toy network is not the one that was recorded"
    return ToyDenoiser(case["network"], case.get("eos_boost", 0.0))


@cache
def first_logits(seed: int, boost: float, prompts: tuple[tuple[int, ...], ...]) -> str:
    """Computed once for all settings that were recorded with this network and these prompts."""
    canvas = Canvas.after_prompt([list(prompt) for prompt in prompts], length=32, mask_id=MASK, pad_id=0)
    return fingerprint(ToyDenoiser(seed, boost).network(canvas.tokens, canvas.valid))


def canvas_of(case: dict[str, Any]) -> Canvas:
    return Canvas.after_prompt(case.get("prompts", [case.get("prompt")]), length=32, mask_id=MASK, pad_id=0)


def settings_of(record: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(json.dumps(case["settings"]) for case in record["cases"]))


CASES = [(name, settings) for name in SAMPLERS for settings in settings_of(load(name))]


def test_every_recording_is_used() -> None:
    """Those of whole models are used in test_models."""
    assert {p.stem for p in DATA.glob("*.json") if not p.stem.startswith("model-")} == set(SAMPLERS)


def together(cases: list[dict[str, Any]], sampler: Sampler | list[Sampler], seeds: list[int] | int = 0) -> Trace:
    """The cases in one batch of unequal prompts, each row on the network of its case."""
    canvas = Canvas.after_prompt([case["prompt"] for case in cases], length=32, mask_id=MASK, pad_id=0)
    return decode(ToyDenoiser.side_by_side([denoiser(case) for case in cases]), canvas, sampler, seeds)


@pytest.mark.parametrize(("name", "settings"), CASES, ids=[f"{n}:{s}" for n, s in CASES])
def test_published_function(name: str, settings: str) -> None:
    """Every setting on all of its recorded networks, in one batch. One network of a function's first setting alone
    too, and under `make verify` every network of every setting.

    Recordings that are batches themselves are decoded as such, every third of them, and all under `make verify`.
    """
    record = load(name)
    cases = [case for case in record["cases"] if json.dumps(case["settings"]) == settings]
    assert len({case["network"] for case in cases}) >= 20
    sampler = SAMPLERS[name](json.loads(settings), record)
    single, batches = ([case for case in cases if key in case] for key in ("prompt", "prompts"))
    if single:
        trace = together(single, sampler, [case["network"] for case in single])
        for row, case in enumerate(single):
            assert trace.generated[row].tolist() == case["tokens"]
            assert as_recorded(int(trace.forwards[row]), case, sampler)
            assert sum(trace.probes[row]) == case.get("probes", 0)
    alone = single[: settings == settings_of(record)[0]]
    for case in cases if SOAK else alone + batches[::3]:
        model = denoiser(case)
        trace = decode(model, canvas_of(case), sampler, seed=case["network"])
        assert trace.generated.tolist() == (case["tokens"] if "prompts" in case else [case["tokens"]])
        assert len(trace) == model.forwards
        assert as_recorded(len(trace), case, sampler)


def as_recorded(forwards: int, case: dict[str, Any], sampler: Sampler) -> bool:
    """Dream runs forwards for nothing where its coins fill the row before the last step. A probe that a published
    function uses as the next step's forward is one forward more here."""
    may_be_fewer = sampler.name == "dream" and sampler.policy.select.may_wait and forwards < case["forwards"]
    return may_be_fewer or forwards == case["forwards"] - case.get("wasted", 0) + case.get("reused", 0)


def test_the_paper_and_the_release_agree_where_the_clip_does_not_bind() -> None:
    record = load("uncode-generate_with_pc_sampler")
    loose = [
        case
        for case in record["cases"]
        if case["settings"]["alpha"] == 10 and blocks(case["settings"]) == 1 and "temperature" not in case["settings"]
    ]
    assert len(loose) >= 80
    samplers = [
        presets.uncode(steps=s["steps"], frequency=table(record), rate=float(s["lambd"]), special="counted")
        for s in (case["settings"] for case in loose)
    ]
    assert together(loose, samplers).generated.tolist() == [case["tokens"] for case in loose]


def test_the_paper_clips_surprisal_and_the_release_the_product() -> None:
    record = load("uncode-generate_with_pc_sampler")
    tight = [case for case in record["cases"] if case["settings"]["alpha"] == 2 and blocks(case["settings"]) == 1]
    samplers = [
        presets.uncode(steps=s["steps"], frequency=table(record), rate=s["lambd"], clip=2.0)
        for s in (case["settings"] for case in tight)
    ]
    assert together(tight, samplers).generated.tolist() != [case["tokens"] for case in tight]


def test_factor_is_right_and_the_release_is_off_by_one() -> None:
    cases = [case for case in load("uncode-generate_with_fast_dllm")["cases"] if "factor" in case["settings"]]
    settings = [case["settings"] for case in cases]
    samplers = [presets.fast_dllm_factor(factor=s["factor"], block_length=s["block_length"]) for s in settings]
    trace = together(cases, samplers)
    assert trace.forwards.tolist() != [case["forwards"] for case in cases]
    for row, s in enumerate(settings):
        for step in range(int(trace.forwards[row])):  # no token below its threshold, except the best one of its step
            p = trace.logp[row][trace.commit_step[row] == step].exp().sort(descending=True).values
            bars = 1 - s["factor"] / (torch.arange(1, len(p) + 1) + 1)
            assert bool((p[1:] >= bars[1:]).all())


def test_eos_tokens_are_committed_last_at_every_temperature() -> None:
    """LLaDA's switch without its bug: no position that proposes an EOS token goes before one that does not."""
    model = ToyDenoiser.side_by_side([ToyDenoiser(seed, boost=3.0) for seed in range(20)])
    canvas = Canvas.after_prompt([[1, 2, 3]] * 20, length=32, mask_id=MASK)
    sampler = presets.llada(steps=32, block_length=32, temperature=0.7, confidence_eos_eot_inf=True)
    trace = decode(model, canvas, sampler, seed=list(range(20)), drafts=True)
    eos_ids = torch.tensor([EOS, EOT])
    for tokens, steps, drafts in zip(trace.generated, trace.commit_step, trace.drafts, strict=True):
        for step, draft in enumerate(drafts):
            if bool(torch.isin(tokens[steps == step], eos_ids).any()):
                assert bool(torch.isin(torch.tensor(draft)[steps >= step], eos_ids).all())
