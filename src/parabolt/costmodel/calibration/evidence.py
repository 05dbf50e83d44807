"""Trials as a calibration takes them: configurations of an instance and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.costmodel.layout import Layout
from parabolt.costmodel.setting import Setting
from parabolt.costmodel.step_time import time_features
from parabolt.costmodel.terms.crash import crash_features
from parabolt.costmodel.terms.memory import last_stage_shares, memory_features
from parabolt.errors import ObservationError
from parabolt.outcome import SOURCES, Source
from parabolt.space.configuration import Configuration, are_configurations
from parabolt.space.knobs import KNOBS
from parabolt.space.rules import Sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from parabolt.instances.specs import Instance
    from parabolt.outcome import BoolArray, CodeArray, FloatArray, IntArray, Outcomes

#: Sources that stand for a run; the others are guesses.
_RUNS = [SOURCES.index(Source.MEASURED), SOURCES.index(Source.SIMULATED)]


def sizes_of(instance: Instance, X: npt.ArrayLike | Sequence[Configuration] | Sizes) -> Any:
    """Raw sizes as columns (n,) of configurations, encoded rows (n, d), or columns already."""
    if isinstance(X, Sizes):
        return X
    if are_configurations(X):
        return Sizes({k: np.array([getattr(c, k) for c in X], dtype=np.int64) for k in KNOBS})
    return instance.encoding.sizes(instance.encoding.whole_levels(np.asarray(X)))


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
    configurations: npt.ArrayLike | Sequence[Configuration] | Sizes
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
        return Layout.of(Setting.of(self.instance), sizes_of(self.instance, self.configurations))


@dataclass(frozen=True, eq=False)
class Trials:
    """Trials of several instances, stacked; arrays over all n of them.

    Attributes:
        instances: Names of the instances, sorted.
        time: Time terms (n, k) in seconds.
        memory: Memory terms (n, k) in GB.
        last_shares: See `last_stage_shares`, (n, 3).
        crash: Crash features (n, k).
        step_time_s: Measured step time (n,), also of a run stopped early; NaN where there is none.
        peak_memory_gb: Measured peak (n,); NaN where there is none.
        capacity_gb: Memory of a GPU (n,).
        is_ok: Whether the run finished, (n,).
        is_oom: Whether it ran out of memory, (n,); crashes and timeouts are neither.
    """

    instances: tuple[str, ...]
    time: FloatArray
    memory: FloatArray
    last_shares: FloatArray
    crash: FloatArray
    step_time_s: FloatArray
    peak_memory_gb: FloatArray
    capacity_gb: FloatArray
    is_ok: BoolArray
    is_oom: BoolArray

    def __len__(self) -> int:
        return len(self.step_time_s)

    def take(self, rows: IntArray) -> Trials:
        """The trials at `rows` (m,), in that order; the instances are not narrowed."""
        arrays = [getattr(self, field.name)[rows] for field in fields(self)[1:]]
        return Trials(self.instances, *arrays)


def pooled(items: list[Evidence]) -> Trials:
    """The trials of all parts."""
    layouts = [item.layout for item in items]
    outcomes = [item.outcomes for item in items]
    throughput = _stack([_run_only(o.throughput, o.throughput_source) for o in outcomes])
    peak = _stack([_run_only(o.peak_memory_gb, o.memory_source) for o in outcomes])
    margin = _stack([_run_only(o.memory_margin, o.memory_source) for o in outcomes])
    capacity = _stack([np.full(len(x), x.setting.capacity_gb) for x in layouts])
    is_ok = _stack([o.is_feasible for o in outcomes])
    is_timed = _stack([o.is_timed for o in outcomes]) & (throughput > 0.0)
    peak = np.where(np.isfinite(peak), peak, capacity * (1.0 + margin))
    return Trials(
        tuple(sorted({item.instance.name for item in items if len(item.outcomes)})),
        np.concatenate([time_features(x) for x in layouts]),
        np.concatenate([memory_features(x) for x in layouts]),
        np.concatenate([last_stage_shares(x) for x in layouts]),
        np.concatenate([crash_features(x) for x in layouts]),
        np.where(is_timed, 1.0 / np.where(throughput > 0.0, throughput, 1.0), np.nan),
        np.where(is_ok & np.isfinite(peak) & (peak > 0.0), peak, np.nan),
        capacity,
        is_ok,
        _stack([o.is_oom for o in outcomes]),
    )


def _run_only(values: FloatArray, sources: CodeArray) -> FloatArray:
    return np.where(np.isin(sources, _RUNS), values, np.nan)


def _stack(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate(parts)
