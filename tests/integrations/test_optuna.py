"""Optuna's own studies on our problems."""

import warnings

import numpy as np
import optuna
import pytest

import parabolt
from parabolt.analysis.tradeoff import pareto_rows
from parabolt.errors import InvalidConfigurationError, OptionError
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
from parabolt.integrations.optuna import Objective
from parabolt.integrations.optunahub import ParallelismProblem
from parabolt.outcome import Outcomes
from parabolt.problems.noise import TorchNormalStream

optuna.logging.set_verbosity(optuna.logging.WARNING)


def search(objective, n_trials=30, seed=0):
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=n_trials)
    return study


@pytest.mark.parametrize("snap", [False, True])
@pytest.mark.parametrize("make", [Objective, ParallelismProblem])
def test_a_search(make, snap, pco64):
    study = search(make(pco64, snap=snap), 60, seed=3)
    best = study.best_trial
    configuration = parabolt.Configuration.parse(best.user_attrs["configuration"])
    assert pco64.evaluate(configuration).throughput == best.value
    assert best.user_attrs["status"] == "ok"
    states = {trial.state.name for trial in study.trials}
    assert states == {"COMPLETE", "PRUNED"}
    for trial in study.trials:
        died = trial.user_attrs["status"] == "oom"
        assert died == (trial.state.name == "PRUNED")
        assert died == (trial.constraints["memory_margin"] > 0)
        assert not died or trial.value is None
        configuration = parabolt.Configuration.parse(trial.user_attrs["configuration"])
        levels = pco64.instance.encoding.encode([configuration])[0].tolist()
        assert trial.user_attrs["is_candidate"] == (levels == list(trial.params.values()))
    n_exact = sum(trial.user_attrs["is_candidate"] for trial in study.trials)
    assert n_exact < 20 if snap else n_exact == 60


