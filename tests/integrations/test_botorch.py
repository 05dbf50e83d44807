"""The drop-in classes beside bolt-bench 0.2.0 on the same table, and its defects, mended."""

import copy
import inspect
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume
from botorch.utils.multi_objective.pareto import is_non_dominated

import parabolt
from parabolt.instances.catalogue import load_instance
from parabolt.instances.search_space import SearchSpace
from parabolt.integrations import botorch as ours
from parabolt.problems.tabular import TabularProblem
from parabolt.tables.table import Table

CLASSES = {"pco16": "PCO16", "pco32": "PCO32", "pco64": "PCO64"}

#: Not compared by value: see the tests below, or what only torch's modules have.
MENDED = {"is_minimization_problem", "worst_feasible_value"}
OBJECTS = {"obj_func", "T_destination", "call_super_init", "dump_patches", "training"}


def invented_pco16():
    """A table over the lattice of pco16, which has no embedded one; every third row died."""
    instance = load_instance("pco16")
    space = SearchSpace.lattice(instance)
    table = parabolt.load_table("pco32").data
    assert len(space) >= 900
    rows = np.arange(len(space))
    feasible = rows % 3 != 0
    rng = np.random.default_rng(0)
    from parabolt.tables.schema import context_values

    columns = {k.column: space.encoded[:, i].astype(int) for i, k in enumerate(
        instance.encoding.knobs)}  # fmt: skip
    columns["zero_stage"] = np.array([0, 2, 3])[columns["zero_stage"]]
    columns |= {name: np.full(len(space), v) for name, v in context_values(instance).items()}
    columns["ran_successfully"] = feasible
    columns["throughput_mean"] = np.where(feasible, rng.uniform(0.05, 0.14, len(space)), np.nan)
    columns["peak_mem"] = np.where(feasible, rng.uniform(20.0, 79.0, len(space)), np.inf)
    return TabularProblem(Table(type(table).from_pydict(columns), instance))


def problem_of(name):
    return invented_pco16() if name == "pco16" else parabolt.load_problem(name)


def at_the_precision_of_the_margin(problem):
    """The problem with peak memory as exact as the margin, from which the original computes it."""
    table, capacity = problem.table, problem.instance.cluster.memory_gib
    peak = np.where(table.is_feasible, capacity * (1.0 + table.outcomes.memory_margin), np.inf)
    at = table.data.column_names.index("peak_mem")
    return TabularProblem(Table(table.data.set_column(at, "peak_mem", [peak]), table.instance))


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.newest) for name in CLASSES])
def make(request, monkeypatch):
    """Makes our class and the original, on the same table, with the same arguments."""
    import bolt
    import bolt.functions.tabular

    problem = at_the_precision_of_the_margin(problem_of(request.param))
    data = problem.table.data
    columns = {n: data.column(n).to_numpy() for n in data.column_names if "source_" not in n}
    monkeypatch.setattr(bolt.functions.tabular, "load_dataset", lambda *_, **__: columns)

    def make(*args, seed=0, **options):
        name = CLASSES[request.param]
        mine = getattr(ours, name)(*args, seed=seed, problem=problem, **options)
        return mine, getattr(bolt, name)(*args, **options)

    return make


@pytest.fixture
def pair(make):
    return make()


def assert_same(mine, theirs, tolerance=1e-15):
    assert mine.shape == theirs.shape
    assert mine.dtype == theirs.dtype
    assert mine.device == theirs.device
    if mine.dtype == torch.bool:
        assert torch.equal(mine, theirs)
        return
    assert torch.equal(torch.isfinite(mine), torch.isfinite(theirs))
    known = torch.isfinite(mine)
    assert ((mine[known] - theirs[known]).abs() <= tolerance).all()


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_every_public_attribute_of_the_original_is_there_and_equal(pair):
    mine, theirs = pair
    assert public(theirs) <= public(mine)
    compared = set()
    for name in sorted(public(theirs) - public(torch.nn.Module) - MENDED - OBJECTS):
        expected = getattr(theirs, name)
        if inspect.ismethod(expected):
            continue  # see the tests of the methods
        found = getattr(mine, name)
        if torch.is_tensor(expected):
            assert_same(found, expected, tolerance=2e-14 if name == "peak_mem" else 1e-15)
        else:
            assert found == expected, name
            assert type(found) is type(expected), name
        compared.add(name)
    assert compared >= {
        "name", "hf_repo", "hf_revision", "num_gpus", "num_hosts", "batch_size", "dim", "bounds",
        "mem_capacity_gb", "input_cols", "objective_col", "num_constraints", "continuous_inds",
        "discrete_inds", "categorical_inds", "noise_std", "negate", "constraint_noise_std",
        "feasible", "peak_mem", "y_imputed", "margin",
    }  # fmt: skip


