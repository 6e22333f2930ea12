"""The command line: one file per verb, errors as one sentence."""

from __future__ import annotations

import sys

import typer

from ..core.errors import UncodeError
from ..version import __version__
from . import decode, samplers

app = typer.Typer(
    name="uncode",
    help="Decode masked diffusion language models: every published sampler, calibrated order.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(name="decode")(decode.command)
app.command(name="samplers")(samplers.command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"uncode {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
) -> None:
    """Options of every verb; --debug is read in :func:`main`."""


def main() -> None:
    """Run a verb. An error the user can mend is one sentence on standard error and exit code 2."""
    try:
        app()
    except UncodeError as error:
        if "--debug" in sys.argv:
            raise
        typer.echo(f"uncode: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
