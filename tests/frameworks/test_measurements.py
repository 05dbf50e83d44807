"""What the figures of a log mean: means of intervals, late timers, rolling means."""

import pytest

from parabolt.frameworks.measurements import Measurements, ReportError


def logged(seconds, n_steps=None):
    found = Measurements(is_log=True)
    for step, value in seconds.items():
        found.add_mean(step, value, n_steps)
    return found


@pytest.mark.parametrize(
    ("seconds", "n_warmup", "timed"),
    [
        ({1: 9.0, 2: 2.0, 3: 3.0}, 1, [2.0, 3.0]),
        ({0: 9.0, 1: 2.0, 2: 3.0}, 1, [2.0, 3.0]),
        # An interval that shares a step with the warm-up is left out.
        ({5: 9.0, 10: 2.0}, 2, [2.0] * 5),
        ({5: 9.0, 10: 2.0}, 0, [9.0] * 5 + [2.0] * 5),
        ({5: 9.0, 10: 2.0}, 5, [2.0] * 5),
        ({5: 9.0, 10: 2.0}, 6, []),
        # The first step, then every tenth, as torchtitan does.
        ({1: 9.0, 10: 2.0, 20: 3.0}, 1, [2.0] * 9 + [3.0] * 10),
        ({1: 9.0, 10: 2.0, 20: 3.0}, 2, [3.0] * 10),
        # A shorter interval at the end.
        ({10: 9.0, 20: 2.0, 25: 3.0}, 10, [2.0] * 10 + [3.0] * 5),
        # DeepSpeed's timer begins with the third step: the first two are warm-up.
        ({3: 2.0, 4: 3.0, 5: 4.0}, 2, [2.0, 3.0, 4.0]),
        ({3: 2.0, 4: 3.0, 5: 4.0}, 3, [3.0, 4.0]),
        # A run that goes on from a checkpoint has its own warm-up.
        ({1001: 9.0, 1002: 2.0, 1003: 3.0}, 1, [2.0, 3.0]),
        ({1010: 9.0, 1020: 2.0, 1030: 3.0}, 1, [2.0] * 10 + [3.0] * 10),
        # A single figure so far.
        ({10: 9.0}, 0, [9.0] * 10),
        ({10: 9.0}, 1, []),
        ({}, 2, []),
    ],
)
def test_figures_of_a_log_are_means_of_intervals(seconds, n_warmup, timed):
    assert logged(seconds).timed_steps_s(n_warmup) == timed


def test_rolling_means_count_each_step_once():
    rolling = {step: float(step) for step in range(5, 14)}
    # Means of 4 steps: 5 is of 2 to 5, the next that shares none is 9, then 13.
    assert logged(rolling, 4).timed_steps_s(1) == [5.0] * 4 + [9.0] * 4 + [13.0] * 4
    assert logged(rolling, 4).timed_steps_s(2) == [6.0] * 4 + [10.0] * 4


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([1, 2, 4, 5], "step 3 was not reported, though step 4 was; try a log interval of 1"),
        ([10, 20, 40, 50], "step 30 was not reported, though step 40 was"),
        ([1, 10, 20, 40, 50], "step 30 was not reported"),
    ],
)
def test_a_missing_figure_says_so(steps, message):
    with pytest.raises(ReportError, match=message):
        logged(dict.fromkeys(steps, 1.0)).timed_steps_s(0)


def test_the_larger_figure_counts_and_logs_merge():
    found = logged({1: 1.0})
    found.add_mean(1, 1.5)
    found.add_memory(0, 3.0)
    other = logged({1: 1.25, 2: 2.0})
    other.add_memory(0, 2.0)
    other.add_memory(1, 4.0)
    found.merge(other)
    assert found.step_times_s == {1: 1.5, 2: 2.0}
    assert found.peak_memory_gib == {0: 3.0, 1: 4.0}


def test_the_description_names_the_interval():
    assert logged({1: 1.0, 2: 1.0}).description == "2 in all"
    assert "2 means of about 10 steps" in logged({10: 1.0, 20: 1.0}).description


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_times_are_positive(seconds):
    with pytest.raises(ReportError, match="step 4: expected positive seconds"):
        logged({4: seconds})
