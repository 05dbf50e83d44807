"""What each framework and version accepts, by hand and against rules written a second time."""

import itertools
from dataclasses import replace

import pytest

from parabolt.errors import InstanceError, InvalidConfigurationError
from parabolt.frameworks.registry import launches, launching_framework
from parabolt.instances.catalogue import instance_document, instance_from_document, load_instance
from parabolt.instances.cluster_words import parse_cluster
from parabolt.instances.model_shape import ModelShape
from parabolt.instances.models import load_model
from parabolt.instances.search_space import SearchSpace
from parabolt.instances.specs import Instance, Workload
from parabolt.space.configuration import Configuration

#: 12 layers, 8 heads, 2 key-value heads.
MODEL = ModelShape(12, 8, 1024, 4096, n_kv_heads=2, vocabulary=32_000)
WORK = Workload(4096, 48, micro_batch_size=1)


def instance(dialect, levels=(), model=MODEL, cluster="2x8 h100", work=WORK):
    levels = {"bucket": (64,), **dict(levels)}
    return Instance(
        "x", model, parse_cluster(cluster), work, tuple(levels.items()), dialect=dialect
    )


#: Dialect, what it refuses, and words of the reason; all is of 16 GPUs.
REFUSED = [
    ("megatron-lm@0.14", "dp=4 tp=4 sp=4", "tp 4 does not divide the 2 key-value heads"),
    ("megatron-lm@0.15", "dp=4 tp=4 sp=4", "tp 4 does not divide the 2 key-value heads"),
    ("megatron-bridge", "dp=4 tp=4 sp=4", "tp 4 does not divide the 2 key-value heads"),
    ("megatron-lm", "dp=2 pp=8", "12 layers do not split over 8 stages"),
    ("megatron-lm", "dp=4 pp=4 chunks=2", "12 layers do not split over pp x chunks = 4 x 2"),
    ("megatron-lm", "dp=8 pp=2 schedule=zero_bubble", "its schedules are 1F1B and interleaved"),
    ("megatron-lm", "dp=8 tp=2 overlap_tp=on", "overlap_tp=on needs sequence parallelism"),
    ("megatron-lm", "dp=8 pp=2 offload=activations", "without pipeline stages and recomputation"),
    ("megatron-lm", "dp=4 cp=4 ulysses=4", "tp x ulysses = 1 x 4 does not divide the 2 key-value"),
    ("torchtitan", "dp=8 tp=2 zero=2", "sp 1 is not tp 2"),
    ("torchtitan", "dp=1 pp=16 zero=0", "12 layers are too few for 16 stages"),
    ("torchtitan", "dp=8 pp=2 zero=3 chunks=5", "never make 10 virtual stages"),
    ("torchtitan", "dp=16 zero=3 precision=nvfp4", "it converts to fp8 and mxfp8"),
    (
        "torchtitan",
        "dp=8 pp=2 zero=3 schedule=zero_bubble",
        "needs several chunks, and chunks is 1",
    ),
    ("torchtitan", "dp=16 zero=1", "not optimizer states alone"),
    ("deepspeed", "dp=8 pp=2", "pipeline stages need a model written as a PipelineModule"),
    ("deepspeed", "dp=16 zero=3 precision=fp8", "precision=fp8: its formats are fp16 and bf16"),
    ("deepspeed", "dp=16 zero=1 shard=8", "zero_hpz_partition_size is of stage 3"),
    ("deepspeed", "dp=8 cp=2", "ring context parallelism does not exist"),
    ("fsdp2", "dp=16 zero=1", "which is 2 or 3"),
    ("fsdp2", "dp=8 tp=2 zero=3", "tensor parallelism is another part of PyTorch"),
    ("nanotron", "dp=16 zero=2", "ZeRO 2: its stages are 0 and 1"),
    ("nanotron", "dp=8 pp=2 chunks=2", "one model chunk per stage"),
    ("megatron-deepspeed", "dp=8 pp=2 zero=2", "goes only without pipeline stages"),
    ("megatron-deepspeed", "dp=8 tp=2 sp=2", "no sequence parallelism"),
]
ACCEPTED = [
    ("megatron-lm@0.16", "dp=4 tp=4 sp=4"),
    ("megatron-bridge@0.16", "dp=2 tp=8"),
    ("megatron-lm", "dp=4 pp=4 chunks=3"),
    ("torchtitan", "dp=2 pp=8 zero=3"),  # 12 layers over 8 stages: four have two
    ("torchtitan", "dp=8 pp=2 zero=3 chunks=3 schedule=zero_bubble"),
    ("deepspeed", "dp=8 cp=2 ulysses=2 zero=3"),
    ("deepspeed", "dp=16 zero=3 shard=8 offload=optimizer"),
    ("fsdp2", "dp=16 zero=3 shard=8"),
    ("nanotron", "dp=2 pp=8"),
    ("megatron-deepspeed", "dp=2 pp=8 zero=1"),
    ("nemo", "dp=8 tp=2 recompute=selective"),
]


