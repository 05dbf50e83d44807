"""Checks of the fields of an instance's values."""

from __future__ import annotations

from parabolt.errors import InstanceError


def require_positive_ints(value: object, *names: str) -> None:
    """Raises `InstanceError` unless the named fields are positive whole numbers."""
    for name in names:
        number = getattr(value, name)
        if type(number) is not int or number <= 0:
            raise InstanceError(f"{name}: expected a positive whole number, got {number!r}")


def require_bools(value: object, *names: str) -> None:
    """Raises `InstanceError` unless the named fields are booleans."""
    for name in names:
        if type(flag := getattr(value, name)) is not bool:
            raise InstanceError(f"{name}: expected true or false, got {flag!r}")


def stated(value: object, *names: str) -> list[str]:
    """The names of the fields that are not None."""
    return [name for name in names if getattr(value, name) is not None]


def is_number(value: object) -> bool:
    """Whether a value is a number, and no boolean."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
