import pytest

from parabolt.errors import InstanceError, UnknownNameError
from parabolt.instances.catalogue import load_instance
from parabolt.instances.hardware import Hardware, gpus, load_gpu
from parabolt.instances.specs import Cluster, Workload


def test_the_catalogue_is_complete_and_sourced():
    named = {"a100-40gb", "a100-80gb", "h100-80gb", "h100-96gb", "h200", "b200", "mi300x"}
    assert named <= set(gpus())
    for gpu in gpus().values():
        assert len(gpu.source) > 20
        assert gpu.host_links in ("switch", "mesh")
        # Every accelerator moves fewer bytes between GPUs than to its memory, and fewer outside.
        assert gpu.inter_host_gb_per_s < gpu.intra_host_gb_per_s < gpu.hbm_gb_per_s


def test_a_cluster_states_or_takes_its_figures():
    cluster = Cluster(16, 2, 80, gpu="a100-80gb", inter_host_gb_per_s=12.5)
    found = Hardware.of(cluster)
    assert found.peak_flop_per_s == 312e12
    assert found.inter_host_byte_per_s == 12.5e9
    assert found.assumptions == ()


def test_what_is_assumed_is_told():
    assumptions = Hardware.of(Cluster(16, 2, 96)).assumptions
    assert any("GPU not stated, taken for h100-96gb" in text for text in assumptions)
    assert any("network not stated" in text for text in assumptions)
    assert Hardware.of(load_instance("pco32").cluster).assumptions == (
        "network not stated, 25 GB/s per GPU",
    )


def test_an_unknown_gpu():
    with pytest.raises(UnknownNameError, match="did you mean 'h100-80gb'"):
        load_gpu("h100-81gb")
    with pytest.raises(UnknownNameError, match="unknown GPU"):
        Hardware.of(Cluster(8, 1, 80, gpu="v100"))


@pytest.mark.parametrize(
    "field",
    [
        "peak_bf16_tflops",
        "hbm_gb_per_s",
        "intra_host_gb_per_s",
        "inter_host_gb_per_s",
        "intra_host_latency_us",
        "inter_host_latency_us",
    ],
)
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "fast", True])
def test_no_link_without_speed(field, value):
    with pytest.raises(InstanceError, match=f"{field}: expected a positive number"):
        Cluster(8, 1, 80, **{field: value})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("micro_batch_size", 0, "micro_batch_size: expected a positive whole number, got 0"),
        ("tokens_per_iteration", -1, "tokens_per_iteration: expected a positive"),
        ("gradient_bytes", 2.5, "gradient_bytes: expected a positive whole number, got 2.5"),
        ("recomputation", "some", "recomputation: expected one of none, layer, chunk, got 'some'"),
        ("is_attention_fused", 1, "is_attention_fused: expected true or false, got 1"),
    ],
)
def test_a_bad_workload(field, value, message):
    with pytest.raises(InstanceError, match=message):
        Workload(2048, 64, **{field: value})
