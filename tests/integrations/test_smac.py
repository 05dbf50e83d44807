from itertools import product

import numpy as np
import pytest
from ConfigSpace import Configuration as SpaceConfiguration
from ConfigSpace.exceptions import ForbiddenValueError
from smac import HyperparameterOptimizationFacade, RandomFacade

import parabolt
from parabolt.integrations.box import CandidateBox
from parabolt.integrations.configspace import candidate, configuration_space
from parabolt.integrations.smac import make_scenario, target_function, trial_value, try_config
from parabolt.outcome import Outcome, Status


def legal(space):
    found = configuration_space(space)
    sizes = CandidateBox(space).sizes
    for values in product(*sizes.values()):
        try:
            config = SpaceConfiguration(found, values=dict(zip(sizes, values, strict=True)))
        except ForbiddenValueError:
            continue
        yield candidate(space, config)


def test_the_legal_configurations_are_the_candidates(pco32):
    """Every point of the box, 12,960 of them; pco32 lacks 13 configurations of its lattice."""
    assert sorted(legal(pco32.space)) == list(pco32.space.candidates)


@pytest.mark.slow
def test_the_legal_configurations_are_the_candidates_of_pco64_and_pco16(pco64):
    assert sorted(legal(pco64.space)) == list(pco64.space.candidates)
    pco16 = parabolt.SearchSpace.lattice(parabolt.load_instance("pco16"))
    assert sorted(legal(pco16)) == list(pco16.candidates)


def test_samples_are_candidates_and_seeded(problem):
    def draw(seed):
        found = configuration_space(problem.space, seed=seed).sample_configuration(300)
        return [candidate(problem.space, config) for config in found]

    assert draw(1) == draw(1) != draw(2)
    assert len(set(draw(1))) > 100


def test_off_the_space(pco32):
    with pytest.raises(parabolt.MissingConfigurationError, match="not among its 379"):
        candidate(pco32.space, {"dp": 2, "pp": 8, "cp": 2, "bucket": 64})
    with pytest.raises(parabolt.InvalidConfigurationError, match="expected the 32 GPUs"):
        candidate(pco32.space, {"dp": 2, "bucket": 64})


def test_a_search_by_the_facade(pco64, tmp_path):
    scenario = make_scenario(pco64.space, n_trials=25, output_directory=tmp_path)
    function = target_function(pco64)
    smac = RandomFacade(scenario, function, logging_level=False)
    best = smac.optimize()
    costs = [value.cost for _, value in smac.runhistory.items()]
    assert function(best) == min(costs) < 0.0
    assert 0.0 in costs  # a run that died, and worse than any that finished
    assert max(costs) == 0.0


@pytest.mark.slow
def test_a_search_by_ask_and_tell_notes_memoryout(pco64, tmp_path):
    scenario = make_scenario(pco64.space, seed=2, n_trials=60, output_directory=tmp_path)
    function = target_function(pco64)
    smac = HyperparameterOptimizationFacade(scenario, function, logging_level=False)
    for _ in range(30):
        info = smac.ask()
        smac.tell(info, trial_value(try_config(pco64, info.config)))
    history = [(dict(smac.runhistory.get_config(key.config_id)), value)
               for key, value in smac.runhistory.items()]  # fmt: skip
    for sizes, value in history:
        outcome = pco64.evaluate(candidate(pco64.space, sizes))
        expected = "SUCCESS" if outcome.is_feasible else "MEMORYOUT"
        assert value.status.name == expected
    assert {value.status.name for _, value in history} == {"SUCCESS", "MEMORYOUT"}


def test_statuses():
    assert trial_value(Outcome.oom()).status.name == "MEMORYOUT"
    assert trial_value(Outcome(Status.TIMEOUT)).status.name == "TIMEOUT"
    assert trial_value(Outcome(Status.CRASHED)).cost == 0.0
    value = trial_value(Outcome.ok(0.25))
    assert (value.cost, value.status.name) == (-0.25, "SUCCESS")


def test_optimum_is_the_smallest_cost(problem):
    function = target_function(problem)
    best = problem.space.row(problem.optimum.configuration)
    costs = [function(CandidateBox(problem.space).sizes_of(r)) for r in range(len(problem.space))]
    assert int(np.argmin(costs)) == best
