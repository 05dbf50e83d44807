import numpy as np
import pytest
import torch
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Standardize

import parabolt
from parabolt.outcome import Outcome, Status


def told(name="pco32", n=25, seed=0):
    problem = parabolt.ImputedProblem(parabolt.load_problem(name))
    optimizer = parabolt.make_optimizer("logeic", problem.space, seed=seed)
    rows = np.random.default_rng(seed).choice(len(problem.space), n, replace=False)
    for row in rows:
        configuration = problem.space.candidates[row]
        optimizer.tell(configuration, problem.evaluate(configuration))
    return optimizer, rows


@pytest.mark.parametrize("name", ["pco32", "pco64"])
def test_choice_is_that_of_botorch_at_the_same_hyperparameters(name):
    """The whole step, both surrogates and the acquisition over all candidates."""
    optimizer, rows = told(name)
    surrogate = optimizer.surrogate()
    X = torch.tensor(surrogate.candidates)
    models = []
    for gp in (surrogate.objective.gp, surrogate.constraint.gp):
        model = SingleTaskGP(
            torch.tensor(gp.X), torch.tensor(gp.y)[:, None], outcome_transform=Standardize(m=1)
        )
        model.covar_module.lengthscale = torch.tensor(gp.hyper.lengthscales)
        model.likelihood.noise = gp.hyper.noise
        model.mean_module.constant = torch.tensor(gp.hyper.mean)
        models.append(model)
    feasible = optimizer.history.is_feasible
    acquisition = LogConstrainedExpectedImprovement(
        ModelListGP(*models),
        best_f=optimizer.history.throughput[feasible].max(),
        objective_index=0,
        constraints={1: (None, 0.0)},
    )
    with torch.no_grad():
        expected = acquisition(X[:, None]).numpy()
    assert optimizer._acquisition(surrogate) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    expected[rows] = -np.inf
    assert optimizer.space.row(optimizer.ask()) == np.argmax(expected)


def test_crashed_runs_teach_nothing_and_are_not_tried_again():
    optimizer, _ = told()
    before = optimizer.surrogate()
    crashed = optimizer.space.candidates[100]
    optimizer.tell(crashed, Outcome(Status.CRASHED))
    after = optimizer.surrogate()
    assert np.array_equal(before.mean, after.mean)
    assert np.array_equal(before.margin_mean, after.margin_mean)
    assert 100 not in optimizer.available_rows()


def test_out_of_memory_without_an_imputed_value_teaches_memory_only():
    optimizer, _ = told()
    before = optimizer.surrogate()
    failed = optimizer.space.candidates[int(optimizer.available_rows()[0])]
    optimizer.tell(failed, Outcome.oom())
    after = optimizer.surrogate()
    assert np.array_equal(before.mean, after.mean)
    assert not np.array_equal(before.margin_mean, after.margin_mean)


def test_before_anything_feasible_it_looks_for_feasibility_alone():
    space = parabolt.load_problem("pco32").space
    optimizer = parabolt.make_optimizer("logeic", space, seed=0)
    for row in range(0, 360, 30):
        optimizer.tell(space.candidates[row], Outcome.oom())
    optimizer.tell(space.candidates[1], Outcome(Status.OOM, memory_margin=0.1))
    chosen = space.row(optimizer.ask())
    available = np.setdiff1d(np.arange(len(space)), [*range(0, 360, 30), 1])
    log_feasible = optimizer.surrogate().log_feasible
    assert log_feasible[chosen] == log_feasible[available].max()


def test_bad_options():
    space = parabolt.load_problem("pco32").space
    for options, message in (
        ({"n_initial": 0}, "n_initial: expected a positive whole number, got 0"),
        ({"repeats": "never"}, "repeats: expected 'avoid' or 'allow', got 'never'"),
        ({"seed": -1}, "seed: expected a whole number >= 0"),
        ({"seed": 1.5}, "seed: expected a whole number >= 0"),
        ({"foo": 1}, "logeic: .*foo"),
    ):
        with pytest.raises(parabolt.OptionError, match=message):
            parabolt.make_optimizer("logeic", space, **options)
    with pytest.raises(parabolt.UnknownNameError, match="did you mean 'logeic'"):
        parabolt.make_optimizer("logeicc", space)
    optimizer = parabolt.make_optimizer("random", space)
    for n in (0, -1, 1.0, True):
        with pytest.raises(parabolt.OptionError, match="n: expected a positive whole number"):
            optimizer.ask(n)
