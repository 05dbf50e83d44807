"""Comparisons two by two against scipy's and hand-worked cases."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

import parabolt
from parabolt.analysis.comparison import ALL_PROBLEMS, compare_pairs, compare_with, holm


def test_pairs_against_scipy(made_runs):
    rng = np.random.default_rng(0)
    regrets = {name: rng.uniform(1, 40, 10) for name in "abc"}
    comparisons = compare_pairs(made_runs(regrets))
    assert [(c.first, c.second) for c in comparisons] == [("a", "b"), ("a", "c"), ("b", "c")]
    plain = [scipy.stats.wilcoxon(regrets[c.first], regrets[c.second]).pvalue for c in comparisons]
    assert [c.signed_rank_p for c in comparisons] == pytest.approx(plain)
    assert [c.holm_p for c in comparisons] == pytest.approx(multipletests(plain, method="holm")[1])
    for c in comparisons:
        a, b = regrets[c.first], regrets[c.second]
        assert c.mann_whitney_p == pytest.approx(scipy.stats.mannwhitneyu(a, b).pvalue)
        assert c.superiority == pytest.approx(np.mean(a[:, None] < b))
        assert (c.n_better, c.n_tied, c.n_worse) == ((a < b).sum(), 0, (a > b).sum())
        assert c.smallest_holm_p == pytest.approx(3 * 2 / 2**10)


def test_against_one_the_correction_is_over_the_others_alone(made_runs):
    rng = np.random.default_rng(1)
    regrets = {name: rng.uniform(1, 40, 10) for name in "abcd"}
    comparisons = compare_with(made_runs(regrets), "c")
    assert [(c.first, c.second) for c in comparisons] == [("c", "a"), ("c", "b"), ("c", "d")]
    plain = [scipy.stats.wilcoxon(regrets["c"], regrets[c.second]).pvalue for c in comparisons]
    assert [c.holm_p for c in comparisons] == pytest.approx(multipletests(plain, method="holm")[1])
    assert {c.smallest_holm_p for c in comparisons} == {3 * 2 / 2**10}


def test_pairs_are_of_one_seed_whatever_the_order(made_runs):
    runs = made_runs({"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, 4.0]})
    (comparison,) = compare_pairs(runs[:3] + runs[:2:-1])
    assert (comparison.n_better, comparison.n_worse) == (3, 0)
    assert comparison.signed_rank_p == pytest.approx(0.25)


def test_over_all_problems_the_blocks_are_seeds(made_runs):
    """Four seeds on two problems: eight better pairs, but no p-value below that of four seeds."""
    runs = made_runs({"a": [1, 2, 3, 4], "b": [2, 4, 6, 8]}, problem="one")
    runs += made_runs({"a": [5, 5, 5, 5], "b": [6, 7, 9, 9]}, problem="two")
    *by_problem, overall = compare_with(runs, "a")
    assert [c.problem for c in by_problem] == ["one", "two"]
    assert (overall.problem, overall.n_seeds) == (ALL_PROBLEMS, 4)
    assert (overall.n_better, overall.n_tied, overall.n_worse) == (8, 0, 0)
    assert overall.signed_rank_p == overall.smallest_holm_p == 2 / 2**4
    assert math.isnan(overall.superiority)
    assert math.isnan(overall.mann_whitney_p)


def test_scales_of_problems_do_not_mix(made_runs):
    """Ranks are per problem, so a problem of large regrets doesn't outvote one of small ones."""
    runs = made_runs({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.4, 0.6]}, problem="small")
    runs += made_runs({"a": [40, 60, 80], "b": [20, 30, 40]}, problem="large")
    assert compare_with(runs, "a")[-1].signed_rank_p == 1.0


def test_only_common_seeds_are_paired(made_runs):
    runs = made_runs({"a": [1, 2, 3, 4, 5], "b": [2, 3]})
    (comparison,) = compare_with(runs, "a")
    assert (comparison.n_seeds, comparison.n_better) == (2, 2)
    assert comparison.superiority == pytest.approx((1 + 1 / 2 + 2 + 1 / 2) / 10)


def test_equal_runs_are_a_tie(made_runs):
    (comparison,) = compare_pairs(made_runs({"a": [5, 6, 7], "b": [5, 6, 7]}))
    assert comparison.signed_rank_p == comparison.holm_p == 1.0
    assert comparison.superiority == 0.5
    assert (comparison.n_better, comparison.n_tied, comparison.n_worse) == (0, 3, 0)


def test_ties_count_half(made_runs):
    (comparison,) = compare_pairs(made_runs({"a": [0, 0, 10], "b": [0, 20, 20]}))
    assert comparison.superiority == pytest.approx((2 + 2 + 2 + 2 / 2) / 9)
    assert (comparison.n_better, comparison.n_tied, comparison.n_worse) == (2, 1, 0)


def test_an_unknown_reference_is_refused(made_runs):
    with pytest.raises(parabolt.UnknownNameError, match="unknown optimizer to compare with 'c'"):
        compare_with(made_runs({"a": [1], "b": [2]}), "c")


@pytest.mark.slow
@settings(max_examples=30)  # statsmodels needs 20 ms each
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_holm_against_statsmodels(p_values):
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])
