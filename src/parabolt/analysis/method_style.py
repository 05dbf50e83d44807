"""One colour and line per optimizer, the same in every report and figure.

Each colour has a contrast of at least 3 to a white and to a dark page, and differs from the others
for the colour-blind, too; the line's pattern tells apart those that share one.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

_RED, _GREY, _INDIGO, _SKY = "#d20b4d", "#7c7c7c", "#6a4dff", "#0b9de6"
_GREEN, _PLUM, _OCHRE = "#549982", "#ac3498", "#cc853d"
COLORS = (_RED, _GREY, _INDIGO, _SKY, _GREEN, _PLUM, _OCHRE)

#: Lengths of strokes and gaps, in units of the line's width; none for a solid line.
_SOLID, _DASHED, _DOTTED, _SPARSE = (), (4.0, 2.0), (1.0, 1.5), (2.0, 4.0)
_OTHER_PATTERNS = ((8.0, 2.0), (5.0, 1.5, 1.0, 1.5), (8.0, 1.5, 1.0, 1.5, 1.0, 1.5))


@dataclass(frozen=True)
class MethodStyle:
    """How an optimizer's lines and marks look.

    Attributes:
        color: As `#rrggbb`.
        pattern: Lengths of strokes and gaps, in units of the line's width; empty for a solid line.
    """

    color: str
    pattern: tuple[float, ...]


_KNOWN: dict[str, MethodStyle] = {
    "parabolt": MethodStyle(_RED, _SOLID),
    "random": MethodStyle(_GREY, _SOLID),
    "logeic": MethodStyle(_INDIGO, _SOLID),
    "lognei": MethodStyle(_SKY, _SOLID),
    "lognei+prior": MethodStyle(_SKY, _DASHED),
    "ucbc": MethodStyle(_GREEN, _SOLID),
    "ucbc+prior": MethodStyle(_GREEN, _DASHED),
    "cts": MethodStyle(_PLUM, _SOLID),
    "scbo": MethodStyle(_PLUM, _DASHED),
    "cmes": MethodStyle(_OCHRE, _DASHED),
    "ckg": MethodStyle(_INDIGO, _DASHED),
    "ckg+prior": MethodStyle(_INDIGO, _DOTTED),
    "admmbo": MethodStyle(_SKY, _DOTTED),
    "admmbo+prior": MethodStyle(_GREEN, _DOTTED),
    "tpe": MethodStyle(_OCHRE, _SOLID),
    "cmaes": MethodStyle(_GREY, _DASHED),
    "best-of-history": MethodStyle(_OCHRE, _SPARSE),
    "mean-rank": MethodStyle(_GREEN, _SPARSE),
    "rgpe": MethodStyle(_INDIGO, _SPARSE),
    "optuna-gp": MethodStyle(_OCHRE, _DOTTED),
    "nevergrad-ngopt": MethodStyle(_PLUM, _DOTTED),
    "nevergrad-oneplusone": MethodStyle(_GREY, _DOTTED),
    "ax": MethodStyle(_RED, _DASHED),
    "smac": MethodStyle(_RED, _DOTTED),
}


#: Longest name beside an axis, in characters.
_MOST_CHARACTERS = 24


def short_label(label: str) -> str:
    """A label that fits beside an axis: a long one is cut."""
    return label if len(label) <= _MOST_CHARACTERS else f"{label[: _MOST_CHARACTERS - 1]}…"


def method_style(label: str) -> MethodStyle:
    """Style of an optimizer by its label; that of one from elsewhere follows from its label."""
    if label in _KNOWN:
        return _KNOWN[label]
    number = int.from_bytes(sha256(label.encode()).digest()[:4])
    number, place = divmod(number, len(COLORS))
    return MethodStyle(COLORS[place], _OTHER_PATTERNS[number % len(_OTHER_PATTERNS)])
