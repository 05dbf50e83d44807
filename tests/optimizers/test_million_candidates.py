"""Memory of every method on a million candidates; benchmarks/million_candidates.py has the time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import parabolt

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "million_candidates.py"


@pytest.mark.slow
@pytest.mark.parametrize("name", parabolt.optimizer_names())
def test_a_million_candidates_need_less_than_two_gigabytes(name):
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--one", name],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    steps, peak_gb = json.loads(done.stdout)
    assert len(steps) == 4
    assert peak_gb < 2.0