@pytest.mark.parametrize("name", ["pco32", "uscale-1b-64"])
def test_every_candidate_can_be_reached_and_nothing_else(name):
    """By a grid over a problem whose last choice has gaps, and by each candidate's own params."""
    problem = parabolt.load_problem(name)
    objective, n = Objective(problem), len(problem.space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.BruteForceSampler(seed=0)
    study = optuna.create_study(directions=objective.directions, sampler=sampler)
    study.optimize(objective, n_trials=n + 1)
    tried = [trial.user_attrs["configuration"] for trial in study.trials]
    assert len(tried) == n
    assert set(tried) == {str(configuration) for configuration in problem.space.candidates}
    offered = objective.search_space
    for row in range(n):
        params = objective.params(row)
        assert params.keys() == objective.distributions(row).keys() <= offered.keys()
        assert objective.outcome(params) == problem.evaluate(problem.space.candidates[row])
    with pytest.raises(InvalidConfigurationError, match=r"dp_log2: expected one of .* got 77"):
        objective.outcome({**objective.params(0), "dp_log2": 77})


def test_enqueued_and_added_candidates(pco32):
    objective = Objective(pco32)
    study = optuna.create_study(directions=objective.directions)
    study.enqueue_trial(objective.params(17))
    study.optimize(objective, n_trials=1)
    assert study.trials[0].user_attrs["configuration"] == str(pco32.space.candidates[17])
    study.add_trial(
        optuna.trial.create_trial(
            params=objective.params(3), distributions=objective.distributions(3), value=0.25
        )
    )
    assert study.trials[1].params == objective.params(3)


@pytest.mark.parametrize("snap", [False, True])
def test_throughput_against_memory(snap, pco64):
    objective = Objective(pco64, snap=snap, with_memory=True)
    sampler = optuna.samplers.NSGAIISampler(seed=0, population_size=10)
    study = optuna.create_study(directions=objective.directions, sampler=sampler)
    study.optimize(objective, n_trials=60)
    told = []
    for trial in study.trials:
        outcome = pco64.evaluate(parabolt.Configuration.parse(trial.user_attrs["configuration"]))
        assert (trial.state.name == "PRUNED") == (outcome.status == "oom")
        if outcome.is_feasible:
            assert trial.values == [outcome.throughput, outcome.peak_memory_gib]
        told.append(outcome)
    best = {(t.values[0], t.values[1]) for t in study.best_trials}
    outcomes = Outcomes.of(told)
    front = outcomes.take(pareto_rows(outcomes))
    assert best == set(zip(front.throughput, front.peak_memory_gib, strict=True))
    zero, capacity = objective.reference_point
    assert (zero, capacity) == (0.0, pco64.instance.cluster.memory_gib)
    assert all(values[0] > zero and values[1] < capacity for values in best)
    with pytest.raises(OptionError, match="expected two objectives; try with_memory=True"):
        _ = Objective(pco64).reference_point


def test_a_seed_gives_the_same_trials(pco32):
    first, again, other = (search(Objective(pco32), 15, seed=s) for s in (1, 1, 2))
    assert [t.params for t in first.trials] == [t.params for t in again.trials]
    assert [t.params for t in first.trials] != [t.params for t in other.trials]


def test_imputed_values_are_told_and_marked(pco64):
    study = search(Objective(parabolt.ImputedProblem(pco64)), 60, seed=3)
    died = [t for t in study.trials if t.user_attrs["status"] == "oom"]
    assert died
    for trial in died:
        assert trial.state.name == "COMPLETE"
        assert trial.user_attrs["throughput_source"] == "imputed"
        assert trial.value > 0
    assert study.best_trial.user_attrs["status"] == "ok"  # Optuna heeds the constraint


def test_optunas_own_study_is_our_tpe_evaluation_by_evaluation(pco32):
    """What docs/how-to/optuna.md shows: the `tpe` row of the leaderboard in Optuna's own words."""
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        noisy = parabolt.NoisyProblem(
            parabolt.ImputedProblem(pco32), std=0.001, stream=TorchNormalStream(seed)
        )
        objective = Objective(noisy, snap=True)
        design = Protocol.published("pco32").initial_rows(pco32.table.is_feasible, rng)
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=10, multivariate=False)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for row in design:
            outcome = noisy.evaluate(pco32.space.candidates[row])
            study.add_trial(
                optuna.trial.create_trial(
                    params=objective.params(row),
                    distributions=objective.search_space,
                    value=outcome.throughput,
                    constraints={"memory_margin": outcome.memory_margin},
                )
            )
        study.optimize(objective, n_trials=12)
        ours = execute(pco32, RunKey.of(pco32, "tpe", seed, Protocol(n_evaluations=12)))
        assert [t.value for t in study.trials] == ours.observed.tolist()


def test_optunahub_interface(pco32):
    problem = ParallelismProblem()
    assert problem.directions == [optuna.study.StudyDirection.MAXIMIZE]
    row = pco32.space.row(pco32.optimum.configuration)
    params = Objective(pco32).params(row)
    assert set(params) == set(problem.search_space)
    assert problem.evaluate(params) == pco32.optimum.value
    assert problem.evaluate_constraints(params)["memory_margin"] < 0
    died = Objective(pco32).params(int(np.flatnonzero(~pco32.table.is_feasible)[0]))
    with pytest.raises(optuna.TrialPruned, match="did not run: oom"):
        problem.evaluate(died)
    assert problem.evaluate_constraints(died) == {"memory_margin": 0.2}
    both = ParallelismProblem("pco32", with_memory=True)
    assert [direction.name for direction in both.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert both.evaluate(params) == [
        pco32.optimum.value,
        pco32.evaluate_many(pco32.space.encoded)[row].peak_memory_gib,
    ]
    assert both.reference_point == [0.0, pco32.instance.cluster.memory_gib]


def test_nothing_warns(pco32):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search(Objective(pco32), 12)
