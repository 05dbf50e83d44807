"""What `tell` refuses, with its reason, and what every own optimizer takes."""

import numpy as np
import pytest

import parabolt
from parabolt.errors import ObservationError
from parabolt.optimizers.history import History
from parabolt.optimizers.observation import check_observation
from parabolt.outcome import OOM_MARGIN, Outcome, Source, Status

NAN, INF = float("nan"), float("inf")
OWN = [
    name
    for name in parabolt.optimizer_names()
    if name not in ("tpe", "cmaes", "best-of-history", "mean-rank")
]


def measured(status, throughput=NAN, margin=NAN, peak=NAN, source=Source.MEASURED):
    return Outcome(status, throughput, peak, margin, NAN, source, source)


CONTRADICTIONS = [
    (Outcome.ok(-1.0, memory_margin=-0.1), "expected a throughput between 1e-100 and 1e.100 .*-1$"),
    (Outcome.ok(0.0), "expected a throughput between .*, got 0$"),
    (Outcome.ok(1e160), "expected a throughput between .*, got 1e.160$"),
    (Outcome.ok(INF), "expected a throughput between .*, got inf$"),
    (Outcome.ok(10**400), "throughput: expected a number, got 1000"),
    (Outcome.ok(NAN), "with status ok expected a throughput, got nan; try status oom"),
    (Outcome.ok(1.0, memory_margin=0.5), "margin of at most 0, as the run fitted, got 0.5$"),
    (Outcome.ok(1.0, memory_margin=-1.5), "margin of at least -1, finite or nan, got -1.5$"),
    (Outcome.ok(1.0, memory_margin=-INF), "margin of at least -1, finite or nan, got -inf$"),
    (measured(Status.OK, 1.0, -0.1, INF), "positive finite peak memory in GiB or nan, got inf$"),
    (measured(Status.OK, 1.0, -0.1, 0.0), "positive finite peak memory in GiB or nan, got 0$"),
    (measured(Status.OOM, margin=-0.9), "margin of at least 0, as the run did not fit, got -0.9$"),
    (measured(Status.OOM, 0.3), r"no throughput \(nan\) or an imputed one, got 0.3 marked measu"),
    (measured(Status.FAILED, 0.3), r"no throughput \(nan\) or an imputed one, got 0.3 marked"),
    (measured(Status.OOM, INF, source=Source.IMPUTED), "expected a throughput between .*, got inf"),
    (measured(Status.CRASHED, 0.3), r"no throughput \(nan\), got 0.3 marked measured$"),
    (measured(Status.NODE, 0.3, source=Source.IMPUTED), r"no throughput \(nan\), got 0.3 marked"),
    (measured(Status.STOPPED, INF), "expected a throughput between .*, got inf$"),
    (Outcome("ok", 1.0), "expected an Outcome, got Outcome"),
    (Outcome(Status.OK, "fast"), "throughput: expected a number, got 'fast'"),
    (Outcome(Status.OK, 1.0, memory_margin=None), "memory_margin: expected a number, got None"),
    (None, "expected an Outcome, got None"),
]


@pytest.mark.parametrize(("outcome", "message"), CONTRADICTIONS)
@pytest.mark.parametrize("name", ["random", "parabolt", "logeic", "tpe"])
def test_contradictions_are_refused_with_the_reason_and_leave_no_trace(name, outcome, message):
    space = parabolt.load_problem("pco4-cpu").space
    optimizer = parabolt.make_optimizer(name, space)
    with pytest.raises(ObservationError, match=message):
        optimizer.tell(space.candidates[0], outcome)
    assert len(optimizer.history) == 0
    assert 0 in optimizer.available_rows()


@pytest.mark.parametrize("name", ["random", "parabolt", "cmaes"])
def test_a_text_is_no_configuration(name):
    optimizer = parabolt.make_optimizer(name, parabolt.load_problem("pco4-cpu").space)
    with pytest.raises(ObservationError, match="expected a Configuration, got 'dp=2'"):
        optimizer.tell("dp=2", Outcome.ok(1.0))


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome.ok(1e-100),
        Outcome.ok(1e100, memory_margin=0.0),
        Outcome.ok(1, memory_margin=np.float32(-0.5)),
        Outcome.oom(),
        measured(Status.OOM, 0.3, 0.0, 79.0, Source.IMPUTED),
        measured(Status.OOM),
        measured(Status.FAILED, margin=-0.3, peak=50.0),
        measured(Status.STOPPED),
        measured(Status.STOPPED, 0.3, -0.3),
        *(measured(status) for status in Status if not status.is_feasible),
    ],
)
def test_what_may_be_told(outcome):
    check_observation(parabolt.load_problem("pco4-cpu").space.candidates[0], outcome)


