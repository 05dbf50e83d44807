"""A run is the same in other processes, and with one or two BLAS threads."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys
import parabolt
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
problem, found = parabolt.load_problem("pco64"), {}
for name in parabolt.optimizer_names():
    run = execute(problem, RunKey.of(problem, name, 0, Protocol(n_evaluations=int(sys.argv[1]))))
    rows = problem.space.rows(list(run.configurations)).tolist()
    found[name] = [rows, run.observed.tolist(), [str(x) for x in run.recommended]]
print(json.dumps(found))
"""


def runs(n_evaluations, threads):
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(n_evaluations)],
        env=os.environ | dict.fromkeys(names, str(threads)),
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_runs_are_the_same_with_one_and_two_blas_threads():
    one, two = runs(60, 1), runs(60, 2)
    for name, run in one.items():
        assert run == two[name], name
