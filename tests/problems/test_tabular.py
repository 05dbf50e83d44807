import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parabolt
from parabolt.errors import (
    InvalidConfigurationError,
    MissingConfigurationError,
    OptionError,
    TableError,
    UnknownNameError,
)
from parabolt.problems.imputation import ImputedProblem, impute_throughput
from parabolt.problems.noise import NoisyProblem, TorchNormalStream
from parabolt.problems.snapping import SnappedProblem
from parabolt.space.configuration import Configuration


def test_what_a_problem_says_of_itself(problem):
    assert problem.direction == "maximize"
    assert problem.version == "v0.1.0+logs"
    assert len(problem.content_hash) == 64
    assert [k.name for k in problem.knobs] == [
        "dp",
        "tp",
        "pp",
        "cp",
        "sp",
        "bucket",
        "zero",
        "chunks",
    ]
    assert problem.space.encoded.shape == (len(problem.space), 8)
    assert problem.instance.name == problem.name
    assert "measured" in problem.optimum.provenance


def test_stated_optimum_is_attained_and_not_beaten(problem):
    outcome = problem.evaluate(problem.optimum.configuration)
    assert outcome.is_feasible
    assert outcome.throughput == problem.optimum.value
    everything = problem.evaluate_many(problem.space.encoded)
    assert np.nanmax(everything.throughput) == problem.optimum.value


@given(data=st.data())
@settings(max_examples=30)
def test_all_four_ways_of_asking_agree(data):
    problem = parabolt.load_problem(data.draw(st.sampled_from(["pco32", "pco64"])))
    row = data.draw(st.integers(0, len(problem.space) - 1))
    configuration, levels = problem.space.candidates[row], problem.space.encoded[row]
    answers = [
        problem.evaluate(configuration),
        problem.evaluate(levels),
        problem.evaluate_many([configuration])[0],
        problem.evaluate_many(levels[None])[0],
        problem.table.outcomes[row],
    ]
    assert len({str(answer) for answer in answers}) == 1


def test_integer_rows_and_lists_are_rows_too(pco32):
    best = [5, 0, 0, 0, 0, 8, 1, 0]
    assert pco32.evaluate(best).throughput == pco32.optimum.value
    assert pco32.evaluate_many(np.array([best], dtype=np.int32)).throughput[0] > 0.469


def test_nothing_is_imputed_or_noisy_unasked(problem):
    outcomes = problem.evaluate_many(problem.space.encoded)
    assert np.isnan(outcomes.throughput[~outcomes.is_feasible]).all()
    again = problem.evaluate_many(problem.space.encoded)
    assert np.array_equal(outcomes.throughput, again.throughput, equal_nan=True)


def test_missing_and_invalid_are_told_apart(pco32):
    missing = Configuration(dp=2, pp=8, cp=2, bucket=64)
    with pytest.raises(MissingConfigurationError, match="is valid for pco32, but not among its"):
        pco32.evaluate(missing)
    with pytest.raises(LookupError):
        pco32.evaluate(missing)
    invalid = Configuration(dp=16, pp=2, bucket=64, zero=3)
    with pytest.raises(InvalidConfigurationError, match="ZeRO stage 3 goes only without pipeline"):
        pco32.evaluate(invalid)
    with pytest.raises(ValueError, match="ZeRO stage 3"):
        pco32.evaluate_many([pco32.optimum.configuration, invalid])
    encoded = pco32.space.encoded[:3].copy()
    encoded[1, 0] += 1
    with pytest.raises(InvalidConfigurationError, match="expected the 32 GPUs"):
        pco32.evaluate_many(encoded)


def test_the_same_data_is_the_same_problem(problem):
    assert parabolt.load_problem(problem.name) is problem
    again = pickle.loads(pickle.dumps(problem))
    assert again == problem
    assert hash(again) == hash(problem)
    assert again.content_hash == problem.content_hash
    assert again.evaluate(problem.optimum.configuration).throughput == problem.optimum.value
    assert parabolt.load_problem("pco32") != parabolt.load_problem("pco64")


def test_internal_arrays_are_never_handed_out_for_editing(problem):
    best = problem.optimum.value
    for owner in (problem, pickle.loads(pickle.dumps(problem))):
        with pytest.raises(ValueError, match="read-only"):
            owner.space.encoded[0, 0] = 9.0
        outcomes = owner.evaluate_many(owner.space.encoded)
        for name in ("throughput", "memory_margin", "peak_memory_gib", "status"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(outcomes, name)[:] = 0
            with pytest.raises(ValueError, match="read-only"):
                getattr(owner.table.outcomes, name)[:] = 0
        editable = outcomes.throughput.copy()
        editable[:] = 1.0
        assert owner.evaluate(owner.optimum.configuration).throughput == best


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="unknown problem 'pco23': expected one of pco32"):
        parabolt.load_problem("pco23")
    with pytest.raises(UnknownNameError, match="pco16 is a known instance without an embedded"):
        parabolt.load_problem("pco16")


