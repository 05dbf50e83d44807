"""Megatron-LM's arguments as its own parser takes them.

The table holds name, type and choices of `megatron/training/arguments.py` in the autumn of 2025;
the fields that they set are those of the configuration classes in megatron-core 0.14.0. Megatron's
training code isn't on PyPI, and imports CUDA extensions.
"""

import argparse
import shlex

import pytest

from parabolt.frameworks.registry import launching_framework
from parabolt.instances.catalogue import load_instance
from parabolt.instances.models import load_model
from parabolt.instances.search_space import SearchSpace
from parabolt.instances.specs import Instance, Workload
from parabolt.planner.request import parse_cluster, plan_instance
from parabolt.space.configuration import Configuration

WHOLE = [
    "tensor-model-parallel-size",
    "pipeline-model-parallel-size",
    "context-parallel-size",
    "num-virtual-stages-per-pipeline-rank",
    "ddp-bucket-size",
    "seq-length",
    "max-position-embeddings",
    "global-batch-size",
    "micro-batch-size",
    "num-layers",
    "hidden-size",
    "ffn-hidden-size",
    "num-attention-heads",
    "kv-channels",
    "num-query-groups",
    "num-experts",
    "moe-router-topk",
    "moe-ffn-hidden-size",
    "moe-shared-expert-intermediate-size",
    "q-lora-rank",
    "kv-lora-rank",
    "qk-head-dim",
    "qk-pos-emb-head-dim",
    "v-head-dim",
    "mtp-num-layers",
    "recompute-num-layers",
    "expert-model-parallel-size",
    "expert-tensor-parallel-size",
    "num-distributed-optimizer-instances",
    "decoder-first-pipeline-num-layers",
    "decoder-last-pipeline-num-layers",
    "cpu-offloading-num-layers",
]
SWITCHES = [
    "use-distributed-optimizer",
    "sequence-parallel",
    "overlap-grad-reduce",
    "overlap-param-gather",
    "use-megatron-fsdp",
    "no-gradient-accumulation-fusion",
    "bf16",
    "fp16",
    "tp-comm-overlap",
    "optimizer-cpu-offload",
    "use-precision-aware-optimizer",
    "account-for-embedding-in-pipeline-split",
    "account-for-loss-in-pipeline-split",
    "group-query-attention",
    "swiglu",
    "untie-embeddings-and-output-weights",
    "multi-latent-attention",
]
CHOICES = {
    "data-parallel-sharding-strategy": ["no_shard", "optim", "optim_grads", "optim_grads_params"],
    "ckpt-format": ["torch", "torch_dist", "zarr", "torch_dcp", "fsdp_dtensor"],
    "recompute-granularity": ["full", "selective"],
    "recompute-method": ["uniform", "block"],
    "cp-comm-type": ["p2p", "a2a", "allgather", "a2a+p2p"],
    "fp8-format": ["e4m3", "hybrid"],
    "fp8-recipe": ["tensorwise", "delayed", "mxfp8", "blockwise"],
    "fp4-format": ["e2m1"],
}


@pytest.fixture(scope="module")
def parser():
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for name in WHOLE:
        parser.add_argument(f"--{name}", type=int)
    for name in SWITCHES:
        parser.add_argument(f"--{name}", action="store_true")
    for name, choices in CHOICES.items():
        parser.add_argument(f"--{name}", choices=choices)
    parser.add_argument("--hierarchical-context-parallel-sizes", nargs="+", type=int)
    parser.add_argument("--pipeline-model-parallel-layout")
    parser.add_argument(
        "--moe-layer-freq", type=lambda text: eval(text) if "[" in text else int(text)
    )
    return parser


def parse(parser, instance, configuration):
    is_megatron = instance.dialect.startswith("megatron-lm")
    name = instance.dialect if is_megatron else "megatron-lm"
    found = launching_framework(name).launch(instance, configuration)
    if found.reason:
        return None
    return parser.parse_args([word for flag in found.flags for word in shlex.split(flag)])


