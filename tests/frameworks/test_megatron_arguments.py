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
from parabolt.instances.specs import Workload
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
]
SWITCHES = [
    "use-distributed-optimizer",
    "sequence-parallel",
    "overlap-grad-reduce",
    "overlap-param-gather",
    "use-megatron-fsdp",
    "no-gradient-accumulation-fusion",
    "bf16",
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
    parser.add_argument(
        "--moe-layer-freq", type=lambda text: eval(text) if "[" in text else int(text)
    )
    return parser


def parse(parser, instance, configuration):
    found = launching_framework("megatron-lm").launch(instance, configuration)
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
