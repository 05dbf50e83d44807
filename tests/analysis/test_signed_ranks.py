"""The signed-rank test against every assignment of signs written out, and against scipy's."""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from parabolt.analysis.signed_ranks import normal_p, signed_rank_p, smallest_p


def written_out_p(columns):
    """Two-sided p-value of differences (n, k): blocks flip as wholes, ranks are per column."""
    ranks = scipy.stats.rankdata(np.abs(columns), axis=0)
    scores = (np.sign(columns) * ranks).sum(axis=1)
    signs = np.array(list(itertools.product((-1, 1), repeat=len(scores))))
    sums = (signs * np.abs(scores)).sum(axis=1)
    seen = scores.sum()
    return min(1.0, 2 * min((sums >= seen - 1e-9).mean(), (sums <= seen + 1e-9).mean()))


values = st.integers(-3, 3).map(lambda n: n * 7.5)


@settings(deadline=None)
@given(st.lists(values, min_size=1, max_size=12))
def test_one_stratum_with_ties_and_zeros(differences):
    expected = written_out_p(np.array(differences)[:, None])
    assert signed_rank_p(np.array(differences)) == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(st.lists(st.tuples(values, values, values), min_size=1, max_size=10))
def test_a_block_of_several_strata_flips_as_a_whole(rows):
    expected = written_out_p(np.array(rows))
    assert signed_rank_p(np.array(rows)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [5, 30, 50])
def test_without_ties_it_is_wilcoxons_exact_test(n):
    differences = np.random.default_rng(n).normal(0.3, 1.0, n)
    expected = scipy.stats.wilcoxon(differences, method="exact").pvalue
    assert signed_rank_p(differences) == pytest.approx(expected, rel=1e-9)


def test_many_blocks_are_normal():
    differences = np.random.default_rng(0).normal(0.05, 1.0, 400)
    expected = scipy.stats.wilcoxon(differences, method="approx", correction=False).pvalue
    assert signed_rank_p(differences) == pytest.approx(expected, rel=1e-9)
    assert normal_p(np.zeros((2, 5), dtype=np.int64)).tolist() == [1.0, 1.0]


def test_rounding_errors_part_no_ties():
    tied = np.array([0.1 + 0.2, -0.3, 1.0, 1e-12])
    assert signed_rank_p(tied) == signed_rank_p(np.array([0.3, -0.3, 1.0, 0.0]))
    assert signed_rank_p(np.array([1e-12, -1e-13])) == 1.0


@pytest.mark.parametrize("n", [1, 2, 6, 10, 20])
def test_the_smallest_p_is_that_of_one_sign(n):
    assert smallest_p(n) == signed_rank_p(np.arange(1.0, n + 1.0))


def test_ten_seeds_cannot_show_significance_over_all_pairs_of_sixteen():
    """The published grid: 120 pairs; against one method there are 15 comparisons."""
    assert 120 * smallest_p(10) == pytest.approx(0.234375)
    assert 15 * smallest_p(10) == pytest.approx(0.029296875)
