"""A training run: steps, checkpoints, and going on where it was interrupted."""

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

from ..backbones.transformer.network import RMSNorm, Shape, Transformer
from ..backbones.transformer.rope import Rope, rope_of
from ..core.errors import require
from ..core.support.write import write_whole
from .batches import Batches
from .checkpoint import FILE, check_same_config, notes_for
from .config import TrainConfig
from .muon import Muon
from .objective import hide, loss_of
from .shards import Shards

MASK_ID, END_ID = 0, 1
WEIGHTS = "weights"
SAVE_SECONDS = 60.0
TELL_EVERY = 50
"""Steps between two points of the loss curve."""
THETA, EPS = 10000.0, 1e-5


@dataclass
class Progress:
    """How far a run is."""

    step: int = 0
    seconds: float = 0.0
    tokens: int = 0
    curve: list[tuple[int, float]] = field(default_factory=list)
    """Steps, and the mean loss since the point before."""


OnProgress = Callable[[Progress], None]


def shape_of(config: TrainConfig) -> Shape:
    made = config.network
    context = max(config.examples.lengths)
    return Shape(
        made.width, made.layers, made.heads, made.heads, made.hidden, made.vocab, theta=THETA, eps=EPS, context=context
    )


class Run:
    """The network in training, with its optimiser."""

    def __init__(self, config: TrainConfig, shards: Shards, device: torch.device) -> None:
        self.config, self.device, self.progress = config, device, Progress()
        self.batches = Batches(shards, config, END_ID, device)
        self.network = _beginning(shape_of(config), config.seed, device)
        self.optimizers = _optimizers(self.network, config, fused=device.type == "cuda")
        self.ropes = {length: self._rope(length) for length in config.examples.lengths}
        self.loss: Callable[..., Tensor] = self._loss
        if device.type == "cuda":  # a layer at a time: eight of one kind are compiled once
            for layer in self.network.layers:
                layer.compile(dynamic=False)
            self.loss = torch.compile(self._loss, dynamic=False)

    def train(self, out: Path, on_progress: OnProgress, until: int | None = None) -> None:
        """All steps that are left; a checkpoint every minute, at the end, and where a user interrupts it."""
        saved = began = time.monotonic()
        before, losses = self.progress.seconds, list[Tensor]()
        last = self.config.schedule.steps if until is None else min(until, self.config.schedule.steps)
        with _interruptions() as asked:
            while self.progress.step < last and not asked:
                losses.append(self.step(self.progress.step))
                self.progress.step += 1
                if self.progress.step % TELL_EVERY == 0 or self.progress.step == last or asked:
                    self._note(losses, before + time.monotonic() - began)
                    on_progress(self.progress)
                    if time.monotonic() - saved > SAVE_SECONDS:
                        self.save(out)
                        saved = time.monotonic()
            self.save(out)
        if asked:
            raise KeyboardInterrupt

    def _note(self, losses: list[Tensor], seconds: float) -> None:
        """A point of the loss curve."""
        loss = float(torch.stack(losses).mean())
        require(math.isfinite(loss), f"the loss is {loss} at step {self.progress.step}: lower schedule.peak.")
        losses.clear()
        self.progress.curve.append((self.progress.step, round(loss, 4)))
        self.progress.seconds = seconds

    def step(self, number: int) -> Tensor:
        """One step of the optimiser; everything random in it follows from the seed and its number."""
        loss = self._loss_at(number)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), self.config.schedule.clip)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate_at(number, self.config)
            optimizer.step()
        self.network.zero_grad(set_to_none=True)
        return loss.detach()

    def _loss_at(self, number: int) -> Tensor:
        batch = self.batches.batch(number)
        random = torch.Generator(self.device).manual_seed(self.config.seed * 10_000_019 + number)
        hidden = hide(batch, MASK_ID, self.config.examples.suffixes, random)
        self.progress.tokens += batch.tokens.numel()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            stream = self.network(hidden.tokens, self.ropes[batch.tokens.shape[1]])
            return self.loss(*stream, batch.tokens, batch.answer, hidden.hidden, hidden.weight)

    def _loss(self, x: Tensor, delta: Tensor, *rest: Tensor) -> Tensor:
        return loss_of(self.network.logits(x, delta), *rest)

    def _rope(self, length: int) -> Rope:
        shape, positions = self.network.shape, torch.arange(length, device=self.device)[None]
        cos, sin = rope_of(positions, shape.head_width, shape.theta, torch.float32)
        return cos[:, None], sin[:, None]

    def save(self, out: Path) -> None:
        """Everything that is needed to go on, whole or not at all."""
        names: dict[Tensor, str] = {parameter: name for name, parameter in self.network.named_parameters()}
        state = {f"{WEIGHTS}.{name}": parameter.detach() for parameter, name in names.items()}
        for optimizer in self.optimizers:
            for parameter, kept in optimizer.state.items():
                state |= {f"{key}.{names[parameter]}": value for key, value in kept.items()}
        notes = notes_for(self.config) | {"progress": json.dumps(vars(self.progress))}
        write_whole(out / FILE, save({name: t.contiguous().cpu() for name, t in state.items()}, notes))

    def resume(self, out: Path) -> bool:
        """Go on from the checkpoint in `out`, if there is one."""
        path = out / FILE
        if not path.is_file():
            return False
        check_same_config(path, self.config)
        with safe_open(path, framework="pt") as file:
            notes = file.metadata()
            # checkpoints of 0.1.0 call the layers blocks
            state = {name.replace(".blocks.", ".layers."): file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
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
def _interruptions() -> Iterator[list[int]]:
    """Ctrl-C, noted: a step that is half done would leave weights that no run has."""
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield asked
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: asked.append(number))
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def rate_at(step: int, config: TrainConfig) -> float:
    """The learning rate: up in a line, down in half a cosine."""
    schedule = config.schedule
    if step < schedule.warmup:
        return schedule.peak * (step + 1) / schedule.warmup
    part = (step - schedule.warmup) / max(schedule.steps - schedule.warmup, 1)
    return schedule.peak * 0.5 * (1 + math.cos(math.pi * part))


def _beginning(shape: Shape, seed: int, device: torch.device) -> Transformer:
    """A network with its first numbers, the same on every device: normal, smaller where a layer adds to the stream."""
    network = Transformer(shape).to_empty(device="cpu")
    random = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, RMSNorm):
            nn.init.ones_(module.weight)
    for name, parameter in network.named_parameters():
        if parameter.dim() == 2:
            adds = name.endswith(("out.weight", "down.weight"))
            spread = 0.02 / math.sqrt(2 * shape.layers) if adds else 0.02
            nn.init.normal_(parameter, std=spread, generator=random)
    return network.to(device).requires_grad_(True)


def _optimizers(network: Transformer, config: TrainConfig, fused: bool) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices, AdamW for the rest."""
    schedule = config.schedule
    matrices = [p for p in network.layers.parameters() if p.dim() == 2]
    known = set(matrices)
    others = [p for p in network.parameters() if p not in known]
    adam = torch.optim.AdamW(others, lr=schedule.peak, betas=(0.9, 0.98), weight_decay=0.0, fused=fused)
    return [Muon(matrices, schedule.peak, schedule.decay), adam]