def one(dialect, text):
    """A configuration, and the instance that lists its values and the neutral ones alone."""
    c = Configuration.parse(f"{text} bucket=64")
    cluster = "2x8 b200" if "precision" in text else "2x8 h100"
    stated = Configuration.parse(f"{text} bucket=64").as_dict()
    levels = {name: (int(getattr(c, name)),) for name in (*stated, "bucket")}
    return c, instance(dialect, levels, cluster=cluster)


@pytest.mark.parametrize(("dialect", "text", "reason"), REFUSED)
def test_what_a_framework_refuses(dialect, text, reason):
    c, found = one(dialect, text)
    with pytest.raises(InvalidConfigurationError, match=reason):
        found.check(c)


@pytest.mark.parametrize(("dialect", "text"), ACCEPTED)
def test_what_a_framework_accepts(dialect, text):
    c, found = one(dialect, text)
    found.check(c)


def divides(a, b):
    return b % a == 0


#: Rules of 16 GPUs, 12 layers, 8 heads and 2 key-value heads, written a second time.
TWICE = {
    "megatron-lm@0.14": lambda dp, tp, pp, cp, sp, zero, chunks: (
        tp <= 2 and sp in (1, tp) and divides(pp * chunks, 12)
        and (chunks == 1 or divides(pp, 48 // dp))
    ),
    "megatron-lm@0.16": lambda dp, tp, pp, cp, sp, zero, chunks: (
        sp in (1, tp) and divides(pp * chunks, 12) and (chunks == 1 or divides(pp, 48 // dp))
    ),
    "torchtitan": lambda dp, tp, pp, cp, sp, zero, chunks: (
        tp <= 2 and sp == tp and pp * chunks <= 12 and zero != 1
        and (48 // dp >= pp if chunks == 1 else (48 // dp) % max(48 // dp // pp, 1) == 0)
    ),
    "nanotron": lambda dp, tp, pp, cp, sp, zero, chunks: (
        tp <= 2 and sp in (1, tp) and zero <= 1 and chunks == 1
    ),
    "deepspeed": lambda dp, tp, pp, cp, sp, zero, chunks: (
        pp == cp == sp == 1 and (tp == 1 or zero < 3)
    ),
    "fsdp2": lambda dp, tp, pp, cp, sp, zero, chunks: (
        tp == pp == cp == 1 and (zero >= 2 or dp == 1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("dialect", TWICE)
def test_a_dialect_against_rules_written_a_second_time(dialect):
    levels = {
        "dp": (1, 2, 4, 8, 16), "tp": (1, 2, 4, 8), "pp": (1, 2, 4, 8, 16), "cp": (1, 2),
        "sp": (1, 2, 4), "zero": (0, 1, 2, 3), "chunks": (1, 2),
    }  # fmt: skip
    expected = {
        values
        for values in itertools.product(*levels.values())
        if (by := dict(zip(levels, values, strict=True)))
        and by["dp"] * by["tp"] * by["pp"] * by["cp"] == 16
        and divides(by["sp"], by["tp"])
        and (by["chunks"] == 1 or by["pp"] > 1)
        and (by["zero"] == 0 or by["dp"] * by["cp"] > 1)
        and divides(by["dp"], 48)
        and TWICE[dialect](**by)
    }
    found = SearchSpace.lattice(instance(dialect, levels)).candidates
    assert {tuple(getattr(c, name) for name in levels) for c in found} == expected
    assert len(found) == len(expected) > 1


def test_a_dialect_is_stored_with_its_version():
    found = instance("megatron-lm@0.16")
    document = instance_document(found)
    assert document["dialect"] == "megatron-lm@0.16"
    assert instance_from_document(document, origin="x") == found


@pytest.mark.parametrize(
    ("dialect", "message"),
    [
        ("megatron-lm@0.2", "unknown version of Megatron-LM '0.2': expected one of core 0.13"),
        ("gpt-neox", "unknown dialect 'gpt-neox': expected one of any, bolt, deepspeed"),
        (3, "dialect: expected a name, got 3"),
    ],
)
def test_a_dialect_that_is_none(dialect, message):
    with pytest.raises(InstanceError, match=message):
        instance(dialect)


def test_launch_settings_are_those_of_the_dialect():
    c = Configuration(dp=4, tp=4, sp=4, bucket=64)
    for dialect, version, reason in (
        ("bolt", "core 0.14", "tp 4 does not divide the 2 key-value heads"),
        ("megatron-lm@0.15", "core 0.15", "tp 4 does not divide the 2 key-value heads"),
        ("megatron-lm@0.16", "core 0.16", ""),
    ):
        launch, *others = launches(instance(dialect), c)
        assert len(others) == (3 if dialect == "bolt" else 0)
        assert (launch.framework, launch.version) == ("Megatron-LM", version)
        assert launch.reason == reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"is_frozen": True}, "frozen weights"), ({"sequences": "packed"}, "packed sequences")],
)
def test_what_no_launch_settings_say(fields, reason):
    pco32 = load_instance("pco32")
    found = launches(
        replace(pco32, workload=replace(pco32.workload, **fields)), Configuration(dp=32, bucket=64)
    )
    assert len(found) == 4
    for launch in found:
        assert reason in launch.reason
        assert not launch.flags


def test_megatron_is_not_told_a_hybrid_as_a_transformer():
    hybrid = replace(load_instance("pco32"), model=load_model("nemotron3-nano"))
    by_name = {
        launch.framework: launch for launch in launches(hybrid, Configuration(dp=32, bucket=64))
    }
    assert "state-space layers" in by_name["Megatron-LM"].reason
    assert by_name["NeMo"].reason == ""


#: Framework, a configuration of 16 GPUs, and what is told beyond the settings of the neutral one.
TOLD = [
    ("torchtitan", "dp=16 zero=3 recompute=selective", [
        "--activation_checkpoint.mode selective", "--activation_checkpoint.selective_ac_option op",
    ]),
    ("torchtitan", "dp=16 zero=3 shard=4", [
        "--parallelism.data_parallel_replicate_degree 4",
        "--parallelism.data_parallel_shard_degree 4",
    ]),
    ("torchtitan", "dp=16 zero=3 ep=8 etp=1", [
        "--parallelism.expert_parallel_degree 8", "--parallelism.expert_tensor_parallel_degree 1",
    ]),
    ("deepspeed", "dp=16 zero=3 shard=8", ["zero_optimization.zero_hpz_partition_size = 8"]),
    ("deepspeed", "dp=16 zero=3 precision=fp16", ["fp16.enabled = true"]),
    ("deepspeed", "dp=16 zero=3 overlap_grad=off", ["zero_optimization.overlap_comm = false"]),
    ("deepspeed", "dp=16 zero=3 offload=activations", [
        "zero_optimization.offload_optimizer.device = cpu",
        "activation_checkpointing.cpu_checkpointing = true",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), TOLD)
def test_settings_of_further_knobs(name, text, expected):
    neutral = Configuration.parse("dp=16 zero=3 bucket=64")
    framework = launching_framework(name)
    before = framework.launch(instance(name), neutral).flags
    told = framework.launch(instance(name), Configuration.parse(f"{text} bucket=64"))
    assert told.reason == ""
    assert [flag for flag in told.flags if flag not in before] == expected


def test_a_schedule_without_bubble():
    c = Configuration(dp=8, pp=2, zero=3, chunks=3, bucket=64, schedule="zero_bubble")
    launch = launching_framework("torchtitan").launch(instance("torchtitan"), c)
    assert "--parallelism.pipeline_parallel_schedule InterleavedZeroBubble" in launch.flags
