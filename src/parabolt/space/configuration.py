"""A configuration: a value for every knob."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from parabolt.errors import InvalidConfigurationError
from parabolt.space.knobs import KNOBS, Knobs, Shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeGuard

_TOKEN = re.compile(r"([a-z_]+)=([\w-]+)|([a-z_]+)\s*(-?\d+)")


class Configuration(Knobs):
    """A value for every knob, hashable and ordered lexicographically.

    The fields are those of `Knobs`. Sizes are raw: 16 ranks, 256 MB, ZeRO stage 2. A knob left out
    takes its neutral value; the bucket has none and must be given. A value with a name may be given
    as that word.

    Raises:
        InvalidConfigurationError: If a value isn't on its knob's scale.
    """

    __slots__ = ()

    def __str__(self) -> str:
        parts = []
        for name, knob in KNOBS.items():
            value = getattr(self, name)
            if knob.shown is Shown.ALWAYS or value != knob.neutral:
                parts.append(knob.text(value))
        return " ".join(parts)

    def as_dict(self) -> dict[str, int | str]:
        """Knob name to value or word, in canonical order; without what only new knobs leave out.

        A knob that isn't there has its neutral value.
        """
        values = ((knob, getattr(self, name)) for name, knob in KNOBS.items())
        return {
            knob.name: knob.plain(value)
            for knob, value in values
            if knob.shown is not Shown.NEVER or value != knob.neutral
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, int | str]) -> Configuration:
        """The inverse of `as_dict`; a knob that is left out is neutral.

        Raises:
            InvalidConfigurationError: For an unknown knob, a missing bucket or a bad value.
        """
        if unknown := sorted(set(values) - set(KNOBS)):
            raise InvalidConfigurationError(
                f"expected knobs among {', '.join(KNOBS)}, got {', '.join(unknown)}"
            )
        if "bucket" not in values:
            raise InvalidConfigurationError(
                "expected a size for bucket, got none; try bucket=256 (MB)"
            )
        checked = {name: KNOBS[name].check(value) for name, value in values.items()}
        return cls(**checked)

    @classmethod
    def parse(cls, text: str) -> Configuration:
        """Reads `dp=32 zero=2 bucket=256` as well as the printed form `dp32 zero2 bucket256`.

        Raises:
            InvalidConfigurationError: If the text isn't a list of knobs with values.
        """
        values: dict[str, int | str] = {}
        for token in text.replace(",", " ").split():
            match = _TOKEN.fullmatch(token)
            if match is None:
                raise InvalidConfigurationError(
                    f'expected knob=size, got {token!r}; try "dp=32 zero=2 bucket=256"'
                )
            name, value = match[1] or match[3], match[2] or match[4]
            if name in values:
                raise InvalidConfigurationError(f"expected each knob once, got {name} twice")
            values[name] = KNOBS[name].parse(value) if name in KNOBS else value
        return cls.from_dict(values)


def are_configurations(X: object) -> TypeGuard[Sequence[Configuration]]:
    """Whether `X` is a sequence of configurations, rather than encoded rows."""
    return isinstance(X, Sequence) and all(isinstance(x, Configuration) for x in X)
