from dataclasses import replace

import numpy as np
import pytest

import parabolt
from parabolt.costmodel.calibration.evidence import Evidence
from parabolt.costmodel.calibration.tokens import with_inferred_tokens
from parabolt.errors import InstanceError
from parabolt.problems.simulated import SimulatedProblem


def stated_only(evidence):
    """The trials of an instance that says what the card says: 512 x 8192 tokens."""
    work = replace(evidence.instance.workload, tokens_per_iteration=None)
    return replace(evidence, instance=replace(evidence.instance, workload=work))


@pytest.mark.parametrize("name", ["pco32", "pco64"])
@pytest.mark.parametrize("seed", range(5))
def test_ten_trials_tell_the_tokens_of_the_measured_tables(name, seed):
    table = parabolt.load_table(name)
    rows = np.random.default_rng(seed).choice(len(table), 10, replace=False)
    trials = Evidence(table.instance, table.space.encoded[rows], table.outcomes.take(rows))
    found = with_inferred_tokens(stated_only(trials))
    assert found.instance.workload.tokens_per_iteration == 2**18
    assert found.instance == table.instance


@pytest.mark.parametrize("tokens", [2**16, 2**18, 2**19])
def test_and_those_of_simulated_ones(tokens):
    instance = parabolt.load_instance("pco16")
    work = replace(instance.workload, tokens_per_iteration=tokens)
    problem = SimulatedProblem(replace(instance, workload=work), seed=1)
    rows = np.random.default_rng(0).choice(len(problem.space), 20, replace=False)
    trials = Evidence(instance, problem.space.encoded[rows], problem.table.outcomes.take(rows))
    assert with_inferred_tokens(trials).instance.workload.tokens_per_iteration == tokens


def test_what_cannot_be_inferred():
    table = parabolt.load_table("pco32")
    failed = np.flatnonzero(~table.is_feasible)[:5]
    trials = Evidence(table.instance, table.space.encoded[failed], table.outcomes.take(failed))
    with pytest.raises(InstanceError, match="expected a finished trial"):
        with_inferred_tokens(trials)
    work = replace(table.instance.workload, micro_batch_size=1)
    stated = replace(trials, instance=replace(table.instance, workload=work))
    with pytest.raises(InstanceError, match="micro_batch_size: expected none"):
        with_inferred_tokens(stated)
