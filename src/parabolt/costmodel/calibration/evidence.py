"""Trials as a calibration takes them: configurations of an instance and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from parabolt.costmodel.layout import Layout, configurations_of
from parabolt.costmodel.resolved_instance import ResolvedInstance
from parabolt.costmodel.step_time import time_features
from parabolt.costmodel.terms.crash import crash_features
from parabolt.costmodel.terms.memory import last_stage_shares, memory_features
from parabolt.errors import ObservationError
from parabolt.outcome import SOURCES, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from parabolt.instances.specs import Instance
    from parabolt.outcome import BoolArray, CodeArray, FloatArray, IntArray, Outcomes
    from parabolt.space.configuration import Configuration
    from parabolt.space.configurations import Configurations

#: Sources that stand for a run; the others are guesses.
_RUNS = [SOURCES.index(Source.MEASURED), SOURCES.index(Source.SIMULATED)]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Trials of one instance.

    Attributes:
        instance: The instance.
        configurations: n configurations, encoded rows (n, d), or columns of raw sizes.
        outcomes: Their outcomes.

    Raises:
        ObservationError: If there are not as many outcomes as configurations.
    """

    instance: Instance
    configurations: npt.ArrayLike | Sequence[Configuration] | Configurations
    outcomes: Outcomes

    def __post_init__(self) -> None:
        if len(self.layout) != len(self.outcomes):
            raise ObservationError(
                f"expected as many outcomes as configurations, {len(self.layout)}, "
                f"got {len(self.outcomes)}"
            )

    @cached_property
    def layout(self) -> Layout:
        """The layout of the configurations."""
        configurations = configurations_of(self.instance, self.configurations)
        return Layout.of(ResolvedInstance.of(self.instance), configurations)


@dataclass(frozen=True, eq=False)
class StackedTrials:
    """Trials of several instances, stacked; arrays over all n of them.

    Attributes:
        instances: Names of the instances, sorted.
        time: Time terms (n, k) in seconds.
        memory: Memory terms (n, k) in GiB.
        last_shares: See `last_stage_shares`, (n, 3).
        crash: Crash features (n, k).
        step_time_s: Measured step time (n,), also of a run stopped early; NaN where there is none.
        peak_memory_gib: Measured peak (n,); NaN where there is none.
        capacity_gib: Memory of a GPU (n,).
        is_ok: Whether the run finished, (n,).
        is_oom: Whether it ran out of memory, or failed for this or another reason, (n,): either way
            the fit weighs memory against a crash. Crashes and timeouts are not among them.
    """

    instances: tuple[str, ...]
    time: FloatArray
    memory: FloatArray
    last_shares: FloatArray
    crash: FloatArray
    step_time_s: FloatArray
    peak_memory_gib: FloatArray
    capacity_gib: FloatArray
    is_ok: BoolArray
    is_oom: BoolArray

    def __len__(self) -> int:
        return len(self.step_time_s)

    def take(self, rows: IntArray) -> StackedTrials:
        """The trials at `rows` (m,), in that order; the instances are not narrowed."""
        arrays = [getattr(self, field.name)[rows] for field in fields(self)[1:]]
        return StackedTrials(self.instances, *arrays)

    @classmethod
    def of(cls, items: Sequence[Evidence]) -> StackedTrials:
        """The trials of all items."""
        layouts, outcomes = [item.layout for item in items], [item.outcomes for item in items]

        def runs_only(figure: str, source: str) -> FloatArray:
            parts = [_runs_only(getattr(o, figure), getattr(o, source)) for o in outcomes]
            return np.concatenate(parts)

        def of_layouts(columns: Callable[[Layout], FloatArray]) -> FloatArray:
            return np.concatenate([columns(x) for x in layouts])

        throughput = runs_only("throughput", "throughput_source")
        peak = runs_only("peak_memory_gib", "memory_source")
        margin = runs_only("memory_margin", "memory_source")
        capacity = of_layouts(lambda x: np.full(len(x), x.instance.capacity_gib))
        peak = np.where(np.isfinite(peak), peak, capacity * (1.0 + margin))
        is_ok = np.concatenate([o.is_feasible for o in outcomes])
        is_timed = np.concatenate([o.is_timed for o in outcomes]) & (throughput > 0.0)
        return cls(
            tuple(sorted({item.instance.name for item in items if len(item.outcomes)})),
            of_layouts(time_features),
            of_layouts(memory_features),
            of_layouts(last_stage_shares),
            of_layouts(crash_features),
            np.where(is_timed, 1.0 / np.where(throughput > 0.0, throughput, 1.0), np.nan),
            np.where(is_ok & np.isfinite(peak) & (peak > 0.0), peak, np.nan),
            capacity,
            is_ok,
            np.concatenate([o.is_infeasible for o in outcomes]),
        )


def _runs_only(values: FloatArray, sources: CodeArray) -> FloatArray:
    return np.where(np.isin(sources, _RUNS), values, np.nan)
