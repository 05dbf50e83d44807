"""A run is the same in other processes, with one or two BLAS threads, and on other processors."""

import json
import os
import subprocess
import sys

import pytest

import parabolt

SCRIPT = """
import json, sys
import parabolt
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
names, problems, n_seeds, n_evaluations = sys.argv[1:]
found = {}
for name in names.split(","):
    for problem in map(parabolt.load_problem, problems.split(",")):
        for seed in range(int(n_seeds)):
            protocol = Protocol(n_evaluations=int(n_evaluations))
            run = execute(problem, RunKey.of(problem, name, seed, protocol))
            rows = problem.space.rows(list(run.configurations)).tolist()
            recommended = [str(x) for x in run.recommended]
            found[f"{name} {problem.name} {seed}"] = [rows, run.observed.tolist(), recommended]
print(json.dumps(found))
"""

#: Kernels of OpenBLAS, and the instructions that numpy is then not to use: three processors that
#: differ in vector length and in fused multiplications. A kernel that this one can't run is refused
#: by OpenBLAS, which then takes its own.
PROCESSORS = {
    "SKYLAKEX": "",
    "HASWELL": "X86_V4 AVX512F AVX512_SKX AVX512_ICL AVX512_SPR",
    "NEHALEM": "X86_V3 X86_V4 FMA3 AVX2 AVX512F AVX512_SKX AVX512_ICL AVX512_SPR",
}


def runs(names, problems, n_seeds, n_evaluations, *, threads=1, processor="HASWELL"):
    limits = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, names, problems, str(n_seeds), str(n_evaluations)],
        env=os.environ
        | dict.fromkeys(limits, str(threads))
        | {"OPENBLAS_CORETYPE": processor, "NPY_DISABLE_CPU_FEATURES": PROCESSORS[processor]},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def assert_same_on_all_processors(*arguments):
    first, *others = (runs(*arguments, processor=processor) for processor in PROCESSORS)
    for other in others:
        for name, run in first.items():
            assert run == other[name], name


def test_short_runs_are_the_same_on_three_processors():
    assert_same_on_all_processors("logeic,ckg,parabolt", "pco64", 1, 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logeic", "ckg", "parabolt"])
def test_forty_runs_are_the_same_on_three_processors(name):
    """Short ones: forty runs with the published budget take a quarter of an hour of each core."""
    assert_same_on_all_processors(name, "pco32,pco64", 20, 15)


@pytest.mark.slow
def test_long_runs_are_the_same_on_three_processors():
    """With fits by L-BFGS-B, two of ten runs of `logeic` on pco64 parted after 37 and 45 steps."""
    assert_same_on_all_processors("logeic,ckg,parabolt", "pco64", 1, 100)


@pytest.mark.slow
def test_runs_are_the_same_with_one_and_two_blas_threads():
    names = ",".join(parabolt.optimizer_names())
    one, two = (runs(names, "pco64", 1, 60, threads=threads) for threads in (1, 2))
    for name, run in one.items():
        assert run == two[name], name