def test_class_attributes_are_there_without_an_object(pair):
    mine, theirs = (type(problem) for problem in pair)
    for name in ("name", "hf_repo", "hf_revision", "num_gpus", "num_hosts", "batch_size", "dim",
                 "mem_capacity_gb", "input_cols", "discrete_inds", "_bounds"):  # fmt: skip
        assert getattr(mine, name) == getattr(theirs, name), name


def test_every_public_method_takes_the_arguments_of_the_original(pair):
    mine, theirs = pair
    own = {
        name
        for name in public(type(theirs)) - (public(torch.nn.Module) - {"forward"})
        if inspect.isfunction(getattr(type(theirs), name))
    }
    assert own >= {"candidates", "evaluate_peak_mem", "evaluate_slack", "evaluate_slack_true",
                   "evaluate_true", "forward", "is_feasible"}  # fmt: skip
    for name in own:
        expected = inspect.signature(getattr(theirs, name)).parameters.values()
        found = list(inspect.signature(getattr(mine, name)).parameters.values())
        for position, parameter in enumerate(expected):
            assert found[position].name == parameter.name, name
            assert found[position].default == parameter.default, name
            assert found[position].kind == parameter.kind, name
    expected = list(inspect.signature(type(theirs)).parameters.values())
    found = list(inspect.signature(type(mine)).parameters.values())[: len(expected)]
    assert [(p.name, p.default) for p in found] == [(p.name, p.default) for p in expected]


@pytest.mark.parametrize("dtype", [torch.double, torch.float32])
@pytest.mark.parametrize("negate", [False, True])
def test_every_answer_on_every_candidate(make, dtype, negate):
    mine, theirs = make(negate=negate, dtype=dtype)
    assert_same(mine.candidates(), theirs.candidates())
    assert_same(mine.candidates(dtype=torch.float32), theirs.candidates(dtype=torch.float32))
    X = theirs.candidates()
    eps = 1e-15 if dtype == torch.double else 1e-6
    for method in ("forward", "__call__", "evaluate_true", "evaluate_slack", "evaluate_slack_true",
                   "is_feasible"):  # fmt: skip
        assert_same(getattr(mine, method)(X), getattr(theirs, method)(X), eps)
    assert_same(mine.evaluate_peak_mem(X), theirs.evaluate_peak_mem(X), 100 * eps)
    assert_same(mine(X, noise=False), theirs(X, noise=False), eps)
    assert_same(mine.is_feasible(X, noise=False), theirs.is_feasible(X, noise=False))


def test_points_off_the_table_snap_with_the_same_warning(pair):
    mine, theirs = pair
    rng = np.random.default_rng(0)
    lower, upper = mine.bounds.numpy()
    X = torch.tensor(rng.integers(lower, upper + 1, size=(500, 8)).astype(float))
    for method in ("forward", "evaluate_slack", "is_feasible", "evaluate_true"):
        with pytest.warns(RuntimeWarning, match="not in the table"):
            expected = getattr(theirs, method)(X)
        with pytest.warns(RuntimeWarning, match="are no candidates and stand for") as caught:
            assert_same(getattr(mine, method)(X), expected)
        assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mine(mine.candidates())


@pytest.mark.parametrize("bad", [-1.0, 99.0, 0.5, float("nan")])
def test_points_out_of_bounds_or_not_whole_are_refused_as_before(pair, bad):
    for problem in pair:
        X = problem.candidates()[:3].clone()
        X[1, 1] = bad
        for method in ("forward", "evaluate_true", "evaluate_slack"):
            with pytest.raises(ValueError, match=r"[Ee]xpected"):
                getattr(problem, method)(X)
    with pytest.raises(parabolt.InvalidConfigurationError, match=r"point 1, log2_tp_size: expect"):
        pair[0](X)
    for problem in pair:
        with pytest.raises(ValueError, match="shape"):
            problem(torch.zeros(2, 7, dtype=torch.double))


def test_noise_is_the_originals_stream(make):
    mine, theirs = make(0.01, seed=7)
    X = mine.candidates()[:9]
    torch.manual_seed(7)
    for n in (9, 1, 1, 4):
        assert_same(mine(X[:n]), theirs(X[:n]))
    mine, theirs = make([0.01], negate=True, seed=8)
    torch.manual_seed(8)
    assert_same(mine(X), theirs(X))


def test_noise_on_the_slack(make):
    mine, theirs = make(seed=3)
    mine.constraint_noise_std = theirs.constraint_noise_std = 0.3
    X = mine.candidates()
    torch.manual_seed(3)
    assert_same(mine.evaluate_slack(X), theirs.evaluate_slack(X))
    assert_same(mine.is_feasible(X), theirs.is_feasible(X))
    assert_same(mine.evaluate_slack(X, noise=False), theirs.evaluate_slack_true(X))


