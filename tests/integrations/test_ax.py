import logging

import numpy as np
import pytest

from parabolt.integrations.ax import Metric, Runner, make_client, raw_data
from parabolt.outcome import Outcome

logging.getLogger("ax").setLevel(logging.ERROR)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_search_by_hand(pco64):
    client, runner = make_client(pco64.space, seed=0), Runner(pco64)
    figures = {}
    for _ in range(12):
        for index, parameters in client.get_next_trials(max_trials=1).items():
            figures[index] = runner.run_trial(index, parameters)
            outcome = pco64.evaluate(_configuration(figures[index]))
            client.complete_trial(index, raw_data=raw_data(outcome))
    statuses = [found["status"] for found in figures.values()]
    assert "ok" in statuses
    for found in figures.values():
        assert ("throughput" in found) == (found["status"] == "ok")
    _, prediction, index, _ = client.get_best_parameterization(use_model_predictions=False)
    finished = {i: f["throughput"] for i, f in figures.items() if f["status"] == "ok"}
    assert index == max(finished, key=finished.get)
    assert prediction["throughput"][0] == finished[index]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_search_by_runner_and_metrics(pco32):
    client = make_client(pco32.space, seed=1)
    client.configure_runner(Runner(pco32))
    client.configure_metrics([Metric("throughput"), Metric("memory_margin")])
    client.run_trials(max_trials=9, parallelism=1, initial_seconds_between_polls=0)
    trials = client._experiment.trials.values()
    assert len(trials) == 9
    data = client._experiment.lookup_data().df
    for trial in trials:
        found = trial.run_metadata
        mine = data[data.trial_index == trial.index].set_index("metric_name")["mean"]
        assert mine["memory_margin"] == found["memory_margin"]
        assert ("throughput" in mine) == (found["status"] == "ok")


def _configuration(found):
    from parabolt import Configuration

    return Configuration.parse(found["configuration"])


def test_a_run_that_died_has_a_margin_and_no_throughput():
    assert raw_data(Outcome.oom()) == {"memory_margin": (0.2, 0.0)}
    known = Outcome.ok(0.25, memory_margin=-0.5)
    assert raw_data(known) == {"throughput": (0.25, 0.0), "memory_margin": (-0.5, 0.0)}
    unknown = {"throughput": (0.25, 0.0), "memory_margin": (-0.2, 0.0)}
    assert raw_data(Outcome.ok(0.25)) == unknown


def test_direction_and_constraint(pco32):
    experiment = make_client(pco32.space)._experiment
    assert not experiment.optimization_config.objective.minimize
    (constraint,) = experiment.optimization_config.outcome_constraints
    assert (constraint.op.name, constraint.bound) == ("LEQ", 0.0)
    assert sorted(experiment.search_space.parameters["zero"].values) == [0, 2, 3]
    assert np.prod([len(p.values) for p in experiment.search_space.parameters.values()]) == 12960
