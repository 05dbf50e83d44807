import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parabolt
from parabolt.errors import InvalidConfigurationError
from parabolt.instances.catalogue import load_instance
from parabolt.instances.search_space import SearchSpace
from parabolt.space import encoding as encoding_module
from parabolt.space.configuration import Configuration
from parabolt.space.configurations import Configurations
from parabolt.space.encoding import Encoding, RowIndex
from parabolt.space.knobs import KNOBS


@pytest.mark.parametrize("name", ["pco16", "pco32", "pco64"])
def test_decode_inverts_encode_on_the_whole_lattice(name):
    space = SearchSpace.lattice(load_instance(name))
    encoding = space.instance.encoding
    assert np.array_equal(encoding.encode(list(space.candidates)), space.encoded)
    assert encoding.decode(space.encoded) == list(space.candidates)


def test_no_searched_knob_is_a_space_of_one():
    encoding = Encoding({name: (max(knob.neutral or 1, 0),) for name, knob in KNOBS.items()})
    one = encoding.from_unit(np.zeros((3, 0)))
    assert len(one) == 3
    assert encoding.codes_of(one).tolist() == [0, 0, 0]
    assert encoding.codes(np.zeros((2, 0))).tolist() == [0, 0]


def test_a_hand_worked_row():
    encoding = load_instance("pco64").encoding
    best = Configuration(dp=16, tp=4, sp=4, bucket=64, zero=2)
    assert encoding.encode([best]).tolist() == [[4, 2, 0, 0, 2, 6, 1, 0]]
    assert encoding.bounds.tolist() == [[1, 0, 0, 0, 0, 6, 0, 0], [6, 2, 4, 2, 2, 9, 2, 2]]


def test_codes_are_distinct_and_ascend_with_lexicographic_order():
    space = SearchSpace.lattice(load_instance("pco64"))
    codes = space.instance.encoding.codes(space.encoded)
    assert (np.diff(codes) > 0).all()
    assert codes.max() < space.instance.encoding.n_codes


@pytest.mark.parametrize("name", ["pco16", "pco32", "pco64"])
def test_from_codes_inverts_codes(name):
    space = SearchSpace.lattice(load_instance(name))
    encoding = space.instance.encoding
    found = encoding.from_codes(encoding.codes(space.encoded))
    assert list(found) == list(space.candidates)
    assert np.array_equal(encoding.codes_of(found), encoding.codes(space.encoded))


@given(st.data())
@settings(max_examples=60)
def test_code_of_one_and_codes_of_many_agree(data):
    encoding = load_instance("pco64").encoding
    sizes = data.draw(st.tuples(*[st.integers(0, 7)] * 8))
    configuration = Configuration(
        dp=1 << sizes[0], tp=1 << sizes[1], pp=1 << sizes[2], cp=1 << sizes[3], sp=1 << sizes[4],
        bucket=64 << sizes[5], zero=(0, 2, 3)[sizes[6] % 3], chunks=1 << sizes[7],
    )  # fmt: skip
    X = encoding.encode([configuration])
    assert encoding.codes(X)[0] == encoding.code(configuration)
    assert encoding.codes_of(Configurations.of([configuration]))[0] == encoding.code(configuration)


def test_off_constant_has_no_code_and_does_not_encode():
    encoding = load_instance("pco64").encoding
    accumulated = Configuration(dp=64, bucket=64, grad_accum=2)
    assert encoding.code(accumulated) == -1
    with pytest.raises(InvalidConfigurationError, match="grad_accum is fixed at 1"):
        encoding.encode([accumulated])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 2.0]], r"expected encoded rows of shape \(n, 8\) .* got shape \(1, 2\)"),
        ([4, 2, 0, 0, 2, 6, 1, 0], r"got shape \(8,\)"),
        ([[4, 2, 0, 0, 2, 6.5, 1, 0]], "row 0, log2_dp_bucket_size_mb: expected a whole level"),
        ([[np.nan, 2, 0, 0, 2, 6, 1, 0]], "expected finite levels"),
        ([[np.inf, 2, 0, 0, 2, 6, 1, 0]], "expected finite levels"),
        ([["a"] * 8], "expected numbers, got dtype"),
        ([[4, 2, 0, 0, 2, 6, 3, 0]], "zero_stage: expected an ordinal from 0 to 2, got 3"),
        ([[4, 2, 0, 0, -1, 6, 1, 0]], "log2_sp_size: expected a level from 0 to 62, got -1"),
    ],
)
def test_rows_off_the_lattice_are_refused(rows, message):
    with pytest.raises(InvalidConfigurationError, match=message):
        load_instance("pco64").encoding.decode(np.array(rows))


