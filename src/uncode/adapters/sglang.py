"""A plugin of SGLang: `--dllm-algorithm Uncode` decides with a sampler which tokens of a block are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import torch
from sglang.srt.dllm.algorithm import algo_name_to_cls
from sglang.srt.dllm.algorithm.base import DllmAlgorithm
from torch import Tensor

from ..core.canvas import Canvas
from ..core.errors import require, suggest
from ..core.pieces.policy import Sampler
from ..generation.decider import Decider
from ..samplers.options import DEFAULT_SAMPLER
from ..samplers.resolve import resolve

SETTINGS = ("sampler", "frequency", "seed", "block_size")
"""What the file of `--dllm-algorithm-config` may hold. SGLang itself reads `block_size`."""
ONLY: dict[str, tuple[Any, ...]] = {
    "temperature": (0.0, 1.0),
    "top_p": (1.0,),
    "top_k": (-1, 1, 1 << 30),  # SGLang turns temperature 0 into top_k 1, and no top_k into 2^30
    "min_p": (0.0,),
    "frequency_penalty": (0.0,),
    "presence_penalty": (0.0,),
    "repetition_penalty": (1.0,),
    "min_new_tokens": (0,),
    **dict.fromkeys(("logit_bias", "json_schema", "regex", "ebnf", "structural_tag"), (None,)),
}
"""The sampling parameters of a request that would change what is written, and the values that change nothing."""


@dataclass
class _Block:
    """A request's open block: its canvas, which begins with the prompt, and what decides on it."""

    given: Tensor
    seed: int
    position: int
    decider: Decider | None = None


class Uncode(DllmAlgorithm):  # type: ignore[misc]
    """One sampler for all requests of a server. A block is decided by itself: SGLang hands out no more than that."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        settings = dict(config.algorithm_config or {})
        for name in settings:
            require(name in SETTINGS, f"the algorithm Uncode has no setting '{name}': {suggest(name, SETTINGS)}")
        self.sampler = resolve(settings.get("sampler", DEFAULT_SAMPLER), table=settings.get("frequency"))
        self.seed = int(settings.get("seed", 0))
        _check(self.sampler)

    @classmethod
    def validate_request(cls, req: Any) -> str | None:
        """Why a request cannot be served, in one sentence."""
        values = {name: getattr(req.sampling_params, name, only[0]) for name, only in ONLY.items()}
        wrong = [f"{name}={value}" for name, value in values.items() if value not in ONLY[name] and value is not None]
        wrong += ["logprobs"] * bool(req.return_logprob)
        return f"the server's sampler decides, so a request cannot set {', '.join(wrong)}." if wrong else None

    def max_steps(self, block_size: int) -> int:
        """So many forwards as a sampler may take, and the one that stores the keys of the last tokens."""
        return (self.sampler.limit or 8 * block_size + 64) + 1

    def init_step_state(self, forward_batch: Any) -> list[_Block | None]:
        """The open block of each request; None where it holds nothing but the prompt."""
        positions = forward_batch.positions.view(-1, self.block_size)[:, 0].tolist()
        seeds, names = getattr(forward_batch.sampling_info, "sampling_seed", None), forward_batch.rids
        blocks: list[_Block | None] = []
        prompts = self._prompt_mask(forward_batch)
        for row, (given, is_full) in enumerate(zip(prompts, prompts.all(1).tolist(), strict=True)):
            own = int(seeds[row]) if seeds is not None else crc32(names[row].encode()) if names else row
            blocks.append(None if is_full else _Block(given, self.seed + own, positions[row]))
        return blocks

    def step(self, forward_batch: Any, full_logits: Tensor, states: list[_Block | None]) -> list[bool]:
        """One step of each block. A block is done once a forward has seen its last tokens."""
        logits = full_logits.view(forward_batch.batch_size, self.block_size, -1)
        ids, done = forward_batch.input_ids.view(-1, self.block_size), []
        for row, block in enumerate(states):
            done.append(block is None or (block.decider is not None and block.decider.done))
            if block is None or done[-1]:
                continue
            block.decider = block.decider or self._start(block, ids[row], logits.shape[-1])
            columns = block.decider.columns
            here = slice(columns.start - block.position, columns.stop - block.position)
            block.decider.decide(logits[row : row + 1, here])
            ids[row] = torch.where(block.given, ids[row], block.decider.tokens[0, block.position :])
        return done

    def _start(self, block: _Block, ids: Tensor, vocab_size: int) -> Decider:
        """A decider on the block, whose columns count from the start of the sequence."""
        filler = int(self.mask_id == 0)  # what was given is never read, and may be the mask token itself
        before, own = ids.new_full((block.position,), filler), torch.where(block.given, filler, self.mask_id)
        tokens = torch.cat((before, own))[None]
        canvas = Canvas(tokens, torch.ones_like(tokens, dtype=torch.bool), self.mask_id, 0)
        return Decider(canvas, self.sampler, block.seed, vocab_size=vocab_size, block_length=self.block_size)


def _check(sampler: Sampler) -> None:
    """Raise if the sampler needs to know how long the answer is."""
    steps = sampler.to_dict()["policy"]["select"].get("quota", {}).get("steps")
    require(
        steps is None,
        f"'{sampler.name}' shares steps={steps} among all blocks, and SGLang does not say how many there are: leave "
        "steps out, or use a sampler with a threshold.",
    )


def register() -> None:
    """Called by SGLang in each of its processes, through the entry point of this package."""
    algo_name_to_cls["Uncode"] = Uncode