def test_moves_like_the_original(pair):
    mine, theirs = (problem.to(torch.float32) for problem in pair)
    assert set(mine.state_dict()) == set(theirs.state_dict())
    for name, value in theirs.state_dict().items():
        assert_same(mine.state_dict()[name], value, 1e-5)
    assert mine.candidates().dtype == torch.float32
    assert_same(mine(mine.candidates()), theirs(theirs.candidates()), 1e-6)
    assert mine.to("meta").candidates().device.type == "meta"


def test_the_table_behind(pair):
    mine, theirs = (problem.obj_func for problem in pair)
    assert mine.input_cols == theirs.input_cols
    assert mine.output_col == theirs.output_col
    for name in ("Xs", "ys"):
        assert_same(getattr(mine, name), getattr(theirs, name))
    for name in (*theirs.input_cols, theirs.output_col):
        assert np.array_equal(mine.ds[name], np.asarray(theirs.ds[name]), equal_nan=True), name
    for X in (theirs.Xs, theirs.Xs[:3].float()):
        assert_same(mine.evaluate_true(X), theirs.evaluate_true(X))


# The defects of the original, mended.


def test_direction(make):
    assert not make()[0].is_minimization_problem
    assert make(negate=True)[0].is_minimization_problem
    assert make()[1].is_minimization_problem  # of a throughput that is maximised: the defect


@pytest.mark.parametrize("shape", [(), (1,), (4,), (5, 3), (2, 3, 2), (0,), (3, 0)])
def test_batches(pair, shape):
    mine, _ = pair
    X = mine.candidates()
    n = int(np.prod(shape, dtype=int))
    rows = np.random.default_rng(0).integers(len(X), size=n)
    batch = X[rows].reshape(*shape, 8)
    for method in ("forward", "evaluate_true", "evaluate_slack", "evaluate_peak_mem"):
        found = getattr(mine, method)(batch)
        assert found.shape == (*shape, 1)
        assert torch.equal(found.reshape(-1), getattr(mine, method)(X)[rows, 0])
    assert mine.is_feasible(batch).shape == shape
    assert torch.equal(mine.is_feasible(batch).reshape(-1), mine.feasible[rows])


def test_pickles_and_copies_with_its_noise(make):
    mine, theirs = make(0.01, seed=5)
    X = mine.candidates()
    mine(X)
    twins = [pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine)]
    expected = mine(X)
    for twin in twins:
        assert torch.equal(twin(X), expected)
        assert twin.name == mine.name
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(theirs)


def test_editing_what_it_gives_changes_nothing(pair):
    mine, _ = pair
    X = mine.candidates()
    before = [mine(X), mine.evaluate_slack(X), mine.evaluate_peak_mem(X)]
    for tensor in (mine.candidates(), mine.y_imputed, mine.margin, mine.peak_mem, mine.optimizers,
                   mine.obj_func.Xs, mine(X)):  # fmt: skip
        tensor += 1.0
    after = [mine(X), mine.evaluate_slack(X), mine.evaluate_peak_mem(X)]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert torch.equal(mine.candidates(), X)


def test_arrays_lists_and_whole_numbers(pair):
    mine, _ = pair
    X = mine.candidates()[:5]
    for other in (X.numpy(), X.tolist(), X.numpy().astype(int), X.long(), X.numpy().astype("f4")):
        assert_same(mine(other), mine(X), 0.0)
        assert torch.equal(mine.is_feasible(other), mine.is_feasible(X))


def test_the_global_generator_has_no_say_and_seeds_do(make):
    torch.manual_seed(0)
    state = torch.get_rng_state()
    mine, _ = make(0.01, seed=1)
    X = mine.candidates()
    first = mine(X)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    assert torch.equal(make(0.01, seed=1)[0](X), first)
    assert not torch.equal(make(0.01, seed=2)[0](X), first)
    assert not torch.equal(mine(X), first)


@pytest.mark.parametrize("negate", [False, True])
def test_public_optimum(make, negate):
    mine, theirs = make(negate=negate)
    at_best = mine(mine.optimizers)
    assert at_best.shape == (1, 1)
    assert at_best.item() == mine.optimal_value
    assert mine.is_feasible(mine.optimizers).all()
    values = mine(mine.candidates())[mine.feasible]
    best, worst = (values.min(), values.max()) if negate else (values.max(), values.min())
    assert mine.optimal_value == best.item()
    assert mine.worst_feasible_value == worst.item()
    if mine.name != "pco16":  # invented here
        assert mine._optimal_value == theirs._optimal_value
        assert mine._optimizers == theirs._optimizers


