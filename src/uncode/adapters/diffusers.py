"""A scheduler for diffusers: `LLaDA2Pipeline` runs the model, and a sampler decides."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import torch
from diffusers import BlockRefinementScheduler, LLaDA2Pipeline
from diffusers.configuration_utils import register_to_config
from diffusers.schedulers.scheduling_block_refinement import BlockRefinementSchedulerOutput
from torch import Tensor

from ..core.canvas import Canvas
from ..core.errors import UncodeError, require
from ..core.pieces.policy import Sampler
from ..generation.decider import Decider
from ..samplers.resolve import resolve

DEFAULTS = {name: parameter.default for name, parameter in signature(LLaDA2Pipeline.__call__).parameters.items()}
"""The pipeline passes its defaults too, so a value that equals its default counts as not given."""


class UncodeScheduler(BlockRefinementScheduler):  # type: ignore[misc]
    """Writes the tokens of a block as a sampler decides: each row's are those of :func:`uncode.decode`.

    `sampler` is a Sampler, its data, the name of a preset, or a sampler file. `gen_length` is the pipeline's.
    `frequency` is the name or file of a frequency table. Row r has the seed `seed` + r. A block takes as many forwards
    as the sampler needs, at most `num_inference_steps`.
    """

    @register_to_config  # type: ignore[untyped-decorator]
    def __init__(
        self,
        sampler: Sampler | Mapping[str, Any] | str,
        gen_length: int = DEFAULTS["gen_length"],
        block_length: int = 32,
        seed: int = 0,
        frequency: str | None = None,
        num_inference_steps: int = DEFAULTS["num_inference_steps"],
    ) -> None:
        if isinstance(sampler, Sampler):
            self.register_to_config(sampler=sampler.to_dict())
        self.set_timesteps(num_inference_steps)

    def set_timesteps(self, num_inference_steps: int, device: Any = None, block_length: int | None = None) -> None:
        """A new answer begins."""
        super().set_timesteps(num_inference_steps, device=device, block_length=block_length)
        self._rows: list[Decider] = []
        self._stop = 0
        self._ended = torch.zeros(0, dtype=torch.bool)

    def step(
        self,
        model_output: Tensor,
        timestep: int | Tensor,
        sample: Tensor,
        *,
        mask_token_id: int | None = None,
        prompt_mask: Tensor | None = None,
        **options: Any,
    ) -> BlockRefinementSchedulerOutput:
        """One step of each row whose block has masks left."""
        options = {name: value for name, value in options.items() if value != DEFAULTS.get(name)}
        require(not options, f"the sampler decides, not {', '.join(options)}: leave it out, or set it in the sampler.")
        require(mask_token_id is not None, "a sampler fills masks, and this pipeline passes no mask_token_id.")
        if int(timestep) == 0:
            self._open_block(sample, int(mask_token_id or 0), prompt_mask, model_output.shape[-1])
        start, tokens, probs = self._stop - sample.shape[1], sample.clone(), sample.new_zeros(sample.shape).float()
        for row, decider in enumerate(self._rows):
            if self._ended[row]:
                continue
            if self._is_open(decider):
                own, columns = decider.tokens[0, start : self._stop], decider.columns
                require(own.equal(sample[row, : len(own)]), "a callback has changed tokens: no sampler can follow.")
                require(columns.stop <= self._stop, "the sampler reads beyond the open block: use another sampler.")
                here = slice(columns.start - start, columns.stop - start)
                step = decider.decide(model_output[row : row + 1, here])
                probs[row, here] = step.decision.belief.logp[0].exp().float()
            own = decider.tokens[0, start : self._stop]
            tokens[row, : len(own)] = own
        written, was_mask = tokens != sample, sample == mask_token_id
        return BlockRefinementSchedulerOutput(
            tokens, written & was_mask, written & ~was_mask, tokens, sampled_probs=probs, pred_logits=model_output
        )

    def _open_block(self, sample: Tensor, mask_id: int, prompt_mask: Tensor | None, vocab_size: int) -> None:
        """The pipeline goes to the next block; the first one tells where the answers start."""
        self._stop += sample.shape[1]
        if not self._rows:
            lead, length = 0 if prompt_mask is None else int(prompt_mask.sum()), self.config.gen_length
            sampler = resolve(self.config.sampler, table=self.config.frequency)
            for row, given in enumerate(sample[:, :lead]):
                tokens = torch.cat((given, given.new_full((length,), mask_id)))[None]
                canvas = Canvas(tokens, torch.ones_like(tokens, dtype=torch.bool), mask_id, lead)
                seed, block = self.config.seed + row, sample.shape[1]
                self._rows.append(Decider(canvas, sampler, seed, vocab_size=vocab_size, block_length=block))
            self._ended = torch.zeros(len(sample), dtype=torch.bool)
        length = self._rows[0].tokens.shape[1]
        require(
            self._stop < length + sample.shape[1],
            f"the pipeline generates more than the scheduler's gen_length={self.config.gen_length}: set it in both.",
        )

    def _is_open(self, decider: Decider) -> bool:
        """Whether a row has masks left in the pipeline's block."""
        return not decider.done and decider.columns.start < self._stop

    def check_block_should_continue(self, *, step_idx: int, finished: Tensor, **state: Any) -> bool:
        """Whether a row has masks left in the block: no forward is spent on a full one."""
        self._ended = finished.cpu()
        is_open = any(self._is_open(row) for row, end in zip(self._rows, self._ended, strict=True) if not end)
        if is_open and step_idx >= self.num_inference_steps:
            steps = self.num_inference_steps
            raise UncodeError(f"the sampler needs more than {steps} steps in a block: raise num_inference_steps.")
        return is_open