@pytest.mark.parametrize("name", ["pco16", "pco32", "pco64"])
def test_every_candidate_is_parsed_to_what_was_meant(parser, name):
    instance = load_instance(name)
    n_gpus, batch = instance.cluster.n_gpus, instance.workload.batch_size
    n_parsed = 0
    for c in SearchSpace.lattice(instance).candidates:
        if (told := parse(parser, instance, c)) is None:
            continue
        n_parsed += 1
        model = told.tensor_model_parallel_size * told.pipeline_model_parallel_size
        assert n_gpus // (model * told.context_parallel_size) == c.dp
        assert told.sequence_parallel == (c.sp > 1)
        assert (told.num_virtual_stages_per_pipeline_rank or 1) == c.chunks
        assert told.ddp_bucket_size == (c.bucket * 10**6 if c.dp * c.cp > 1 else None)
        assert told.micro_batch_size * c.dp * c.pp * c.grad_accum == told.global_batch_size == batch
        assert told.use_megatron_fsdp == (c.zero > 0) == (told.ckpt_format == "fsdp_dtensor")
        assert told.overlap_param_gather <= told.overlap_grad_reduce
    assert n_parsed > 300


@pytest.mark.parametrize("recomputation", ["none", "layer", "chunk"])
@pytest.mark.parametrize("name", ["llama3-8b", "deepseek-v3", "mixtral-8x7b", "gpt-oss-120b"])
def test_models_of_every_kind(parser, name, recomputation):
    model = load_model(name)
    work = Workload(4096, 512, micro_batch_size=1, recomputation=recomputation)
    instance = plan_instance(model, parse_cluster("16x4 h100-96gb"), work)
    told = parse(parser, instance, Configuration(dp=64, bucket=64, zero=3))
    assert told.num_layers == model.n_layers
    assert (told.num_experts is None) == (model.experts is None)
    assert told.multi_latent_attention == (model.latent_attention is not None)
    assert told.recompute_granularity == (None if recomputation == "none" else "full")
    whole = model.n_layers
    assert told.recompute_num_layers == {"none": None, "layer": 1, "chunk": whole}[recomputation]
    if isinstance(told.moe_layer_freq, list):
        assert len(told.moe_layer_freq) == model.n_layers


#: A configuration of 64 GPUs, and what it sets beyond the layout.
FURTHER = {
    "dp=64 recompute=selective": {"recompute_granularity": "selective"},
    "dp=64 recompute=layer recompute_layers=5": {
        "recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": 5,
    },
    "dp=16 pp=4 chunks=2 recompute=chunk": {
        "recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 6,
        "num_virtual_stages_per_pipeline_rank": 2,
    },
    "dp=64 precision=fp16": {"bf16": False, "fp16": True},
    "dp=64 precision=fp8": {"fp8_format": "hybrid"},
    "dp=64 precision=mxfp8": {"fp8_format": "e4m3", "fp8_recipe": "mxfp8"},
    "dp=64 precision=nvfp4": {"fp4_format": "e2m1"},
    "dp=64 ep=8 etp=1": {"expert_model_parallel_size": 8, "expert_tensor_parallel_size": 1},
    "dp=64 zero=3 shard=8": {
        "num_distributed_optimizer_instances": 8, "use_distributed_optimizer": True,
        "use_megatron_fsdp": True, "data_parallel_sharding_strategy": "optim_grads_params",
        "no_gradient_accumulation_fusion": True, "ckpt_format": "fsdp_dtensor",
        "overlap_param_gather": True,
    },
    "dp=64 overlap_grad=off": {"overlap_grad_reduce": False},
    "dp=32 tp=2 sp=2 overlap_tp=on": {"sequence_parallel": True, "tp_comm_overlap": True},
    "dp=64 offload=activations": {
        "optimizer_cpu_offload": True, "use_precision_aware_optimizer": True,
        "cpu_offloading_num_layers": 47,
    },
    "dp=16 cp=4 ulysses=4": {"cp_comm_type": "a2a"},
    "dp=16 cp=4 ulysses=2": {
        "cp_comm_type": "a2a+p2p", "hierarchical_context_parallel_sizes": [2, 2],
    },
    "dp=16 pp=4 first_layers=9 last_layers=9": {
        "decoder_first_pipeline_num_layers": 9, "decoder_last_pipeline_num_layers": 9,
    },
}  # fmt: skip


