"""A training run: steps, checkpoints, and resuming after an interruption."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from ..backbones.transformer.network import RMSNorm, Transformer
from ..backbones.transformer.pointwise import Rope, rope_of
from ..backbones.transformer.shape import Shape
from ..core.errors import require
from ..util.write import write_whole
from .checkpoint import CHECKPOINT_FILE, check_same_config, metadata_of
from .config import TrainConfig
from .examples.batches import Batches
from .examples.shards import Shards
from .graphed_step import GraphedStep
from .muon import Muon
from .objective import loss_of, mask_answers

MASK_ID, EOS_ID = 0, 1
WEIGHTS = "weights"
SAVE_SECONDS = 60.0
REPORT_STEPS = 50
"""Steps between two progress reports, each of which adds a point to the loss curve."""
ROPE_THETA, NORM_EPS = 10000.0, 1e-5


@dataclass
class Progress:
    """The progress of a run."""

    step: int = 0
    seconds: float = 0.0
    tokens: int = 0
    curve: list[tuple[int, float]] = field(default_factory=list)
    """Pairs of a step and the mean loss since the previous pair."""


OnProgress = Callable[[Progress], None]


def shape_of(config: TrainConfig) -> Shape:
    network = config.network
    context = max(config.examples.lengths)
    return Shape(
        network.width,
        network.layers,
        network.heads,
        network.heads,
        network.hidden,
        network.vocab,
        theta=ROPE_THETA,
        eps=NORM_EPS,
        context=context,
    )


class Run:
    """The network in training, with its optimizers."""

    def __init__(self, config: TrainConfig, shards: Shards, device: torch.device) -> None:
        self.config, self.device, self.progress = config, device, Progress()
        self.batches = Batches(shards, config, EOS_ID, device)
        self.network = _init_network(shape_of(config), config.seed, device)
        self.rate = torch.zeros((), device=device)
        """The learning rate, in a tensor that a CUDA graph can read."""
        self.optimizers = _optimizers(self.network, config, self.rate)
        self.ropes = {length: self._rope(length) for length in config.examples.lengths}
        self.loss: Callable[..., Tensor] = self._loss
        self.update: Callable[..., Tensor] = self._update
        if device.type == "cuda":  # compiled per layer: the eight layers are alike, so torch compiles one
            for layer in self.network.layers:
                layer.compile(dynamic=False)
            self.loss = torch.compile(self._loss, dynamic=False)
            self.update = GraphedStep(self._update)

    def train(self, out: Path, on_progress: OnProgress, until: int | None = None) -> None:
        """Run the remaining steps. A checkpoint is written every minute, at the end, and at Ctrl-C."""
        saved = began = time.monotonic()
        before, losses = self.progress.seconds, list[Tensor]()
        last = self.config.schedule.steps if until is None else min(until, self.config.schedule.steps)
        with _deferred_interrupts() as interrupts:
            while self.progress.step < last and not interrupts:
                losses.append(self.step(self.progress.step))
                self.progress.step += 1
                if self.progress.step % REPORT_STEPS == 0 or self.progress.step == last or interrupts:
                    self._record_loss(losses, before + time.monotonic() - began)
                    on_progress(self.progress)
                    if time.monotonic() - saved > SAVE_SECONDS:
                        self.save(out)
                        saved = time.monotonic()
            self.save(out)
        if interrupts:
            raise KeyboardInterrupt

    def _record_loss(self, losses: list[Tensor], seconds: float) -> None:
        """Append the mean of the losses to the loss curve."""
        loss = float(torch.stack(losses).mean())
        require(math.isfinite(loss), f"the loss is {loss} at step {self.progress.step}: lower schedule.peak.")
        losses.clear()
        self.progress.curve.append((self.progress.step, round(loss, 4)))
        self.progress.seconds = seconds

    def step(self, number: int) -> Tensor:
        """One optimizer step. The seed and the step number decide everything random in it."""
        batch = self.batches.batch(number)
        random = torch.Generator(self.device).manual_seed(self.config.seed * 10_000_019 + number)
        masked = mask_answers(batch, MASK_ID, self.config.examples.suffixes, random)
        self.progress.tokens += batch.tokens.numel()
        self.rate.fill_(learning_rate(number, self.config))
        return self.update(masked.tokens, batch.tokens, batch.answer, masked.masked, masked.weight)

    def _update(self, masked: Tensor, tokens: Tensor, *targets: Tensor) -> Tensor:
        """Forward, backward and both optimizers on one batch. Returns the loss."""
        self.network.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            residual = self.network(masked, self.ropes[masked.shape[1]])
            loss = self.loss(*residual, tokens, *targets)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), self.config.schedule.clip)
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.detach()

    def _loss(self, x: Tensor, delta: Tensor, *targets: Tensor) -> Tensor:
        return loss_of(self.network.logits(x, delta), *targets)

    def _rope(self, length: int) -> Rope:
        shape, positions = self.network.shape, torch.arange(length, device=self.device)[None]
        cos, sin = rope_of(positions, shape.rotary_width, shape.theta, torch.float32)
        return cos[:, None], sin[:, None]

    def save(self, out: Path) -> None:
        """Write a checkpoint from which the run can be resumed. The file is replaced atomically."""
        names: dict[Tensor, str] = {parameter: name for name, parameter in self.network.named_parameters()}
        state = {f"{WEIGHTS}.{name}": parameter.detach() for parameter, name in names.items()}
        for optimizer in self.optimizers:
            for parameter, kept in optimizer.state.items():
                state |= {f"{key}.{names[parameter]}": value for key, value in kept.items()}
        notes = metadata_of(self.config) | {"progress": json.dumps(vars(self.progress))}
        write_whole(out / CHECKPOINT_FILE, save({name: t.contiguous().cpu() for name, t in state.items()}, notes))

    def resume(self, out: Path) -> bool:
        """Restore the checkpoint in `out`. Returns False if there is none."""
        path = out / CHECKPOINT_FILE
        if not path.is_file():
            return False
        check_same_config(path, self.config)
        with safe_open(path, framework="pt") as file:
            notes = file.metadata()
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        self.progress = Progress(**json.loads(notes["progress"]))
        self.progress.curve = [(step, loss) for step, loss in self.progress.curve]
        for optimizer in self.optimizers:
            owned = {parameter for group in optimizer.param_groups for parameter in group["params"]}
            for name, parameter in self.network.named_parameters():
                if parameter in owned:
                    kept = {key.removesuffix(f".{name}"): t for key, t in state.items() if key.endswith(f".{name}")}
                    parameter.data.copy_(kept.pop(WEIGHTS))
                    optimizer.state[parameter] = {key: t.to(self.device) for key, t in kept.items()}
        return True


@contextmanager
def _deferred_interrupts() -> Iterator[list[int]]:
    """Collect Ctrl-C signals instead of raising, so that no step is left half done."""
    interrupts: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


def learning_rate(step: int, config: TrainConfig) -> float:
    """The learning rate of a step: linear warm-up, then cosine decay to zero."""
    schedule = config.schedule
    if step < schedule.warmup:
        return schedule.peak * (step + 1) / schedule.warmup
    progress = (step - schedule.warmup) / max(schedule.steps - schedule.warmup, 1)
    return schedule.peak * 0.5 * (1 + math.cos(math.pi * progress))


def _init_network(shape: Shape, seed: int, device: torch.device) -> Transformer:
    """A network with initial weights, the same on every device.

    They are normal with std 0.02. Projections that write to the residual stream have a std smaller by sqrt(2 * layers).
    """
    network = Transformer(shape).to_empty(device="cpu")
    random = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, RMSNorm):
            nn.init.ones_(module.weight)
    for name, parameter in network.named_parameters():
        if parameter.dim() == 2:
            is_residual = name.endswith(("out.weight", "down.weight"))
            std = 0.02 / math.sqrt(2 * shape.layers) if is_residual else 0.02
            nn.init.normal_(parameter, std=std, generator=random)
    return network.to(device).requires_grad_(True)


def _optimizers(network: Transformer, config: TrainConfig, rate: Tensor) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices, AdamW for all other parameters."""
    schedule = config.schedule
    matrices = [p for p in network.layers.parameters() if p.dim() == 2]
    known = set(matrices)
    others = [p for p in network.parameters() if p not in known]
    on_gpu = {"fused": True, "capturable": True} if rate.is_cuda else {}
    adam = torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.98), weight_decay=0.0, **on_gpu)
    return [Muon(matrices, rate, schedule.decay), adam]
