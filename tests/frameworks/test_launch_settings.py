import shlex
from dataclasses import replace

import numpy as np
import pytest

from parabolt.errors import SpecError
from parabolt.frameworks.distinct import check_knobs, distinct_launches
from parabolt.frameworks.registry import FRAMEWORKS, launches, launching_framework
from parabolt.instances.catalogue import load_instance
from parabolt.instances.models import load_model
from parabolt.instances.search_space import SearchSpace
from parabolt.instances.specs import Workload
from parabolt.planner.request import parse_cluster, plan_instance
from parabolt.space.configuration import Configuration
from parabolt.space.knobs import KNOBS
from parabolt.space.lattice import enumerate_lattice

WORK = Workload(8192, 512, micro_batch_size=2, recomputation="layer")
INSTANCE = plan_instance(load_model("qwen3-32b"), parse_cluster("16x4 h100-96gb"), WORK)
PIPELINE = Configuration(dp=4, tp=4, pp=4, sp=4, chunks=2, bucket=256)
SHARDED = Configuration(dp=16, tp=4, sp=4, bucket=64, zero=2)
WHOLE = Configuration(dp=64, bucket=128, zero=3)
RING = Configuration(dp=16, cp=2, tp=2, bucket=128, zero=3)


def flags(framework, configuration):
    found = launching_framework(framework).launch(INSTANCE, configuration)
    assert found.version
    assert found.documentation.startswith("https://")
    assert bool(found.flags) != bool(found.reason)
    return found


def test_megatron():
    found = flags("megatron-lm", PIPELINE).flags
    assert "--tensor-model-parallel-size 4" in found
    assert "--pipeline-model-parallel-size 4" in found
    assert "--num-virtual-stages-per-pipeline-rank 2" in found
    assert "--sequence-parallel" in found
    assert "--use-distributed-optimizer" in found
    assert not any("fsdp" in flag for flag in found)
    assert "--num-query-groups 8" in found
    assert "--kv-channels 128" in found
    assert "--micro-batch-size 2" in found
    sharded = flags("megatron-lm", SHARDED).flags
    assert "--data-parallel-sharding-strategy optim_grads" in sharded
    assert "--ddp-bucket-size 64000000" in sharded
    assert (
        "--data-parallel-sharding-strategy optim_grads_params" in flags("megatron-lm", WHOLE).flags
    )


def test_torchtitan():
    found = flags("torchtitan", WHOLE).flags
    assert "--parallelism.data_parallel_shard_degree 64" in found
    assert "--parallelism.fsdp_reshard_after_forward always" in found
    assert "--parallelism.fsdp_reshard_after_forward never" in flags("torchtitan", SHARDED).flags
    assert "optimizer states alone" in flags("torchtitan", PIPELINE).reason
    assert "sp 1 is not tp 2" in flags("torchtitan", RING).reason


def test_deepspeed():
    found = flags("deepspeed", WHOLE).flags
    assert "zero_optimization.stage = 3" in found
    assert "zero_optimization.reduce_bucket_size = 128000000" in found
    assert "gradient_accumulation_steps = 4" in found
    one = Configuration(dp=64, bucket=256)
    assert "zero_optimization.stage = 1" in flags("deepspeed", one).flags
    assert "PipelineModule" in flags("deepspeed", PIPELINE).reason
    assert "sequence parallelism" in flags("deepspeed", SHARDED).reason
    assert "context parallelism" in flags("deepspeed", RING).reason


def test_nemo():
    found = flags("nemo", PIPELINE).flags
    assert "trainer.strategy.virtual_pipeline_model_parallel_size=2" in found
    assert "trainer.num_nodes=16" in found
    assert "trainer.devices=4" in found
    sharded = flags("nemo", SHARDED).flags
    assert "trainer.strategy.ddp.data_parallel_sharding_strategy=optim_grads" in sharded


def arguments(framework, c, instance=INSTANCE):
    """Flags as a dict: the first word, and the rest."""
    found = launching_framework(framework).launch(instance, c)
    assert not found.reason
    return dict([*flag.replace("=", " ").split(), ""][:2] for flag in found.flags)


