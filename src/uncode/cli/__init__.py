"""The command line: one file per verb, errors as one sentence."""

from __future__ import annotations

import io
import sys
import warnings
from typing import Any

import typer

from ..core.errors import UncodeError
from ..version import __version__
from . import compare, count, decode, demo, doctor, mini, models, regrade, samplers, table, tasks, train

app = typer.Typer(
    name="uncode",
    help="Decode masked diffusion language models: every published sampler, calibrated order.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(name="decode")(decode.command)
app.command(name="compare")(compare.command)
app.command(name="samplers")(samplers.command)
app.command(name="models")(models.command)
app.command(name="doctor")(doctor.command)
app.command(name="count")(count.command)
app.add_typer(table.app, name="table")
app.command(name="tasks")(tasks.command)
app.command(name="regrade")(regrade.command)
app.command(name="train")(train.command)
app.command(name="mini")(mini.command)
app.command(name="demo")(demo.command)


# typer raises click's errors, and newer versions carry a click of their own: ask for the class by its name.
_WRONG_USE: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


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
    words = count.with_ray_address([word for word in sys.argv[1:] if word != "--debug"])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal of few letters is no reason to fail
    warnings.filterwarnings("ignore", message="mkldnn_matmul failed")  # a page of it, on CPUs without half precision
    try:
        sys.exit(app(words, standalone_mode=False))
    except (UncodeError, _WRONG_USE) as error:
        if "--debug" in sys.argv:
            raise
        message = error.format_message() if isinstance(error, _WRONG_USE) else str(error)
        typer.echo(f"uncode: {message}" if words else message, err=True)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("uncode: interrupted.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if "--debug" in sys.argv:
            raise
        where = f" '{error.filename}'" if error.filename else ""
        typer.echo(f"uncode: the system refused{where}: {error.strerror or error}.", err=True)
        sys.exit(2)
