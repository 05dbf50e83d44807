"""Seeds needed: hand-worked limits, Noether's formula, and scipy's test on other random numbers."""

import numpy as np
import pytest
from scipy.stats import norm, wilcoxon

import parabolt
from parabolt.analysis.power import MAX_SEEDS, power_of, seeds_for_runs, seeds_for_share


@pytest.mark.parametrize(("n_comparisons", "expected"), [(1, 6), (15, 10), (120, 13)])
def test_who_always_wins_needs_the_seeds_whose_smallest_p_suffices(n_comparisons, expected):
    assert 2.0 ** (1 - expected) <= 0.05 / n_comparisons < 2.0 ** (2 - expected)
    assert seeds_for_share(1.0, n_comparisons).n_seeds == expected


@pytest.mark.parametrize(("share", "n_comparisons"), [(0.6, 1), (0.7, 1), (0.7, 15)])
def test_small_effects_agree_with_noethers_formula(share, n_comparisons):
    """Noether 1987: N = (z_a/2 + z_b)^2 / (3 (p' - 1/2)^2), p' = P(D1 + D2 > 0)."""
    together = norm.cdf(np.sqrt(2.0) * norm.ppf(share))
    z = norm.ppf(1 - 0.025 / n_comparisons) + norm.ppf(0.8)
    expected = z**2 / (3.0 * (together - 0.5) ** 2)
    assert seeds_for_share(share, n_comparisons).n_seeds == pytest.approx(expected, rel=0.15)


def test_the_power_is_that_of_scipys_test():
    rng = np.random.default_rng(9)
    p_values = [wilcoxon(rng.normal(0.8, 1.0, 14)).pvalue for _ in range(2000)]
    ours = power_of(lambda rng, n: rng.normal(0.8, 1.0, n), 14, 0.05)
    assert ours == pytest.approx(np.mean(np.array(p_values) <= 0.05), abs=0.04)


def test_an_effect_that_hardly_is_one_needs_more_than_are_looked_at():
    assert seeds_for_share(0.52, 1).n_seeds is None


def test_seeds_from_runs_follow_from_their_differences(made_runs):
    """`b` always loses by more and more: as who always wins. `c` ties everywhere. `d` half."""
    regrets = {"a": [1] * 8, "b": range(2, 10), "c": [1] * 8, "d": [0, 2, 0, 2, 0, 2, 0, 2]}
    needed = {n.second: n for n in seeds_for_runs(made_runs(regrets), "a")}
    assert {n.n_comparisons for n in needed.values()} == {3}
    assert needed["b"].win_share == 1.0
    assert 2.0 ** (1 - needed["b"].n_seeds) <= 0.05 / 3 < 2.0 ** (2 - needed["b"].n_seeds)
    assert (needed["c"].win_share, needed["c"].n_seeds) == (0.5, None)
    assert (needed["d"].win_share, needed["d"].n_seeds) == (0.5, None)
    assert MAX_SEEDS == 200


@pytest.mark.parametrize("share", [0.5, 1.2, -1.0, float("nan")])
def test_a_share_that_is_no_win_is_refused(share):
    with pytest.raises(parabolt.OptionError, match=r"win share: expected more than 0\.5"):
        seeds_for_share(share, 1)


def test_other_options_are_checked(made_runs):
    with pytest.raises(parabolt.OptionError, match="level: expected a number between 0 and 1"):
        seeds_for_share(0.8, 1, level=5.0)
    with pytest.raises(parabolt.OptionError, match="power: expected a number between 0 and 1"):
        seeds_for_share(0.8, 1, power=1.0)
    with pytest.raises(parabolt.OptionError, match="comparisons: expected at least 1, got 0"):
        seeds_for_share(0.8, 0)
    with pytest.raises(parabolt.UnknownNameError, match="compare with 'x'"):
        seeds_for_runs(made_runs({"a": [1], "b": [2]}), "x")
