"""Micro-batches and ZeRO stages: what a knob says, what the workload says, and what follows."""

from dataclasses import replace

import numpy as np
import pytest

from parabolt.costmodel.predictor import CostModel
from parabolt.costmodel.terms import memory
from parabolt.errors import InstanceError, InvalidConfigurationError
from parabolt.instances.catalogue import parse_instance
from parabolt.instances.micro_batches import micro_batch_size, n_micro_batches
from parabolt.instances.search_space import SearchSpace
from parabolt.instances.specs import Workload
from parabolt.space.configuration import Configuration
from parabolt.space.configurations import Configurations

TEXT = """
name = "micro"
[model]
n_layers = 8
n_heads = 8
hidden_size = 512
ffn_size = 2048
vocabulary = 32000
[cluster]
n_gpus = 8
n_hosts = 1
memory_gib = 80
gpu = "h100-80gb"
[workload]
sequence_length = 2048
batch_size = 48
[knobs]
dp = [1, 2, 4, 8]
tp = [1, 2, 4]
pp = [1, 2]
micro_batch = [1, 2, 3]
bucket = [64]
zero = [0, 1]
"""


@pytest.fixture
def instance():
    return parse_instance(TEXT, origin="x.toml")


@pytest.mark.parametrize(
    ("work", "knobs", "n", "size"),
    [
        # 48 sequences over dp 4: 12 for a replica; 6 micro-batches of 2.
        (Workload(64, 48), {"dp": 4, "pp": 2, "micro_batch": 2}, 6, 2),
        # Nothing stated: pp x grad_accum = 6 micro-batches of 2.
        (Workload(64, 48), {"dp": 4, "pp": 2, "grad_accum": 3}, 6, 2),
        # The workload states 3 sequences: 4 micro-batches; the knob says otherwise.
        (Workload(64, 48, micro_batch_size=3), {"dp": 4, "pp": 2}, 4, 3),
        (Workload(64, 48, micro_batch_size=3), {"dp": 4, "micro_batch": 1}, 12, 1),
    ],
)
def test_micro_batches_worked_by_hand(work, knobs, n, size):
    one = Configuration(bucket=64, **knobs)
    assert (n_micro_batches(work, one), micro_batch_size(work, one)) == (n, size)
    many = Configurations({**{k: [v, v] for k, v in knobs.items()}, "bucket": 64})
    assert n_micro_batches(work, many).tolist() == [n, n]
    assert micro_batch_size(work, many).tolist() == [size, size]


def test_the_lattice_splits_the_batch_evenly(instance):
    found = list(SearchSpace.lattice(instance).candidates)
    expected = [
        Configuration(dp=dp, tp=tp, pp=pp, micro_batch=micro, bucket=64, zero=zero)
        for dp in (1, 2, 4, 8)
        for tp in (1, 2, 4)
        for pp in (1, 2)
        for zero in (0, 1)
        for micro in (1, 2, 3)
        if dp * tp * pp == 8 and 48 % (dp * micro) == 0
    ]
    assert found == expected
    # dp, tp, pp: 1 4 2, 2 2 2, 2 4 1, 4 1 2, 4 2 1, 8 1 1; each dp x 3 divides 48.
    assert len(found) == 6 * 2 * 3


def test_a_batch_that_does_not_split_says_so(instance):
    with pytest.raises(InvalidConfigurationError, match="dp 8 x micro-batch 3 does not divide the"):
        replace(instance, workload=Workload(2048, 40)).check(
            Configuration(dp=8, micro_batch=3, bucket=64)
        )


def test_accumulation_follows_from_the_micro_batch():
    instance = parse_instance(TEXT + "grad_accum = [1, 2]\n", origin="x.toml")
    wrong = Configuration(dp=4, tp=2, micro_batch=1, grad_accum=2, bucket=64)
    with pytest.raises(
        InvalidConfigurationError, match="grad_accum2 does nothing but where micro_batch is unset"
    ):
        instance.check(wrong)


