"""Statistics against scipy's, lifelines', scikit-posthocs' and hand-worked cases."""

import itertools
import math

import lifelines
import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
import scipy.stats
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from parabolt.analysis.statistics import (
    compare_pairs,
    holm,
    mean_interval,
    performance_profile,
    rank_optimizers,
)
from parabolt.analysis.survival import time_to_optimum

shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def found_at(run_of, step, length, **options):
    """A run that finds the optimum at a step, or never (None)."""
    return run_of([0.5 if t + 1 == step else 0.2 for t in range(length)], n_initial=1, **options)


@given(steps=st.lists(st.one_of(st.none(), st.integers(1, 20)), min_size=1, max_size=25))
@shared
def test_kaplan_meier_is_lifelines(run_of, steps):
    runs = [found_at(run_of, step, 20, seed=i) for i, step in enumerate(steps)]
    ours = time_to_optimum(runs)
    durations = [20 if step is None else step for step in steps]
    fitter = lifelines.KaplanMeierFitter().fit(durations, [step is not None for step in steps])
    survival = fitter.survival_function_["KM_estimate"].round(12)  # lifelines' logs round 1/2 up
    assert ours.median == min(survival.index[survival <= 0.5], default=math.inf)
    expected = lifelines.utils.restricted_mean_survival_time(fitter, t=20)
    assert ours.restricted_mean == pytest.approx(expected)
    assert (ours.n_runs, ours.n_found) == (len(steps), sum(s is not None for s in steps))


def test_runs_of_different_length_are_censored_at_their_own_end(run_of):
    runs = [found_at(run_of, None, 5), found_at(run_of, 8, 10), found_at(run_of, None, 10)]
    fitter = lifelines.KaplanMeierFitter().fit([5, 8, 10], [0, 1, 0])
    ours = time_to_optimum(runs)
    assert ours.median == fitter.median_survival_time_
    assert ours.restricted_mean == pytest.approx(8 + 0.5 * 2)


def test_mean_interval_is_the_percentile_bootstrap():
    values = np.random.default_rng(0).exponential(size=40)
    low, high = mean_interval(values)
    rng = np.random.default_rng(1)
    means = rng.choice(values, (20_000, 40)).mean(axis=1)
    assert (low, high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), rel=0.02)
    assert mean_interval(np.array([2.0])) == (2.0, 2.0)
    assert mean_interval(np.full(5, 0.25)) == (0.25, 0.25)


def ending_at(run_of, percent, **options):
    """A run whose final regret is `percent` of the optimum."""
    return run_of([0.1, 0.1, 0.5 * (1 - percent / 100)], **options)


def made_runs(run_of, regrets):
    """Runs with these final regrets, `regrets[name]` a list over seeds."""
    return [
        ending_at(run_of, regret, name=name, seed=seed)
        for name, values in regrets.items()
        for seed, regret in enumerate(values)
    ]


def test_pairs_against_scipy(run_of):
    rng = np.random.default_rng(0)
    regrets = {name: rng.uniform(1, 40, 10) for name in "abc"}
    comparisons = compare_pairs(made_runs(run_of, regrets))
    assert [(c.first, c.second) for c in comparisons] == [("a", "b"), ("a", "c"), ("b", "c")]
    for c in comparisons:
        a, b = regrets[c.first], regrets[c.second]
        assert c.wilcoxon_p == pytest.approx(scipy.stats.wilcoxon(a, b).pvalue)
        assert c.mann_whitney_p == pytest.approx(scipy.stats.mannwhitneyu(a, b).pvalue)
        assert c.superiority == pytest.approx(np.mean(a[:, None] < b))


def written_out_p(differences):
    """Two-sided exact p-value: how often random signs give as much, zeros having none."""
    ranks = scipy.stats.rankdata(np.abs(differences))
    signs = np.array(list(itertools.product((-1, 1), repeat=len(ranks))))
    sums = (signs * np.where(differences == 0, 0.0, ranks)).sum(axis=1)
    seen = (np.sign(differences) * ranks).sum()
    return min(1.0, 2 * min((sums >= seen).mean(), (sums <= seen).mean()))


