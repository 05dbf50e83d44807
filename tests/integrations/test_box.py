import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parabolt
from parabolt.integrations.box import CandidateBox

PCO64 = parabolt.load_problem("pco64")


def test_names_sizes_and_levels():
    box = CandidateBox(PCO64.space)
    assert box.sizes["zero"] == [0, 2, 3]
    assert box.sizes["bucket"] == [64, 128, 256, 512]
    assert list(box.levels) == [
        "dp_log2", "tp_log2", "pp_log2", "cp_log2", "sp_log2", "bucket_log2", "zero_ordinal",
        "chunks_log2",
    ]  # fmt: skip
    assert box.levels["dp_log2"] == (1, 6)
    assert "grad_accum" not in box.sizes


@given(st.integers(0, 779))
def test_a_candidate_is_itself(row):
    box = CandidateBox(PCO64.space)
    for placed in (box.place_sizes(box.sizes_of(row)), box.place_levels(box.levels_of(row))):
        assert placed.row == row
        assert placed.is_candidate
        assert placed.configuration == PCO64.space.candidates[row]


@given(st.data())
def test_any_other_point_is_the_nearest_candidate_and_says_so(data):
    box = CandidateBox(PCO64.space)
    sizes = {name: data.draw(st.sampled_from(values)) for name, values in box.sizes.items()}
    placed = box.place_sizes(sizes)
    lower, upper = PCO64.instance.encoding.bounds
    distances = np.linalg.norm(
        (PCO64.space.encoded - box.encode(sizes)) / (upper - lower), axis=1
    ).round(9)
    # One of them where several are equally near: the last digits of the sums decide.
    assert distances[placed.row] == distances.min()
    assert placed.is_candidate == (distances.min() == 0.0)


def test_names_must_be_right():
    box = CandidateBox(PCO64.space)
    for wrong in ({"dp": 2}, {**box.sizes_of(0), "x": 1}):
        with pytest.raises(parabolt.InvalidConfigurationError, match="expected a value for each"):
            box.place_sizes(wrong)
    with pytest.raises(
        parabolt.InvalidConfigurationError, match="expected a positive whole number"
    ):
        box.place_sizes({**box.sizes_of(0), "dp": 0})


@pytest.mark.parametrize("size", [2.5, float("nan"), float("inf"), True, None, [2]])
def test_a_size_is_a_whole_number(size):
    box = CandidateBox(PCO64.space)
    with pytest.raises(parabolt.InvalidConfigurationError, match="dp: expected a whole number"):
        box.place_sizes({**box.sizes_of(0), "dp": size})
    sizes = box.sizes_of(0)
    assert box.place_sizes({k: np.float32(v) for k, v in sizes.items()}).row == 0
