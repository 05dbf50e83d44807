"""A small comparison by the published protocol, without files."""

import numpy as np

import parabolt
from parabolt.analysis.metrics import final_regret_percent
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute

problem = parabolt.load_problem("pco32")
protocol = Protocol(n_evaluations=30)
for name in ("random", "logeic"):
    runs = [execute(problem, RunKey.of(problem, name, seed, protocol)) for seed in range(5)]
    final = [final_regret_percent(run) for run in runs]
    print(f"{name:8s} regret: median {np.median(final):.2f} %, worst {max(final):.2f} %")
