"""Running the mini-suite: decode, grade, note; a cell that is there already is not run again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ...core.decode import steps
from ...core.denoiser import Denoiser
from ...core.piece import Table
from ...core.policy import Sampler
from ...core.stop import AfterEos
from ...core.trace import Trace
from ...files import write_whole
from ...prompt import Prompt, answers, canvas_of, read_prompts
from ..families import FAMILIES
from ..families.family import Family
from .contenders import QUICK, RATES, UNCODE, at_rate, baselines, calibrated, with_rate
from .results import Cell, Results

Watch = Callable[[str, str], None]
"""Is told the family and the sampler that come next."""


@dataclass(frozen=True)
class Suite:
    """A model with its table, and how many problems it is given."""

    denoiser: Denoiser
    table: Table
    problems: int
    batch: int
    seed: int
    folder: Path | None
    """Where results and answers go."""
    grades: dict[tuple[str, str], bool] = field(default_factory=dict)
    """By problem and answer: samplers often agree, and running a program takes longer than writing it."""

    def cell(self, results: Results, family: Family[Any], name: str, sampler: Sampler) -> Cell:
        """A cell of the table, from the results or run now."""
        known = results.cells.setdefault(family.name, {})
        if name not in known:
            known[name] = self._run(family, name, sampler)
            if self.folder is not None:
                results.save(self.folder / "results.json")
        return known[name]

    def _run(self, family: Family[Any], name: str, sampler: Sampler) -> Cell:
        examples = family.examples()[: self.problems]
        texts, forwards, lengths, hasty = list[str](), list[int](), list[int](), ""
        for trace, prompts in self.decoded(family, examples, sampler.stopping(AfterEos())):
            texts += answers(self.denoiser, prompts, trace)
            forwards += trace.forwards.tolist()
            ended = torch.isin(trace.generated, torch.tensor(self.denoiser.eos_ids))
            lengths += torch.where(ended.any(1), ended.long().argmax(1), trace.generated.shape[1]).tolist()
            early = (trace.commit_step >= 0) & (trace.commit_step < trace.forwards[:, None] / 4)
            hasty += "".join("1" if row else "0" for row in (ended & early).any(1).tolist())
        self._grade(family, examples, texts)
        self._keep(family, name, [e.id for e in examples], texts)
        right = "".join("1" if self.grades[e.id, text] else "0" for e, text in zip(examples, texts, strict=True))
        return Cell(right, hasty, round(sum(forwards) / len(forwards), 2), round(sum(lengths) / len(lengths), 2))

    def _grade(self, family: Family[Any], examples: Sequence[Any], texts: list[str]) -> None:
        """Grade the answers that were not graded before."""
        new = [(e, text) for e, text in zip(examples, texts, strict=True) if (e.id, text) not in self.grades]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for (e, text), grade in zip(new, pool.map(lambda pair: family.grade(*pair), new), strict=True):
                self.grades[e.id, text] = grade.correct

    def decoded(
        self, family: Family[Any], examples: Sequence[Any], sampler: Sampler, observe: str = "open"
    ) -> list[tuple[Trace, list[Prompt]]]:
        """The traces of some problems, a batch at a time; problem n has the seed of the suite plus n."""
        found = []
        for start in range(0, len(examples), self.batch):
            texts = [family.prompt(example) for example in examples[start : start + self.batch]]
            prompts = read_prompts(self.denoiser, texts, family.length)
            run = steps(
                self.denoiser,
                canvas_of(self.denoiser, prompts),
                sampler,
                self.seed + start,
                observe=observe,  # type: ignore[arg-type]
            )
            found.append((run.trace(), prompts))
        return found

    def _keep(self, family: Family[Any], name: str, ids: list[str], texts: list[str]) -> None:
        """The answers as a file of their own, to be read or graded again."""
        if self.folder is None:
            return
        folder = self.folder / "answers"
        folder.mkdir(parents=True, exist_ok=True)
        rows = ({"id": example, "text": text} for example, text in zip(ids, texts, strict=True))
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        write_whole(folder / f"{family.name}-{name.replace(' ', '-')}.jsonl", lines)


def full(suite: Suite, results: Results, watch: Watch) -> None:
    """All presets on all families; Uncode at every candidate rate, its other presets at the family's own."""
    for family in FAMILIES.values():
        for name, sampler in baselines(family.length).items():
            watch(family.name, name)
            suite.cell(results, family, name, sampler)
        for rate in RATES:
            watch(family.name, with_rate(rate))
            suite.cell(results, family, with_rate(rate), at_rate(suite.table, rate))
            if f"{rate:g}" not in results.entropies.setdefault(family.name, {}):
                results.entropies[family.name][f"{rate:g}"] = entropy_at(suite, family, rate)
        for name, sampler in calibrated(family.length, suite.table, results.rate(family.name)).items():
            watch(family.name, name)
            suite.cell(results, family, name, sampler)


def quick(suite: Suite, results: Results, rates: dict[str, float], watch: Watch) -> None:
    """Five presets, with the rates that the card has."""
    for family in FAMILIES.values():
        known = baselines(family.length) | {UNCODE: at_rate(suite.table, rates[family.name])}
        for name in QUICK:
            watch(family.name, name)
            suite.cell(results, family, name, known[name])


def entropy_at(suite: Suite, family: Family[Any], rate: float) -> float:
    """The mean predictive entropy of problems whose answers nobody looks at."""
    sampler = at_rate(suite.table, rate)
    traces = suite.decoded(family, family.unlabelled(), sampler, observe="span")
    return round(float(torch.cat([trace.sequence_entropy for trace, _ in traces]).mean()), 6)
