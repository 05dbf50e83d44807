"""Knobs in words, as a command line states them: `tp=8`, `recompute,micro_batch=1,2,4`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.errors import InstanceError, InvalidConfigurationError, UnknownNameError
from parabolt.space.knobs import KNOBS

if TYPE_CHECKING:
    from collections.abc import Sequence


def parse_knobs(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Knob to its values, ascending; empty for a knob without values.

    Args:
        texts: Words between commas or spaces: a knob's name, `name=value`, or a further value.

    Raises:
        UnknownNameError: If a word is neither a knob nor a value after one.
        InstanceError: If a value is none of the knob's, or a knob stands there twice.
    """
    found: dict[str, list[int]] = {}
    for word in " ".join(texts).replace(",", " ").split():
        name, equals, value = word.partition("=")
        if equals or word in KNOBS:
            if name not in KNOBS:
                raise UnknownNameError.of("knob", name, KNOBS)
            if name in found:
                raise InstanceError(f"expected each knob once, got {name} twice")
            found[name] = []
            if not equals:
                continue
        elif not found or not found[name := [*found][-1]]:
            raise UnknownNameError.of("knob", word, KNOBS)
        else:
            value = word
        try:
            found[name].append(int(KNOBS[name].check(KNOBS[name].parse(value))))
        except InvalidConfigurationError as error:
            raise InstanceError(str(error)) from error
    return {name: tuple(sorted(set(values))) for name, values in found.items()}


def parse_fixed(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Knob to its one value.

    Raises:
        UnknownNameError: As `parse_knobs`.
        InstanceError: As `parse_knobs`, and if a knob has no value or several.
    """
    found = parse_knobs(texts)
    for name, values in found.items():
        if len(values) != 1:
            got = "none" if not values else ", ".join(map(str, map(KNOBS[name].plain, values)))
            raise InstanceError(f"{name}: expected one value of a fixed knob, got {got}")
    return found
