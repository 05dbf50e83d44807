import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabolt.errors import InvalidConfigurationError
from parabolt.space.configuration import Configuration, are_configurations
from parabolt.space.knobs import KNOBS

powers = st.integers(0, 14).map(lambda k: 1 << k)
configurations = st.builds(
    Configuration,
    dp=powers,
    tp=powers,
    pp=powers,
    cp=powers,
    sp=powers,
    bucket=powers,
    zero=st.sampled_from((0, 2, 3)),
    chunks=powers,
    grad_accum=powers,
)


def test_prints_as_in_the_field():
    configuration = Configuration(dp=16, tp=4, sp=4, bucket=64, zero=2)
    assert str(configuration) == "dp16 tp4 pp1 cp1 sp4 bucket64 zero2 chunks1"
    accumulated = Configuration(dp=16, bucket=64, grad_accum=4)
    assert str(accumulated) == "dp16 tp1 pp1 cp1 sp1 bucket64 zero0 chunks1 grad_accum4"


@given(configurations)
def test_text_and_dict_and_pickle_give_it_back(configuration):
    assert Configuration.parse(str(configuration)) == configuration
    assert Configuration.from_dict(configuration.as_dict()) == configuration
    assert pickle.loads(pickle.dumps(configuration)) == configuration
    assert hash(Configuration.parse(str(configuration))) == hash(configuration)


@given(configurations, configurations)
def test_order_is_lexicographic_in_the_canonical_knob_order(one, other):
    def key(c):
        return [getattr(c, name) for name in KNOBS]

    assert (one < other) == (key(one) < key(other))
    assert (one == other) == (key(one) == key(other))


def test_parse_takes_both_spellings_and_any_order():
    expected = Configuration(dp=32, bucket=256, zero=2)
    for text in ("dp=32 zero=2 bucket=256", "bucket256 dp32 zero2", "dp=32,zero=2,bucket=256"):
        assert Configuration.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dp=32 zero=2", "expected a size for bucket, got none; try bucket=256"),
        ("dp=32 bucket=256 zero=4", "zero: expected one of 0, 1, 2, 3, got 4"),
        ("dp=0 bucket=256", "dp: expected a positive whole number, got 0"),
        ("dp=-2 bucket=256", "dp: expected a positive whole number, got -2"),
        ("dp=2 dp=4 bucket=256", "expected each knob once, got dp twice"),
        ("xp=2 bucket=256", "got xp"),
        ("dp=2.5 bucket=256", "expected knob=size, got 'dp=2.5'"),
        ("hello", "expected knob=size, got 'hello'"),
        ("", "expected a size for bucket"),
    ],
)
def test_parse_refuses_in_words(text, message):
    with pytest.raises(InvalidConfigurationError, match=message):
        Configuration.parse(text)


@pytest.mark.parametrize("size", [2.0, True, "2", None])
def test_sizes_are_ints(size):
    with pytest.raises(InvalidConfigurationError, match="dp: expected an int"):
        Configuration(dp=size, bucket=64)


def test_tells_configurations_from_rows():
    assert are_configurations([Configuration(bucket=64)])
    assert not are_configurations([[1.0, 2.0]])
    assert not are_configurations("dp2")
