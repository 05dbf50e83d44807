import math

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from parabolt.analysis.intervals import mean_interval, share_interval


def test_mean_interval_is_the_percentile_bootstrap():
    values = np.random.default_rng(0).exponential(size=40)
    low, high = mean_interval(values)
    rng = np.random.default_rng(1)
    means = rng.choice(values, (20_000, 40)).mean(axis=1)
    assert (low, high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), rel=0.02)


@pytest.mark.parametrize("values", [[], [2.0], [0.25] * 5, [0.0] * 10])
def test_values_without_spread_have_no_interval(values):
    assert all(math.isnan(end) for end in mean_interval(np.array(values)))


@pytest.mark.parametrize(("count", "n"), [(0, 10), (1, 1), (3, 10), (8, 10), (10, 10), (17, 40)])
def test_share_interval_is_wilsons(count, n):
    expected = proportion_confint(count, n, alpha=0.05, method="wilson")
    assert share_interval(count, n) == pytest.approx(expected)


def test_ten_of_ten_is_not_certain():
    low, high = share_interval(10, 10)
    assert (low, high) == (pytest.approx(0.7225, abs=1e-4), 1.0)
    assert all(math.isnan(end) for end in share_interval(0, 0))
