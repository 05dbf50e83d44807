"""A program that runs out of memory as a current PyTorch does, in half of its configurations."""

from pathlib import Path

import numpy as np
import pytest

from parabolt.instances.search_space import SearchSpace
from parabolt.outcome import OOM_MARGIN, Status
from parabolt.trials.tune import tune

#: Two ranks; what is fast needs memory. Of what runs out the whole output is in a file: one rank
#: prints a traceback with the allocator's complete message, the other one loses its peer first.
MESSAGE = Path(__file__).parent / "out_of_memory.log"
PROGRAM = r"""
import json, os, sys
sizes = {k: int(v) for k, v in (word.split("=") for word in sys.argv[1].split())}
need_gib = 400 / sizes["tp"] / sizes["pp"] * (1 if sizes["zero"] else 1.5)
seconds = 1 + 0.5 * sizes["tp"] ** 0.5 + 0.3 * sizes["pp"] + 0.02 * sizes["zero"]
seconds -= 0.1 * (sizes["bucket"] == 256)
if need_gib > 79.11:
    sys.exit(open(sys.argv[2]).read())
with open(os.environ["PARABOLT_REPORT"], "a") as file:
    for step in range(4):
        file.write(json.dumps({"step": step, "seconds": seconds}) + "\n")
    file.write(json.dumps({"rank": 1, "peak_memory_gib": need_gib}) + "\n")
"""


def truth(c):
    """Needed memory in GiB and seconds per step, as the program has them."""
    need_gib = 400 / c.tp / c.pp * (1 if c.zero else 1.5)
    seconds = 1 + 0.5 * c.tp**0.5 + 0.3 * c.pp + 0.02 * c.zero - 0.1 * (c.bucket == 256)
    return need_gib, seconds


@pytest.mark.parametrize("name", ["parabolt", pytest.param("logeic", marks=pytest.mark.slow)])
def test_the_right_optimum_is_found_among_configurations_that_run_out(make_spec, tmp_path, name):
    sections = f"[budget]\ntrials = 30\n[optimizer]\nname = '{name}'\nseed = 1\n"
    spec = make_spec("{configuration}", str(MESSAGE), code=PROGRAM, sections=sections)
    candidates = SearchSpace.lattice(spec.instance).candidates
    need_gib, seconds = np.array([truth(c) for c in candidates]).T
    fits = need_gib <= 79.11
    assert 0.3 < fits.mean() < 0.7, "about half of them run out"
    assert seconds[~fits].min() < seconds[fits].min(), "what runs out would be the fastest"

    history = tune(spec, tmp_path / "out")
    for trial in history.told:
        need, _ = truth(trial.configuration)
        expected = Status.OK if need <= 79.11 else Status.OOM
        assert trial.outcome.status is expected, trial.reason
        if expected is Status.OOM:
            assert trial.outcome.memory_margin == OOM_MARGIN
            assert trial.n_launched == 1, "it is never run again"
            assert trial.reason.startswith("rank 1: torch.OutOfMemoryError: CUDA out of memory.")
    n_oom = sum(trial.outcome.status is Status.OOM for trial in history.told)
    assert n_oom >= 3
    assert len(history.told) == 30
    best = history.incumbent.configuration
    assert truth(best)[1] == pytest.approx(seconds[fits].min())
