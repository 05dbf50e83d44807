"""Ranks, profiles and times to the optimum against other libraries and hand-worked cases."""

import math

import lifelines
import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
import scipy.stats
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parabolt.analysis.statistics import performance_profile, rank_optimizers
from parabolt.analysis.survival import time_to_optimum

shared = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)


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


def test_ranks_and_critical_difference_against_scipy_and_posthocs(made_runs):
    rng = np.random.default_rng(1)
    values = rng.uniform(1, 40, (10, 4)) + np.array([0, 3, 9, 30])
    ranking = rank_optimizers(made_runs(dict(zip("abcd", values.T, strict=True))))
    expected = scipy.stats.rankdata(values, axis=1).mean(axis=0)
    assert ranking.mean_ranks == pytest.approx(dict(zip("abcd", expected, strict=True)))
    assert list(ranking.mean_ranks.values()) == sorted(ranking.mean_ranks.values())
    assert ranking.n_seeds == 10
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


def test_seeds_are_the_blocks_of_several_problems(made_runs):
    """On `one` a, b, c come in that order, on `two` in b, c, a: ranks 1, 2, 3 and 3, 1, 2."""
    runs = made_runs({"a": [1, 1], "b": [2, 2], "c": [3, 3]}, problem="one")
    runs += made_runs({"a": [30, 30], "b": [10, 10], "c": [20, 20]}, problem="two")
    ranking = rank_optimizers(runs)
    assert (ranking.n_seeds, ranking.problems) == (2, ("one", "two"))
    # Means over the problems are 2, 1.5 and 2.5, so b is first, a second and c third.
    assert ranking.mean_ranks == {"b": 1.0, "a": 2.0, "c": 3.0}
    # Demsar 2006, table 5a: q = 2.343 for three methods.
    assert ranking.critical_difference == pytest.approx(2.343 * math.sqrt(3 * 4 / 12), abs=1e-3)


def test_problems_and_seeds_that_not_all_ran_do_not_count(made_runs):
    runs = made_runs({"a": [1, 2, 9], "b": [2, 3]}, problem="one")
    runs += made_runs({"a": [5, 5]}, problem="two")
    ranking = rank_optimizers(runs)
    assert (ranking.n_seeds, ranking.problems) == (2, ("one",))
    assert ranking.mean_ranks == {"a": 1.0, "b": 2.0}


def test_ranks_need_two_optimizers_and_a_common_seed(made_runs):
    assert rank_optimizers(made_runs({"a": [1, 2]})) is None
    parted = made_runs({"a": [5]}) + made_runs({"b": [5]}, first_seed=1)
    assert rank_optimizers(parted) is None
    tied = rank_optimizers(made_runs({n: [5, 5] for n in "abc"}))
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


def test_a_profile_counts_only_runs_that_exist(run_of):
    """The same method under two labels, one with fewer seeds: the shares are the same."""
    steps = [4, 10, None, 6]
    runs = [found_at(run_of, s, 20, name="whole", seed=i) for i, s in enumerate(steps)]
    runs += [found_at(run_of, s, 20, name="part", seed=i) for i, s in enumerate(steps[:2])]
    profile = performance_profile(runs, within=0.0)
    assert profile.share["whole"].tolist() == [0.75]
    assert profile.share["part"].tolist() == [1.0]