@pytest.mark.parametrize("n_seeds", [2, 9, 13, 14, 30])
def test_signed_ranks_with_ties_and_zeros(run_of, n_seeds):
    rng = np.random.default_rng(n_seeds)
    regrets = {name: rng.choice([0, 10, 20, 40], n_seeds).astype(float) for name in "abcd"}
    for c in compare_pairs(made_runs(run_of, regrets)):
        differences = regrets[c.first] - regrets[c.second]
        if n_seeds <= 13:
            expected = written_out_p(differences)
        else:
            expected = scipy.stats.wilcoxon(differences, zero_method="zsplit").pvalue
        assert c.wilcoxon_p == pytest.approx(expected), c


def test_equal_runs_are_no_difference(run_of):
    (comparison,) = compare_pairs(made_runs(run_of, {"a": [5, 6, 7], "b": [5, 6, 7]}))
    assert comparison.wilcoxon_p == comparison.holm_p == 1.0
    assert comparison.superiority == 0.5


def test_ties_count_half(run_of):
    (comparison,) = compare_pairs(made_runs(run_of, {"a": [0, 0, 10], "b": [0, 20, 20]}))
    wins, ties = 2 + 2 + 2, 2
    assert comparison.superiority == pytest.approx((wins + ties / 2) / 9)


@settings(deadline=None)  # statsmodels takes its time on a busy machine
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_holm_against_statsmodels(p_values):
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_ranks_and_critical_difference_against_scipy_and_posthocs(run_of):
    rng = np.random.default_rng(1)
    values = rng.uniform(1, 40, (10, 4)) + np.array([0, 3, 9, 30])
    runs = made_runs(run_of, dict(zip("abcd", values.T, strict=True)))
    ranking = rank_optimizers(runs)
    expected = scipy.stats.rankdata(values, axis=1).mean(axis=0)
    assert ranking.mean_ranks == pytest.approx(dict(zip("abcd", expected, strict=True)))
    assert ranking.n_blocks == 10
    assert ranking.friedman_p == pytest.approx(scipy.stats.friedmanchisquare(*values.T).pvalue)
    # Demsar 2006, table 5a: q = 2.569 for four methods at 5 %.
    assert ranking.critical_difference == pytest.approx(2.569 * math.sqrt(4 * 5 / 60), abs=1e-3)
    table = pd.DataFrame(values, columns=list("abcd"))
    p = scikit_posthocs.posthoc_nemenyi_friedman(table)
    for a in "abcd":
        for b in "abcd":
            if a != b:
                distance = abs(ranking.mean_ranks[a] - ranking.mean_ranks[b])
                assert (distance > ranking.critical_difference) == (p.loc[a, b] < 0.05)


def test_ranks_need_two_optimizers_and_whole_blocks(run_of):
    assert rank_optimizers(made_runs(run_of, {"a": [1, 2]})) is None
    parted = [ending_at(run_of, 5, name="a", seed=0), ending_at(run_of, 5, name="b", seed=1)]
    assert rank_optimizers(parted) is None
    tied = rank_optimizers(made_runs(run_of, {n: [5, 5] for n in "abc"}))
    assert tied.friedman_p == 1.0
    assert set(tied.mean_ranks.values()) == {2.0}


def test_performance_profile_by_hand(run_of):
    runs = [
        found_at(run_of, step, 20, name=name, seed=seed)
        for name, steps in {"a": [4, 10, None], "b": [8, 5, None]}.items()
        for seed, step in enumerate(steps)
    ]
    profile = performance_profile(runs, within=0.0)
    assert profile.factor.tolist() == [1.0, 2.0]
    assert profile.share["a"] == pytest.approx([1 / 3, 2 / 3])
    assert profile.share["b"] == pytest.approx([1 / 3, 2 / 3])
