"""Step times, memory per GPU and wall clock against an implementation row by row."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabolt.instances.catalogue import load_instance
from parabolt.tables.checks.consistency import check_consistency
from parabolt.tables.reading.conversion import convert
from parabolt.tables.reading.number_lists import parse_number_lists

INSTANCE = load_instance("pco32")


def findings(**columns):
    n = len(columns["throughput_mean"])
    data = pa.table({"ran_successfully": [True] * n, **columns})
    block = convert(data, np.arange(100, 100 + n), INSTANCE)
    return [f for group in check_consistency(block) for f in group]


def oppa(steps_s):
    """The summary that OPPA makes: no first step, no outliers, 1 / mean, error of the mean."""
    t = np.array(steps_s[1:])
    low, high = np.quantile(t, 0.25), np.quantile(t, 0.75)
    t = t[np.abs(t - np.median(t)) < 2.0 * (high - low)]
    return 1.0 / t.mean(), t.std() / np.sqrt(len(t)) / t.mean() ** 2


STEPS = [[9.0, 2.0, 2.1, 2.2, 2.3, 7.0], [4.0, 1.0, 1.01, 0.99], [3.0, 1.0, 1.2, 1.1, 1.05, 1.15]]
DEFINITIONS = {
    "oppa": oppa,
    "all steps": lambda t: (1 / np.mean(t), np.std(1 / np.array(t))),
    "mean rate, sample spread": lambda t: (
        np.mean(1 / np.array(t)),
        np.std(1 / np.array(t), ddof=1),
    ),
    "warm steps": lambda t: (1 / np.mean(t[1:]), np.std(t[1:]) / np.mean(t[1:]) ** 2),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_usual_definitions_are_accepted(name):
    means, stds = zip(*(DEFINITIONS[name](steps) for steps in STEPS), strict=True)
    columns = {"throughput_mean": means, "throughput_std": stds}
    assert findings(**columns, all_time_steps=list(map(str, STEPS))) == []
    wrong = [means[0], means[1] * 1.5, means[2]]
    (found,) = findings(throughput_mean=wrong, all_time_steps=list(map(str, STEPS)))
    assert (found.row, found.column, found.rule) == (101, "throughput_mean", "steps")
    wrong = [stds[0], stds[1], stds[2] * 5.0]
    found = findings(
        throughput_mean=means, throughput_std=wrong, all_time_steps=list(map(str, STEPS))
    )
    assert [(f.row, f.column) for f in found] == [(102, "throughput_std")]


@given(
    st.lists(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=12), min_size=1, max_size=6),
    st.integers(0, 3),
)
def test_a_summary_by_the_first_definitions_always_passes(runs, digits):
    """Whatever the lengths, in one block; the order of runs doesn't matter."""
    means = [1.0 / np.mean(run) for run in runs]
    assert findings(throughput_mean=means, all_time_steps=list(map(str, runs))) == []
    scaled = [mean * 10.0 for mean in means]
    found = findings(throughput_mean=scaled, all_time_steps=list(map(str, runs)))
    assert [f.row for f in found] == [100 + i for i in range(len(runs))]


def test_milliseconds_are_called_so():
    steps_ms = [[1000.0 * s for s in steps] for steps in STEPS]
    means = [oppa(steps)[0] for steps in STEPS]
    found = findings(throughput_mean=means, all_time_steps=list(map(str, steps_ms)))
    assert len(found) == 3
    assert all("one of the two is in milliseconds" in f.expected for f in found)


@pytest.mark.parametrize(
    ("overall", "is_wrong"), [(15.0, False), (8.0, False), (0.0146, True), (14600.0, False)]
)
def test_wall_clock_is_at_least_about_the_steps(overall, is_wrong):
    columns = {"throughput_mean": [0.5], "all_time_steps": [str([9.0, 1.8, 2.0, 2.2])]}
    found = findings(**columns, overall_time=[overall])
    assert [f.rule for f in found] == ["wall_clock"] * is_wrong


TEXTS = [
    None, "", "[]", "[ ]", "nan", "[1]", " [1.5, 2] ", "[1e3,-inf,nan]", "1, 2", "[1; 2]", "[a]",
    "[1,]", "[[1]]", "[1, 2", "[0x1]",
]  # fmt: skip


def test_number_lists():
    lists = parse_number_lists(pa.chunked_array([TEXTS[:4], TEXTS[4:]], pa.string()))
    assert [TEXTS[i] for i in np.flatnonzero(lists.is_blank)] == [None, "", "[]", "[ ]", "nan"]
    assert [TEXTS[i] for i in np.flatnonzero(lists.is_list)] == [
        "[1]", " [1.5, 2] ", "[1e3,-inf,nan]",
    ]  # fmt: skip
    found = {
        int(i): numbers
        for positions, block in lists.by_length(np.ones(len(TEXTS), dtype=bool))
        for i, numbers in zip(positions, block.tolist(), strict=True)
    }
    assert found[5] == [1.0]
    assert found[6] == [1.5, 2.0]
    assert found[7][:2] == [1000.0, float("-inf")]


@given(st.lists(st.lists(st.floats(), min_size=1, max_size=5), min_size=1, max_size=8))
def test_number_lists_give_back_every_double(runs):
    lists = parse_number_lists(pa.chunked_array([list(map(str, runs))]))
    assert lists.is_list.all()
    assert not lists.is_blank.any()
    assert lists.lengths.tolist() == [len(run) for run in runs]
    np.testing.assert_array_equal(lists.numbers, [x for run in runs for x in run])
