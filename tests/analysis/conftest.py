import math

import numpy as np
import pytest

from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import Run, RunKey
from parabolt.outcome import Outcome, Outcomes
from parabolt.space.configurations import Configurations


@pytest.fixture
def run_of():
    """Makes runs with given noiseless throughputs, or outcomes; None stands for out of memory."""

    def make(
        throughputs, *, optimum=0.5, n_initial=2, recommended=None, name="mine", seed=0,
        problem="pco32",
    ):  # fmt: skip
        outcomes = [
            t if isinstance(t, Outcome) else Outcome.oom() if t is None else Outcome.ok(t)
            for t in throughputs
        ]
        n = len(throughputs)
        return Run(
            key=RunKey(
                problem,
                name,
                seed,
                Protocol(n_evaluations=n - n_initial, n_initial=n_initial),
                "v",
                "0",
            ),
            optimum=optimum,
            n_initial=n_initial,
            configurations=Configurations({"dp": 32, "bucket": 64}, n=n),
            observed=np.zeros(n),
            outcomes=Outcomes.of(outcomes),
            recommended=np.array(recommended if recommended is not None else [math.nan] * n),
            step_time_s=np.array([math.nan] * n_initial + [0.01] * (n - n_initial)),
            n_failed_fits=np.zeros(n, dtype=np.int64),
            was_shortened=np.zeros(n, dtype=bool),
            start_s=np.arange(n) * 60.0,
            end_s=np.arange(1, n + 1) * 60.0,
            n_gpus=32,
        )

    return make


@pytest.fixture
def made_runs(run_of):
    """Makes runs whose final regrets, in percent, are `regrets[name]`, one for each seed."""

    def make(regrets, *, problem="pco32", first_seed=0):
        return [
            run_of([0.1, 0.1, 0.5 * (1 - regret / 100)], name=name, seed=seed, problem=problem)
            for name, values in regrets.items()
            for seed, regret in enumerate(values, start=first_seed)
        ]

    return make
