"""A note to the user if a prompt is unlike the model's training data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import typer

from ...core.denoiser import Denoiser
from ...evals.suite.families import FAMILIES
from ...generation.prompt import Prompt
from ...models import TINY, folder_of


def advise(model: str, denoiser: Denoiser, prompts: Sequence[tuple[object, Prompt]]) -> None:
    """Print a note if `tiny` was not trained on such prompts, or if rows are longer than the model's context."""
    folder = folder_of(model)
    unfamiliar = [text for text, row in prompts if row.is_continued and isinstance(text, str) and not is_familiar(text)]
    if folder is not None and folder.resolve() == TINY.resolve() and unfamiliar:
        which = "this prompt is" if len(prompts) == 1 else f"{len(unfamiliar)} of {len(prompts)} prompts are"
        known = ", ".join(name.removeprefix("mini_") for name in FAMILIES)
        typer.echo(
            f"note: {which} unlike tiny's training data, seven kinds of small problems ({known}): expect nonsense. "
            "For a prompt it can answer, try: uncode tasks mini_algebra | uncode decode -",
            err=True,
        )
    context = denoiser.context
    longest = max(len(row.ids) for _, row in prompts)
    if context is not None and longest > context:
        typer.echo(
            f"note: prompt and answer have {longest:,} tokens together, more than the model's context of {context:,}: "
            "expect worse answers, or use a shorter --length.",
            err=True,
        )


def note_blank_gaps(sentences: list[str]) -> None:
    """Print a note if gaps were filled with nothing visible."""
    if sentences:
        more = f" ({len(sentences) - 1} more answers have such gaps.)" if len(sentences) > 1 else ""
        typer.echo(f"note: {sentences[0]}{more}", err=True)


def is_familiar(text: str) -> bool:
    """Whether a prompt has the form of one of the families that `tiny` was trained on."""
    return any(form.fullmatch(text.rstrip("\n")) for form in _forms())


@cache
def _forms() -> list[re.Pattern[str]]:
    forms = {name: family.prompt_template for name, family in FAMILIES.items()}
    forms["mini_docstring"] = 'def {{name}}\n    """{{text}}"""'
    blank = re.compile(r"\\{\\{\w+\\}\\}")
    return [re.compile(blank.sub(lambda _: ".+", re.escape(form.rstrip("\n"))), re.S) for form in forms.values()]
