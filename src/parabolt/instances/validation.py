"""Checks of the fields of an instance's values."""

from __future__ import annotations

from parabolt.documents import shown
from parabolt.errors import InstanceError

#: Largest size of anything: products of two still fit into 64 bits.
LARGEST_INT = 10**9
#: Bounds of any other figure: products of several are finite, and so are their inverses.
_LEAST, _LARGEST = 1e-12, 1e12


def require_positive_ints(value: object, *names: str, most: int = LARGEST_INT) -> None:
    """Raises `InstanceError` unless the named fields are whole numbers from 1 to `most`."""
    for name in names:
        number = getattr(value, name)
        if type(number) is not int or number <= 0:
            raise InstanceError(f"{name}: expected a positive whole number, got {shown(number)}")
        if number > most:
            raise InstanceError(f"{name}: expected at most {most:,}, got {shown(number)}")


def require_positive_numbers(value: object, *names: str) -> None:
    """Raises `InstanceError` unless the named fields are positive numbers of a possible size."""
    for name in names:
        number = getattr(value, name)
        if not is_number(number) or not 0 < number < float("inf"):
            raise InstanceError(f"{name}: expected a positive number, got {shown(number)}")
        if not _LEAST <= number <= _LARGEST:
            raise InstanceError(
                f"{name}: expected a number from {_LEAST:g} to {_LARGEST:g}, got {shown(number)}"
            )


def require_bools(value: object, *names: str) -> None:
    """Raises `InstanceError` unless the named fields are booleans."""
    for name in names:
        if type(flag := getattr(value, name)) is not bool:
            raise InstanceError(f"{name}: expected true or false, got {shown(flag)}")


def stated(value: object, *names: str) -> list[str]:
    """The names of the fields that are not None."""
    return [name for name in names if getattr(value, name) is not None]


def is_number(value: object) -> bool:
    """Whether a value is a number, and no boolean."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
