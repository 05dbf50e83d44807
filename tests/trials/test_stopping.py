import numpy as np
import pytest

from parabolt.errors import SpecError
from parabolt.trials.stopping import Belief, StoppingRule, chance_to_beat


def test_chance_is_calibrated_by_simulation():
    """Of trials that are given a chance of about p, about the share p beats the incumbent."""
    rng = np.random.default_rng(0)
    n, k, incumbent = 40, 12, 1.0
    chances, wins = [], []
    for _ in range(4000):
        mean = rng.uniform(0.97, 1.03)
        t = rng.normal(mean, 0.05, size=n)
        chances.append(chance_to_beat(t[:k], n_timed=n, incumbent=incumbent))
        wins.append(1 / t.mean() > incumbent)
    chances, wins = np.array(chances), np.array(wins)
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.7), (0.7, 0.9), (0.9, 1.0)):
        chosen = (chances >= low) & (chances <= high)
        assert chosen.sum() > 100
        share = wins[chosen].mean()
        assert abs(share - chances[chosen].mean()) < 4 * np.sqrt(0.25 / chosen.sum())


def test_an_exact_case():
    """Without a belief: y = 1, s = 0.1, k = 5 of 10, incumbent one predictive deviation above."""
    t = np.array([0.9, 1.1, 0.9, 1.1, 1.0])
    v = t.var(ddof=1)
    std = 0.5 * np.sqrt(v / 5 * 4 / 2 + v / 5)
    chance = chance_to_beat(t, n_timed=10, incumbent=1.0 + std)
    assert chance == pytest.approx(0.158655, abs=1e-6)  # 1 - Phi(1)


def test_a_sharp_belief_draws_the_rest_to_it():
    t = [0.9, 1.1, 0.9, 1.1, 1.0]
    without = chance_to_beat(t, n_timed=10, incumbent=1.1)
    up = chance_to_beat(t, n_timed=10, incumbent=1.1, belief=Belief(1.4, 0.01))
    down = chance_to_beat(t, n_timed=10, incumbent=1.1, belief=Belief(0.7, 0.01))
    flat = chance_to_beat(t, n_timed=10, incumbent=1.1, belief=Belief(0.7, 1e6))
    assert down < without < up
    assert flat == pytest.approx(without)


def test_steps_without_any_spread_decide_by_themselves():
    assert chance_to_beat([0.5] * 5, n_timed=9, incumbent=1.9) == 1.0
    assert chance_to_beat([0.5] * 5, n_timed=9, incumbent=2.1, belief=Belief(3, 1)) == 0.0


def test_never_before_five_steps_nor_after_the_last():
    rule = StoppingRule(threshold=0.5)
    slow = [2.0, 2.1, 2.0, 2.1, 2.0, 2.1]
    assert not rule.stops(slow[:4], n_timed=6, incumbent=1.0)
    assert rule.stops(slow[:5], n_timed=6, incumbent=1.0)
    assert not rule.stops(slow, n_timed=6, incumbent=1.0)
    assert not rule.stops(slow[:5], n_timed=6, incumbent=0.4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.0}, "threshold: expected a number between 0 and 1, got 0.0"),
        ({"threshold": 1.0}, "got 1.0"),
        ({"min_steps": 4}, "min_steps: expected at least 5, got 4"),
    ],
)
def test_bad_rules(options, message):
    with pytest.raises(SpecError, match=message):
        StoppingRule(**options)