@pytest.mark.parametrize("text", FURTHER)
def test_knobs_beyond_the_layout(parser, text):
    c = Configuration.parse(f"{text} bucket=64")
    levels = {name: (int(getattr(c, name)),) for name in c.as_dict()}
    instance = Instance(
        "x", load_model("qwen3-30b-a3b"), parse_cluster("8x8 b200"),
        Workload(4096, 512, micro_batch_size=1), tuple(levels.items()), dialect="megatron-lm@0.16",
    )  # fmt: skip
    instance.check(c)
    told = vars(parse(parser, instance, c))
    neutral = vars(parse(parser, instance, Configuration(dp=64, bucket=64, zero=0)))
    layout = {"tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"}
    changed = {
        name: value
        for name, value in told.items()
        if value != neutral[name] and name not in layout and name != "use_distributed_optimizer"
    }
    expected = dict(FURTHER[text])
    expected.pop("use_distributed_optimizer", None)
    assert changed == expected


@pytest.mark.parametrize(
    ("pp", "chunks", "first", "last", "flags"),
    [
        # 126 layers, an embedding and an output over 8 x 8: two in each, one in the outermost.
        (8, 8, 15, 15, ["--account-for-embedding-in-pipeline-split",
                        "--account-for-loss-in-pipeline-split"]),
        (8, 1, 15, 15, ["--decoder-first-pipeline-num-layers 15",
                        "--decoder-last-pipeline-num-layers 15"]),
        (2, 2, 0, 63, []),
        (2, 2, 62, 64, ["--decoder-first-pipeline-num-layers 62",
                        "--decoder-last-pipeline-num-layers 64"]),
    ],
)  # fmt: skip
def test_layers_at_the_ends(pp, chunks, first, last, flags):
    model = load_model("llama3-405b")
    c = Configuration(
        tp=8, pp=pp, chunks=chunks, first_layers=first, last_layers=last, bucket=64, sp=8
    )
    work = Workload(8192, 64, micro_batch_size=1)
    knobs = {name: (int(value),) for name, value in c.as_dict().items() if name != "recompute"}
    cluster = parse_cluster(f"{pp}x8 h100")
    instance = plan_instance(model, cluster, work, knobs=knobs, dialect="megatron-lm")
    launch = launching_framework("megatron-lm").launch(instance, c)
    if flags:
        instance.check(c)
        own = ("--decoder", "--account", "--pipeline-model-parallel-layout")
        assert [flag for flag in launch.flags if flag.startswith(own)] == flags
    else:  # the 63 of the first stage are no two chunks
        assert "126 layers do not split over pp x chunks = 2 x 2" in launch.reason


def test_a_layout_of_all_virtual_stages():
    """DeepSeek V3 over 2 x 8 as Megatron-Bridge has it: 4 layers in each, 1 beside the output."""
    model = load_model("deepseek-v3")
    c = Configuration(dp=32, pp=2, chunks=8, last_layers=29, bucket=64, ep=32, etp=1)
    work = Workload(4096, 64, micro_batch_size=1)
    knobs = {name: (int(value),) for name, value in c.as_dict().items()}
    instance = plan_instance(
        model, parse_cluster("8x8 b200"), work, knobs=knobs, dialect="megatron-bridge"
    )
    instance.check(c)
    launch = launching_framework("megatron-lm").launch(instance, c)
    stages = "|".join(["tttt"] * 15)
    assert f"--pipeline-model-parallel-layout 'E{stages}|tmL'" in launch.flags
