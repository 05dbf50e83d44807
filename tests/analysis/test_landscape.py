import numpy as np
import pytest

import parabolt
from parabolt.analysis.landscape import Landscape, grid, heights, improvements, picture_of
from parabolt.instances.search_space import SearchSpace
from parabolt.outcome import Outcome, Outcomes, Status


@pytest.fixture
def land(pco64):
    return Landscape.of(pco64)


def test_a_cell_for_each_candidate(land, pco64):
    places = grid(land)
    assert (places.column_knobs, places.row_knobs) == (
        ("dp", "tp", "pp", "cp"),
        ("sp", "bucket", "zero", "chunks"),
    )
    assert len(set(zip(places.x.tolist(), places.y.tolist(), strict=True))) == len(land) == 780
    for row in (0, 100, 779):
        c = pco64.space.candidates[row]
        assert places.columns[places.x[row]] == f"{c.dp} {c.tp} {c.pp} {c.cp}"
        assert places.rows[places.y[row]] == f"{c.sp} {c.bucket} {c.zero} {c.chunks}"
    picture = picture_of(places, land.outcomes.throughput)
    assert np.nanmax(picture) == pco64.optimum.value
    assert np.isfinite(picture).sum() == 560
    assert land.space.candidates[land.best] == pco64.optimum.configuration


def test_columns_and_rows_ascend(land):
    places = grid(land)
    for labels in (places.columns, places.rows):
        numbers = [[int(word) for word in label.split()] for label in labels]
        assert numbers == sorted(numbers)


def test_lines_of_one_value_lie_side_by_side(land):
    where = heights(land)
    for column, axis in enumerate(land.axes):
        gap = 1 / (len(axis.values) - 1)
        for position in range(len(axis.values)):
            rows = np.flatnonzero(land.positions[:, column] == position)
            own = where[rows, column]
            assert len(np.unique(own)) == len(rows)
            assert np.abs(own - position * gap).max() < gap / 2  # nearer to it than to the next
            best = rows[np.argmax(np.nan_to_num(land.outcomes.throughput[rows], nan=-1))]
            assert where[best, column] == own.max()


def test_classes_share_the_candidates_out(land):
    classes = dict(land.classes())
    assert {name: len(rows) for name, rows in classes.items()} == {
        "out of memory": 220, "other feasible": 504, "best 10 %": 51, "best 1 %": 5,
    }  # fmt: skip
    assert sorted(np.concatenate(list(classes.values())).tolist()) == list(range(780))
    throughput = land.outcomes.throughput
    assert np.isnan(throughput[classes["out of memory"]]).all()
    assert throughput[classes["best 1 %"]].min() >= throughput[classes["best 10 %"]].max()


def test_what_failed_is_told_apart_from_out_of_memory(pco64):
    uscale = Landscape.of(parabolt.load_problem("uscale-8b-16"))
    assert {words: len(rows) for words, rows in uscale.endings().items()} == {
        "failed (memory or a crash)": 79
    }
    assert [label for label, _ in uscale.classes()] == [
        "failed (memory or a crash)", "other feasible", "best 10 %", "best 1 %",
    ]  # fmt: skip
    outcomes = [Outcome.oom(), Outcome.ok(0.2), Outcome(Status.FAILED), Outcome(Status.CRASHED)]
    space = SearchSpace(pco64.instance, pco64.space.encoded[:4])
    own = Landscape(space, Landscape.of(pco64).positions[:4], Outcomes.of(outcomes))
    assert {words: rows.tolist() for words, rows in own.endings().items()} == {
        "out of memory": [0], "failed (memory or a crash)": [2], "crashed": [3],
    }  # fmt: skip


def test_texts_name_the_searched_knobs(land):
    assert land.text(land.best) == "dp16 tp4 pp1 cp1 sp4 bucket64 zero2 chunks1"


def test_improvements_are_strictly_better_than_all_before(run_of):
    run = run_of([None, 0.2, 0.2, 0.1, 0.3, None, 0.5])
    assert improvements(run) == [1, 4, 6]


def test_an_instance_without_shared_knobs_has_one_column(land, pco64):
    """Candidates that differ in bucket and chunks only."""
    rows = np.flatnonzero((pco64.space.encoded[:, :5] == pco64.space.encoded[0, :5]).all(axis=1))
    space = SearchSpace(pco64.instance, pco64.space.encoded[rows])
    part = Landscape(space, land.positions[rows], land.outcomes.take(rows))
    assert set(grid(part).x.tolist()) == {0}
