"""Our algorithm under SGLang's own base class and loops, without a GPU: the network is a small random one."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import re
import sys
import tomllib
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest
import torch

import uncode
from tests.adapters.block_model import BLOCK, MASK, Network, denoiser, prompts, table
from uncode import presets

if TYPE_CHECKING:
    from sglang.srt.dllm.algorithm import get_algorithm
    from sglang.srt.dllm.config import DllmConfig

    from uncode.adapters.sglang import Uncode


@pytest.fixture(scope="module", autouse=True)
def _sglang() -> None:
    """The real package. Of its imports torchvision alone is replaced where it is missing, which needs a GPU's torch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if importlib.util.find_spec("sglang") is None:
            pytest.skip("sglang is not installed: see make verify")
        import transformers.models.auto.image_processing_auto  # noqa: F401  # before torchvision is replaced

        if importlib.util.find_spec("torchvision") is None:
            inner = ("", ".transforms", ".transforms.functional", ".transforms.v2", ".transforms.v2.functional", ".io")
            for name in (f"torchvision{each}" for each in inner):
                sys.modules[name] = MagicMock(__spec__=importlib.machinery.ModuleSpec(name, None), __path__=[])
        from sglang.srt.dllm.algorithm import get_algorithm
        from sglang.srt.dllm.config import DllmConfig

        from uncode.adapters.sglang import Uncode, register
    register()
    globals().update(get_algorithm=get_algorithm, DllmConfig=DllmConfig, Uncode=Uncode)


def algorithm(fdfo: bool = False, **settings: Any) -> Any:
    """As SGLang makes it from `--dllm-algorithm Uncode` and the file of `--dllm-algorithm-config`."""
    return get_algorithm(DllmConfig("Uncode", settings, BLOCK, MASK, 4, first_done_first_out_mode=fdfo))