def test_a_micro_batch_is_stated_once():
    with pytest.raises(InstanceError, match="micro_batch_size of the workload or the knob micro_b"):
        parse_instance(
            TEXT.replace("batch_size = 48", "batch_size = 48\nmicro_batch_size = 1"), origin="x"
        )


def test_unset_is_not_searched_beside_sizes():
    with pytest.raises(InstanceError, match=r"levels of micro_batch: expected .* got \[0, 1\]"):
        parse_instance(TEXT.replace("micro_batch = [1, 2, 3]", "micro_batch = [0, 1]"), origin="x")


def test_the_columns_of_sizes_that_are_no_powers_of_two(instance):
    encoding = instance.encoding
    assert [axis.column for axis in encoding.axes] == [
        "log2_dp_size", "log2_tp_size", "log2_pp_size", "zero_stage", "micro_batch_size",
    ]  # fmt: skip
    assert encoding.ranges["micro_batch_log2"] == (0.0, np.log2(3))
    c = Configuration(dp=8, micro_batch=3, bucket=64)
    X = encoding.encode([c])
    assert X.tolist() == [[3, 0, 0, 0, np.log2(3)]]
    assert encoding.decode(X) == [c]
    assert encoding.cells(Configurations.of([c]))["micro_batch_size"].tolist() == [3]
    near = X + 0.1
    with pytest.raises(InvalidConfigurationError, match="dp_size: expected the log2 of a whole"):
        encoding.codes(near)


@pytest.mark.parametrize(
    ("zero", "stated", "acts"),
    [
        ([0, 2, 3], "", {0: 1, 2: 2, 3: 3}),  # as in the published tables
        ([0, 1, 2, 3], "", {0: 0, 1: 1, 2: 2, 3: 3}),
        ([0], "\nis_optimizer_sharded = false", {0: 0}),
        ([0], "\nis_optimizer_sharded = true", {0: 1}),
        ([0, 1], "\nis_optimizer_sharded = false", {0: 0, 1: 1}),
    ],
)
def test_the_zero_stage_that_acts(zero, stated, acts):
    text = TEXT.replace("zero = [0, 1]", f"zero = {zero}")
    instance = parse_instance(
        text.replace("batch_size = 48", "batch_size = 48" + stated), origin="x.toml"
    )
    assert {stage: instance.zero_stage(stage) for stage in acts} == acts
    column = np.array(list(acts))
    assert instance.zero_stage(column).tolist() == list(acts.values())


def test_zero_0_can_not_be_two_things():
    with pytest.raises(InstanceError, match="expected ZeRO 0 that shards nothing where ZeRO 1"):
        parse_instance(
            TEXT.replace("batch_size = 48", "batch_size = 48\nis_optimizer_sharded = true"),
            origin="x",
        )


def test_the_cost_model_takes_the_knob_as_the_workload(instance):
    """The same run, its micro-batch stated by the knob and by the workload."""
    stated = replace(
        instance,
        workload=replace(instance.workload, micro_batch_size=2),
        levels=tuple((k, v) for k, v in instance.levels if k != "micro_batch"),
    )
    by_knob = CostModel(instance).predict([Configuration(dp=4, pp=2, micro_batch=2, bucket=64)])
    by_workload = CostModel(stated).predict([Configuration(dp=4, pp=2, bucket=64)])
    assert by_knob.step_time_s[0] == by_workload.step_time_s[0]
    assert by_knob.peak_memory_gib[0] == by_workload.peak_memory_gib[0]


def test_zero_1_saves_optimizer_states_and_nothing_else(instance):
    x = CostModel(instance).layout(
        [Configuration(dp=8, micro_batch=1, bucket=64, zero=zero) for zero in (0, 1)]
    )
    states = memory.optimizer_states(x)
    assert states[0] == 8 * states[1]
    for term in (memory.weights, memory.gradients, memory.shard_copies):
        values = term(x)
        assert values[0] == values[1]
