"""Our scheduler in the LLaDA2Pipeline of diffusers, on a small random model."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import uncode
from tests.adapters.block_model import BLOCK, MASK, Network, denoiser, prompts, table
from uncode import presets

if TYPE_CHECKING:
    from diffusers import LLaDA2Pipeline

    from uncode.adapters.diffusers import UncodeScheduler


@pytest.fixture(scope="module", autouse=True)
def _diffusers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("diffusers", minversion="0.42", reason="diffusers is not installed: see make verify")
        from diffusers import LLaDA2Pipeline

        from uncode.adapters.diffusers import UncodeScheduler
    globals().update(LLaDA2Pipeline=LLaDA2Pipeline, UncodeScheduler=UncodeScheduler)


def answer(scheduler: Any, network: Network, ids: torch.Tensor, length: int, **options: Any) -> torch.Tensor:
    pipe = LLaDA2Pipeline(network, scheduler)
    pipe.set_progress_bar_config(disable=True)
    options = {"gen_length": length, "mask_token_id": MASK, "output_type": "seq", "block_length": BLOCK} | options
    found: torch.Tensor = pipe(input_ids=ids, **options).sequences
    return found


SAMPLERS: dict[str, Any] = {
    "total steps": lambda: presets.confidence(steps=9),
    "position and frequency": lambda: presets.uncode(frequency=table(), rate=0.25),
    "several a step": lambda: presets.eb(gamma=0.5),
    "threshold": lambda: presets.fast_dllm(threshold=0.5, block_length=BLOCK, cache="none"),
    "random tokens": lambda: presets.uniform(temperature=0.7),
    "takes tokens back": lambda: presets.remdm(block_length=BLOCK, steps=24),
}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize(("prompt", "length"), [(8, 24), (5, 24), (11, 20)])
def test_the_pipeline_writes_what_decode_writes(tmp_path: Path, name: str, prompt: int, length: int) -> None:
    """A saved and loaded scheduler, over prompts that end inside a block, in as many forwards."""
    network, sampler, ids = Network(), SAMPLERS[name](), prompts(3, prompt)
    canvas = uncode.Canvas.after_prompt(ids, length, MASK)
    want = uncode.decode(denoiser(network), canvas, sampler, seed=7)
    table().save(tmp_path / "random.safetensors")
    options = {"gen_length": length, "block_length": BLOCK, "seed": 7, "num_inference_steps": 64}
    frequency = str(tmp_path / "random.safetensors") if "frequency" in name else None
    UncodeScheduler(sampler, frequency=frequency, **options).save_pretrained(tmp_path)
    network.calls = 0
    loaded = UncodeScheduler.from_pretrained(tmp_path)
    found = answer(loaded, network, ids, length, num_inference_steps=20, minimal_topk=1)
    assert found.equal(want.generated)
    blocks_differ = bool((want.forwards != want.forwards[0]).any())  # then a row waits for the others
    assert network.calls == len(want) or (blocks_differ and network.calls >= len(want))
    assert loaded.config["sampler"] == sampler.to_dict() and loaded.config["seed"] == 7


def test_a_sampler_by_name_and_an_eos() -> None:
    network, ids = Network(), prompts(2, 8)
    free = answer(UncodeScheduler("confidence", gen_length=16, block_length=BLOCK), network, ids, 16)
    eos = int(free[0, 2])
    ended = answer(UncodeScheduler("confidence", gen_length=16, block_length=BLOCK), network, ids, 16, eos_token_id=eos)
    first = int((free[0] == eos).nonzero()[0])
    assert ended[0, : first + 1].equal(free[0, : first + 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.5}, "the sampler decides, not temperature"),
        ({"threshold": 0.9, "top_k": 5}, "not top_k, threshold"),
        ({"generator": torch.Generator()}, "not generator"),
        ({"gen_length": 40}, "more than the scheduler's gen_length=16"),
        ({"num_inference_steps": 3}, "needs more than 3 steps in a block: raise num_inference_steps"),
        (
            {"callback_on_step_end": lambda pipe, step, t, has: {"block_x": has["block_x"] * 0}},
            "a callback has changed",
        ),
    ],
)
def test_what_it_cannot_carry_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(uncode.UncodeError, match=re.escape(message)):
        answer(
            UncodeScheduler("confidence", gen_length=16, block_length=BLOCK), Network(), prompts(1, 8), 16, **options
        )


def test_samplers_that_look_further_are_refused() -> None:
    with pytest.raises(uncode.UncodeError, match="reads beyond the open block"):
        answer(
            UncodeScheduler(presets.prophet(block_length=BLOCK), gen_length=16, block_length=BLOCK),
            Network(),
            prompts(1, 8),
            16,
        )
    scheduler = UncodeScheduler("confidence", gen_length=16, block_length=BLOCK)
    with pytest.raises(uncode.UncodeError, match="passes no mask_token_id"):
        scheduler.step(torch.zeros(1, BLOCK, 23), 0, torch.full((1, BLOCK), MASK))