class Server:
    """What SGLang's scheduler and model runner do with a batch of requests: one block after the other."""

    def __init__(self, algo: Any, asked: list[list[int]], length: int) -> None:
        self.algo, self.network, self.rows = algo, Network(), [list(ids) for ids in asked]
        self.stops = [len(ids) + length for ids in asked]
        self.at = [len(ids) // BLOCK * BLOCK for ids in asked]
        self.states: list[Any] = [None] * len(asked)
        self.blocks = [self.fresh(row) for row in range(len(asked))]
        self.forwards = 0

    def fresh(self, row: int) -> list[int]:
        return (self.rows[row] + [MASK] * BLOCK)[self.at[row] : self.at[row] + BLOCK]

    def forward(self, batch: Any, pp_proxy_tensors: None) -> Any:
        self.forwards += 1
        blocks = batch.input_ids.view(-1, BLOCK)
        before = [torch.tensor(self.rows[row][: self.at[row]], dtype=torch.long) for row in self.live]
        each = [self.network(torch.cat(pair)[None]).logits[0, -BLOCK:] for pair in zip(before, blocks, strict=True)]
        return SimpleNamespace(logits_output=SimpleNamespace(full_logits=torch.cat(each)), can_run_graph=False)

    def round(self) -> None:
        """One call of the algorithm: a block of each request, or one forward of each."""
        self.live = [row for row, stop in enumerate(self.stops) if len(self.rows[row]) < stop]
        batch = SimpleNamespace(
            batch_size=len(self.live),
            input_ids=torch.tensor([self.blocks[row] for row in self.live]).flatten(),
            positions=torch.tensor([[*range(self.at[row], self.at[row] + BLOCK)] for row in self.live]).flatten(),
            dllm_prompt_mask=None,
            rids=[f"request {row}" for row in self.live],
            sampling_info=SimpleNamespace(sampling_seed=None),
        )
        _, tokens, accepted, states, _ = self.algo.run(self, batch, [self.states[row] for row in self.live])
        for place, row in enumerate(self.live):
            if accepted is not None and not accepted[place]:
                self.blocks[row], self.states[row] = tokens[place], states[place]
                continue
            new = [int(token) for token in tokens[place]]
            self.rows[row] = self.rows[row][: self.at[row]] + new if self.algo.fdfo else self.rows[row] + new
            self.at[row] += BLOCK
            self.states[row], self.blocks[row] = None, self.fresh(row)

    def run(self) -> list[list[int]]:
        while any(len(row) < stop for row, stop in zip(self.rows, self.stops, strict=True)):
            self.round()
        return self.rows


SAMPLERS: dict[str, Any] = {
    "confidence": presets.confidence,
    "position and frequency": lambda: presets.uncode(frequency=table(), rate=0.25),
    "several a step": lambda: presets.eb(gamma=0.5),
    "threshold": lambda: presets.fast_dllm(threshold=0.5, block_length=BLOCK, cache="none"),
}


@pytest.mark.parametrize("fdfo", [False, True])
@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("prompt", [8, 5])
def test_requests_get_what_decode_writes(tmp_path: Path, name: str, prompt: int, fdfo: bool) -> None:
    sampler, asked, length = SAMPLERS[name](), prompts(3, prompt).tolist(), 3 * BLOCK - prompt % BLOCK
    table().save(tmp_path / "random.safetensors")
    extra = {"frequency": str(tmp_path / "random.safetensors")} if "frequency" in name else {}
    server = Server(algorithm(fdfo, sampler=sampler.to_dict(), **extra), asked, length)
    canvas = uncode.Canvas.after_prompt(asked, length, MASK)
    want = uncode.decode(denoiser(server.network), canvas, sampler)
    assert server.run() == want.tokens.tolist()
    blocks = -(-(prompt + length) // BLOCK) - prompt // BLOCK
    assert server.forwards >= int(want.forwards.max()) + blocks  # one more a block: it stores the last keys


def test_rows_of_unequal_length_are_served_first_done_first_out() -> None:
    asked, sampler = [prompts(1, n)[0].tolist() for n in (3, 8, 14)], presets.eb(gamma=0.5)
    server = Server(algorithm(True, sampler=sampler.to_dict()), asked, 10)
    found = server.run()
    for ids, row in zip(asked, found, strict=True):
        canvas = uncode.Canvas.after_prompt([ids], -(-(len(ids) + 10) // BLOCK) * BLOCK - len(ids), MASK)
        assert row == uncode.decode(denoiser(server.network), canvas, sampler).tokens[0].tolist()


def test_tokens_may_be_taken_back_and_drawn() -> None:
    """More forwards than a block has tokens; another draw for each block, and the same again for the same request."""
    asked, sampler = prompts(2, 8).tolist(), presets.remdm(block_length=BLOCK, temperature=0.9).to_dict()
    first, again = (Server(algorithm(sampler=sampler, seed=3), asked, 16).run() for _ in range(2))
    assert first == again and all(MASK not in row for row in first)
    assert Server(algorithm(sampler=sampler, seed=4), asked, 16).run() != first


def test_a_prompt_may_hold_the_mask_token() -> None:
    algo, network = algorithm(sampler="confidence"), Network()
    ids = torch.tensor([1, MASK, 2, MASK, MASK, MASK, MASK, MASK])
    given = torch.tensor([[True] * 3 + [False] * 5])
    batch = SimpleNamespace(
        batch_size=1, input_ids=ids.clone(), positions=torch.arange(BLOCK), dllm_prompt_mask=given, rids=None,
        sampling_info=None,
    )  # fmt: skip
    runner = SimpleNamespace(
        forward=lambda b, pp_proxy_tensors: SimpleNamespace(
            logits_output=SimpleNamespace(full_logits=network(b.input_ids[None]).logits[0]), can_run_graph=False
        )
    )
    algo.run(runner, batch)
    assert batch.input_ids[:3].tolist() == [1, MASK, 2] and MASK not in batch.input_ids[3:]


def test_what_it_cannot_carry_is_refused() -> None:
    with pytest.raises(uncode.UncodeError, match="shares steps=8 among all blocks"):
        algorithm(sampler=presets.confidence(steps=8).to_dict())
    with pytest.raises(uncode.UncodeError, match=re.escape("no setting 'samplr': did you mean 'sampler'?")):
        algorithm(samplr="confidence")
    plain = {"temperature": 1.0, "top_p": 1.0, "top_k": 1 << 30, "min_p": 0.0, "json_schema": None}
    request = SimpleNamespace(sampling_params=SimpleNamespace(**plain), return_logprob=False)
    assert Uncode.validate_request(request) is None
    request.sampling_params.temperature, request.return_logprob = 0.7, True
    assert Uncode.validate_request(request) == (
        "the server's sampler decides, so a request cannot set temperature=0.7, logprobs."
    )


def test_sglang_finds_the_plugin() -> None:
    """Its entry point is declared, and names a function that registers the algorithm."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["sglang.srt.plugins"]["uncode"].partition(":")
    registry = importlib.import_module("sglang.srt.dllm.algorithm").algo_name_to_cls
    del registry["Uncode"]
    getattr(importlib.import_module(module), name)()
    assert registry["Uncode"] is Uncode
