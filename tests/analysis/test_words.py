from math import nan

from parabolt.analysis.words import count, with_interval


def test_one_and_more():
    assert (count(1, "seed"), count(3, "seed")) == ("1 seed", "3 seeds")


def test_an_interval_that_is_not_known_is_left_out():
    assert with_interval(3.694, 2.308, 4.62) == "3.69 [2.31, 4.62]"
    assert with_interval(0.0, nan, nan) == "0.00"