def test_a_table_without_a_feasible_row_is_no_problem(pco32):
    failed = pco32.table.data.filter(~pco32.table.is_feasible)
    with pytest.raises(TableError, match="expected a feasible row, got none"):
        parabolt.TabularProblem(parabolt.Table(failed, pco32.instance))


def test_imputation_is_the_mean_of_all_tied_nearest_feasible_rows(problem):
    """Against a row-by-row reading of the definition."""
    imputed = ImputedProblem(problem).evaluate_many(problem.space.encoded)
    raw = problem.evaluate_many(problem.space.encoded)
    X, feasible = problem.space.encoded, raw.is_feasible
    for row in np.flatnonzero(~feasible):
        distance = np.linalg.norm(X[feasible] - X[row], axis=1)
        nearest = distance <= distance.min() + 1e-9
        # To the last bit, as no kernel of a processor may have a say.
        total = float(sum(map(Fraction, raw.throughput[feasible][nearest].tolist())))
        assert imputed.throughput[row] == total / nearest.sum()
    assert np.array_equal(imputed.throughput[feasible], raw.throughput[feasible])


def test_imputed_values_are_marked_and_stay_infeasible(problem):
    wrapped = ImputedProblem(problem)
    row = int(np.argmin(problem.table.is_feasible))
    outcome = wrapped.evaluate(problem.space.candidates[row])
    assert (outcome.status, outcome.throughput_source) == ("oom", "imputed")
    assert np.isfinite(outcome.throughput)
    assert outcome.peak_memory_gib == float("inf")
    assert wrapped.optimum == problem.optimum
    assert wrapped == ImputedProblem(problem)
    assert wrapped != problem


def test_a_hand_worked_imputation():
    encoded = np.array([[0.0], [1.0], [2.0], [4.0]])
    feasible = np.array([True, False, True, False])
    filled = impute_throughput(encoded, np.array([1.0, np.nan, 3.0, np.nan]), feasible)
    assert filled.tolist() == [1.0, 2.0, 3.0, 3.0]


def test_noise_is_on_throughput_alone_and_from_its_own_stream(pco32):
    stream = np.random.default_rng(0)
    noisy = NoisyProblem(pco32, std=0.001, stream=stream)
    raw = pco32.evaluate_many(pco32.space.encoded)
    outcomes = noisy.evaluate_many(pco32.space.encoded)
    noise = (outcomes.throughput - raw.throughput)[raw.is_feasible]
    expected = 0.001 * np.random.default_rng(0).standard_normal(379)[raw.is_feasible]
    assert noise == pytest.approx(expected, abs=1e-15)
    assert np.array_equal(outcomes.memory_margin, raw.memory_margin)
    assert np.isnan(outcomes.throughput[~raw.is_feasible]).all()
    assert noisy != NoisyProblem(pco32, std=0.001, stream=np.random.default_rng(0))
    with pytest.raises(OptionError, match="std: expected a number >= 0, got -1"):
        NoisyProblem(pco32, std=-1, stream=stream)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_normals_are_pytorchs_to_the_last_bit(seed):
    import torch

    generator = torch.Generator().manual_seed(seed)
    expected = [torch.randn(k, dtype=torch.double, generator=generator) for k in (10, 1, 1, 3, 15)]
    stream = TorchNormalStream(seed)
    for part in expected:
        assert stream.standard_normal(len(part)).tolist() == part.tolist()


def test_snapping_warns_and_refuses_out_of_bounds(pco32):
    snapped = SnappedProblem(pco32)
    best = pco32.optimum.configuration
    assert str(snapped.evaluate(best)) == str(pco32.evaluate(best))
    near = pco32.space.encoded[[3, 4]] + np.array([[0.1] + [0.0] * 7])
    with pytest.warns(RuntimeWarning, match="pco32: 2 of 2 points are no candidates"):
        outcomes = snapped.evaluate_many(near)
    assert (
        outcomes.throughput.tolist()
        == pco32.evaluate_many(pco32.space.encoded[[3, 4]]).throughput.tolist()
    )
    with pytest.raises(ValueError, match="log2_dp_size: expected a level from 1 to 5, got 6"):
        snapped.evaluate([6, 0, 0, 0, 0, 8, 1, 0])
    with pytest.raises(InvalidConfigurationError, match=r"got \(1, 2\)"):
        snapped.evaluate([6, 0])


def test_wrappers_stack_in_any_order(pco32):
    point = pco32.space.encoded[0] + np.array([0.1] + [0.0] * 7)
    one = ImputedProblem(SnappedProblem(pco32))
    other = SnappedProblem(ImputedProblem(pco32))
    with pytest.warns(RuntimeWarning):
        assert str(one.evaluate(point)) == str(other.evaluate(point))
    assert pickle.loads(pickle.dumps(one)) == one
