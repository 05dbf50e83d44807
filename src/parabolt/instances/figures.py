"""Figures in words: `name=value` for the fields of a value, as a command line states them."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from parabolt.errors import InstanceError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Collection

_BOOLS = {"true": True, "false": False}


def read_figure(word: str, of: type, what: str, left_out: Collection[str] = ()) -> tuple[str, Any]:
    """A field's name and value from `name=value`.

    Args:
        word: The word.
        of: A data class; fields that are data classes themselves can't be stated.
        what: What it describes, for the message.
        left_out: Fields that are stated otherwise.

    Raises:
        UnknownNameError: If there is no such field.
        InstanceError: If the value isn't of the field's type.
    """
    name, _, text = word.partition("=")
    types = {
        field.name: str(field.type).removesuffix(" | None")
        for field in fields(of)
        if field.name not in left_out
    }
    types = {field: kind for field, kind in types.items() if kind in _READERS}
    if name not in types:
        raise UnknownNameError.of(f"figure of a {what}", name, types)
    kind, read = _READERS[types[name]]
    try:
        return name, read(text)
    except (ValueError, KeyError):
        raise InstanceError(f"{name}: expected {kind}, got {text!r}") from None


_READERS: dict[str, tuple[str, Any]] = {
    "int": ("a whole number", int),
    "float": ("a number", float),
    "bool": ("true or false", _BOOLS.__getitem__),
    "str": ("a text", str),
}
