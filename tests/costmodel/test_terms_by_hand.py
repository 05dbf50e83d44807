"""Every term of time and memory against figures worked by hand, for two hosts of four GPUs.

Calibration absorbs constant factors, so accuracy on a table does not show a wrong one; these do.

The model: 12 layers, hidden size 1000, 10 query heads and 2 key-value heads of width 100, inner
size 3000 with a gate, two embedding tables of 50,000 x 1000. A layer's matrices have 1.4 (queries,
keys, values), 1 (projection), 6 (into the block) and 3 (out of it) million parameters: P = 11.4e6.
The workload: 64 sequences of 500 tokens, 32,000 tokens, in micro-batches of 2 sequences.
The machine: 100 TFLOP/s and 1000 GB/s per GPU, 200 GB/s within a host, 10 GB/s per network card,
4 and 30 microseconds per message.
"""

from dataclasses import replace

import numpy as np
import pytest

from parabolt.costmodel.predictor import CostModel
from parabolt.costmodel.step_time import TIME_TERMS
from parabolt.costmodel.terms.crash import CRASH_FEATURES, crash_features
from parabolt.costmodel.terms.memory import (
    MEMORY_TERMS,
    active_features,
    last_stage_shares,
    memory_features,
    peak_bytes,
)
from parabolt.instances.model_shape import ModelShape
from parabolt.instances.specs import Cluster, Workload
from parabolt.outcome import GIB
from parabolt.planner.request import plan_instance
from parabolt.space.configuration import Configuration

MODEL = ModelShape(
    n_layers=12, n_heads=10, n_kv_heads=2, hidden_size=1000, ffn_size=3000, vocabulary=50_000
)
CLUSTER = Cluster(
    8, 2, 80, peak_bf16_tflops=100, hbm_gb_per_s=1000, intra_host_gb_per_s=200,
    inter_host_gb_per_s=10, intra_host_latency_us=4, inter_host_latency_us=30,
)  # fmt: skip
WORK = Workload(500, 64, micro_batch_size=2)

#: A replica in each host, without ZeRO: dp 2 across hosts, tp 2 and cp 2 within.
REPLICAS = Configuration(dp=2, tp=2, cp=2, bucket=64)
#: A pipeline stage in each host, two chunks of three layers each, sequence parallelism.
STAGES = Configuration(tp=4, pp=2, sp=4, chunks=2, bucket=64)
#: A ring of attention across hosts, ZeRO 2.
RING = Configuration(tp=4, cp=2, bucket=64, zero=2)
#: Eight data ranks in two hosts, ZeRO 2 and 3.
SHARDED_GRADIENTS = Configuration(dp=8, bucket=64, zero=2)
SHARDED_WEIGHTS = Configuration(dp=8, bucket=64, zero=3)


def layout(configuration, cluster=CLUSTER, **work):
    instance = plan_instance(MODEL, cluster, replace(WORK, **work))
    return CostModel(instance).layout([configuration])


def worked_out(terms, x):
    """The terms of a layout that are not zero."""
    values = {term.name: float(term.of(x)[0]) for term in terms}
    return {name: value for name, value in values.items() if value}


def test_time_of_replicas_in_their_hosts():
    # 16,000 tokens per replica: 16 micro-batches of 1000 tokens, 500 per context rank, so t = 8000.
    # Parameters of a GPU: (12 x 11.4e6 + 2 x 50e6) / 2 = 118.4e6. Three forward-equivalents.
    assert worked_out(TIME_TERMS, layout(REPLICAS)) == pytest.approx(
        {
            # 3 x 2 x 11.4e6 x 12 x 8000 / 2 FLOPs = 3.2832e12, at 1e14 per second.
            "matmul": 0.032832,
            # The same for each halving; tp 2 halves once.
            "tensor_shards": 0.032832,
            # 3.5 x 2 x 500 x 1000 x 12 x 8000 / 2 = 1.68e11.
            "attention": 0.00168,
            # 6 x 50e6 x 8000 / 2 = 1.2e12.
            "logits": 0.012,
            # 16 x 11.4e6 weights, 8000 x 2 x (2 x 1000 + 2 x 200 + 3 x 3000) activations: 364.8e6;
            # in 3 passes through 12 layers over 2 ranks: 6.5664e9 numbers of 2 bytes.
            "kernel_io": 0.0131328,
            # 3 x 12 x 8 x 8000 x 1000 = 2.304e9 numbers of 2 bytes, in full on both tensor ranks.
            "norm_io": 0.004608,
            # 3 x 12 x 16 passes x 12 kernels x 4 us = 27.648 ms beside 45.9648 ms of kernels:
            # 27.648^2 / 73.6128 ms.
            "launch": 0.010384225,
            # 2 x 2 x 12 = 48 collectives; a ring of two ranks sends 2 x 1/2 x 16e6 bytes at 200e9.
            "tensor_bandwidth": 48 * 80e-6,
            "tensor_sync": 48 * 16 * 200e-6,
            # 1 step x 3 passes x 12 layers; 8000 x 2 x 200 / 2 numbers are 3.2e6 bytes: 16 us.
            "context_bandwidth": 36 * 16e-6,
            "context_sync": 36 * 16 * 200e-6,
            # 4 ranks share a parameter, two in each host, which leave it through two cards: 20e9.
            # 3/4 of 118.4e6 x (4 + 2) bytes = 532.8e6.
            "data_bandwidth": 0.02664,
            # 1 % of 3.2832e12 / 1e14 s for each of two doublings.
            "data_skew": 0.00065664,
            # 118.4e6 / 4 parameters x (2 x 12 + 4 + 2) bytes = 888e6.
            "optimizer": 0.000888,
            "fixed": 0.01,
        }
    )


