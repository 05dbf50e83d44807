"""The full grid of issue 3: every method, both tables, ten seeds; seconds per step.

Usage: python benchmarks/grid.py [--seeds 10] [--jobs 2]

Prints, per table and method, the mean time of a step (ask, tell and recommend; mean over runs with
the range) beside the published one (arXiv 2605.17000; authors' machine, 8 threads), the target, and
the mean final regret; then the wall time of the whole grid.
"""

import argparse
import time
from collections.abc import Sequence

import joblib
import numpy as np

import parabolt
from parabolt.analysis.metrics import simple_regret
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import Run, RunKey, execute

PROBLEMS = ("pco32", "pco64")
#: Method to published seconds per step on pco32 and pco64, and the target in milliseconds.
METHODS: dict[str, tuple[str, str, float]] = {
    "random": ("-", "-", 40.0),
    "logeic": ("1.8", "3.1", 15.0),
    "lognei": ("2.1", "3.3", 40.0),
    "ucbc": ("2.6", "2.7", 40.0),
    "cts": ("1.5", "3.2", 40.0),
    "scbo": ("0.8", "0.9", 40.0),
    "cmes": ("1.2", "1.9", 40.0),
    "ckg": ("2.5", "3.4", 100.0),
    "admmbo": ("2.0", "2.8", 40.0),
    "tpe": ("0.011", "0.011", 40.0),
    "cmaes": ("0.003", "0.003", 40.0),
    "lognei+prior": ("5.7-8.5", "5.7-8.5", 60.0),
    "ucbc+prior": ("5.7-8.5", "5.7-8.5", 60.0),
    "ckg+prior": ("5.7-8.5", "5.7-8.5", 60.0),
    "admmbo+prior": ("5.7-8.5", "5.7-8.5", 60.0),
}


def line(method: str, published: str, target_ms: float, runs: Sequence[Run]) -> str:
    """One row of the table."""
    steps = np.array([1e3 * np.nanmean(run.step_time_s) for run in runs])
    regret = np.array([simple_regret(run)[-1] for run in runs])
    failed = int(sum(run.n_failed_fits.sum() for run in runs))
    verdict = "met" if steps.mean() <= target_ms else "MISSED"
    return (
        f"{method:<14}{steps.mean():9.2f} [{steps.min():.2f}, {steps.max():.2f}]".ljust(42)
        + f"{published:>8} s  target {target_ms:g} ms: {verdict:<7}"
        f"regret {regret.mean():.4f}  failed fits {failed}"
    )


def main() -> None:
    """Runs the grid and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    wanted = [
        (problem, RunKey.of(problem, method, seed, Protocol.published(problem.name)))
        for problem in map(parabolt.load_problem, PROBLEMS)
        for method in METHODS
        for seed in range(options.seeds)
    ]
    start = time.perf_counter()
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        runs = joblib.Parallel(n_jobs=options.jobs, batch_size=1)(
            joblib.delayed(execute)(problem, key) for problem, key in wanted
        )
    minutes = (time.perf_counter() - start) / 60.0
    for i, name in enumerate(PROBLEMS):
        print(f"\n{name}: ms per step, mean [range over runs]; published")
        for method, (*published, target_ms) in METHODS.items():
            own = [r for r in runs if (r.key.problem, r.key.optimizer) == (name, method)]
            print(line(method, published[i], target_ms, own))
    verdict = "met" if minutes <= 12.0 else "MISSED"
    print(f"\n{len(runs)} runs in {minutes:.1f} minutes, {options.jobs} processes: {verdict} (12)")


if __name__ == "__main__":
    main()
