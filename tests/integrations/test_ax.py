import logging
from dataclasses import replace

import numpy as np
import pytest

import parabolt
from parabolt.analysis.tradeoff import pareto_rows
from parabolt.errors import CandidatesExhaustedError
from parabolt.integrations.ax import Metric, Runner, make_client, raw_data
from parabolt.integrations.box import CandidateBox
from parabolt.outcome import Outcome, Outcomes
from parabolt.problems.tabular import TabularProblem

logging.getLogger("ax").setLevel(logging.ERROR)


def _search(client, problem, n_trials, **options):
    """What `Runner` found of each trial, by its index."""
    runner, figures = Runner(problem), {}
    for _ in range(n_trials):
        for index, parameters in client.get_next_trials(max_trials=1).items():
            figures[index] = runner.run_trial(index, parameters)
            outcome = problem.evaluate(_configuration(figures[index]))
            client.complete_trial(index, raw_data=raw_data(outcome, **options))
    return figures


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("snap", [False, True])
def test_a_search_by_hand(snap, pco64):
    client = make_client(pco64.space, seed=0, snap=snap)
    figures = _search(client, pco64, 8)
    statuses = [found["status"] for found in figures.values()]
    assert "ok" in statuses
    for found in figures.values():
        assert ("throughput" in found) == (found["status"] == "ok")
    if not snap:
        assert all(found["is_candidate"] for found in figures.values())
        assert len({found["configuration"] for found in figures.values()}) == 8
    _, prediction, index, _ = client.get_best_parameterization(use_model_predictions=False)
    finished = {i: f["throughput"] for i, f in figures.items() if f["status"] == "ok"}
    assert index == max(finished, key=finished.get)
    assert prediction["throughput"][0] == finished[index]
    parameters, *_ = client.get_best_parameterization()
    assert parameters.keys() == {knob.name for knob in pco64.knobs}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n_died", "snap"), [(1, False), (3, False), (1, True), (2, True)])
def test_the_best_after_any_number_of_runs_that_died(n_died, snap, pco32):
    client = make_client(pco32.space, seed=1, snap=snap)
    rows = np.flatnonzero(~pco32.table.is_feasible)[:n_died].tolist()
    rows += np.flatnonzero(pco32.table.is_feasible)[:60:10].tolist()
    box, finished = CandidateBox(pco32.space), {}
    for row in rows:
        outcome = pco32.evaluate(pco32.space.candidates[row])
        index = client.attach_trial(box.sizes_of(row))
        client.complete_trial(index, raw_data=raw_data(outcome))
        finished[index] = outcome.throughput if outcome.is_feasible else -1.0
    client.get_next_trials(max_trials=1)
    _, _, index, _ = client.get_best_parameterization()
    assert index == max(finished, key=finished.get)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_seed_gives_the_same_trials_and_those_under_way_are_not_repeated(pco32):
    def proposals():
        client = make_client(pco32.space, seed=4)
        figures = _search(client, pco32, 6)
        batch = client.get_next_trials(max_trials=2)
        return [f["configuration"] for f in figures.values()], list(batch.values())

    (tried, batch), again = proposals(), proposals()
    assert (tried, batch) == again
    texts = [str(CandidateBox(pco32.space).place_sizes(sizes).configuration) for sizes in batch]
    assert len({*tried, *texts}) == 8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_throughput_against_memory(pco64):
    client = make_client(pco64.space, seed=1, with_memory=True)
    figures = _search(client, pco64, 7, with_memory=True)
    assert all(found["is_candidate"] for found in figures.values())
    told = [pco64.evaluate(_configuration(found)) for found in figures.values()]
    front = pareto_rows(Outcomes.of(told)).tolist()
    found = client.get_pareto_frontier(use_model_predictions=False)
    assert sorted(index for _, _, index, _ in found) == sorted(front)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_space_ends(pco32):
    table = parabolt.Table(pco32.table.data.slice(0, 3), pco32.instance)
    few = TabularProblem(table)
    client = make_client(few.space, seed=0)
    figures = _search(client, few, 3)
    assert {_configuration(found) for found in figures.values()} == set(few.space.candidates)
    with pytest.raises(CandidatesExhaustedError, match="all 3 candidates have been tried"):
        client.get_next_trials(max_trials=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_search_by_runner_and_metrics(pco32):
    client = make_client(pco32.space, seed=1)
    client.configure_runner(Runner(pco32))
    client.configure_metrics([Metric("throughput"), Metric("memory_margin")])
    client.run_trials(max_trials=7, parallelism=1, initial_seconds_between_polls=0)
    trials = client._experiment.trials.values()
    assert len(trials) == 7
    data = client._experiment.lookup_data().df
    for trial in trials:
        found = trial.run_metadata
        mine = data[data.trial_index == trial.index].set_index("metric_name")["mean"]
        assert mine["memory_margin"] == found["memory_margin"]
        assert ("throughput" in mine) == (found["status"] == "ok")
        assert found["is_candidate"]


def _configuration(found):
    from parabolt import Configuration

    return Configuration.parse(found["configuration"])


def test_a_run_that_died_has_a_margin_and_no_throughput():
    assert raw_data(Outcome.oom()) == {"memory_margin": (0.2, 0.0)}
    known = Outcome.ok(0.25, memory_margin=-0.5)
    assert raw_data(known) == {"throughput": (0.25, 0.0), "memory_margin": (-0.5, 0.0)}
    unknown = {"throughput": (0.25, 0.0), "memory_margin": (-0.2, 0.0)}
    assert raw_data(Outcome.ok(0.25)) == unknown
    both = {**known_data(known), "peak_memory_gib": (40.0, 0.0)}
    assert raw_data(replace(known, peak_memory_gib=40.0), with_memory=True) == both
    assert raw_data(Outcome.oom(), with_memory=True) == {"memory_margin": (0.2, 0.0)}


def known_data(outcome):
    return {
        "throughput": (outcome.throughput, 0.0),
        "memory_margin": (outcome.memory_margin, 0.0),
    }


def test_direction_and_constraint(pco32):
    experiment = make_client(pco32.space)._experiment
    assert not experiment.optimization_config.objective.minimize
    (constraint,) = experiment.optimization_config.outcome_constraints
    assert (constraint.op.name, constraint.bound) == ("LEQ", 0.0)
    assert sorted(experiment.search_space.parameters["zero"].values) == [0, 2, 3]
    assert np.prod([len(p.values) for p in experiment.search_space.parameters.values()]) == 12960


def test_the_reference_point_of_two_objectives(pco64):
    config = make_client(pco64.space, with_memory=True)._experiment.optimization_config
    bounds = [(threshold.op.name, threshold.bound) for threshold in config.objective_thresholds]
    assert bounds == [("GEQ", 0.0), ("LEQ", pco64.instance.cluster.memory_gib)]
    (constraint,) = config.outcome_constraints
    assert constraint.bound == 0.0
