"""The codec of outcomes: nothing is dropped on the way, and NaN equals NaN."""

import copy
import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from parabolt.outcome import (
    FIELDS,
    OOM_MARGIN,
    SOURCES,
    STATUSES,
    Outcome,
    Outcomes,
    Source,
    Status,
)

FULL = Outcome(Status.STOPPED, 1.25, 40.5, -0.5, 12.5, Source.IMPUTED, Source.SIMULATED)
ALL = [FULL, Outcome(Status.CRASHED), Outcome.oom(), Outcome.ok(2.0, memory_margin=-0.25)]


def test_a_record_is_what_json_holds():
    assert FULL.to_record() == {
        "status": "stopped",
        "throughput": 1.25,
        "peak_memory_gib": 40.5,
        "memory_margin": -0.5,
        "wall_time_s": 12.5,
        "throughput_source": "imputed",
        "memory_source": "simulated",
    }
    oom = Outcome.oom().to_record()
    assert (oom["throughput"], oom["peak_memory_gib"], oom["memory_margin"]) == (None, "inf", 0.2)
    assert {type(value) for value in FULL.to_record().values()} == {str, float}


@pytest.mark.parametrize("outcome", ALL, ids=str)
def test_json_gives_back_every_field(outcome):
    text = json.dumps(outcome.to_record(), allow_nan=False)
    found = Outcome.from_record(json.loads(text))
    assert found == outcome
    assert type(found.status) is Status
    assert type(found.memory_source) is Source


@pytest.mark.parametrize("field", FIELDS)
def test_a_copy_is_equal_and_another_value_is_not(field):
    outcome = ALL[1]
    assert pickle.loads(pickle.dumps(outcome)) == copy.deepcopy(outcome) == outcome
    assert hash(copy.deepcopy(outcome)) == hash(outcome)
    other = replace(outcome, **{field: getattr(FULL, field)})
    assert other != outcome
    assert Outcomes.of([other]) != Outcomes.of([outcome]) == Outcomes.of([copy.copy(outcome)])


def test_an_outcome_equals_nothing_else():
    assert Outcome.oom() != Outcome.oom().to_record()
    assert Outcomes.of(ALL) != ALL
    assert Outcomes.of(ALL) != Outcomes.of(ALL[:3])


def test_a_field_that_a_record_lacks_is_unknown():
    assert Outcome.from_record({"status": "crashed"}) == Outcome(Status.CRASHED)
    columns = {"status": ["crashed", "ok"], "throughput": [math.nan, 2.0], "dp": [1, 2]}
    assert Outcomes.from_columns(columns) == Outcomes.of(
        [Outcome(Status.CRASHED), Outcome(Status.OK, 2.0)]
    )


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({"status": "fine"}, "status: expected one of ok, oom, .*, got 'fine'"),
        ({"status": None}, "status: expected one of ok, oom, .*, got None"),
        ({"status": "ok", "throughput": "fast"}, "could not convert string to float: 'fast'"),
        ({"status": "ok", "memory_source": "guessed"}, "memory_source: expected .* got 'guessed'"),
    ],
)
def test_what_is_no_outcome_is_refused(record, complaint):
    with pytest.raises(ValueError, match=complaint):
        Outcome.from_record(record)
    with pytest.raises(ValueError, match=complaint):
        Outcomes.from_columns({name: [value] for name, value in record.items()})


def test_columns_and_rows_give_back_every_field():
    outcomes = Outcomes.of(ALL)
    assert list(outcomes) == ALL
    columns = outcomes.to_columns()
    assert list(columns) == list(FIELDS)
    assert columns["status"] == ["stopped", "crashed", "oom", "ok"]
    assert columns["memory_source"] == ["simulated", "none", "none", "none"]
    assert columns["peak_memory_gib"][2] == np.inf
    assert Outcomes.from_columns(columns) == outcomes
    assert list(outcomes.take(np.array([2, 0]))) == [ALL[2], ALL[0]]
    assert hash(outcomes) == hash(Outcomes.of(ALL))


def test_arrays_are_read_only_in_copies_too():
    for outcomes in (Outcomes.of(ALL), copy.deepcopy(Outcomes.of(ALL))):
        with pytest.raises(ValueError, match="read-only"):
            outcomes.throughput[0] = 1.0


#: What each status says: finished, does not run, the one or the other, timed.
MEANINGS = {
    Status.OK: (True, False, True, True),
    Status.OOM: (False, True, True, False),
    Status.FAILED: (False, True, True, False),
    Status.STOPPED: (False, False, False, True),
    **dict.fromkeys((Status.CRASHED, Status.TIMEOUT, Status.INVALID, Status.NODE), (False,) * 4),
}


@pytest.mark.parametrize("status", Status)
def test_what_a_status_says_of_its_configuration(status):
    assert MEANINGS[status] == (
        status.is_feasible, status.is_infeasible, status.is_definite, status.is_timed,
    )  # fmt: skip


def test_arrays_say_the_same_as_words():
    outcomes = Outcomes.of([Outcome(status, 1.0) for status in Status])
    for name in ("is_feasible", "is_infeasible", "is_timed"):
        assert getattr(outcomes, name).tolist() == [getattr(s, name) for s in Status]
    assert outcomes.is_oom.tolist() == [s == "oom" for s in Status]


def test_codes_are_places_in_the_lists_of_words():
    """Pickled outcomes hold codes: words are only ever appended."""
    assert STATUSES[:5] == ("ok", "oom", "crashed", "timeout", "stopped")
    assert STATUSES[5:] == ("failed", "invalid", "node")
    assert SOURCES[:5] == ("none", "measured", "interpolated", "imputed", "simulated")
    assert Outcomes.of(ALL).status.tolist() == [4, 2, 1, 0]
    assert OOM_MARGIN == 0.2