def test_gradient_accumulation_is_told_by_the_micro_batch():
    """pco16 states no micro-batch: an iteration has pp x grad_accum of them, of 512 sequences."""
    pco16 = load_instance("pco16")
    for pp, accum, size in ((1, 1, 256), (1, 8, 32), (4, 1, 64), (4, 8, 8)):
        c = Configuration(dp=2, tp=8 // pp, pp=pp, sp=8 // pp, bucket=64, grad_accum=accum)
        assert arguments("megatron-lm", c, pco16)["--micro-batch-size"] == str(size)
        assert arguments("nemo", c, pco16)["data.micro_batch_size"] == str(size)
    c = Configuration(dp=16, bucket=64, grad_accum=8)
    told = launching_framework("deepspeed").launch(pco16, c).flags
    assert "train_micro_batch_size_per_gpu = 4" in told
    assert "gradient_accumulation_steps = 8" in told


def test_the_bucket_counts_where_gradients_are_reduced():
    for zero in (0, 2, 3):
        c = Configuration(dp=16, tp=4, sp=4, bucket=64, zero=zero)
        assert arguments("megatron-lm", c)["--ddp-bucket-size"] == "64000000"
        assert "--overlap-grad-reduce" in arguments("megatron-lm", c)
        assert arguments("nemo", c)["trainer.strategy.ddp.bucket_size"] == "64000000"
    alone = Configuration(dp=1, tp=4, pp=16, sp=4, bucket=64)
    assert "--ddp-bucket-size" not in arguments("megatron-lm", alone)


@pytest.mark.parametrize("name", ["megatron-lm", "nemo"])
def test_every_candidate_of_pco16_is_a_run_of_its_own_or_refused_with_a_reason(name):
    """In version 0.1 the 944 candidates were 89 different commands of Megatron-LM."""
    pco16 = load_instance("pco16")
    space = SearchSpace.lattice(pco16)
    configurations = list(space.candidates)
    found = distinct_launches(launching_framework(name), pco16, configurations)
    assert len(configurations) == 944
    assert len(found.runs) + len(found.twins) + len(found.refusals) == 944
    in_part = [i for i, c in enumerate(configurations) if c.sp not in (1, c.tp)]
    assert sorted(found.refusals) == in_part
    assert found.description[0] == (
        f"{len(in_part)} configurations can't be expressed: {found.refusals[in_part[0]].reason}"
    )
    # Twins differ in the bucket alone, and have no ranks to reduce gradients over.
    for row, other in found.twins.items():
        c, d = configurations[row], configurations[other]
        assert c.dp == d.dp == 1
        assert replace(c, bucket=1) == replace(d, bucket=1)


def test_a_command_may_tell_twins_apart():
    torchtitan = launching_framework("torchtitan")
    pair = [replace(WHOLE, bucket=64), WHOLE]
    assert distinct_launches(torchtitan, INSTANCE, pair).twins == {1: 0}
    assert distinct_launches(torchtitan, INSTANCE, pair).description == (
        "1 configuration would be the same launch as another one",
    )
    told = distinct_launches(torchtitan, INSTANCE, pair, command=lambda c: c)
    assert told.runs == (0, 1)
    assert told.description == ()


def test_an_instance_may_not_search_a_knob_that_is_dropped():
    check_knobs(launching_framework("megatron-lm"), INSTANCE)
    with pytest.raises(
        SpecError, match=r"torchtitan has no setting for bucket \(4 sizes\): its gr"
    ):
        check_knobs(launching_framework("torchtitan"), load_instance("pco16"))


def test_a_knob_that_a_framework_does_not_pass_is_never_lost():
    """As a knob is that was added after the framework's file was written."""
    old = replace(
        launching_framework("megatron-lm"), passed=frozenset(KNOBS) - {"grad_accum", "cp"}
    )
    with pytest.raises(SpecError, match=r"no setting for grad_accum \(4 sizes\): parabolt doesn't"):
        check_knobs(old, load_instance("pco16"))  # cp is neutral there
    with pytest.raises(SpecError, match=r"no setting for cp \(\d sizes\): parabolt doesn't pass"):
        check_knobs(old, load_instance("pco32"))
    levels = {**dict(load_instance("pco16").levels), "grad_accum": (4,)}
    fixed = replace(load_instance("pco16"), levels=tuple(levels.items()))
    with pytest.raises(SpecError, match=r"no setting for grad_accum \(1 size\)"):
        check_knobs(old, fixed)


@pytest.mark.parametrize("name", [n for n, f in FRAMEWORKS.items() if f.settings])
def test_rules_agree_on_one_configuration_and_on_columns(name):
    framework, pco16 = launching_framework(name), load_instance("pco16")
    lattice = enumerate_lattice(dict(pco16.levels), pco16.rules)
    for rule in framework.rules(pco16):
        holds = np.broadcast_to(rule.holds(lattice), len(lattice))
        for row in range(0, len(lattice), 7):
            c = lattice[row]
            assert bool(rule.holds(c)) == holds[row]
            if not holds[row]:
                assert len(rule.reason(c)) > 10


@pytest.mark.parametrize(
    ("name", "c", "reason"),
    [
        ("megatron-lm", Configuration(dp=8, tp=8, sp=4, bucket=64), "sp 4 is neither 1 nor tp 8"),
        ("megatron-lm", Configuration(dp=4, tp=16, bucket=64), "16 does not divide the 8 key-val"),
        ("megatron-lm", Configuration(dp=64, pp=1, cp=1, bucket=64), ""),
        ("torchtitan", Configuration(dp=8, tp=8, sp=4, bucket=64, zero=3), "sp 4 is not tp 8"),
        ("deepspeed", Configuration(dp=8, tp=8, bucket=64, zero=3), "tp 8 with ZeRO 3: AutoTP"),
    ],
)
def test_what_cannot_be_expressed_has_a_reason(name, c, reason):
    found = launching_framework(name).launch(INSTANCE, c)
    assert reason in found.reason
    assert bool(found.reason) == bool(reason)
    assert bool(found.rule) == bool(reason)


def test_experts_and_latent_attention():
    cluster = parse_cluster("16x4 h100-96gb")
    deepseek = plan_instance(load_model("deepseek-v3"), cluster, WORK)
    found = arguments("megatron-lm", Configuration(dp=64, bucket=64, zero=3), deepseek)
    assert found["--num-experts"] == "256"
    assert found["--moe-router-topk"] == "8"
    assert found["--moe-ffn-hidden-size"] == "2048"
    assert found["--moe-shared-expert-intermediate-size"] == "2048"
    assert "--multi-latent-attention" in found
    assert (found["--q-lora-rank"], found["--kv-lora-rank"]) == ("1536", "512")
    assert (found["--qk-head-dim"], found["--qk-pos-emb-head-dim"]) == ("128", "64")
    assert "--kv-channels" not in found
    layers = found["--moe-layer-freq"].strip("'")
    assert layers == "([0]*3+[1]*58)"
    mixtral = plan_instance(load_model("mixtral-8x7b"), cluster, WORK)
    found = arguments("megatron-lm", Configuration(dp=64, bucket=64), mixtral)
    assert (found["--num-experts"], found["--moe-router-topk"]) == ("8", "2")
    assert "--moe-layer-freq" not in found
    alone = Configuration(dp=16, tp=4, bucket=64)
    assert "tp 4 with experts needs sequence parallelism" in (
        launching_framework("megatron-lm").launch(mixtral, alone).reason
    )
    assert not launching_framework("megatron-lm").launch(mixtral, replace(alone, sp=4)).reason


def test_experts_in_every_second_layer():
    model = replace(load_model("mixtral-8x7b"), n_layers=7)
    experts = replace(model.experts, n_dense_layers=2, every=2)
    instance = plan_instance(replace(model, experts=experts), parse_cluster("16x4 h100-96gb"), WORK)
    found = launching_framework("megatron-lm").launch(instance, Configuration(dp=64, bucket=64))
    flag = next(flag for flag in found.flags if flag.startswith("--moe-layer-freq"))
    expression = shlex.split(flag)[1]
    assert eval(expression) == [0, 0, 0, 1, 0, 1, 0]
    assert sum(eval(expression)) == instance.model.n_expert_layers


def test_micro_batches_that_stages_do_not_divide():
    """Batch 512 of micro-batches of 2 on 64 replicas: 4 micro-batches, for 8 stages of 2 chunks."""
    instance = plan_instance(load_model("qwen3-32b"), parse_cluster("128x4 h100-96gb"), WORK)
    c = Configuration(dp=64, pp=8, bucket=64, chunks=2)
    assert "chunks 2 needs micro-batches that pp 8 divides, and there are 4" in (
        launching_framework("megatron-lm").launch(instance, c).reason
    )
    assert not launching_framework("megatron-lm").launch(instance, replace(c, chunks=1)).reason


@pytest.mark.parametrize("c", [PIPELINE, SHARDED, WHOLE, RING])
def test_each_says_either_how_or_why_not(c):
    found = launches(INSTANCE, c)
    assert [launch.framework for launch in found] == [
        "Megatron-LM",
        "torchtitan",
        "DeepSpeed",
        "NeMo",
    ]
    for launch in found:
        assert launch.as_dict()["is_expressible"] == bool(launch.flags)
    assert found[0].flags
