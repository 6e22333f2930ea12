"""The label-free choice of a threshold: a model's own answers, written from left to right, and then masked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import require
from ...generation.threshold import ThresholdChoice, choose_threshold
from ..task import Task
from .calibrate import calibration_examples, calibration_questions
from .config import SamplerEntry
from .folder import RunFolder, RunInfo
from .models.diffusion import DiffusionModel
from .models.model import Question
from .options import OnProgress, Progress, RunOptions
from .recorder import Recorder, versions

WRITER = SamplerEntry("left_to_right", "left_to_right")
"""It writes one token at a time, so no answer is spoilt by haste."""

OwnAnswer = tuple[list[int], list[int]]
"""The token ids of a prompt, and of the canvas after it."""


@dataclass(frozen=True)
class ThresholdCalibration:
    """Lets a model answer examples of some tasks, and chooses a threshold from these answers."""

    model: DiffusionModel
    tasks: tuple[Task[Any], ...]
    seed: int = 0

    def questions(self, count: int, data: Path | None = None) -> list[tuple[Task[Any], list[Question]]]:
        """Up to `count` examples of each task. No label is read."""
        has_end = len(self.model.denoiser.eos_ids) > 0
        require(has_end, f"'{self.model.name}' has no EOS token to end its answers with: use uncode.choose_threshold.")
        found = [(task, calibration_examples(task, count, self.seed, data)) for task in self.tasks]
        return [(task, calibration_questions(self.model, task, examples, self.seed)) for task, examples in found]

    def own_answers(
        self,
        questions: Sequence[tuple[Task[Any], list[Question]]],
        out: Path,
        options: RunOptions,
        on_progress: OnProgress,
    ) -> list[OwnAnswer]:
        """What the model writes, in the order of the questions. Answers that the folder holds are not made again."""
        folder = RunFolder.create(out, RunInfo("threshold", "Answers for a threshold", versions=versions()))
        total, found = sum(len(those) for _, those in questions), list[OwnAnswer]()
        with Recorder.open(folder, options) as recorder:
            for task, those in questions:
                sampler = self.model.prepare(WRITER, task.settings, {})
                before, written = len(found), dict[str, tuple[int, ...]]()
                samples = recorder.samples(self.model, task, sampler, WRITER.label, those, self.seed, is_graded=False)
                for sample in filter(None, samples):
                    written[sample.id] = sample.token_ids
                    on_progress(Progress(f"{task.name}, left to right", before + len(written), total, 0, 0))
                found += [self._canvas(one, written[one.example.id]) for one in those]
        return found

    def _canvas(self, question: Question, written: Sequence[int]) -> OwnAnswer:
        """The canvas as a decode would leave it, with EOS tokens after the text and the frame of a masked LM."""
        denoiser, missing = self.model.denoiser, question.length - len(written)
        return list(question.prompt_ids), [*written, *[denoiser.eos_ids[0]] * missing, *denoiser.frame[1]]

    def choose(
        self, answers: Sequence[OwnAnswer], max_error: float, masks: int, on_progress: Callable[[int, int], None]
    ) -> ThresholdChoice:
        denoiser = self.model.denoiser
        return choose_threshold(
            denoiser, answers, max_error=max_error, masks=masks, seed=self.seed, on_progress=on_progress
        )