def test_time_of_a_pipeline_stage_in_each_host():
    # One replica: 32 micro-batches of 1000 tokens, t = 32,000; 6 layers per stage.
    # Idle: 1 slot of 2 x 32, so 1/64. Parameters: (6 x 11.4e6 + 50e6) / 4 = 29.6e6.
    assert worked_out(TIME_TERMS, layout(STAGES)) == pytest.approx(
        {
            # 3 x 2 x 11.4e6 x 6 x 32,000 / 4 FLOPs.
            "matmul": 0.032832,
            # tp 4 halves twice, and idle time counts: x 2 x 65/64.
            "tensor_shards": 0.06669,
            "attention": 0.00168,
            "logits": 0.024,
            # (32 x 11.4e6 + 32,000 x 2 x 11,400) x 3 x 6 / 4 = 4.9248e9 numbers.
            "kernel_io": 0.0098496,
            # 3 x 6 x 8 x 32,000 x 1000 / 4 = 1.152e9 numbers: sequence parallelism shares them.
            "norm_io": 0.002304,
            # 27.648 ms of launches beside 42.6816 ms: 27.648^2 / 70.3296 ms.
            "launch": 0.010868993,
            # (32.832 + 1.68) ms / 64.
            "bubble": 0.00053925,
            # 2 x 2 x 6 x 65/64 = 24.375 collectives of 2 x 3/4 x 64e6 bytes at 200e9.
            "tensor_bandwidth": 24.375 * 480e-6,
            "tensor_sync": 24.375 * 32 * 200e-6,
            # 2 x 2 x (32 + 1) messages to the other host: 1000 x 1000 x 2 / 4 bytes at 10e9.
            "pipeline_bandwidth": 132 * 50e-6,
            "pipeline_sync": 132 * 200e-6,
            "optimizer": 0.000888,
            "fixed": 0.01,
        }
    )


def test_time_of_ring_attention_across_hosts():
    # 32 micro-batches, 500 tokens per context rank, t = 16,000; 236.8e6 / 4 = 59.2e6 parameters.
    found = worked_out(TIME_TERMS, layout(RING))
    # 16,000 x 2 x 200 / 4 numbers are 3.2e6 bytes, at 10e9: 320 us for each of 36 steps.
    assert found["context_bandwidth"] == pytest.approx(36 * 320e-6)
    assert found["context_contention"] == pytest.approx(36 * 320e-6)
    assert found["context_sync"] == pytest.approx(36 * 32 * 200e-6)
    # Two ranks share a parameter, one card each. Half of 32 x 4 x 59.2e6 bytes of gradients and of
    # 2 x 59.2e6 bytes of weights, at 10e9.
    assert found["zero2_bandwidth"] == pytest.approx(0.37888 + 0.00592)
    # A bucket of 64e6 x 4 parameters overshoots by (1.4^2 + 1 + 6^2 + 3^2) / (2 x 11.4) = 2.1035e6
    # on average: 258.1035 / 11.4 = 22.64066 layers, of which one hides its own gradients.
    assert found["zero2_span"] == pytest.approx(0.37888 * (1 - 1 / 22.64066))
    # 32 x 12 / 22.64066 rings of one message.
    assert found["zero2_buckets"] == pytest.approx(16.96064 * 30e-6)
    assert found["data_skew"] == pytest.approx(0.01 * 0.032832)
    assert "data_bandwidth" not in found
    # Alone with eight context ranks, nobody shares the network without ZeRO.
    alone = Configuration(cp=8, bucket=64, zero=2)
    steps = 7 * 36 * 4000 * 2 * 200 * 2 / 10e9
    assert worked_out(TIME_TERMS, layout(alone))["context_contention"] == pytest.approx(steps)
    assert "context_contention" not in worked_out(TIME_TERMS, layout(replace(alone, zero=0)))


