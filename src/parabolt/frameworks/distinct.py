"""Which configurations a framework runs, and which of them are one and the same run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parabolt.errors import SpecError
from parabolt.space.knobs import KNOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from parabolt.frameworks.framework import Framework
    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration


@dataclass(frozen=True)
class Refusal:
    """Why a framework doesn't run a configuration.

    Attributes:
        rule: Name of the rule that the configuration breaks.
        reason: Why, in words.
    """

    rule: str
    reason: str


@dataclass(frozen=True)
class DistinctLaunches:
    """Configurations by what a framework makes of them. Rows are positions in the sequence.

    Attributes:
        runs: Rows that are different runs, in order: the first row of each.
        twins: Row that is the same run as an earlier one, to that one.
        refusals: Row that the framework can't express, to why.
    """

    runs: tuple[int, ...]
    twins: Mapping[int, int]
    refusals: Mapping[int, Refusal]

    @property
    def description(self) -> tuple[str, ...]:
        """One line per kind of configuration that is left out, with its number and a reason."""
        counts = Counter(refusal.rule for refusal in self.refusals.values())
        examples = {refusal.rule: refusal.reason for refusal in reversed([*self.refusals.values()])}
        lines = [f"{_count(n)} can't be expressed: {examples[rule]}" for rule, n in counts.items()]
        if self.twins:
            lines.append(f"{_count(len(self.twins))} would be the same launch as another one")
        return tuple(lines)


def distinct_launches(
    framework: Framework,
    instance: Instance,
    configurations: Sequence[Configuration],
    *,
    command: Callable[[Configuration], Hashable] | None = None,
) -> DistinctLaunches:
    """Sorts configurations by what is launched: two with the same command are one run.

    Args:
        framework: The framework.
        instance: What the configurations are of.
        configurations: Valid configurations of the instance.
        command: What is launched for a configuration; the launch settings alone by default.

    Raises:
        SpecError: If no launch settings of the framework are known.
    """
    first: dict[Hashable, int] = {}
    twins: dict[int, int] = {}
    refusals: dict[int, Refusal] = {}
    for row, configuration in enumerate(configurations):
        launch = framework.launch(instance, configuration)
        if launch.reason:
            refusals[row] = Refusal(launch.rule, launch.reason)
            continue
        launched = launch.flags if command is None else command(configuration)
        if (other := first.setdefault(launched, row)) != row:
            twins[row] = other
    return DistinctLaunches(tuple(first.values()), twins, refusals)


def check_knobs(framework: Framework, instance: Instance) -> None:
    """Raises if an instance sets knobs that no setting of a framework speaks of.

    Raises:
        SpecError: Naming the knobs, how many sizes of each are searched, and the reasons.
    """
    lost = {
        name: f"{name} ({_count(len(sizes), 'size')}): {reason}"
        for name, sizes in instance.levels
        if (reason := _why_lost(framework, name, sizes))
    }
    if lost:
        raise SpecError(
            f"{framework.title} has no setting for {'; '.join(lost.values())}; try an instance "
            f"with one size of {' and '.join(lost)}"
        )


def _why_lost(framework: Framework, knob: str, sizes: tuple[int, ...]) -> str:
    """Why a knob of an instance would be lost; empty where it isn't."""
    if knob not in framework.passed and sizes != (KNOBS[knob].neutral,):
        return "parabolt doesn't pass it on"
    return framework.dropped.get(knob, "") if len(sizes) > 1 else ""


def _count(n: int, noun: str = "configuration") -> str:
    return f"{n} {noun}{'s' * (n != 1)}"
