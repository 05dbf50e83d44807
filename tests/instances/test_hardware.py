import pytest

from parabolt.errors import InstanceError, UnknownNameError
from parabolt.instances.catalogue import load_instance
from parabolt.instances.hardware import ALIASES, Hardware, gpus, load_gpu
from parabolt.instances.specs import Cluster, Workload


def test_the_catalogue_is_complete_and_sourced():
    named = {"a100-40gb", "a100-80gb", "h100-80gb", "h100-96gb", "h200", "b200", "mi300x"}
    assert named <= set(gpus())
    for gpu in gpus().values():
        assert len(gpu.source) > 20
        assert gpu.host_links in ("switch", "mesh")
        # Every accelerator moves fewer bytes between GPUs than to its memory, and fewer outside.
        assert gpu.inter_host_gb_per_s <= gpu.intra_host_gb_per_s < gpu.hbm_gb_per_s
        # Narrower numbers are never slower.
        peaks = (gpu.peak_bf16_tflops, gpu.peak_fp8_tflops, gpu.peak_fp4_tflops)
        stated = [peak for peak in peaks if peak is not None]
        assert stated == sorted(stated)


#: bf16 and fp8 TFLOP/s, GB/s of memory, GB/s of links one way, GiB: by the vendors' data sheets.
SHEETS = {
    "v100-32gb": (125, None, 900, 150, 31.7),
    "h800-80gb": (989, 1979, 3350, 200, 79.6),
    "gb200": (2500, 5000, 8000, 900, 185.0),
    "b300": (2250, 4500, 8000, 900, 268.6),
    "mi355x": (2516, 5033, 8000, 537.6, 288.0),
    "rtx-4090": (165.2, 330.3, 1008, 32, 24.0),
}


@pytest.mark.parametrize("name", SHEETS)
def test_figures_of_the_data_sheets(name):
    gpu = load_gpu(name)
    figures = gpu.peak_bf16_tflops, gpu.peak_fp8_tflops, gpu.hbm_gb_per_s, gpu.intra_host_gb_per_s
    assert figures == SHEETS[name][:4]
    assert gpu.memory_gib == pytest.approx(SHEETS[name][4], abs=0.1)


def test_a_short_name_says_what_it_stands_for():
    assert load_gpu("h100") is load_gpu("h100-80gb")
    assert set(ALIASES.values()) <= set(gpus())
    assert not set(ALIASES) & set(gpus())
    assert Hardware.of(Cluster(8, 1, 80, gpu="h100")).assumptions == ("h100 taken for h100-80gb",)


def test_a_domain_of_fast_links_larger_than_a_host():
    cluster = Cluster(144, 36, 185, gpu="gb200", link_domain_gpus=72)
    assert (cluster.gpus_per_host, cluster.gpus_per_link_domain) == (4, 72)
    assert Cluster(16, 2, 80).gpus_per_link_domain == 8
    for domain in (6, 288, 0):
        with pytest.raises(InstanceError, match="link_domain_gpus: expected"):
            Cluster(144, 36, 185, gpu="gb200", link_domain_gpus=domain)


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
        Hardware.of(Cluster(8, 1, 80, gpu="tpu-v5p"))


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
