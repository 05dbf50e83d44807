"""Knobs beyond those of the published tables: words, rules worked by hand, and who refuses them."""

import numpy as np
import pytest

from parabolt.costmodel.predictor import CostModel
from parabolt.errors import InstanceError, InvalidConfigurationError
from parabolt.frameworks.registry import launching_framework
from parabolt.instances import search_space
from parabolt.instances.catalogue import load_instance, parse_instance
from parabolt.instances.search_space import SearchSpace
from parabolt.space.configuration import Configuration
from parabolt.space.lazy_lattice import LazyLattice

TEXT = """
name = "new"
[model]
n_layers = 126
n_heads = 24
hidden_size = 3072
ffn_size = 8192
[cluster]
n_gpus = 24
n_hosts = 3
memory_gib = 80
gpu = "h100-80gb"
[workload]
sequence_length = 4096
batch_size = 96
[knobs]
dp = [1, 2, 3, 4, 6, 8, 12, 24]
bucket = [64]
"""


def candidates(knobs, model=""):
    text = TEXT.replace("ffn_size = 8192\n", "ffn_size = 8192\n" + model)
    return list(SearchSpace.lattice(parse_instance(text + knobs, origin="x.toml")).candidates)


def test_words_in_texts_and_files():
    c = Configuration.parse("dp=8 bucket=64 recompute=selective precision=fp8 schedule=zero_bubble")
    assert str(c).endswith("chunks1 recompute=selective precision=fp8 schedule=zero_bubble")
    assert c.as_dict()["precision"] == "fp8"
    assert Configuration.parse(str(c)) == c
    assert Configuration(dp=8, bucket=64, schedule="1f1b") == Configuration(dp=8, bucket=64)
    with pytest.raises(
        InvalidConfigurationError, match="one of fp16, bf16, fp8, mxfp8, nvfp4, got"
    ):
        Configuration.parse("bucket=64 precision=fp7")


def test_any_number_of_gpus():
    found = candidates("tp = [1, 2, 3, 4, 6, 8]\npp = [1, 3]\n")
    assert {(c.dp, c.tp, c.pp) for c in found} == {
        (dp, tp, pp)
        for dp in (1, 2, 3, 4, 6, 8, 12, 24)
        for tp in (1, 2, 3, 4, 6, 8)
        for pp in (1, 3)
        if dp * tp * pp == 24
    }
    # Coordinates are logarithms, so that 3 lies between 2 and 4.
    space = SearchSpace.lattice(parse_instance(TEXT + "pp = [1, 3]\n", origin="x"))
    assert space.rows(space.encoded).tolist() == list(range(len(space)))


def test_layers_in_stages_worked_by_hand():
    """126 layers over 6 stages: 21 each, or 19 and 19 at the ends and 22 in the four between."""
    found = candidates("pp = [6]\nfirst_layers = [0, 19, 20]\nlast_layers = [0, 19, 20]\n")
    # 126 - 19 - 20 = 87, 126 - 19 = 107 and 126 - 20 = 106 do not split; 126 - 40 = 86 neither.
    assert {(c.first_layers, c.last_layers) for c in found} == {(0, 0), (19, 19)}
    two = candidates("pp = [2]\nfirst_layers = [60, 63]\nlast_layers = [63, 66]\n")
    assert {(c.first_layers, c.last_layers) for c in two} == {(60, 66), (63, 63)}
    assert candidates("pp = [1]\n")[0].first_layers == 0


def test_a_split_that_is_none_says_so():
    instance = parse_instance(TEXT + "pp = [1, 6]\nfirst_layers = [0, 20]\n", origin="x")
    with pytest.raises(
        InvalidConfigurationError,
        match="126 layers do not split over 6 stages with 20 in the first stage and an",
    ):
        instance.check(Configuration(dp=4, pp=6, first_layers=20, bucket=64))
    with pytest.raises(InvalidConfigurationError, match="first_layers20 does nothing but where pp"):
        instance.check(Configuration(dp=24, first_layers=20, bucket=64))