def test_what_each_status_is_to_an_optimizer():
    history = History()
    statuses = list(Status)
    for row, status in enumerate(statuses):
        history.add(row, Outcome(status, 0.5 if status.is_timed else NAN))
    named = dict(zip(statuses, range(len(statuses)), strict=True))
    words = {
        "is_feasible": ["ok"],
        "is_timed": ["ok", "stopped"],
        "is_infeasible": ["oom", "failed"],
        "is_informative": ["ok", "oom", "stopped", "failed"],
    }
    for name, expected in words.items():
        rows = np.flatnonzero(getattr(history, name))
        assert rows.tolist() == [named[Status(word)] for word in expected]
    margin = history.memory_margin
    assert np.isnan(margin[named[Status.OK]])
    assert margin[[named[Status.OOM], named[Status.FAILED]]].tolist() == [OOM_MARGIN, OOM_MARGIN]
    assert history.best_feasible_row() == named[Status.OK]


def test_a_stopped_run_is_never_the_best():
    history = History()
    history.add(3, measured(Status.STOPPED, 9.0))
    assert history.best_feasible_row() is None
    for row, throughput in ((5, 0.2), (1, 0.4), (2, 0.4)):
        history.add(row, Outcome.ok(throughput))
    assert history.best_feasible_row() == 1


@pytest.mark.parametrize("name", parabolt.optimizer_names())
def test_every_own_optimizer_takes_runs_without_a_memory_figure_and_every_status(name):
    problem = parabolt.load_problem("pco4-cpu")
    has_no_design = ("parabolt", "random", "best-of-history", "mean-rank")
    n_initial = {} if name in has_no_design else {"n_initial": 3}
    optimizer = parabolt.make_optimizer(name, problem.space, seed=0, **n_initial)
    for k in range(16):
        configuration = optimizer.ask()
        status = list(Status)[k // 2 % len(Status)] if k % 2 else Status.OK
        throughput = 1.0 + configuration.dp / 10 if status.is_timed else NAN
        optimizer.tell(configuration, measured(status, throughput))
    assert optimizer.ask() not in {problem.space.candidates[r] for r in optimizer.history.rows}
    assert optimizer.recommend() in problem.space.candidates


@pytest.mark.parametrize("name", ["parabolt", *(n for n in OWN if n not in ("random", "parabolt"))])
def test_statuses_without_evidence_change_no_belief(name):
    problem = parabolt.load_problem("pco32")
    optimizer = parabolt.make_optimizer(name, problem.space, seed=0)
    for row in range(0, 360, 30):
        told = problem.evaluate(problem.space.candidates[row])
        optimizer.tell(problem.space.candidates[row], told)

    def belief():
        if name == "parabolt":
            found = optimizer.belief()
            return found.log_throughput.mean, found.p_feasible
        return optimizer.surrogate().mean, optimizer.surrogate().margin_mean

    before = belief()
    for row, status in enumerate(("crashed", "timeout", "invalid", "node"), start=1):
        optimizer.tell(problem.space.candidates[row], Outcome(Status(status)))
    assert np.array_equal(before, belief())
    optimizer.tell(problem.space.candidates[5], Outcome(Status.FAILED))
    assert not np.array_equal(before[1], belief()[1])


def test_a_failure_of_unknown_kind_calibrates_as_memory_or_a_crash():
    space = parabolt.load_problem("pco64").space
    fitted = {}
    for status in ("oom", "failed", "invalid", "node"):
        optimizer = parabolt.make_optimizer("parabolt", space, seed=0)
        for row in range(0, 40, 4):
            optimizer.tell(space.candidates[row], Outcome(Status(status)))
        fitted[status] = optimizer.belief().calibration.memory.mean
    start = parabolt.make_optimizer("parabolt", space, seed=0).belief().calibration.memory.mean
    assert np.array_equal(fitted["failed"], fitted["oom"])
    assert not np.array_equal(fitted["failed"], start)
    assert np.array_equal(fitted["invalid"], start)
    assert np.array_equal(fitted["node"], start)
