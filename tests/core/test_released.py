"""Sampler files and traces that were saved by an earlier commit: they load, and decode to the same tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import uncode
from uncode import Sampler, Trace

RELEASED = Path(__file__).parent / "released"


@pytest.mark.parametrize("name", sorted(file.stem for file in RELEASED.glob("*.toml")))
def test_saved_samplers_and_traces_load(name: str) -> None:
    model = uncode.load("toy")
    trace = Trace.load(RELEASED / f"{name}.jsonl", frequency=model.frequency)
    sampler = Sampler.load(RELEASED / f"{name}.toml", frequency=model.frequency)
    assert trace.samplers == (sampler,)
    assert torch.equal(trace.replay(), trace.tokens)
    again = uncode.decode(model, trace.canvas, sampler, list(trace.seeds), observe=trace.header["observe"])
    assert torch.equal(again.tokens, trace.tokens)
    assert torch.equal(again.commit_step, trace.commit_step)
    assert again.events == trace.events
