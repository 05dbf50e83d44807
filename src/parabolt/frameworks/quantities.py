"""Numbers with units, as logs print them: the whole of what stands there is understood, or refused.

A unit that isn't expected is an error and never ignored: `11.5K` ms is 11.5 s, not 11.5 ms.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from parabolt.frameworks.measurements import ReportError
from parabolt.outcome import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping

#: No unit at all.
PLAIN: dict[str, float] = {"": 1.0}
#: Thousands as letters; both B and G stand for 1e9.
HUMAN: dict[str, float] = {
    "": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12, "P": 1e15,
}  # fmt: skip
#: Units of memory in GiB, as they are defined: KB is 1,000 bytes and KiB is 1,024.
MEMORY_GIB: dict[str, float] = {
    "B": 1 / GIB, "KB": 1e3 / GIB, "MB": 1e6 / GIB, "GB": 1e9 / GIB, "TB": 1e12 / GIB,
    "KiB": 2**-20, "MiB": 2**-10, "GiB": 1.0, "TiB": 2.0**10,
}  # fmt: skip
#: Units of memory in GiB as PyTorch's users often print them: GB for 2^30 bytes, MB for 2^20.
TORCH_GIB: dict[str, float] = {
    "B": 1 / GIB, "KB": 2**-20, "MB": 2**-10, "GB": 1.0, "TB": 2.0**10,
    "KiB": 2**-20, "MiB": 2**-10, "GiB": 1.0, "TiB": 2.0**10,
}  # fmt: skip

_QUANTITY = re.compile(
    r"\s{0,20}([-+]?(?:\d{1,3}(?:,\d{3})+|\d{1,40})?\.?\d{0,40}(?:[eE][-+]?\d{1,4})?)"
    r"\s{0,3}([A-Za-zµ%/]{0,12})\s{0,20}"
)


def quantity(text: str, units: Mapping[str, float] = PLAIN) -> float:
    """The number that a text states, times the factor of its unit.

    Args:
        text: A number and perhaps a unit, such as `131,072`, `1.8e+03`, `43.2K` or `30.5 GiB`.
        units: Factor of each unit that is expected; "" where none may stand.

    Raises:
        ReportError: If the text is no number, or its unit isn't among `units`.
    """
    number, unit = _parts(text)
    if unit not in units:
        known = ", ".join(name or "none" for name in units)
        raise ReportError(
            f"unknown unit in {text!r}: expected one of {known}, got {unit or 'none'}"
        )
    return number * units[unit]


def whole_number(text: str) -> int:
    """The whole number that a text states.

    Raises:
        ReportError: If it states none.
    """
    value = quantity(text)
    if not value.is_integer():
        raise ReportError(f"expected a whole number in the log, got {text!r}")
    return int(value)


def memory_gib(text: str, units: Mapping[str, float]) -> float | None:
    """A figure of memory in GiB; None where no number stands, since that voids no good times.

    Raises:
        ReportError: If its unit isn't among `units`.
    """
    try:
        _parts(text)
    except ReportError:
        return None
    return quantity(text, units)


def _parts(text: str) -> tuple[float, str]:
    number, unit = match.groups() if (match := _QUANTITY.fullmatch(text)) else ("", "")
    try:
        return float(number.replace(",", "")), unit
    except ValueError:
        raise ReportError(f"expected a number in the log, got {text!r}") from None