def test_time_of_sharded_gradients():
    # Four ranks of eight in each host leave it through four cards: 40e9. 4 micro-batches.
    found = worked_out(TIME_TERMS, layout(SHARDED_GRADIENTS))
    # 7/8 of 4 x 4 x 236.8e6 bytes, and of 2 x 236.8e6.
    assert found["zero2_bandwidth"] == pytest.approx(0.08288 + 0.01036)
    # 66.1035 / 11.4 = 5.798553 layers in a bucket.
    assert found["zero2_span"] == pytest.approx(0.08288 * (1 - 1 / 5.798553))
    assert found["zero2_buckets"] == pytest.approx(48 / 5.798553 * 7 * 30e-6)
    assert found["data_skew"] == pytest.approx(3 * 0.01 * 0.032832)
    assert not found.keys() & {"data_bandwidth", "zero3_bandwidth", "zero3_layers"}
    assert not any(name.startswith(("tensor", "context", "pipeline", "bubble")) for name in found)


def test_a_bucket_smaller_than_a_layer_waits_for_nothing():
    x = layout(replace(SHARDED_GRADIENTS, bucket=4))
    assert "zero2_span" not in worked_out(TIME_TERMS, x)
    # 4e6 and the overshoot: 6.1035 / 11.4 of a layer.
    assert worked_out(TIME_TERMS, x)["zero2_buckets"] == pytest.approx(48 / 0.535396 * 7 * 30e-6)


def test_time_of_sharded_weights():
    found = worked_out(TIME_TERMS, layout(SHARDED_WEIGHTS))
    # 7/8 of 4 x (2 x 2 + 4) x 236.8e6 bytes at 40e9.
    assert found["zero3_bandwidth"] == pytest.approx(0.16576)
    # 3 x 4 x 12 rings of 7 messages.
    assert found["zero3_layers"] == pytest.approx(144 * 7 * 30e-6)
    assert not found.keys() & {"data_bandwidth", "zero2_bandwidth", "zero2_span", "zero2_buckets"}
    inside = layout(replace(SHARDED_WEIGHTS, dp=4, tp=2))
    # Four ranks, two in each host: still the network's latency.
    assert worked_out(TIME_TERMS, inside)["zero3_layers"] == pytest.approx(288 * 3 * 30e-6)
    one_host = layout(replace(SHARDED_WEIGHTS, dp=4), replace(CLUSTER, n_gpus=4, n_hosts=1))
    assert worked_out(TIME_TERMS, one_host)["zero3_layers"] == pytest.approx(288 * 3 * 4e-6)
    # 3/4 of 8 x 8 x 236.8e6 bytes at 200e9.
    assert worked_out(TIME_TERMS, one_host)["zero3_bandwidth"] == pytest.approx(0.056832)


def test_recomputation_adds_a_forward_pass():
    """Compute, ring attention and traffic grow by a third, all-reduces by a half, logits not."""
    before, after = (
        worked_out(TIME_TERMS, layout(REPLICAS, recomputation=how)) for how in ("none", "layer")
    )
    ratio = {name: after[name] / before[name] for name in before}
    assert ratio["attention"] == pytest.approx(4.5 / 3.5)
    for name in ("matmul", "tensor_shards", "kernel_io", "norm_io", "launch", "data_skew"):
        assert ratio[name] == pytest.approx(4 / 3)
    for name in ("context_bandwidth", "context_sync"):
        assert ratio[name] == pytest.approx(4 / 3)
    for name in ("tensor_bandwidth", "tensor_sync"):
        assert ratio[name] == pytest.approx(3 / 2)
    for name in ("logits", "data_bandwidth", "optimizer", "fixed"):
        assert ratio[name] == 1.0


def test_time_of_attention_that_is_not_fused():
    # 10 heads x 500 scores x 12 layers x 8000 tokens / 2 ranks; 3 passes x 8 times 2 bytes each.
    found = worked_out(TIME_TERMS, layout(REPLICAS, is_attention_fused=False))
    assert found["attention_scores"] == pytest.approx(3 * 8 * 240e6 * 2 / 1e12)