def test_knobs_with_one_size_are_constants():
    levels = dict(load_instance("pco32").levels) | {"zero": (2,)}
    encoding = Encoding(levels)
    assert encoding.constants["zero"] == 2
    assert encoding.constants["grad_accum"] == 1
    assert "zero" not in [k.name for k in encoding.knobs]
    assert encoding.decode([[5, 0, 0, 0, 0, 8, 0]])[0].zero == 2


@given(st.sets(st.integers(0, 10_000), min_size=1, max_size=50), st.integers(-1, 10_000))
def test_row_index_by_array_and_by_bisection_agree(codes, asked):
    order = np.array(sorted(codes))[::-1].copy()
    dense = RowIndex(order, 10_001)
    limit, encoding_module._DENSE_CODES = encoding_module._DENSE_CODES, 1
    try:
        sparse = RowIndex(order, 10_001)
    finally:
        encoding_module._DENSE_CODES = limit
    expected = order.tolist().index(asked) if asked in codes else -1
    assert dense.row(asked) == sparse.row(asked) == expected
    questions = np.array([asked, order[0], -1])
    assert dense.rows(questions).tolist() == sparse.rows(questions).tolist()


def test_search_space_answers_and_refuses():
    space = parabolt.load_problem("pco32").space
    candidate = space.candidates[17]
    assert space.row(candidate) == 17
    assert space.rows([candidate, space.candidates[3]]).tolist() == [17, 3]
    assert space.rows(space.encoded[[5, 2]]).tolist() == [5, 2]
    assert space.candidates[-1] == space.candidates[len(space) - 1]
    assert space.candidates[2:4] == [space.candidates[2], space.candidates[3]]
    with pytest.raises(parabolt.MissingConfigurationError, match="not among its 379 candidates"):
        space.row(Configuration(dp=2, pp=8, cp=2, bucket=64))
    with pytest.raises(InvalidConfigurationError, match="ZeRO stage 3"):
        space.row(Configuration(dp=8, pp=4, zero=3, bucket=64))


def test_search_space_refuses_bad_candidates():
    instance = load_instance("pco32")
    rows = parabolt.load_problem("pco32").space.encoded
    with pytest.raises(InvalidConfigurationError, match="distinct candidates, got row 2 twice"):
        SearchSpace(instance, rows[[0, 1, 0]])
    with pytest.raises(InvalidConfigurationError, match="got none"):
        SearchSpace(instance, rows[:0])
    with pytest.raises(InvalidConfigurationError, match="bucket 2048 is not among"):
        SearchSpace(instance, [[5, 0, 0, 0, 0, 11, 0, 0]])


def test_codes_beyond_int64_are_exact():
    """With 12 knobs of 60 values each there are 2 x 10^21 codes."""
    names = [
        "dp", "tp", "pp", "cp", "bucket", "chunks", "micro_batch", "recompute_layers", "ep", "etp",
        "first_layers", "last_layers",
    ]  # fmt: skip
    values = {name: tuple(range(1, 61)) for name in names}
    encoding = Encoding({name: values.get(name, (knob.neutral,)) for name, knob in KNOBS.items()})
    assert encoding.n_codes == 60**12 > 2**63
    rng = np.random.default_rng(0)
    positions = rng.integers(60, size=(500, 12))
    positions[1] = [*positions[0][:-1], (positions[0][-1] + 1) % 60]  # one apart
    found = encoding.at(positions)
    codes = encoding.codes_of(found)
    order = [name for name in KNOBS if name in values]
    assert codes.tolist() == [
        sum((getattr(c, name) - 1) * 60 ** (11 - i) for i, name in enumerate(order)) for c in found
    ]
    assert encoding.from_codes(codes) == found
    index = RowIndex(codes, encoding.n_codes)
    assert index.rows(codes).tolist() == list(range(500))
    assert [index.row(encoding.code(c)) for c in found] == list(range(500))
    assert index.row(encoding.code(Configuration(bucket=1))) == -1
    assert index.row(-1) == -1
    off = encoding.codes_of(Configurations({"dp": [61, 1], "bucket": 1, "tp": 1, "zero": 2}))
    assert off.tolist() == [-1, -1]
