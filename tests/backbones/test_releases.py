"""Published checkpoints by name: their own samplers, and what differs from LLaDA and Dream."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import uncode
from tests.backbones.test_tokenizers import MESSAGES, llada_tokenizer
from tests.checkpoints import dream_config, dream_weights, llada_config, llada_weights, save
from tests.hub import Repo, files_in, pointing_at, serve
from uncode import Policy, Sampler, UncodeError, presets
from uncode.backbones.dialects.registry import DIALECTS
from uncode.core.pieces.blocks import Blocks, OverlappingBlocks, SeededBlocks
from uncode.core.pieces.score import Confidence, NegEntropy
from uncode.core.pieces.select import EntropyThreshold, Threshold
from uncode.core.pieces.stop import AfterEos, FromFirstEos
from uncode.models import OWN_SAMPLER, RELEASES, sampler_files

IMAGES = 10
"""Tokens behind the text, in the small MMaDA."""


def d3llm(best: bool) -> Sampler:
    select, blocks = EntropyThreshold(0.5, 32, best), OverlappingBlocks(32, 0.1)
    return Sampler(Policy(NegEntropy(), select, blocks, stop=FromFirstEos()), name="d3llm")


def dream(temperature: float, top_p: float = 0.95) -> Sampler:
    return presets.dream(alg="entropy", steps=None, temperature=temperature, top_p=top_p)


def dynamic(threshold: float) -> Sampler:
    made = presets.dynamic(threshold=threshold, temperature=1.0)
    return replace(made, policy=replace(made.policy, blocks=Blocks(), stop=AfterEos()))


OWN = {
    "llada": presets.llada(steps=None, block_length=32),
    "d3llm-llada": d3llm(best=True),
    "d3llm-dream": d3llm(best=False),
    "dparallel": presets.entropy_threshold(threshold=0.5, block_length=32),
    "dream": dream(0.2),
    "dream-coder-base": dream(0.2, 0.9),
    "dream-coder-instruct": dream(0.1),
    "diffucoder-instruct": dream(0.3),
    "diffucoder-cpgrpo": dream(0.4),
    "llada-moe": presets.fast_dllm(threshold=0.76, block_length=64, cache="none"),
    "llada2": presets.dynamic(threshold=0.95, block_length=32),
    "llada2.1": presets.edit(threshold=0.7, edit_threshold=0.5, rounds=16, block_length=32),
    "mmada": presets.llada(steps=None, block_length=128, temperature=1.0),
    "sdar": dynamic(0.85),
    "trado": dynamic(0.9),
    "in-blocks": presets.confidence().stopping(AfterEos()),
    "fast-dllm-v2": Sampler(
        Policy(Confidence(), Threshold(0.9), SeededBlocks(8, 32), stop=AfterEos()), name="fast_dllm_v2"
    ),
    "nemotron": Sampler(Policy(Confidence(), Threshold(0.9), SeededBlocks(32, 32), stop=AfterEos()), name="nemotron"),
    "coda": dream(0.1, 0.9),
}


def test_releases_have_sampler_files_of_their_own() -> None:
    known = {name: stem for name, stem in RELEASES.items() if stem is not None}
    assert set(OWN) == set(known.values())
    for name, stem in known.items():
        file = sampler_files(name)[OWN_SAMPLER]
        assert file.is_file() and Sampler.load(file) == OWN[stem]
    assert sampler_files("org/unknown") == {}


def test_every_release_says_what_was_checked() -> None:
    for dialect in DIALECTS:
        for release in dialect.releases:
            assert dialect.checked and release.licence and release.checked
            assert bool(release.sampler) == (RELEASES[release.name] is not None)
            assert not release.sampler or "(" in release.sampler


def test_a_release_from_the_hub_decodes_with_its_own_sampler(tmp_path: Path) -> None:
    name = "d3LLM/d3LLM_LLaDA"
    folder = save(tmp_path / "model", llada_config(0), llada_weights(llada_config(0), 0))
    with serve() as hub:
        hub.repos[name] = Repo([files_in(folder)])
        with pointing_at(hub, tmp_path / "home"):
            model = uncode.load(name)
    assert list(model.samplers) == [OWN_SAMPLER]
    canvas = uncode.Canvas.after_prompt([[1, 2, 3]], length=70, mask_id=model.mask_id)
    assert uncode.decode(model, canvas, OWN_SAMPLER).samplers == (d3llm(best=True),)
    with pytest.raises(UncodeError, match="no sampler"):
        uncode.decode(uncode.load(folder), canvas, OWN_SAMPLER)


def mmada_config(**changes: Any) -> dict[str, Any]:
    config = llada_config(0)
    text = config["vocab_size"] - IMAGES
    ids = {"mask_token_id": text - 1, "eos_token_id": text - 3}
    return config | {"model_type": "mmada", "llm_vocab_size": text} | ids | changes


def test_mmada_writes_text_alone(tmp_path: Path) -> None:
    config = mmada_config()
    weights = llada_weights(config, 0)
    head = weights["model.transformer.ff_out.weight"]
    head[-IMAGES:] *= 100  # the network would write images
    folder = save(tmp_path / "mmada", config, weights)
    llada_tokenizer(chat_template="another").save_pretrained(folder)
    model = uncode.load(folder)
    canvas = uncode.Canvas.after_prompt([[1, 2, 3]], length=40, mask_id=model.mask_id)
    assert int(uncode.decode(model, canvas, "confidence").generated.max()) < config["llm_vocab_size"]
    shown = model.tokenizer.apply_chat_template(MESSAGES, tokenize=False)
    header = "<|start_header_id|>{}<|end_header_id|>\n"
    assert shown == f"<|startoftext|>{header.format('user')}What is 2 + 3?<|eot_id|>{header.format('assistant')}"


def test_no_two_families_have_one_title() -> None:
    titles = [dialect.title for dialect in DIALECTS]
    assert len(set(titles)) == len(titles)


def test_mmada_must_say_which_tokens_are_text(tmp_path: Path) -> None:
    config = mmada_config()
    del config["llm_vocab_size"]
    folder = save(tmp_path, config, llada_weights(config, 0))
    with pytest.raises(UncodeError, match=r"^config.json has no 'llm_vocab_size': the checkpoint is not complete\.$"):
        uncode.load(folder)


def test_the_padding_of_diffucoder_ends_an_answer(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    folder = save(tmp_path, dream_config(0), dream_weights(dream_config(0), 0))
    made = Tokenizer(models.WordLevel({"?": 0, "a": 1}, unk_token="?"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_end|>", "<|dlm_pad|>"]})
    tokenizer.save_pretrained(folder)
    model = uncode.load(folder)
    assert model.eos_ids == (58, *tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|dlm_pad|>"]))