def test_says_what_is_imputed_and_what_is_measured(pair):
    mine, _ = pair
    X = mine.candidates()
    assert torch.equal(mine.is_imputed(X), ~mine.feasible)
    n_measured = {"pco16": int(mine.feasible.sum()), "pco32": 327, "pco64": 533}
    assert int(mine.is_measured(X).sum()) == n_measured[mine.name]
    assert not (mine.is_measured(X) & mine.is_imputed(X)).any()


@pytest.mark.parametrize("name", ["PCO32", "PCO64"])
def test_without_arguments_it_is_the_embedded_table(name):
    mine, problem = getattr(ours, name)(), parabolt.load_problem(name.lower())
    outcomes = problem.evaluate_many(problem.space.encoded)
    X, feasible = mine.candidates(), outcomes.is_feasible
    assert np.array_equal(X.numpy(), problem.space.encoded)
    assert np.array_equal(mine(X)[feasible, 0].numpy(), outcomes.throughput[feasible])
    assert np.array_equal(mine.evaluate_peak_mem(X)[:, 0].numpy(), outcomes.peak_memory_gib)
    assert np.array_equal(mine.evaluate_slack(X)[:, 0].numpy(), outcomes.slack)
    assert mine.optimal_value == problem.optimum.value


def test_any_problem_and_not_the_wrong_one():
    problem = parabolt.load_problem("pco64")
    mine = ours.PCO(problem=problem, noise_std=0.1)
    assert (mine.name, mine.num_gpus, mine.dim) == ("pco64", 64, 8)
    assert torch.equal(mine.candidates(), ours.PCO64().candidates())
    with pytest.raises(parabolt.OptionError, match="expected one of instance pco32, got pco64"):
        ours.PCO32(problem=problem)
    with pytest.raises(parabolt.OptionError, match="expected a problem, got none"):
        ours.PCO()

    class Mine(ours.PCO32):
        """Subclasses keep what they inherit."""

    assert Mine().num_hosts == 8


@pytest.mark.parametrize("negate", [False, True])
def test_throughput_against_memory(negate):
    problem = parabolt.load_problem("pco64")
    both = ours.PCOWithMemory(problem, negate=negate)
    sign, capacity = (-1.0 if negate else 1.0), problem.instance.cluster.memory_gib
    assert both.ref_point.tolist() == [0.0, -sign * capacity]
    values = both(both.candidates())
    assert values.shape == (780, 2)
    outcomes = problem.evaluate_many(problem.space.encoded)
    fits = outcomes.is_feasible
    np.testing.assert_array_equal(sign * values[fits, 0], outcomes.throughput[fits])
    np.testing.assert_array_equal(-sign * values[fits, 1], outcomes.peak_memory_gib[fits])
    np.testing.assert_allclose(-sign * values[~fits, 1], 1.2 * capacity)
    assert (both.is_feasible(both.candidates()).numpy() == fits).all()
    # Two independent implementations of BoTorch's: the front and its hypervolume.
    front = sign * values[fits][is_non_dominated(sign * values[fits])]
    found = Hypervolume(torch.tensor([0.0, -capacity], dtype=torch.double)).compute(front)
    assert both.max_hv == pytest.approx(found, rel=1e-12)
    ours_front = {tuple(row) for row in (sign * both.gen_pareto_front(1000)).tolist()}
    assert ours_front == {tuple(row) for row in front.tolist()}
    assert both.gen_pareto_front(2).shape == (2, 2)


def test_noise_on_each_objective():
    problem = parabolt.load_problem("pco32")
    clear = ours.PCOWithMemory(problem)
    noisy = ours.PCOWithMemory(problem, [0.001, 0.0], seed=3)
    difference = noisy(noisy.candidates()) - clear(clear.candidates())
    assert (difference[:, 1] == 0).all()
    assert difference[:, 0].std().item() == pytest.approx(0.001, rel=0.2)


def test_works_offline():
    """No socket is opened: the embedded table is all that is needed."""
    script = (
        "import socket\n"
        "def refuse(*_, **__): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "from parabolt.integrations.botorch import PCO32\n"
        "print(PCO32().optimal_value)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "0.469575911560675\n", done.stderr


def test_a_search_with_botorch_itself_goes_the_right_way():
    """One step of constrained log EI over the candidates, by BoTorch's own parts."""
    from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.optim import optimize_acqf_discrete

    problem = ours.PCO32(noise_std=0.001, seed=0)
    X = problem.candidates()[torch.arange(0, 379, 19)]
    y, margin = problem(X), -problem.evaluate_slack(X)
    model = ModelListGP(SingleTaskGP(X, y), SingleTaskGP(X, margin))
    best = y[problem.is_feasible(X)].max()
    acquisition = LogConstrainedExpectedImprovement(
        model, best, objective_index=0, constraints={1: (None, 0.0)}
    )
    chosen, _ = optimize_acqf_discrete(acquisition, q=1, choices=problem.candidates())
    assert problem(chosen, noise=False).item() > best.item()
