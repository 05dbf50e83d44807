"""Tolerances by hand: a figure just inside passes, one just outside is found, on either side."""

import pytest

from parabolt.instances.catalogue import parse_instance
from parabolt.tables.sources import locate

ONE = parse_instance(
    """
name = "one"
model = {n_layers = 4, n_heads = 4, hidden_size = 8, ffn_size = 8}
cluster = {n_gpus = 4, n_hosts = 1, memory_gib = 80}
workload = {sequence_length = 8, batch_size = 8}
knobs = {dp = [2, 4], tp = [1, 2], bucket = [1]}
""",
    origin="one",
)
#: 20 of 80 is a margin of -0.75. Steps of 1, 2, 2 and 4 s: the first is the warm-up or is timed,
#: and no other throughput is a figure of them. All: 9 s, so 4 / 9; without the first 3 / 8.
ROW = {
    "log2_dp_size": 2, "log2_tp_size": 0, "num_layers": 4, "num_attention_heads": 4,
    "hidden_size": 8, "ffn_hidden_size": 8, "batch_size": 8, "seq_length": 8, "log2_num_gpus": 2,
    "log2_num_hosts": 0, "ran_successfully": True, "throughput_mean": 4 / 9, "peak_mem": 20.0,
}  # fmt: skip


def rules(tmp_path, **changes):
    """Rule and column of each finding of a table of one row."""
    row = ROW | changes
    cells = [f'"{value}"' if isinstance(value, list) else str(value) for value in row.values()]
    path = tmp_path / "one.csv"
    path.write_text(f"{','.join(row)}\n{','.join(cells)}\n")
    return [(f.rule, f.column) for f in locate(path, instance=ONE).verify().findings]


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_margin_agrees_with_the_peak_to_a_millionth(sign, tmp_path):
    assert rules(tmp_path, peak_mem_normalised=-0.75 + sign * 0.9e-6) == []
    found = rules(tmp_path, peak_mem_normalised=-0.75 + sign * 1.1e-6)
    assert found == [("margin", "peak_mem_normalised")]


def test_a_run_that_finished_is_below_the_capacity_and_not_at_it(tmp_path):
    assert rules(tmp_path, peak_mem=79.999) == []
    assert rules(tmp_path, peak_mem=80.0) == [("fits", "peak_mem")]


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(
    "throughput",
    [
        4 / 9,  # 1 / mean, all steps
        (1 + 0.5 + 0.5 + 0.25) / 4,  # mean of 1 / t, all steps
        3 / 8,  # 1 / mean without the first
        (0.5 + 0.5 + 0.25) / 3,  # mean of 1 / t without the first
    ],
)
def test_a_throughput_is_one_of_its_steps_to_a_ten_thousandth(sign, throughput, tmp_path):
    steps = {"all_time_steps": [1, 2, 2, 4]}
    assert rules(tmp_path, throughput_mean=throughput * (1 + sign * 0.9e-4), **steps) == []
    found = rules(tmp_path, throughput_mean=throughput * (1 + sign * 1.2e-4), **steps)
    assert found == [("steps", "throughput_mean")]


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_spread_is_one_of_its_steps_to_a_hundredth(sign, tmp_path):
    """Of 1 and 2 s the largest spread is 0.3536: of 1 and 1/2, with one degree of freedom less.

    The smallest is 0.1571: to first order, of the mean, with all degrees of freedom.
    """
    own = {"all_time_steps": [1, 2], "throughput_mean": 2 / 3}
    spreads = {1: 0.5 / 2**0.5, -1: 0.5 / 1.5**2 / 2**0.5}
    assert rules(tmp_path, throughput_std=spreads[sign] * (1 + sign * 0.9e-2), **own) == []
    found = rules(tmp_path, throughput_std=spreads[sign] * (1 + sign * 1.2e-2), **own)
    assert found == [("steps", "throughput_std")]


@pytest.mark.parametrize(
    "spread",
    [
        0.25,  # 1 and 1/2, all degrees of freedom
        0.25 / 2**0.5,  # of their mean
        0.5 / 1.5**2,  # the times 1 and 2, to first order
        0.5 / 1.5**2 * 2**0.5,  # with one degree of freedom less
    ],
)
def test_each_usual_spread_is_accepted(spread, tmp_path):
    own = {"all_time_steps": [1, 2], "throughput_mean": 2 / 3}
    assert rules(tmp_path, throughput_std=spread, **own) == []


def test_the_wall_clock_is_at_least_a_thirtieth_of_the_steps(tmp_path):
    steps = {"all_time_steps": [1, 2, 2, 4]}
    assert rules(tmp_path, overall_time=0.31, **steps) == []
    assert rules(tmp_path, overall_time=0.29, **steps) == [("wall_clock", "overall_time")]
    minutes = 1.9 * 9 / 60
    assert rules(tmp_path, overall_time=minutes, **steps) == [("wall_clock", "overall_time")]


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_peak_is_the_largest_of_its_gpus_to_a_millionth(sign, tmp_path):
    inside, outside = (20.0 * (1 + sign * share) for share in (0.9e-6, 1.2e-6))
    assert rules(tmp_path, peak_mem_per_gpu=[3, inside, 19]) == []
    found = rules(tmp_path, peak_mem_per_gpu=[3, outside, 19])
    assert found == [("largest", "peak_mem_per_gpu")]


def test_outliers_are_further_than_two_interquartile_ranges_from_the_median(tmp_path):
    # Quartiles of 10, 11, 12, 13 and x: 11 and 13, the median 12; so beyond 16 is an outlier.
    near = {"all_time_steps": [10, 11, 12, 13, 16]}
    far = {"all_time_steps": [10, 11, 12, 13, 16.5]}
    without_last = 4 / 46
    assert rules(tmp_path, throughput_mean=without_last, **far) == []
    assert rules(tmp_path, throughput_mean=without_last, **near) == [("steps", "throughput_mean")]
    assert rules(tmp_path, throughput_mean=5 / 62, **near) == []