def test_time_of_an_optimizer_that_is_not_sharded():
    # 118.4e6 parameters of 30 bytes; ZeRO shards the states in any case: 59.2e6 / 2.
    whole = worked_out(TIME_TERMS, layout(REPLICAS, is_optimizer_sharded=False))
    assert whole["optimizer"] == pytest.approx(0.003552)
    sharded = worked_out(TIME_TERMS, layout(RING, is_optimizer_sharded=False))
    assert sharded["optimizer"] == pytest.approx(0.000888)


def test_a_ring_of_tensor_ranks_across_hosts():
    # Eight ranks, four in each host: 2 x 7/8 x 64e6 bytes at 40e9 are 2.8 ms.
    wide = worked_out(TIME_TERMS, layout(Configuration(tp=8, bucket=64)))
    assert wide["tensor_bandwidth"] == pytest.approx(48 * 2.8e-3)


def test_a_group_in_a_host_of_meshed_links_has_its_share_of_them():
    # Each of four GPUs has three links of 200e9 / 3. A pair uses one of them, four ranks all.
    meshed = replace(CLUSTER, gpu="mi300x")
    pair = worked_out(TIME_TERMS, layout(REPLICAS, meshed))
    assert pair["tensor_bandwidth"] == pytest.approx(48 * 3 * 80e-6)
    four = worked_out(TIME_TERMS, layout(STAGES, meshed))
    assert four["tensor_bandwidth"] == pytest.approx(24.375 * 480e-6)


def test_memory_of_replicas_in_their_hosts():
    # 118.4e6 parameters that 4 ranks share; 500 tokens per micro-batch and context rank.
    assert worked_out(MEMORY_TERMS, layout(REPLICAS)) == pytest.approx(
        {
            "weights": 2 * 118.4e6,
            "gradients": 4 * 118.4e6,
            "optimizer_states": 12 * 29.6e6,
            # Widths 2 x 1000 + 3 x 1000 + 3 x 200 + 3 x 3000 = 14,600, 2 bytes each, over tp 2.
            "activations": 12 * 500 * 29_200 / 2,
            # Input and middle of each layer, whole on every tensor rank: 4 x 1000 bytes per token.
            "residuals": 12 * 500 * 4000,
            # 2 + 4 + 4 bytes for each of 500 x 50,000 logits, over tp 2.
            "logits": 125e6,
            "overhead": 2**30,
        }
    )
    whole = worked_out(MEMORY_TERMS, layout(REPLICAS, is_optimizer_sharded=False))
    assert whole["optimizer_states"] == 12 * 118.4e6
    # Scores, their softmax and a mask: 5 bytes for each of 10 x 500 per token.
    unfused = worked_out(MEMORY_TERMS, layout(REPLICAS, is_attention_fused=False))
    assert unfused["activations"] == 12 * 500 * (29_200 + 25_000) / 2


def test_memory_of_sharded_states():
    ring = worked_out(MEMORY_TERMS, layout(RING))
    assert ring["weights"] == 2 * 59.2e6
    assert ring["gradients"] == 4 * 29.6e6
    assert ring["optimizer_states"] == 12 * 29.6e6
    assert ring["shard_copies"] == 8 * 29.6e6
    # The bucket is larger than all gradients, 59.2e6, and than a table's shard, 12.5e6.
    assert ring["bucket_buffers"] == 4 * 59.2e6 + 8 * 12.5e6
    gradients = worked_out(MEMORY_TERMS, layout(SHARDED_GRADIENTS))
    assert gradients["bucket_buffers"] == 4 * 64e6 + 8 * 50e6
    assert "gathered_weights" not in gradients
    small = worked_out(MEMORY_TERMS, layout(replace(SHARDED_GRADIENTS, bucket=32)))
    assert small["bucket_buffers"] == 4 * 32e6
    weights = worked_out(MEMORY_TERMS, layout(SHARDED_WEIGHTS))
    assert weights["weights"] == 2 * 29.6e6
    assert weights["gradients"] == 4 * 29.6e6
    assert weights["optimizer_states"] == 12 * 29.6e6
    assert weights["shard_copies"] == 8 * 29.6e6
    # Two layers and both tables, as weights and as gradients of 2 bytes.
    assert weights["gathered_weights"] == 4 * (2 * 11.4e6 + 2 * 50e6)
    assert weights["bucket_buffers"] == 8 * 50e6
    # Tensor ranks share what is gathered.
    split = worked_out(MEMORY_TERMS, layout(replace(SHARDED_WEIGHTS, dp=4, tp=2)))
    assert split["gathered_weights"] == 2 * (2 * 11.4e6 + 2 * 50e6)


