import pytest

from parabolt.frameworks.registry import launch_function, launches
from parabolt.instances.models import load_model
from parabolt.instances.specs import Workload
from parabolt.planner.request import parse_cluster, plan_instance
from parabolt.space.configuration import Configuration

WORK = Workload(8192, 512, micro_batch_size=2, recomputation="layer")
INSTANCE = plan_instance(load_model("qwen3-32b"), parse_cluster("16x4 h100-96gb"), WORK)
PIPELINE = Configuration(dp=4, tp=4, pp=4, sp=4, chunks=2, bucket=256)
SHARDED = Configuration(dp=16, tp=4, sp=4, bucket=64, zero=2)
WHOLE = Configuration(dp=64, bucket=128, zero=3)
RING = Configuration(dp=16, cp=2, tp=2, bucket=128, zero=3)


def flags(framework, configuration):
    found = launch_function(framework)(INSTANCE, configuration)
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
    assert "sp 1 is not possible" in flags("torchtitan", RING).reason


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
