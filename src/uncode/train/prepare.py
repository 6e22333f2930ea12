"""From a training config to the files a run needs: tokenizer and lessons."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path

from ..backbones.loading.tokenizer import tokenizer_of
from ..core.errors import require
from ..core.support.write import write_whole
from ..evals.families import FAMILIES
from ..extras import check_installed
from .curriculum import Lesson, curriculum
from .recipe import Recipe
from .shards import FILE, Shards, tokenize
from .tokenizer import train_tokenizer

TEXTS = "curriculum.jsonl"
SAMPLE = 60_000
"""Lessons that the tokenizer is trained on: enough for every word of the families."""
SEED = 0
"""Of the curriculum: runs with other seeds learn from the same lessons."""


def prepare(
    recipe: Recipe, folder: Path, on_progress: Callable[[str, int], None], workers: int | None = None
) -> Shards:
    """Draw the curriculum and train the tokenizer on it; write both, and the text as it is taught, to be counted."""
    check_drawable(recipe)
    folder.mkdir(parents=True, exist_ok=True)
    lessons = list(curriculum(recipe.lessons.rows, SEED, workers or os.cpu_count() or 1, on_progress))
    every = max(1, len(lessons) // SAMPLE)
    train_tokenizer(_texts(lessons[::every]), recipe.network.vocab, folder)
    tokenizer = tokenizer_of(folder)
    require(
        len(tokenizer) == recipe.network.vocab,
        f"the curriculum has words for {len(tokenizer)} tokens only: lower network.vocab.",
    )
    longest = max(recipe.lessons.lengths) - recipe.lessons.spare
    shards = tokenize(lessons, tokenizer, longest, made_by(recipe, folder), lambda count: on_progress("tokens", count))
    texts = (lesson.prompt + lesson.response for _, lesson in lessons)
    write_whole(folder / TEXTS, "".join(json.dumps({"text": text}) + "\n" for text in texts))
    shards.save(folder / FILE)
    return shards


def check_drawable(recipe: Recipe) -> None:
    """Raise if the lessons of a config cannot be drawn here: a number is missing, or a package."""
    names = list(FAMILIES)
    require(
        len(recipe.lessons.rows) == len(names),
        f"lessons.rows needs {len(names)} numbers, one for each of {', '.join(names)}.",
    )
    if dict(zip(names, recipe.lessons.rows, strict=True))["mini_story"]:
        check_installed("reasoning_gym", "train", "drawing story problems")


def made_by(recipe: Recipe, folder: Path) -> str:
    """What lessons depend on, as far as it is seen without drawing them: config, tokenizer, held-out problems."""
    parts = [recipe.about_data.encode(), (folder / "tokenizer.json").read_bytes()]
    parts += [json.dumps([family.key(e) for e in family.examples()]).encode() for family in FAMILIES.values()]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def lessons_in(recipe: Recipe, folder: Path) -> Shards:
    """The lessons in a folder, if they were made for this config, with the tokenizer beside them."""
    shards = Shards.load(folder / FILE)
    fits = (folder / "tokenizer.json").is_file() and shards.made_by == made_by(recipe, folder)
    require(
        fits, f"the lessons in '{folder}' are of another config, tokenizer or version: make them again with --prepare."
    )
    return shards


def _texts(lessons: list[tuple[int, Lesson]]) -> itertools.chain[str]:
    return itertools.chain.from_iterable(lesson for _, lesson in lessons)
