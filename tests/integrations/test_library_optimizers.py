"""Other libraries' optimizers keep the contract, and hear of a run that died in their own way."""

import numpy as np
import pytest

import parabolt
from parabolt.experiments.environment import environment
from parabolt.experiments.manifest import libraries_of
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
from parabolt.experiments.study import OptimizerChoice, Study
from parabolt.optimizers.registry import (
    LIBRARY_OPTIMIZERS,
    OPTIMIZERS,
    make_optimizer,
    optimizer_class,
)
from parabolt.optimizers.told_margin import told_margin
from parabolt.outcome import Outcome, Status
from parabolt.testing import OptimizerContract, drive

QUICK = ("nevergrad-ngopt", "nevergrad-oneplusone")


class LibraryContract(OptimizerContract):
    name: str

    def make_optimizer(self, space, **options):
        return make_optimizer(self.name, space, **options)


class TestNevergrad(LibraryContract):
    @pytest.fixture(params=QUICK, autouse=True)
    def _name(self, request):
        request.instance.name = request.param


@pytest.mark.slow
class TestModels(LibraryContract):
    n_evaluations = 13  # three of them by the model

    @pytest.fixture(params=[name for name in LIBRARY_OPTIMIZERS if name not in QUICK], autouse=True)
    def _name(self, request):
        request.instance.name = request.param


@pytest.fixture
def told():
    """Makes an optimizer that was told 12 observations, the last two a death and a crash."""

    def make(name):
        problem = parabolt.load_problem("pco64")
        optimizer = make_optimizer(name, problem.space, seed=0)
        feasible = np.flatnonzero(problem.table.is_feasible)[::50][:10].tolist()
        for row in feasible:
            configuration = problem.space.candidates[row]
            optimizer.tell(configuration, problem.evaluate(configuration))
        optimizer.ask()
        died = int(np.flatnonzero(~problem.table.is_feasible)[7])
        for row, outcome in ((died, Outcome.oom()), (died + 1, Outcome(Status.CRASHED))):
            optimizer.tell(problem.space.candidates[row], outcome)
        return optimizer

    return make


@pytest.mark.needs("ax")
def test_ax_hears_the_margin_and_no_throughput(told):
    optimizer = told("ax")
    experiment = optimizer._client._experiment
    data = experiment.lookup_data().df
    *_, died, crashed = experiment.trials.values()
    assert died.status.name == "COMPLETED"
    assert crashed.status.name == "FAILED"
    known = data[data.trial_index == died.index]
    assert known.metric_signature.tolist() == ["memory_margin"] or known.metric_name.tolist() == [
        "memory_margin"
    ]
    assert known["mean"].tolist() == [0.2]
    assert not experiment.optimization_config.objective.minimize
    assert set(data[data.trial_index == 0].metric_name) == {"throughput", "memory_margin"}


@pytest.mark.needs("smac")
def test_smac_hears_memoryout(told):
    optimizer = told("smac")
    values = [value for _, value in optimizer._smac.runhistory.items()]
    assert [value.status.name for value in values[-2:]] == ["MEMORYOUT", "CRASHED"]
    assert [value.cost for value in values[-2:]] == [0.0, 0.0]
    assert all(value.cost < 0.0 for value in values if value.status.name == "SUCCESS")


@pytest.mark.needs("nevergrad")
def test_nevergrad_hears_a_violation_and_never_recommends_it(told, monkeypatch):
    optimizer = make_optimizer("nevergrad-ngopt", parabolt.load_problem("pco32").space, seed=0)
    drive(optimizer, parabolt.load_problem("pco32").evaluate, 11)
    heard = []
    monkeypatch.setattr(optimizer._optimizer, "tell", lambda *args: heard.append(args[1:]))
    configuration = optimizer.ask()
    optimizer.tell(configuration, Outcome.oom())
    other = optimizer.ask()
    optimizer.tell(other, Outcome.ok(0.25, memory_margin=-0.5))
    assert heard == [(0.0, [0.2]), (-0.25, [-0.5])]


@pytest.mark.needs("optuna", "botorch")
def test_optuna_gp_hears_the_constraint_and_the_lowest_throughput(told):
    optimizer = told("optuna-gp")
    lowest = optimizer.history.throughput[optimizer.history.is_feasible].min()
    died = [t for t in optimizer._study.trials if t.constraints.get("memory_margin", -1) > 0]
    assert [(trial.value, trial.constraints) for trial in died] == [
        (lowest, {"memory_margin": 0.2})
    ]


