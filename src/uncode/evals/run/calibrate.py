"""Label-free choices, on examples whose labels are not read.

Uncode's rate is the one with the least mean predictive entropy. A threshold comes from a model's own answers, which it
writes from left to right, and which are then masked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from ...core.errors import require
from ...util.stats import Interval, pearson, wilson
from ..suite.families.family import Family
from ..task import AnyTask, Example
from .config import SamplerEntry
from .folder import RunFolder, RunInfo
from .grading import grade_again
from .models.diffusion import DiffusionModel
from .models.model import EvaluatedModel
from .options import OnProgress, RunOptions, RunProgress
from .recorder import CellRun, Recorder, versions
from .sample import RunSample

WRITER = SamplerEntry("left_to_right", "left_to_right")
"""It writes one token at a time, so no answer is spoilt by haste."""

OwnAnswer = tuple[list[int], list[int]]
"""The token ids of a prompt, and of the canvas after it."""


@dataclass(frozen=True)
class RateChoice:
    """The samples at each rate. The chosen rate has the least mean predictive entropy."""

    samples: dict[float, list[RunSample]]

    @property
    def entropies(self) -> dict[float, float]:
        return {rate: mean_entropy(sample.entropy for sample in samples) for rate, samples in self.samples.items()}

    @property
    def rate(self) -> float:
        """Of equal entropies, the smaller rate."""
        entropies = self.entropies
        return min(entropies, key=lambda rate: (entropies[rate], rate))


@dataclass(frozen=True)
class RateCalibration:
    """Decodes the same examples at several rates."""

    model: EvaluatedModel
    task: AnyTask
    entry: SamplerEntry
    rates: tuple[float, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        require(len(set(self.rates)) > 1, "a choice needs at least two different rates: give several.")

    def run(
        self, count: int, out: Path, options: RunOptions, on_progress: OnProgress, labels: bool = False
    ) -> RateChoice:
        """Decode up to `count` examples at every rate into a folder of samples. Those that the folder holds are not
        made again.

        Every mask is filled. With `labels` the answers are graded too, which does not change the choice.
        """
        examples = calibration_examples(self.task, count, self.seed, options.data)
        title = f"Mean predictive entropy of {self.entry.label} at {len(self.rates)} rates"
        folder = RunFolder.create(out, RunInfo("calibration", title, versions=versions()))
        questions = self.model.questions(self.task, enumerate(examples), self.seed)
        found: dict[float, list[RunSample]] = {rate: [] for rate in self.rates}
        whole = replace(self.entry, stop_at_eos=False)  # the mean is over all steps, as in the paper
        with Recorder.open(folder, options) as recorder:
            for number, rate in enumerate(self.rates):
                sampler = self.model.prepare(whole, self.task.settings, {"rate": rate})
                label, cell = f"{self.entry.label} {rate:g}", f"{self.task.name}, rate {rate:g} without labels"
                before = number * len(questions)
                run = CellRun(
                    recorder, self.model, self.task, sampler, label, questions, self.seed, observe=True, is_graded=False
                )
                for sample in run.decoded():
                    found[rate].append(sample)
                    done = before + len(found[rate])
                    on_progress(RunProgress(cell, done, len(questions) * len(self.rates), 0, 0))
        if not labels:
            return RateChoice(found)
        samples = [sample for rows in found.values() for sample in rows]
        known = {self.task.name: {example.id: example for example in examples}}
        graded = iter(grade_again(samples, [self.task], known, options.graders))  # the folder does not keep the grades
        return RateChoice({rate: [next(graded) for _ in rows] for rate, rows in found.items()})


def own_answers(
    model: DiffusionModel,
    tasks: Sequence[AnyTask],
    count: int,
    seed: int,
    out: Path,
    options: RunOptions,
    on_progress: OnProgress,
) -> list[OwnAnswer]:
    """What a model writes on up to `count` examples of each task, in their order, to choose a threshold from.

    No label is read. Answers that the folder holds are not made again.
    """
    denoiser = model.denoiser
    has_end = len(denoiser.eos_ids) > 0
    require(has_end, f"'{model.name}' has no EOS token to end its answers with: use uncode.choose_threshold.")
    examples = [(task, calibration_examples(task, count, seed, options.data)) for task in tasks]
    questions = [(task, model.questions(task, enumerate(of), seed)) for task, of in examples]
    folder = RunFolder.create(out, RunInfo("threshold", "Answers for a threshold", versions=versions()))
    total, found = sum(len(those) for _, those in questions), list[OwnAnswer]()
    with Recorder.open(folder, options) as recorder:
        for task, those in questions:
            sampler = model.prepare(WRITER, task.settings, {})
            before, written = len(found), dict[str, tuple[int, ...]]()
            run = CellRun(recorder, model, task, sampler, WRITER.label, those, seed, is_graded=False)
            for sample in run.decoded():
                written[sample.id] = sample.token_ids
                on_progress(RunProgress(f"{task.name}, left to right", before + len(written), total, 0, 0))
            for one in those:  # as a decode would leave the canvas: EOS after the text, and the frame of a masked LM
                ids = written[one.example.id]
                missing = one.length - len(ids)
                canvas = [*ids, *[denoiser.eos_ids[0]] * missing, *denoiser.frame[1]]
                found.append((list(one.prompt_ids), canvas))
    return found


def calibration_examples(task: AnyTask, count: int, seed: int, data: Path | None = None) -> list[Example]:
    """Examples to calibrate on: a family's own without labels, or a random part of a benchmark."""
    if isinstance(task, Family):
        return list(task.unlabelled(data)[:count])
    examples = task.examples(data)
    return examples if len(examples) <= count else Random(seed).sample(examples, count)


def mean_entropy(entropies: Iterable[float | None]) -> float:
    """The mean predictive entropy of a set of answers, of those that were observed."""
    values = [entropy for entropy in entropies if entropy is not None]
    return round(sum(values) / len(values), 6)


def accuracies(choice: RateChoice) -> dict[float, Interval]:
    """The accuracy at each rate, if the answers were graded."""
    return {
        rate: wilson(sum(sample.grades["correct"].correct for sample in samples), len(samples))
        for rate, samples in choice.samples.items()
    }


def correlation(choice: RateChoice) -> Interval | None:
    """Pearson's r of mean predictive entropy and accuracy over the rates; None if one of them does not vary."""
    entropies = list(choice.entropies.values())
    right = [interval.estimate for interval in accuracies(choice).values()]
    if len(set(entropies)) < 2 or len(set(right)) < 2:
        return None
    return pearson(entropies, right)