def test_memory_of_an_interleaved_pipeline():
    # Per layer and micro-batch of 1000 tokens: 29,200 / 4 and, with sequence parallelism, 4000 / 4
    # bytes per token. The first stage holds 2 x 2 passes and pp - 1 more, of 3 layers each; the
    # last one both earlier passes of its first chunk and the one it works on: 3 of 5.
    x = layout(STAGES)
    assert worked_out(MEMORY_TERMS, x) == pytest.approx(
        {
            "weights": 2 * 29.6e6,
            "gradients": 4 * 29.6e6,
            "optimizer_states": 12 * 29.6e6,
            "activations": 5 * 3 * 7.3e6,
            "residuals": 5 * 3 * 1e6,
            "logits": 125e6,
            "overhead": 2**30,
        }
    )
    assert last_stage_shares(x)[0] == pytest.approx([0.0, 0.6, 0.6])
    # Without interleaving: 2 passes of 6 layers on the first stage, one on the last.
    plain = layout(replace(STAGES, chunks=1))
    assert worked_out(MEMORY_TERMS, plain)["activations"] == pytest.approx(2 * 6 * 7.3e6)
    assert last_stage_shares(plain)[0] == pytest.approx([0.0, 0.5, 0.5])


def test_memory_of_recomputation():
    # Kept is one layer, or the 3 layers of a chunk, without the activation function's output:
    # 23,200 / 4 bytes per token. The first stage's 5 passes keep an input and a middle per layer or
    # chunk; of these the one that is worked on counts as residual stream.
    layer = layout(STAGES, recomputation="layer")
    found = worked_out(MEMORY_TERMS, layer)
    assert found["activations"] == pytest.approx(5.8e6)
    assert found["residuals"] == pytest.approx(1e6)
    assert found["checkpoints"] == pytest.approx((5 * 3 - 1) * 1e6)
    assert last_stage_shares(layer)[0] == pytest.approx([9 / 14, 0.0, 0.0])
    chunk = layout(STAGES, recomputation="chunk")
    found = worked_out(MEMORY_TERMS, chunk)
    assert found["activations"] == pytest.approx(3 * 5.8e6)
    assert found["residuals"] == pytest.approx(3e6)
    assert found["checkpoints"] == pytest.approx((5 - 1) * 1e6)
    assert last_stage_shares(chunk)[0] == pytest.approx([3 / 4, 0.0, 0.0])


@pytest.mark.parametrize(
    ("recomputation", "logit_coefficient", "above_the_states"),
    [
        ("none", 0.3, 124.5e6),  # first stage: 109.5e6 + 15e6; last: 37.5e6 + 0.6 x 124.5e6
        ("none", 1.0, 125e6 + 0.6 * 124.5e6),
        ("layer", 1.0, 125e6 + 9e6),  # first stage: 5.8e6 + 1e6 + 14e6
        ("chunk", 0.1, 17.4e6 + 3e6 + 4e6),  # last stage: 12.5e6 + 3e6
    ],
)
def test_the_peak_is_that_of_the_heavier_stage(recomputation, logit_coefficient, above_the_states):
    x = layout(STAGES, recomputation=recomputation)
    coefficients = np.ones(len(MEMORY_TERMS))
    coefficients[-1] = logit_coefficient
    states = 2**30 + 18 * 29.6e6
    assert peak_bytes(x, coefficients)[0] == pytest.approx(states + above_the_states)
    active = active_features(memory_features(x), coefficients, last_stage_shares(x))
    assert (active @ coefficients)[0] * GIB == pytest.approx(states + above_the_states)


def test_features_of_crashes():
    pipeline = layout(replace(STAGES, chunks=2))
    found = dict(zip(CRASH_FEATURES, crash_features(pipeline)[0], strict=True))
    sizes = {"intercept": 1, "pp": 1, "tp": 2, "chunks": 1, "pp_chunks": 1, "pp_tp": 2}
    assert {name: value for name, value in found.items() if value} == sizes
    ring = layout(replace(RING, zero=3, bucket=256))
    found = dict(zip(CRASH_FEATURES, crash_features(ring)[0], strict=True))
    assert {name: value for name, value in found.items() if value} == {
        "intercept": 1, "cp": 1, "tp": 2, "tp_cp": 2, "zero3": 1, "zero3_tp_cp": 2,
        "zero3_bucket": 2,
    }  # fmt: skip
    alone = layout(
        replace(STAGES, chunks=8, zero=2)
    )  # 12 layers in 16 chunks: below one layer each
    found = dict(zip(CRASH_FEATURES, crash_features(alone)[0], strict=True))
    assert (found["single_layer_chunks"], found["zero2"], found["zero3_bucket"]) == (1, 1, 0)
