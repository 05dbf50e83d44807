"""The time budget of an ask: respected, said, and recorded with the run."""

import numpy as np
import pytest

import parabolt
from parabolt.errors import OptionError
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
from parabolt.experiments.store import RunStore

#: `parabolt` has no random design and a test of its own; the others have no model that is fitted.
OTHERS = ("parabolt", "random", "tpe", "cmaes", "best-of-history", "mean-rank")
GP_METHODS = [name for name in parabolt.optimizer_names() if name not in OTHERS]
#: Less than any fit takes, so that it always strikes.
TINY_S = 1e-6


def drive(optimizer, problem, n):
    for _ in range(n):
        configuration = optimizer.ask()
        optimizer.tell(configuration, problem.evaluate(configuration))


@pytest.mark.parametrize("name", GP_METHODS)
def test_goes_on_and_says_so_where_no_time_is_left(name):
    problem = parabolt.load_problem("pco32")
    optimizer = parabolt.make_optimizer(name, problem.space, ask_time_limit_s=TINY_S)
    drive(optimizer, problem, 10)
    assert not optimizer.was_shortened  # the design takes no model
    drive(optimizer, problem, 3)
    assert optimizer.was_shortened
    assert optimizer.last_ask_time_s > 0
    assert optimizer.recommend() is not None


@pytest.mark.parametrize("name", GP_METHODS)
def test_a_limit_that_does_not_strike_changes_nothing(name):
    problem = parabolt.load_problem("pco32")
    runs = []
    for limit in (None, 1e6):
        optimizer = parabolt.make_optimizer(name, problem.space, ask_time_limit_s=limit)
        drive(optimizer, problem, 12)
        assert not optimizer.was_shortened
        runs.append(optimizer.history.rows)
    assert np.array_equal(*runs)


def test_without_time_the_last_parameters_serve():
    problem = parabolt.load_problem("pco32")
    optimizer = parabolt.make_optimizer("logeic", problem.space, ask_time_limit_s=1e6)
    drive(optimizer, problem, 15)
    before = optimizer.surrogate().objective
    configuration = optimizer.ask()
    optimizer.ask_time_limit_s = TINY_S
    optimizer.tell(configuration, problem.evaluate(configuration))
    optimizer.ask()
    after = optimizer.surrogate().objective
    assert after.gp.hyper is before.gp.hyper
    assert len(after.rows) == len(before.rows) + 1


def test_is_recorded_with_the_run(tmp_path):
    problem = parabolt.load_problem("pco32")
    for limit, expected in ((None, [False] * 4), (TINY_S, [True] * 4)):
        options = {"ask_time_limit_s": limit}
        key = RunKey.of(problem, "lognei", 0, Protocol(n_evaluations=4), options=options)
        run = execute(problem, key)
        assert run.was_shortened.tolist() == [False] * 10 + expected
        store = RunStore(tmp_path / str(limit))
        loaded = store.load(store.save(run))
        assert loaded.was_shortened.tolist() == run.was_shortened.tolist()
        assert loaded.n_failed_fits.tolist() == [0] * 14
        assert loaded.key == run.key


def test_failed_fits_are_recorded_with_the_run(monkeypatch, tmp_path):
    """A search that ends where it began can't be had from real data."""
    import parabolt.optimizers.gp.fit as gp_fit

    monkeypatch.setattr(gp_fit, "minimize", lambda f, x, **_: f(x))
    problem = parabolt.load_problem("pco32")
    run = execute(problem, RunKey.of(problem, "ucbc", 0, Protocol(n_evaluations=3)))
    # Each step fits both models.
    assert run.n_failed_fits.tolist() == [0] * 10 + [2, 2, 2]
    store = RunStore(tmp_path)
    assert store.load(store.save(run)).n_failed_fits.tolist() == run.n_failed_fits.tolist()


@pytest.mark.needs("optuna", "cmaes")
def test_limits_that_cannot_be():
    space = parabolt.load_problem("pco32").space
    for limit in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="ask_time_limit_s: expected a positive number"):
            parabolt.make_optimizer("logeic", space, ask_time_limit_s=limit)
    for name in ("tpe", "cmaes"):
        with pytest.raises(OptionError, match=f"{name}: .* can't be cut short"):
            parabolt.make_optimizer(name, space, ask_time_limit_s=1.0)
