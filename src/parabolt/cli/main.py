"""The `parabolt` command: puts the commands together and turns errors into one line."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import parabolt
from parabolt.cli.bench import bench
from parabolt.cli.evaluate import evaluate
from parabolt.cli.plan import plan
from parabolt.cli.problems import problems
from parabolt.cli.report import report
from parabolt.cli.show import show
from parabolt.cli.study import app as study
from parabolt.cli.suggest import suggest
from parabolt.cli.sweep import sweep
from parabolt.cli.table import app as table
from parabolt.cli.tune import tune
from parabolt.errors import ParaboltError

#: What typer raises for unknown commands, bad options and bad values.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="parabolt",
    help="Which parallelism configuration trains this LLM fastest on this cluster?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(problems)
app.command()(show)
app.command()(evaluate)
app.command()(plan)
app.command()(bench)
app.command()(report)
app.command()(suggest)
app.add_typer(study, name="study")
app.add_typer(table, name="table")
app.command()(tune)
app.command()(sweep)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"parabolt {parabolt.__version__}")
        raise typer.Exit


def run() -> None:
    """Entry point of the console command.

    Exit status: 0 when done, 1 when something that was asked for was not achieved, 2 for misuse and
    any other `ParaboltError`, 130 after Ctrl-C.
    """
    try:
        status = app(standalone_mode=False)
    except ParaboltError as error:
        sys.exit(_fail(str(error)))
    except OSError as error:  # a place that nobody foresaw; what is foreseen is an error of ours
        where = "" if error.filename is None else f"{os.fspath(error.filename)!r}: "
        sys.exit(_fail(f"{where}{error.strerror or error}"))
    except typer.Abort:
        sys.exit(130)
    except _UsageError as error:
        message = error.format_message()  # type: ignore[attr-defined]  # Click's
        sys.exit(_fail(f"{message.rstrip('.')}; try: parabolt --help"))
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str) -> int:
    line = " ".join(message.split()).encode(errors="backslashreplace").decode()
    typer.echo(f"error: {line}", err=True)
    return 2
