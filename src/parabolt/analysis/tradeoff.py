"""Throughput against memory: the Pareto front of a problem, and how much of it a run found.

Two objectives: most throughput, in iterations/s, and least peak memory, in GiB. The reference point
is no throughput at the memory of a GPU: (0 iterations/s, capacity), so that whatever runs dominates
it. The hypervolume is the area between the front and that point, in iterations/s x GiB
(Zitzler & Thiele 1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.analysis.curves import Band, band, padded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from parabolt.analysis.landscape import Landscape
    from parabolt.experiments.run import Run
    from parabolt.outcome import FloatArray, IntArray, Outcomes


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """Two objectives on one problem.

    Attributes:
        capacity_gib: Memory of a GPU in GiB: the reference point, with a throughput of 0.
        front: Rows of the landscape on the Pareto front, by ascending memory.
        hypervolume: Hypervolume of the front, in iterations/s x GiB.
        curves: Optimizer to the hypervolume that its runs have found with each evaluation, in
            percent of the front's.
    """

    capacity_gib: float
    front: IntArray
    hypervolume: float
    curves: dict[str, Band]


def tradeoff(landscape: Landscape, runs: Mapping[str, Sequence[Run]]) -> Tradeoff | None:
    """The trade-off on a problem and what runs found of it, by optimizer.

    None where the memory of no candidate is known.
    """
    front = pareto_rows(landscape.outcomes)
    whole = hypervolume(landscape.outcomes.take(front), landscape.capacity_gib)
    if whole == 0.0:
        return None
    capacity = landscape.capacity_gib
    curves = {
        name: band(100.0 / whole * padded([hypervolume_curve(run, capacity) for run in group]))
        for name, group in runs.items()
    }
    return Tradeoff(capacity, front, whole, curves)


def pareto_rows(outcomes: Outcomes) -> IntArray:
    """Rows that no other one beats in both objectives, by ascending memory.

    Only finished runs whose memory is known take part; of equal ones the first stands for all.
    """
    rows = np.flatnonzero(outcomes.is_feasible & np.isfinite(outcomes.peak_memory_gib))
    order = rows[np.lexsort((-outcomes.throughput[rows], outcomes.peak_memory_gib[rows]))]
    throughput = outcomes.throughput[order]
    before = np.concatenate([[-np.inf], np.maximum.accumulate(throughput)[:-1]])
    front: IntArray = order[throughput > before]
    return front


def hypervolume(outcomes: Outcomes, capacity_gib: float) -> float:
    """Area that outcomes dominate, in iterations/s x GiB; the reference point is (0, capacity)."""
    front = pareto_rows(outcomes)
    throughput = outcomes.throughput[front]
    spared = np.maximum(capacity_gib - outcomes.peak_memory_gib[front], 0.0)
    return float(np.sum(spared * np.diff(throughput, prepend=0.0)))


def hypervolume_curve(run: Run, capacity_gib: float) -> FloatArray:
    """Hypervolume of what a run has evaluated so far, (t,), in iterations/s x GiB."""
    found = np.zeros(len(run))
    outcomes, front, area = run.outcomes, np.zeros(0, dtype=np.int64), 0.0
    is_placed = outcomes.is_feasible & np.isfinite(outcomes.peak_memory_gib)
    for row in range(len(run)):
        if is_placed[row] and not _is_beaten(outcomes, front, row):
            rows = np.append(front, row)
            front = rows[pareto_rows(outcomes.take(rows))]
            area = hypervolume(outcomes.take(front), capacity_gib)
        found[row] = area
    return found


def _is_beaten(outcomes: Outcomes, front: IntArray, row: int) -> bool:
    """Whether a row of the front is at least as good in both objectives."""
    as_fast = outcomes.throughput[front] >= outcomes.throughput[row]
    as_small = outcomes.peak_memory_gib[front] <= outcomes.peak_memory_gib[row]
    return bool((as_fast & as_small).any())
