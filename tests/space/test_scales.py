"""Scales against values worked by hand, and the laws that every scale keeps."""

from enum import IntEnum

import numpy as np
import pytest

from parabolt.errors import InvalidConfigurationError
from parabolt.space.axis import Axis
from parabolt.space.configurations import Configurations
from parabolt.space.encoding import Encoding
from parabolt.space.knobs import KNOBS, Knob, Shown
from parabolt.space.scales import Choice, Integers, Log2, Ordinal


class Colour(IntEnum):
    RED = 0
    GREEN = 1
    BLUE = 2


SCALES = {
    "log2": (Log2(), (1, 2, 8), [[0.0], [1.0], [3.0]]),
    "integers": (Integers(), (0, 3, 4), [[0.0], [3.0], [4.0]]),
    "stages": (Ordinal((0, 2, 3)), (0, 3), [[0.0], [1.0]]),
    "named": (Ordinal.of(Colour), (0, 1, 2), [[0.0], [1.0], [2.0]]),
    "two": (Choice.of(Colour), (0, 2), [[0.0], [1.0]]),
    "three": (Choice.of(Colour), (0, 1, 2), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
}


@pytest.mark.parametrize("name", SCALES)
def test_points_worked_by_hand(name):
    scale, values, points = SCALES[name]
    listed = scale.over(values)
    assert listed.points.tolist() == points
    assert listed.encode_many(np.array(values)).tolist() == points
    assert [listed.encode(value).tolist() for value in values] == points
    assert [listed.decode(np.array(point)) for point in points] == list(values)
    assert listed.decode_many(np.array(points)).tolist() == list(values)
    low, high = np.array(points).min(axis=0), np.array(points).max(axis=0)
    assert listed.bounds.tolist() == [low.tolist(), high.tolist()]
    assert [scale.parse(scale.word(value)) for value in values] == list(values)


@pytest.mark.parametrize(
    ("scale", "value", "message"),
    [
        (Log2(), 0, "expected a positive whole number, got 0"),
        (Log2(), -4, "expected a positive whole number, got -4"),
        (Integers(least=1), 0, "expected a whole number of at least 1, got 0"),
        (Ordinal((0, 2, 3)), 1, "expected one of 0, 2, 3, got 1"),
        (Choice.of(Colour), 3, "expected one of red, green, blue, got 3"),
    ],
)
def test_a_value_off_the_scale_is_refused(scale, value, message):
    with pytest.raises(InvalidConfigurationError, match=message):
        scale.encode(value)


@pytest.mark.parametrize(
    ("scale", "point", "message"),
    [
        (Log2(), [1.5], "expected the log2 of a whole number, got 1.5"),
        (Log2(), [-1.0], "expected a level from 0 to 62, got -1"),
        (Integers(), [0.5], "expected a whole number of at least 0, got 0.5"),
        (Ordinal((0, 2, 3)), [3.0], "expected an ordinal from 0 to 2, got 3"),
        (Choice.of(Colour), [1.0, 1.0, 0.0], r"expected a 1 among zeros, got \[1.0, 1.0, 0.0\]"),
    ],
)
def test_a_point_off_the_scale_is_refused(scale, point, message):
    with pytest.raises(InvalidConfigurationError, match=message):
        scale.decode(np.array(point))


def test_words_are_refused_in_words():
    with pytest.raises(InvalidConfigurationError, match="expected one of red, green, blue, got 'x"):
        Ordinal.of(Colour).parse("x")
    with pytest.raises(InvalidConfigurationError, match="expected a positive whole number"):
        Log2().parse("x")


@pytest.fixture
def colourful(monkeypatch):
    """An encoding with a choice among three beside sizes: four searched knobs, six columns."""
    colour = Knob("colour", "colour", Choice.of(Colour), "colour", 0, Shown.NEVER, None)
    monkeypatch.setitem(KNOBS, "colour", colour)
    levels = {name: (knob.neutral,) for name, knob in KNOBS.items()}
    levels |= {"dp": (1, 4), "bucket": (64, 128), "zero": (0, 3), "colour": (0, 1, 2)}
    return Encoding(levels)


def test_a_choice_among_three_is_three_columns(colourful):
    assert colourful.labels == (
        "dp_log2", "bucket_log2", "zero_ordinal", "colour_red", "colour_green", "colour_blue",
    )  # fmt: skip
    assert colourful.bounds.tolist() == [[0, 6, 0, 0, 0, 0], [2, 7, 1, 1, 1, 1]]
    assert colourful.ranges["dp_log2"] == (0, 2)
    many = Configurations({"dp": [1, 4, 4], "bucket": 64, "zero": 3, "colour": [2, 0, 1]})
    X = colourful.encode(many)
    assert X.tolist() == [[0, 6, 1, 0, 0, 1], [2, 6, 1, 1, 0, 0], [2, 6, 1, 0, 1, 0]]
    # Positions (0, 0, 1, 2), (1, 0, 1, 0), (1, 0, 1, 1) in the mixed radix 2, 2, 2, 3.
    assert colourful.codes(X).tolist() == [5, 15, 16]
    found = colourful.configurations(X)
    assert found.colour.tolist() == [2, 0, 1]
    assert found.dp.tolist() == [1, 4, 4]
    assert colourful.from_unit(colourful.to_unit(X)).colour.tolist() == [2, 0, 1]
    assert colourful.cells(many)["colour"].tolist() == ["blue", "red", "green"]
    # The nearest of each knob: green leads, and dp lies nearer to 4.
    near = colourful.from_unit(np.array([[0.6, 0.1, 0.2, 0.3, 0.5, 0.2]]))
    assert (near.dp[0], near.bucket[0], near.zero[0], near.colour[0]) == (4, 64, 0, 1)
    with pytest.raises(InvalidConfigurationError, match="row 1, colour: expected a 1 among zeros"):
        colourful.codes([[0, 6, 1, 0, 0, 1], [0, 6, 1, 0, 1, 1]])


def test_a_table_holds_logarithms_words_or_the_values():
    assert Axis(KNOBS["dp"], (2, 8)).cells == (1, 3)
    assert Axis(KNOBS["zero"], (0, 3)).cells == (0, 3)
    colour = Axis(
        Knob("colour", "colour", Ordinal.of(Colour), "colour", 0, Shown.NEVER, None), (0, 2)
    )
    assert colour.cells == ("red", "blue")
    assert colour.positions_in(np.array(["blue", "green", "red"])).tolist() == [1, -1, 0]


def test_sizes_by_ratio_are_any_whole_numbers():
    sizes = Log2().over((1, 3, 24))
    assert sizes.points.ravel().tolist() == [0.0, np.log2(3), np.log2(24)]
    assert sizes.decode(np.array([np.log2(24)])) == 24
    assert sizes.decode(np.array([np.log2(7)])) == 7
    axis = Axis(KNOBS["dp"], (1, 3, 24))
    assert (axis.column, axis.cells) == ("dp_size", (1, 3, 24))
    assert axis.positions_at(sizes.points[[2, 0, 1]]).tolist() == [2, 0, 1]
    assert axis.nearest_positions(np.array([[0.7], [0.9], [3.2]])).tolist() == [0, 1, 2]


def test_0_stands_for_unset_where_a_scale_says_so():
    assert Log2(unset="as before").allows(0)
    assert not Log2().allows(0)
    assert Log2(unset="as before").allows_list((0,))
    assert not Log2(unset="as before").allows_list((0, 1))
