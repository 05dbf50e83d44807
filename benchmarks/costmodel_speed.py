"""How fast the cost model, its calibration and the planner are, on one core.

Usage: OPENBLAS_NUM_THREADS=1 python benchmarks/costmodel_speed.py
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.costmodel.calibration.evidence import Evidence
from parabolt.costmodel.predictor import CostModel
from parabolt.instances.model_shape import ModelShape
from parabolt.instances.specs import Workload
from parabolt.planner.plan import make_plan
from parabolt.planner.request import parse_cluster, plan_instance
from parabolt.tables.sources import load_table

if TYPE_CHECKING:
    from collections.abc import Callable

_REPEATS = 7


def main() -> None:
    """Prints medians of seven repeats, with the fastest and the slowest."""
    table = load_table("pco64")
    encoded = np.tile(table.space.encoded, (1300, 1))
    configurations = table.instance.encoding.configurations(encoded)
    model = CostModel(table.instance)
    seconds = timed(lambda: model.point(configurations))
    rates = len(configurations) / np.array(seconds) / 1e6
    print(
        f"time and memory together: {np.median(rates):.2f} million configurations/s "
        f"({rates.min():.2f} to {rates.max():.2f})"
    )
    for n_trials in (3, 20, 100, 300):
        rows = np.random.default_rng(0).choice(len(table), n_trials, replace=False)
        encoded, outcomes = table.space.encoded[rows], table.outcomes.take(rows)
        report(
            f"calibration on {n_trials} trials",
            lambda e=encoded, o=outcomes: Calibration.prior().fit(  # type: ignore[misc]
                Evidence(table.instance, e, o)
            ),
        )
    report("predictions with uncertainty, 780 rows", lambda: model.predict(table.space.encoded))
    shape = ModelShape(128, 128, 16384, 53248, n_kv_heads=8, vocabulary=128256)
    work = Workload(8192, 2048, micro_batch_size=1, recomputation="layer")
    instance = plan_instance(shape, parse_cluster("2048x8 h100-80gb"), work)
    n_candidates = make_plan(instance).n_candidates
    report(f"plan of 16,384 GPUs, {n_candidates} configurations", lambda: make_plan(instance))


def timed(task: Callable[[], object]) -> list[float]:
    """Seconds of processor time of each repeat, after one to warm up."""
    task()
    seconds = []
    for _ in range(_REPEATS):
        started = time.process_time()
        task()
        seconds.append(time.process_time() - started)
    return seconds


def report(what: str, task: Callable[[], object]) -> None:
    """Prints the median, fastest and slowest repeat of a task."""
    low, median, high = 1e3 * np.quantile(timed(task), [0.0, 0.5, 1.0])
    print(f"{what}: {median:.1f} ms ({low:.1f} to {high:.1f})")


if __name__ == "__main__":
    main()
