"""Laws of the cost model, on drawn models, clusters and configurations."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parabolt.costmodel.layout import Layout, bubble
from parabolt.costmodel.predictor import CostModel
from parabolt.costmodel.resolved_instance import ResolvedInstance
from parabolt.costmodel.step_time import TIME_TERMS
from parabolt.costmodel.terms.memory import MEMORY_TERMS, memory_features
from parabolt.instances.catalogue import load_instance
from parabolt.instances.model_shape import ModelShape
from parabolt.instances.specs import RECOMPUTATIONS, Cluster, Workload
from parabolt.planner.request import plan_instance, plan_rules
from parabolt.space.configurations import Configurations
from parabolt.space.lattice import enumerate_lattice

POWERS = [1, 2, 4, 8, 16, 32]


@st.composite
def plans(draw):
    head_size, n_heads = draw(st.sampled_from([64, 128])), draw(st.sampled_from([8, 16, 32]))
    model = ModelShape(
        n_layers=draw(st.sampled_from([8, 16, 24, 32])),
        n_heads=n_heads,
        n_kv_heads=draw(st.sampled_from([None, 8])),
        hidden_size=head_size * n_heads,
        ffn_size=draw(st.integers(2, 5)) * head_size * n_heads,
        vocabulary=draw(st.integers(10_000, 200_000)),
        is_gated=draw(st.booleans()),
        is_tied=draw(st.booleans()),
    )
    n_hosts, host = draw(st.sampled_from([1, 2, 8])), draw(st.sampled_from([1, 4, 8]))
    cluster = Cluster(
        n_hosts * host,
        n_hosts,
        draw(st.sampled_from([24, 40, 80])),
        gpu=draw(st.sampled_from(["a100-80gb", "h100-80gb", "mi300x"])),
    )
    workload = Workload(
        draw(st.sampled_from([2048, 8192])),
        draw(st.sampled_from([64, 256])),
        micro_batch_size=draw(st.sampled_from([1, 2])),
        recomputation=draw(st.sampled_from(RECOMPUTATIONS)),
    )
    return plan_instance(model, cluster, workload)


def lattice(instance):
    return enumerate_lattice(dict(instance.levels), plan_rules(instance))


def changed(instance, part, **fields):
    return replace(instance, **{part: replace(getattr(instance, part), **fields)})


@settings(max_examples=40)
@given(plans(), st.floats(1.0, 4.0))
def test_more_memory_never_makes_an_oom(instance, factor):
    sizes = lattice(instance)
    memory = instance.cluster.memory_gib
    more = changed(instance, "cluster", memory_gib=memory * factor)
    before, after = CostModel(instance).predict(sizes), CostModel(more).predict(sizes)
    assert (after.p_oom <= before.p_oom + 1e-12).all()
    assert (after.peak_memory_gib == before.peak_memory_gib).all()
    fitted = before.peak_memory_gib <= memory
    assert (after.peak_memory_gib[fitted] <= memory * factor).all()


@settings(max_examples=40)
@given(plans())
def test_shards_are_never_below_one_nth(instance):
    x = CostModel(instance).layout(lattice(instance))
    s = x.instance
    n = instance.cluster.n_gpus
    whole = s.n_layers * s.layer_parameters + s.embedding_parameters
    memory = {term.name: term.of(x) for term in MEMORY_TERMS}
    least = whole / n * (1 - 1e-12)
    assert (memory["weights"] >= s.weight_bytes * least).all()
    assert (memory["gradients"] >= s.gradient_bytes * least).all()
    assert (memory["optimizer_states"] >= s.optimizer_bytes * least).all()
    tokens = s.tokens / n * (1 - 1e-12)
    time = {term.name: term.of(x) for term in TIME_TERMS}
    flops = s.forward_passes * 2 * s.layer_parameters * s.n_layers * tokens
    assert (time["matmul"] >= flops / s.hardware.peak_flop_per_s).all()


@settings(max_examples=40)
@given(plans())
def test_bf16_is_never_above_fp32(instance):
    sizes = lattice(instance)
    wide = changed(instance, "workload", weight_bytes=4, gradient_bytes=4)
    narrow = changed(instance, "workload", weight_bytes=2, gradient_bytes=2)
    low, high = CostModel(narrow).point(sizes), CostModel(wide).point(sizes)
    assert (low[0] <= high[0]).all()
    assert (low[1] <= high[1]).all()


@settings(max_examples=40)
@given(plans())
def test_recomputation_never_raises_memory_and_never_saves_time(instance):
    sizes = lattice(instance)
    time, memory = CostModel(changed(instance, "workload", recomputation="none")).point(sizes)
    for recomputation in ("layer", "chunk"):
        again = changed(instance, "workload", recomputation=recomputation)
        slower, smaller = CostModel(again).point(sizes)
        assert (smaller <= memory * (1 + 1e-12)).all()
        assert (slower >= time).all()


@settings(max_examples=40)
@given(
    plans(),
    st.sampled_from(
        ["intra_host_gb_per_s", "inter_host_gb_per_s", "hbm_gb_per_s", "peak_bf16_tflops"]
    ),
    st.floats(1.0, 20.0),
)
def test_time_falls_with_faster_parts_and_never_rises(instance, part, factor):
    sizes = lattice(instance)
    rates = {
        "peak_bf16_tflops": 300.0,
        "hbm_gb_per_s": 2000.0,
        "intra_host_gb_per_s": 300.0,
        "inter_host_gb_per_s": 25.0,
    }
    slow = changed(instance, "cluster", **rates)
    fast = changed(instance, "cluster", **{**rates, part: rates[part] * factor})
    before, after = CostModel(slow).point(sizes)[0], CostModel(fast).point(sizes)[0]
    assert (after <= before * (1 + 1e-12)).all()
    if factor > 1.01 and part in ("hbm_gb_per_s", "peak_bf16_tflops"):
        assert (after < before).all()


@settings(max_examples=30)
@given(plans())
def test_the_heaviest_stage_counts_and_not_the_mean(instance):
    x = CostModel(instance).layout(lattice(instance))
    s = x.instance
    for i in np.random.default_rng(0).choice(len(x), min(len(x), 20), replace=False):
        pp, tp = int(x.pp[i]), int(x.tp[i])
        stages = np.full(pp, s.n_layers / pp * s.layer_parameters)
        stages[0] += s.embedding_parameters
        if pp == 1:
            stages[0] += (s.n_embeddings - 1) * s.embedding_parameters
        else:
            stages[-1] += s.embedding_parameters
        assert x.stage_parameters[i] == pytest.approx(stages.max() / tp)
        if pp > 2:
            assert x.stage_parameters[i] > stages.mean() / tp


@settings(max_examples=50)
@given(
    st.sampled_from(POWERS),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 8]),
    st.integers(1, 9),
)
def test_the_bubble_is_what_a_simulated_pipeline_idles(pp, tp, chunks, rounds):
    del tp
    n_micro = pp * rounds
    got = bubble(np.array([float(pp)]), np.array([float(chunks)]), np.array([float(n_micro)]))[0]
    assert got == pytest.approx(idle_share(pp, 1, n_micro) / chunks)


def idle_share(pp, time, n_micro):
    """Forward passes of a pipeline, micro-batch by micro-batch: how long the last stage waits."""
    finish = np.zeros(pp)
    for _ in range(n_micro):
        arrived = 0.0
        for stage in range(pp):
            arrived = finish[stage] = max(finish[stage], arrived) + time
    return (finish[-1] - n_micro * time) / (n_micro * time)


def test_groups_that_fit_stay_in_their_host():
    instance = load_instance("pco32")  # four GPUs per host
    model = CostModel(instance)
    sizes = Configurations(
        {
            "dp": np.array([4, 16, 8]),
            "tp": np.array([4, 2, 1]),
            "pp": np.array([1, 1, 1]),
            "cp": np.array([2, 1, 4]),
            "sp": np.array([1, 1, 1]),
            "bucket": np.array([64, 64, 64]),
            "zero": np.array([0, 0, 0]),
            "chunks": np.array([1, 1, 1]),
            "grad_accum": np.array([1, 1, 1]),
        }
    )
    x = model.layout(sizes)
    assert x.is_across(np.ones(3), x.tp).tolist() == [False, False, False]
    assert x.is_across(x.tp, x.cp).tolist() == [True, False, False]
    assert x.is_across(x.tp, x.n_shards).tolist() == [True, True, True]
    # A ring over all GPUs leaves a host through as many cards as it has ranks there.
    assert (x.bandwidth(x.tp, x.n_shards) / 25e9).tolist() == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("name", ["pco32", "pco64"])
def test_features_are_finite_and_not_negative(name):
    instance = load_instance(name)
    x = Layout.of(ResolvedInstance.of(instance), lattice_of(instance))
    memory = memory_features(x)
    assert np.isfinite(memory).all()
    assert (memory >= 0).all()
    for term in TIME_TERMS:
        values = term.of(x)
        assert values.shape == (len(x),)
        assert np.isfinite(values).all(), term.name
        assert (values >= 0).all(), term.name


def lattice_of(instance):
    return enumerate_lattice(dict(instance.levels), instance.rules)
