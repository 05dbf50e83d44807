import numpy as np
import pytest
from carps.optimizers.random_search import RandomSearchOptimizer
from carps.utils.trials import TrialInfo
from ConfigSpace import Configuration as SpaceConfiguration

from parabolt.integrations.box import CandidateBox
from parabolt.integrations.carps import make_task


@pytest.mark.filterwarnings("ignore")
def test_a_search_by_carps_own_optimizer(pco64):
    task = make_task(pco64, seed=3, n_trials=40)
    optimizer = RandomSearchOptimizer(task)
    info, value = optimizer.run()
    assert task.objective_function.n_trials == 40
    assert task.objective_function.f_min <= value.cost < 0.0
    assert task.objective_function.evaluate(info).cost == value.cost


def test_costs_and_statuses(pco64):
    task = make_task(pco64)
    assert task.optimization_resources.n_trials == 110
    assert task.metadata.dimensions == task.metadata.search_space_n_ordinals == 8
    assert task.metadata.search_space_has_forbiddens
    box, objective = CandidateBox(pco64.space), task.objective_function

    def evaluate(row):
        config = SpaceConfiguration(objective.configspace, values=box.sizes_of(row))
        return objective.evaluate(TrialInfo(config))

    best = evaluate(pco64.space.row(pco64.optimum.configuration))
    assert best.cost == objective.f_min == -pco64.optimum.value
    assert best.status.name == "SUCCESS"
    died = evaluate(int(np.flatnonzero(~pco64.table.is_feasible)[0]))
    assert (died.cost, died.status.name) == (0.0, "MEMORYOUT")
    assert died.additional_info["memory_margin"] == 0.2
