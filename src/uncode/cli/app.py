"""All verbs. Importing this file imports no torch."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from ..version import __version__
from .verbs import (
    analyze,
    cases,
    compare,
    convert,
    count,
    decode,
    demo,
    doctor,
    models,
    samplers,
    serve,
    table,
    train,
    view,
)
from .verbs.evaluation import calibrate, evaluate, lm_eval, mini, paper, regrade, report, tasks, threshold

_NO_WRAP = "\b"
"""Makes the help formatter leave a paragraph unwrapped."""


class Command(TyperCommand):
    """A verb whose help shows each example on one line, so that it can be copied from a narrow terminal."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        about, title, examples = (self.help or "").partition("Examples:\n")
        if title:
            lines = [f"  {line.strip()}" for line in examples.splitlines() if line.strip()]
            self.help = "\n".join([about.rstrip(), "", title.rstrip(), "", _NO_WRAP, *lines])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line, without the braces that newer versions of typer put around required arguments."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


app = typer.Typer(
    name="uncode",
    help="Decode, compare and serve masked diffusion language models, with 36 published samplers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for _verb, _module in (
    ("demo", demo),
    ("decode", decode),
    ("compare", compare),
    ("samplers", samplers),
    ("models", models),
    ("convert", convert),
    ("tasks", tasks),
    ("eval", evaluate),
    ("regrade", regrade),
    ("report", report),
    ("analyze", analyze),
    ("cases", cases),
    ("view", view),
    ("serve", serve),
    ("calibrate", calibrate),
    ("threshold", threshold),
    ("mini", mini),
    ("paper", paper),
    ("train", train),
    ("count", count),
):
    app.command(name=_verb, short_help=_module.SUMMARY)(_module.command)
app.command(name="lm-eval", short_help=lm_eval.SUMMARY, context_settings=lm_eval.SETTINGS)(lm_eval.command)
app.add_typer(table.app, name="table", short_help=table.SUMMARY)
app.command(name="doctor", short_help=doctor.SUMMARY)(doctor.command)
for _registered in (*app.registered_commands, *table.app.registered_commands):
    _registered.cls = Command


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"uncode {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
) -> None:
    """Options of every verb; --debug is read in :func:`uncode.cli.run.run`."""
