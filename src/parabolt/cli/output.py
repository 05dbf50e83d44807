"""What every command prints: a rich console, or JSON for scripts."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

#: The `--source` option of commands that show measured data.
Source = Annotated[
    str,
    typer.Option(help="Data that a built-in name stands for: embedded, or hub for the original."),
]

#: The `--json` option of every command.
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def console() -> Console:
    """The console for people; it wraps at the terminal's width, and at 100 columns in a pipe.

    Names and messages are data: brackets and colons in them are no markup and no emoji. What is to
    be bold is made so by `bold`.
    """
    found = Console(highlight=False, markup=False, emoji=False)
    if not found.is_terminal:
        found.width = 100
    return found


def bold(text: object) -> Text:
    """Text in bold, to be printed or to be put together with others by `Text.assemble`."""
    return Text(str(text), style="bold")


def print_json(value: Any) -> None:
    """Prints JSON; NaN and infinities, which JSON doesn't have, become null."""
    typer.echo(json.dumps(_finite(value), indent=2))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
