"""The training examples as token ids in one compressed file, to be copied to the machine that trains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ...core.errors import UncodeError, require
from ...util.write import write_whole
from .curriculum import TrainingExample

EXAMPLES_FILE = "examples.npz"
TOKENIZER_BATCH = 2000
"""Examples that are tokenized at a time."""


@dataclass(frozen=True)
class Shards:
    """Rows of token ids, one after the other. A row is a prompt and its answer."""

    tokens: np.ndarray
    """The ids of all rows, uint16."""
    prompts: np.ndarray
    """The length of each row's prompt."""
    answers: np.ndarray
    """The length of each row's answer."""
    families: np.ndarray
    """The number of each row's family."""
    made_by: str
    """A fingerprint of the config, the tokenizer and the held-out problems."""

    def save(self, path: Path) -> None:
        file = BytesIO()
        np.savez_compressed(file, **{**vars(self), "made_by": np.array(self.made_by)})
        write_whole(path, file.getvalue())

    @classmethod
    def load(cls, path: Path) -> Shards:
        require(path.is_file(), f"there are no examples at '{path}': draw them with `uncode train CONFIG --prepare`.")
        try:
            with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = {name: file[name] for name in ("tokens", "prompts", "answers", "families")}
                made_by = str(file["made_by"])
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise UncodeError(
                f"'{path}' is damaged ({error}): draw the examples again with `uncode train CONFIG --prepare`."
            ) from error
        return cls(**arrays, made_by=made_by)

    def __len__(self) -> int:
        return len(self.prompts)


def tokenize(
    examples: Iterable[tuple[int, TrainingExample]],
    tokenizer: Any,
    longest: int,
    longest_answers: Sequence[int],
    made_by: str,
    on_progress: Callable[[int], None],
) -> Shards:
    """Tokenize the examples. Leave out those longer than `longest`, and answers longer than their family's longest.

    `on_progress` is called with the number of examples in each finished batch.
    """
    batches, prompts, answers, families = list[np.ndarray](), list[int](), list[int](), list[int]()
    waiting = iter(examples)
    while batch := list(islice(waiting, TOKENIZER_BATCH)):
        texts = [text for _, example in batch for text in example]
        ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
        for (family, _), prompt, answer in zip(batch, ids[::2], ids[1::2], strict=True):
            if len(prompt) + len(answer) <= longest and len(answer) <= longest_answers[family]:
                batches.append(np.array(prompt + answer, dtype=np.uint16))
                prompts.append(len(prompt))
                answers.append(len(answer))
                families.append(family)
        on_progress(len(batch))
    require(len(prompts) > 0, f"no example has at most {longest} tokens: raise examples.lengths.")
    return Shards(
        tokens=np.concatenate(batches),
        prompts=np.array(prompts, dtype=np.uint16),
        answers=np.array(answers, dtype=np.uint16),
        families=np.array(families, dtype=np.uint8),
        made_by=made_by,
    )
