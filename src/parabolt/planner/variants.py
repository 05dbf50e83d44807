"""What of an instance can be compared: described values, and one workload at a time.

The cost model takes what is recomputed from the workload, so an instance that searches the knob
`recompute` is as many instances as it lists values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from parabolt.costmodel.layout import described_values
from parabolt.instances.specs import RECOMPUTATIONS
from parabolt.space.knobs import KNOBS, Recompute

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration


@dataclass(frozen=True)
class Variant:
    """An instance that the cost model can be asked about.

    Attributes:
        instance: The instance; it does not search `recompute`.
        recompute: What its workload recomputes, where the knob is searched.
    """

    instance: Instance
    recompute: int = Recompute.NONE

    def whole(self, configuration: Configuration) -> Configuration:
        """A configuration of the variant as one of the instance that was asked for."""
        return replace(configuration, recompute=self.recompute or configuration.recompute)


def variants(instance: Instance) -> tuple[tuple[Variant, ...], tuple[str, ...]]:
    """The variants of an instance, and a line for each knob of which some values are left out."""
    levels, lines = dict(instance.levels), []
    for name, values in instance.levels:
        kept = _compared(name, values)
        if kept and kept != values:
            levels[name] = kept
            words = ", ".join(KNOBS[name].scale.word(v) for v in values if v not in kept)
            lines.append(f"{name} {words}, which the cost model does not describe")
    searched = levels["recompute"]
    if len(dict(instance.levels)["recompute"]) == 1:
        return (Variant(replace(instance, levels=tuple(levels.items()))),), tuple(lines)
    levels["recompute"] = (Recompute.NONE,)
    word = KNOBS["recompute"].scale.word
    found = tuple(
        Variant(
            replace(
                instance,
                levels=tuple(levels.items()),
                workload=replace(instance.workload, recomputation=word(value)),
            ),
            value,
        )
        for value in searched
    )
    return found, tuple(lines)


def _compared(name: str, values: tuple[int, ...]) -> tuple[int, ...]:
    if len(values) == 1:
        return values
    if name == "recompute":
        return tuple(v for v in values if KNOBS[name].scale.word(v) in RECOMPUTATIONS)
    return described_values(name, values)
