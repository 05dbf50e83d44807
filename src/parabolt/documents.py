"""Documents of plain values, as TOML files hold them: read, and checked key by key.

A message says which key is at fault, what was expected, and what was got. Each kind of document has
an error class of its own, which its reader passes on.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Collection

    from parabolt.errors import ParaboltError

#: Longest value that is quoted.
_SHOWN = 80


def read_text(path: str | os.PathLike[str], what: str, error: type[ParaboltError]) -> str:
    """The text of a file; a byte order mark is no part of it.

    Args:
        path: The file.
        what: What it is, for the message.
        error: Raised if it can't be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise error(f"cannot read {what} {path}: {fault}") from fault


def parse_toml(text: str, error: type[ParaboltError]) -> dict[str, Any]:
    """The document of a TOML text.

    Args:
        text: The text.
        error: Raised if it is no TOML, or nested or long beyond reason.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as fault:  # also a number of too many digits
        raise error(f"expected TOML, got {fault}") from fault


def check_keys(
    where: str,
    table: Any,
    *,
    known: Collection[str],
    required: Collection[str] = (),
    error: type[ParaboltError],
) -> None:
    """Raises unless a value is a table with all required keys, and no others than the known ones.

    Args:
        where: What the table is, such as `[trial]`.
        table: The value.
        known: Keys that it may have, in the order in which they are told.
        required: Keys that it must have, among the known ones or beside them.
        error: What is raised.
    """
    if not isinstance(table, dict):
        raise error(f"{where}: expected a table, got {shown(table)}")
    if missing := [key for key in required if key not in table]:
        raise error(f"{where}: expected {', '.join(missing)}, got {', '.join(table) or 'none'}")
    allowed = dict.fromkeys([*required, *known])
    if unknown := [key for key in table if key not in allowed]:
        raise error(f"{where}: expected keys among {', '.join(allowed)}, got {', '.join(unknown)}")


def checked_text(key: str, value: Any, error: type[ParaboltError]) -> str:
    """A value that must be a text that isn't blank."""
    if not isinstance(value, str) or not value.strip():
        raise error(f"{key}: expected a text, got {shown(value)}")
    return value


def shown(value: Any) -> str:
    """A value as a message quotes it."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
