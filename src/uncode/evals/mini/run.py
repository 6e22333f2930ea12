"""Runs the mini-suite: decode, grade, record. Finished cells are not run again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ...core.denoiser import Denoiser
from ...core.errors import UncodeError
from ...core.pieces.piece import Table
from ...core.pieces.policy import Sampler
from ...core.pieces.stop import AfterEos
from ...core.stepper.requests import DecodeOptions
from ...core.support.paths import make_folder
from ...core.support.write import write_whole
from ...core.trace import Trace
from ...engine import Engine, Request
from ...prompt import Prompt, answer_texts, canvas_of, read_prompts
from ...samplers.interventions import trivial_ids
from ...samplers.presets import confidence, left_to_right
from ..families.family import Family
from .biases import order_of
from .contenders import at_rate, baselines, calibrated
from .names import QUICK, RATES, UNCODE, with_rate
from .results import Cell, Part, best_rate

REPORT_SECONDS = 10.0
"""Seconds between two progress reports of a decode."""
OnProgress = Callable[[str], None]
"""Called with a line of text about the current work."""


@dataclass
class Suite:
    """One family on a model with its frequency table."""

    denoiser: Denoiser
    table: Table
    family: Family[Any]
    part: Part
    batch: int
    folder: Path | None
    """The folder for results and answers."""
    on_progress: OnProgress
    grades: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Grades by problem and answer, so that equal answers of several samplers are graded once."""

    def full(self) -> None:
        """Run all presets: Uncode with every candidate rate, its other presets with the rate chosen without labels."""
        length, entropies = self.family.length, self.part.entropies
        self._cells(baselines(length))
        for rate in RATES:
            self._cells({with_rate(rate): at_rate(self.table, rate)})
            if f"{rate:g}" not in entropies:
                entropies[f"{rate:g}"] = self._entropy(rate)
                self.save()
        self._cells(calibrated(length, self.table, best_rate(entropies)))
        for sampler in (confidence(), left_to_right()):
            if sampler.name not in self.part.orders:
                self.on_progress(f"{self.family.name}, {sampler.name}, its order")
                self.part.orders[sampler.name] = self._order(sampler)
                self.save()

    def quick(self, rate: float) -> None:
        """Run five presets, Uncode with a known rate."""
        known = baselines(self.family.length) | {UNCODE: at_rate(self.table, rate)}
        self._cells({name: known[name] for name in QUICK})

    def _cells(self, samplers: dict[str, Sampler]) -> None:
        for name, sampler in samplers.items():
            if name not in self.part.cells:
                self.on_progress(f"{self.family.name}, {name}")
                self.part.cells[name] = self._cell(name, sampler.stopping(AfterEos()))
                self.save()

    def _cell(self, name: str, sampler: Sampler) -> Cell:
        examples = self.examples
        texts, forwards, lengths, hasty = list[str](), list[int](), list[int](), ""
        for trace, prompt in self._decoded(examples, sampler):
            texts += answer_texts(self.denoiser, [prompt], trace)
            forwards += trace.forwards.tolist()
            ended = torch.isin(trace.generated, torch.tensor(self.denoiser.eos_ids))
            lengths += torch.where(ended.any(1), ended.long().argmax(1), trace.generated.shape[1]).tolist()
            early = (trace.commit_step >= 0) & (trace.commit_step < trace.forwards[:, None] / 4)
            hasty += "".join("1" if row else "0" for row in (ended & early).any(1).tolist())
        self._grade(examples, texts)
        self._write_answers(name, [e.id for e in examples], texts)
        right = "".join("1" if self.grades[e.id, text] else "0" for e, text in zip(examples, texts, strict=True))
        return Cell(right, hasty, round(sum(forwards) / len(forwards), 2), round(sum(lengths) / len(lengths), 2))

    @property
    def examples(self) -> list[Any]:
        return self.family.examples()[: self.part.about["problems"]]

    def _grade(self, examples: Sequence[Any], texts: list[str]) -> None:
        """Grade the answers that were not graded before."""
        new = [(e, text) for e, text in zip(examples, texts, strict=True) if (e.id, text) not in self.grades]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for (e, text), grade in zip(new, pool.map(lambda pair: self.family.grade(*pair), new), strict=True):
                self.grades[e.id, text] = grade.correct

    def _decoded(
        self, examples: Sequence[Any], sampler: Sampler, what: str | None = None, **decode_options: Any
    ) -> list[tuple[Trace, Prompt]]:
        """The trace of each problem, decoded on the engine. Problem n has the seed of the suite plus n."""
        options: DecodeOptions = decode_options  # type: ignore[assignment]
        engine, last = Engine(self.denoiser, max_rows=self.batch, **options), time.monotonic()
        texts = [self.family.prompt(example) for example in examples]
        prompts, seed = read_prompts(self.denoiser, texts, self.family.length), self.part.about["seed"]
        for number, prompt in enumerate(prompts):
            engine.submit(Request(canvas_of(self.denoiser, [prompt]), sampler, seed + number, key=number))
        found = dict[int, Trace]()
        while not engine.is_idle:
            for result in engine.step():
                if result.trace is None:
                    raise UncodeError(f"{self.family.name}, {sampler.name}: {result.error}")
                found[result.request.key] = result.trace
            if time.monotonic() - last > REPORT_SECONDS:
                last = time.monotonic()
                done = f"{len(found)} of {len(prompts)}"
                self.on_progress(f"{self.family.name}, {what or sampler.name}: {done}, forward {engine.forwards}")
        return [(found[number], prompt) for number, prompt in enumerate(prompts)]

    def _entropy(self, rate: float) -> float:
        """The mean predictive entropy on the problems without labels."""
        problems = self.family.unlabelled()
        what = f"rate {rate:g} ({RATES.index(rate) + 1} of {len(RATES)}) on {len(problems)} unlabelled problems"
        self.on_progress(f"{self.family.name}, {what}")
        traces = self._decoded(problems, at_rate(self.table, rate), what, observe="span")
        return round(float(torch.cat([trace.sequence_entropy for trace, _ in traces]).mean()), 6)

    def _order(self, sampler: Sampler) -> dict[str, Any]:
        traces = [trace for trace, _ in self._decoded(self.examples, sampler)]
        return order_of(traces, trivial_ids(self.denoiser.tokenizer), self.denoiser.eos_ids)

    def _write_answers(self, name: str, ids: list[str], texts: list[str]) -> None:
        """Write the answers to a file, to be read or graded again."""
        if self.folder is None:
            return
        folder = self.folder / "answers"
        make_folder(folder)
        rows = ({"id": example, "text": text} for example, text in zip(ids, texts, strict=True))
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        write_whole(folder / f"{self.family.name}-{name.replace(' ', '-')}.jsonl", lines)

    def save(self) -> None:
        if self.folder is not None:
            self.part.save(self.folder / f"{self.family.name}.json")