def test_experts_are_spread_over_the_ranks_of_a_stage():
    model = "[model.experts]\nn_experts = 16\nn_active = 2\nffn_size = 1024\n"
    found = candidates("tp = [1, 2]\nep = [1, 2, 3, 8, 16]\netp = [1]\n", model)
    # 3 divides no 16 experts; 16 does not divide the 24 ranks.
    assert {(c.dp, c.tp, c.ep) for c in found} == {
        (dp, tp, ep) for dp, tp in ((24, 1), (12, 2)) for ep in (1, 2, 8)
    }
    with_tp = candidates("tp = [1, 2]\nep = [1, 8]\n", model)
    # Without etp experts are split over tp as well: 8 x 2 = 16 does not divide 24.
    assert {(c.tp, c.ep) for c in with_tp} == {(1, 1), (1, 8), (2, 1)}
    assert {c.ep for c in candidates("ep = [1, 2]\n")} == {1}  # a dense model has no experts


def test_parts_of_groups():
    found = candidates("zero = [0, 3]\nshard = [5, 8, 24]\n")
    assert {(c.zero, c.shard) for c in found} == {(3, 8), (3, 24)}
    found = candidates("cp = [1, 2, 4]\nulysses = [1, 2, 3]\n")
    assert {(c.cp, c.ulysses) for c in found} == {(1, 1), (2, 1), (2, 2), (4, 1), (4, 2)}


def test_recomputed_layers_belong_to_recomputation_by_layer():
    found = candidates('recompute = ["none", "selective", "layer"]\nrecompute_layers = [0, 4]\n')
    assert {(c.as_dict().get("recompute"), c.recompute_layers) for c in found} == {
        (None, 0), ("selective", 0), ("layer", 0), ("layer", 4),
    }  # fmt: skip
    with pytest.raises(InstanceError, match="recomputation of the workload or the knob recompute"):
        parse_instance(
            TEXT.replace("batch_size = 96", 'batch_size = 96\nrecomputation = "layer"')
            + 'recompute = ["none", "layer"]\n',
            origin="x",
        )


@pytest.mark.parametrize(
    "knob",
    ["recompute=layer", "ep=2", "precision=fp8", "offload=optimizer", "shard=8 zero=3"],
)
def test_nobody_passes_over_a_knob_in_silence(knob):
    c = Configuration.parse(f"dp=32 bucket=64 {knob}")
    with pytest.raises(InvalidConfigurationError, match="expected a knob that the cost model desc"):
        CostModel(load_instance("pco32")).predict([c])
    launch = launching_framework("nemo").launch(load_instance("pco32"), c)
    assert launch.reason
    assert not launch.flags


def test_fp16_is_predicted_as_bf16():
    """It has the same bytes, and the same peak in every data sheet."""
    model = CostModel(load_instance("pco32"))
    c = Configuration.parse("dp=32 bucket=64 zero=2")
    half = Configuration.parse("dp=32 bucket=64 zero=2 precision=fp16")
    assert model.point([c]) == model.point([half])


def test_a_lattice_that_is_too_large_to_list_is_counted_and_drawn_from():
    knobs = "".join(
        f"{name} = {list(range(1, 61))}\n" for name in ("micro_batch", "chunks", "first_layers")
    )
    instance = parse_instance(
        TEXT.replace("bucket = [64]", f"bucket = {list(range(1, 61))}") + knobs
        + "pp = [1, 2, 3]\nlast_layers = [0]\nrecompute_layers = [0]\n",
        origin="x",
    )  # fmt: skip
    levels = dict(instance.levels)
    space = SearchSpace.sampled(instance, 50, seed=1)
    assert len(space) == 50
    for configuration in space.candidates:
        instance.check(configuration)
    assert np.array_equal(space.encoded, SearchSpace.sampled(instance, 50, seed=1).encoded)
    n = LazyLattice(levels, instance.rules).n
    assert n < 5_000_000
    assert len(SearchSpace.lattice(instance)) == n  # the product is 3 x 10^8


def test_what_is_too_large_says_its_number(monkeypatch):
    monkeypatch.setattr(search_space, "MOST_LISTED", 1000)
    many = list(range(1, 5001))
    text = TEXT.replace("bucket = [64]", f"bucket = {many}") + f"micro_batch = {many}\n"
    text = text.replace("batch_size = 96", "batch_size = 40320")
    # Micro-batches divide 40,320 / dp sequences; each dp has 5,000 buckets.
    n = sum(40320 // 24 % size == 0 for size in many) * 5000
    with pytest.raises(InstanceError, match=f"to list, got {n:,}; try fewer values") as error:
        SearchSpace.lattice(parse_instance(text, origin="x"))
    assert "expected at most 1,000 configurations" in str(error.value)