@pytest.mark.needs("nevergrad")
def test_nevergrad_by_any_of_its_own_names():
    problem = parabolt.load_problem("pco32")
    name = "parabolt.integrations.nevergrad:NevergradOptimizer"
    optimizer = make_optimizer(name, problem.space, method="PSO", budget=30)
    drive(optimizer, problem.evaluate, 15)
    assert optimizer._optimizer.name == "PSO"
    with pytest.raises(parabolt.UnknownNameError, match="unknown method of Nevergrad 'PS0'"):
        make_optimizer(name, problem.space, method="PS0")


@pytest.mark.parametrize(
    "name",
    [
        "tpe",
        pytest.param("optuna-gp", marks=pytest.mark.needs("torch")),
        "nevergrad-ngopt",
        "nevergrad-oneplusone",
        pytest.param("ax", marks=pytest.mark.slow),
        pytest.param("smac", marks=pytest.mark.slow),
    ],
)
def test_a_finished_run_without_a_memory_figure_fits(name):
    """Every run in the design, and one that the model asked for; a figure that is known follows."""
    problem = parabolt.load_problem("pco32")
    optimizer = make_optimizer(name, problem.space, seed=0, n_initial=4)
    for number in range(4):
        optimizer.tell(optimizer.ask(), Outcome.ok(0.1 + 0.01 * number))
    for outcome in (Outcome.ok(0.3), Outcome.ok(0.2, memory_margin=-0.5), Outcome.oom()):
        optimizer.tell(optimizer.ask(), outcome)
    assert optimizer.ask() in problem.space.candidates
    assert problem.space.row(optimizer.recommend()) == optimizer.history.rows[4]


@pytest.mark.needs("optuna", "botorch", "nevergrad", "ax", "smac")
def test_an_unknown_margin_is_told_as_one_that_fits(told):
    assert told_margin(Outcome.ok(0.25)) == -0.2
    assert told_margin(Outcome.ok(0.25, memory_margin=-0.01)) == -0.01
    assert told_margin(Outcome.oom()) == 0.2
    assert told_margin(Outcome(Status.FAILED)) == 0.2
    assert np.isnan(told_margin(Outcome(Status.CRASHED)))
    optimizer = told("optuna-gp")
    optimizer.tell(optimizer.space.candidates[3], Outcome.ok(0.25))
    assert optimizer._study.trials[-1].constraints == {"memory_margin": -0.2}


@pytest.mark.slow
@pytest.mark.parametrize("repeats", ["allow", "avoid"])
def test_smac_goes_on_when_it_finds_no_new_candidate(repeats):
    """Its generator of trials ends before it has found the last ones, and stays at its end."""
    problem = parabolt.load_problem("pco4-cpu")
    n = len(problem.space)
    optimizer = make_optimizer("smac", problem.space, seed=0, repeats=repeats)
    if repeats == "avoid":
        assert set(drive(optimizer, problem.evaluate, n)) == set(problem.space.candidates)
        with pytest.raises(parabolt.CandidatesExhaustedError):
            optimizer.ask()
    else:
        assert len(drive(optimizer, problem.evaluate, n + 20)) == n + 20


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARY_OPTIMIZERS)
def test_a_search_finds_more_than_its_initial_design(name):
    problem = parabolt.load_problem("pco32")
    run = execute(problem, RunKey.of(problem, name, 0, Protocol(n_evaluations=15)))
    found = np.where(run.outcomes.is_feasible, run.outcomes.throughput, 0.0)
    assert found.max() > found[: run.n_initial].max()


@pytest.mark.parametrize("name", LIBRARY_OPTIMIZERS)
def test_cannot_be_hurried(name):
    space = parabolt.load_problem("pco32").space
    with pytest.raises(parabolt.OptionError, match=f"{name}: expected no ask_time_limit_s"):
        make_optimizer(name, space, ask_time_limit_s=1.0)


@pytest.mark.needs("optuna", "nevergrad", "ax", "smac")
def test_names_are_distinct_and_every_class_says_its_own():
    assert not set(LIBRARY_OPTIMIZERS) & set(OPTIMIZERS)
    for name in LIBRARY_OPTIMIZERS:
        assert optimizer_class(name).name == name


@pytest.mark.needs("optuna", "nevergrad", "ax", "smac")
def test_a_study_records_the_versions_of_the_libraries_in_it():
    def packages(*names):
        choices = tuple(OptimizerChoice(name, name) for name in names)
        study = Study(problems=("pco32",), optimizers=choices, seeds=(0,))
        return set(environment(libraries_of(study)))

    assert packages("nevergrad-ngopt") - packages("random") == {"nevergrad"}
    assert {"smac", "ConfigSpace"} <= packages("smac", "random")
