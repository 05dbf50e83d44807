"""The published `tpe` runs, repeated with another version of Optuna.

Usage, in an environment of its own:

    pip install . optuna==4.6.0
    python benchmarks/optuna_replay.py DIR

DIR holds `pco32.csv` and `pco64.csv`, as for benchmarks/parity.py. Each published run is repeated
from its seed: the sampler gets the published design and, after each of its own proposals, the
published observation of that step, as long as it proposes what the published run tried. Prints for
each seed the number of steps that agree. It does not use our `tpe`, which needs Optuna 5.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna

import parabolt

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray, IntArray
    from parabolt.problems.problem import Problem

N_INITIAL = 10


def main(folder: Path) -> None:
    """Prints a line for each table."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print(f"Optuna {optuna.__version__}")
    for name in ("pco32", "pco64"):
        problem = parabolt.load_problem(name)
        runs = published_runs(folder / f"{name}.csv", problem)
        shared = {seed: n_shared_steps(problem, seed, *run) for seed, run in runs.items()}
        total = {seed: len(rows) - N_INITIAL for seed, (rows, *_) in runs.items()}
        n_whole = sum(shared[seed] == total[seed] for seed in runs)
        steps = ", ".join("all" if shared[s] == total[s] else str(shared[s]) for s in runs)
        print(f"{name}: {n_whole} of {len(runs)} runs agree to their end; steps shared: {steps}")


def published_runs(
    file: Path, problem: Problem
) -> dict[int, tuple[IntArray, FloatArray, FloatArray]]:
    """Seed to rows (t,), observed throughput (t,) and memory margin (t,) of the `tpe` runs."""
    found: dict[int, list[tuple[list[float], float, float]]] = defaultdict(list)
    with file.open(encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            if line["method"] == "tpe":
                sizes = {k.name: float(line[k.column]) for k in problem.knobs}
                levels = [max(0.0, v - 1) if k == "zero" else v for k, v in sizes.items()]
                margin = -float(line["slack"])
                found[int(line["seed"])].append(
                    (levels, float(line["observed_throughput"]), margin)
                )
    return {
        seed: (
            problem.space.rows(np.array([levels for levels, *_ in run])),
            np.array([value for _, value, _ in run]),
            np.array([margin for *_, margin in run]),
        )
        for seed, run in found.items()
    }


def n_shared_steps(
    problem: Problem, seed: int, rows: IntArray, values: FloatArray, margins: FloatArray
) -> int:
    """Steps after the design until a proposal differs from the published one; all, if none does."""
    encoded = problem.space.encoded
    lower, upper = problem.instance.encoding.bounds
    names = [f"x{i}" for i in range(len(lower))]
    distributions = {
        name: optuna.distributions.IntDistribution(int(low), int(high))
        for name, low, high in zip(names, lower, upper, strict=True)
    }
    sampler = optuna.samplers.TPESampler(
        seed=seed, n_startup_trials=N_INITIAL, multivariate=False, constraints_func=_constraint
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for row, value, margin in zip(rows[:N_INITIAL], values, margins, strict=False):
        study.add_trial(
            optuna.trial.create_trial(
                params={n: int(v) for n, v in zip(names, encoded[row], strict=True)},
                distributions=distributions,
                value=float(value),
                user_attrs={"margin": float(margin)},
                system_attrs={"constraints": (float(margin),)},
            )
        )
    for t in range(N_INITIAL, len(rows)):
        trial = study.ask(distributions)
        point = np.array([trial.params[name] for name in names], dtype=np.float64)
        distance = (((encoded - point) / (upper - lower)) ** 2).sum(axis=1)
        if int(np.argmin(distance)) != rows[t]:
            return t - N_INITIAL
        trial.set_user_attr("margin", float(margins[t]))
        study.tell(trial, float(values[t]))
    return len(rows) - N_INITIAL


def _constraint(trial: Any) -> tuple[float]:
    return (trial.user_attrs["margin"],)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
