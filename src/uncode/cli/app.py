"""All verbs. Importing this file imports no torch."""

from __future__ import annotations

import typer

from ..version import __version__
from .command import Command
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

app = typer.Typer(
    name="uncode",
    help="Decode masked diffusion language models: 31 published samplers, calibrated order.",
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
