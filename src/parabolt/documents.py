"""Documents of plain values, as TOML and JSON files hold them: read, and checked key by key.

A message says which key is at fault, what was expected, and what was got. Each kind of document has
an error class of its own, which its reader passes on. Whatever stands in place of a file that a
person names (a folder, a FIFO, a device, a name that cannot be) is told at once and never waited
for.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

    from parabolt.errors import ParaboltError

#: Longest value that is quoted.
_SHOWN = 80
#: Longest document in bytes: far more than any that somebody writes.
_LONGEST = 1 << 26


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether there is anything at a path; a name that cannot be is nowhere."""
    try:
        Path(path).stat()
    except (OSError, ValueError):
        return False
    return True


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raises `OSError` unless there is a regular file at a path."""
    try:
        mode = Path(path).stat().st_mode
    except ValueError as error:  # a NUL, or half of a character
        raise OSError(errno.EINVAL, f"expected the name of a file, got {error}") from error
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "expected a regular file", os.fspath(path))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a regular file.

    Raises:
        OSError: If it can't be read, or is no regular file.
    """
    check_regular(path)
    return Path(path).read_bytes()


def read_text(path: str | os.PathLike[str], what: str, error: type[ParaboltError]) -> str:
    """The text of a file; a byte order mark is no part of it.

    Args:
        path: The file.
        what: What it is, for the message.
        error: Raised if it can't be read.
    """
    try:
        check_regular(path)
        if (n_bytes := Path(path).stat().st_size) > _LONGEST:
            raise error(
                f"cannot read {what} {path}: expected at most {_LONGEST} bytes, got {n_bytes}"
            )
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


def parse_json(text: str, error: type[ParaboltError]) -> Any:
    """The document of a JSON text.

    Args:
        text: The text.
        error: Raised if it is no JSON, states a key twice, or is nested or long beyond reason.
    """
    try:
        return json.loads(text, object_pairs_hook=_stated_once)
    except (ValueError, RecursionError) as fault:  # also a number of too many digits
        raise error(f"expected JSON, got {fault}") from fault


def _stated_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {shown(twice)} twice")
    return found


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
