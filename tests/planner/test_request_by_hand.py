"""What a plan is made over, and from, against figures worked by hand."""

import itertools
import math
from dataclasses import replace

import pytest

from parabolt.costmodel.predictor import CostModel
from parabolt.errors import InstanceError, OptionError, ParaboltError, TableError
from parabolt.instances.hardware import load_gpu
from parabolt.instances.model_shape import ModelShape
from parabolt.instances.specs import Cluster, Workload
from parabolt.outcome import Source, Status
from parabolt.planner.plan import make_plan
from parabolt.planner.request import parse_cluster, plan_instance, plan_rules
from parabolt.planner.trials_file import read_trials
from parabolt.space.configuration import Configuration
from parabolt.space.knobs import KNOBS
from parabolt.space.lattice import enumerate_lattice

#: 24 layers, 12 query heads, 3 key-value heads.
MODEL = ModelShape(24, 12, 1536, 4096, n_kv_heads=3, vocabulary=32_000)
#: 48 sequences of 96 tokens, in micro-batches of 3 sequences.
WORK = Workload(96, 48, micro_batch_size=3)


def test_a_cluster_in_words():
    cluster = parse_cluster(" 16 x 4  H100-96GB ")
    assert (cluster.n_gpus, cluster.n_hosts, cluster.gpus_per_host) == (64, 16, 4)
    assert (cluster.gpu, cluster.memory_gib) == ("h100-96gb", load_gpu("h100-96gb").memory_gib)


def test_sizes_that_are_planned_over():
    levels = dict(plan_instance(MODEL, Cluster(16, 4, 80), WORK).levels)
    assert {name: sizes for name, sizes in levels.items() if len(sizes) > 1} == {
        "dp": (1, 2, 4, 8, 16),
        "tp": (1, 2, 4),
        "pp": (1, 2, 4, 8, 16),
        "cp": (1, 2, 4, 8, 16),
        "sp": (1, 2, 4),
        "bucket": (64, 128, 256, 512),
        "zero": (0, 2, 3),
        "chunks": (1, 2, 3, 4, 6, 8, 12),
    }
    large = dict(plan_instance(MODEL, Cluster(1024, 128, 80), WORK).levels)
    assert (large["tp"][-1], large["pp"][-1], large["cp"][-1]) == (8, 16, 64)
    deep = ModelShape(128, 12, 1536, 4096)
    assert dict(plan_instance(deep, Cluster(1024, 128, 80), WORK).levels)["pp"][-1] == 64


def test_the_lattice_of_a_plan_against_brute_force():
    """Every rule written down a second time, over all combinations of sizes."""
    instance = plan_instance(MODEL, Cluster(16, 8, 80), WORK)
    expected = set()
    for sizes in itertools.product(*(levels for _, levels in instance.levels)):
        c = Configuration(**dict(zip(KNOBS, sizes, strict=True)))
        if c.dp * c.tp * c.pp * c.cp != 16 or c.tp > 8:
            continue
        if c.sp not in (1, c.tp) or 12 % c.tp or (3 % c.tp and c.tp % 3):
            continue
        if (c.zero and c.pp > 1) or (c.chunks > 1 and c.pp == 1):
            continue
        if 24 % (c.pp * c.chunks) or 48 % (c.dp * 3) or (c.cp > 1 and 96 % (2 * c.cp)):
            continue
        if c.chunks > 1 and 48 // (3 * c.dp) % c.pp:
            continue
        if c.zero == 0 and c.bucket != 256:
            continue
        expected.add(c)
    found = enumerate_lattice(dict(instance.levels), plan_rules(instance))
    assert set(found) == expected
    assert len(found) == len(expected) > 30
    assert make_plan(instance).n_candidates == len(expected)


@pytest.mark.parametrize("risk", [1.5, -0.1, 0.0])
def test_a_risk_is_a_probability(risk):
    instance = plan_instance(MODEL, Cluster(16, 8, 80), WORK)
    with pytest.raises(OptionError, match=f"max_risk: expected a probability above 0, got {risk}"):
        make_plan(instance, max_risk=risk)


INSTANCE = """
name = "by hand"
[model]
n_layers = 24
n_heads = 12
hidden_size = 1536
ffn_size = 4096
n_kv_heads = 3
vocabulary = 32000
[cluster]
n_gpus = 16
n_hosts = 8
memory_gib = 80
[workload]
sequence_length = 96
batch_size = 48
micro_batch_size = 3
[knobs]
bucket = [64]
"""


def test_trials_of_a_file(tmp_path):
    instance = plan_instance(MODEL, Cluster(16, 8, 80), WORK)
    (tmp_path / "i.toml").write_text(INSTANCE)
    path = tmp_path / "trials.csv"
    path.write_text(
        "\ufeffinstance,dp,cp,zero,bucket,status,throughput,step_time_s,peak_memory_gib\n"
        "i.toml,16,,2,64,ok,,0.25,60\n"
        "i.toml,8,2,,256,ok,5,0.25,\n"
        "i.toml,16,,3,128,oom,,,\n"
        "i.toml,16,,3,512,crashed,,,\n",
        encoding="utf-8",
    )
    trials = read_trials(path, instance)
    assert trials.configurations == [
        Configuration(dp=16, bucket=64, zero=2),
        Configuration(dp=8, cp=2, bucket=256),
        Configuration(dp=16, bucket=128, zero=3),
        Configuration(dp=16, bucket=512, zero=3),
    ]
    timed, sparse, oom, crashed = trials.outcomes
    assert (timed.throughput, timed.peak_memory_gib) == (4.0, 60.0)
    assert timed.memory_margin == -0.25
    assert (timed.throughput_source, timed.memory_source) == (Source.MEASURED, Source.MEASURED)
    assert sparse.throughput == 5.0
    assert math.isnan(sparse.peak_memory_gib)
    assert sparse.memory_source == Source.NONE
    assert (oom.status, crashed.status) == (Status.OOM, Status.CRASHED)


def test_of_configurations_that_differ_in_the_bucket_alone_the_best_counts():
    instance = plan_instance(MODEL, Cluster(16, 8, 80), WORK)
    plan = make_plan(instance, n_best=100, max_risk=1.0)
    entries = [entry.configuration for entry in plan.entries]
    assert len(entries) == len({replace(c, bucket=256) for c in entries}) < plan.n_candidates
    assert len({c.bucket for c in entries}) > 1
    model = CostModel(instance)
    for c in entries:
        times = {}
        for bucket in (64, 128, 256, 512):
            time_s, peak_gib = model.point([replace(c, bucket=bucket)])
            if c.zero and peak_gib[0] <= 80:
                times[bucket] = time_s[0]
        assert c.zero == 0 or times[c.bucket] == min(times.values())


def test_a_file_of_version_0_1_and_one_without_times(tmp_path):
    instance = plan_instance(MODEL, Cluster(16, 8, 80), WORK)
    path = tmp_path / "trials.csv"
    (tmp_path / "i.toml").write_text(INSTANCE)
    path.write_text(
        "instance,dp,zero,bucket,status,step_time_s,peak_memory_gb\ni.toml,16,2,64,ok,1,40\n"
    )
    assert read_trials(path, instance).outcomes.peak_memory_gib.tolist() == [40.0]
    path.write_text("dp,zero,bucket,status,peak_memory_gib\n16,2,64,ok,40\n")
    with pytest.raises(TableError, match="throughput or step_time_s, got dp, zero, bucket"):
        read_trials(path, instance)


def test_a_plan_keeps_to_the_risk():
    """Among all that fit, entries are the fastest whose risk is low enough."""
    instance = plan_instance(MODEL, Cluster(16, 8, 3), WORK)
    bold = make_plan(instance, n_best=100, max_risk=1.0)
    careful = make_plan(instance, n_best=100, max_risk=0.4)
    assert bold.entries[0].p_oom > 0.4
    assert careful.entries[0].p_oom <= 0.4
    assert careful.entries[0].configuration == next(
        entry.configuration for entry in bold.entries if entry.p_oom <= 0.4
    )
    assert 0 < bold.n_fitting < bold.n_candidates
    assert all(entry.peak_memory_gib <= 3 for entry in bold.entries)
    one = make_plan(instance, n_best=1, max_risk=1.0)
    assert [e.configuration for e in one.entries] == [bold.entries[0].configuration]
    entry = one.as_dict()["entries"][0]
    assert entry["throughput_interval_90"] == [one.entries[0].throughput_low,
                                               one.entries[0].throughput_high]  # fmt: skip
    assert entry["tokens_per_s"] == pytest.approx(48 * 96 * entry["throughput"])
    assert [launch["framework"] for launch in entry["launches"]] == [
        launch.framework for launch in one.entries[0].launches
    ]


def test_a_cluster_with_a_short_name_and_figures_of_its_own():
    cluster = parse_cluster("2x8 h100 inter_host_gb_per_s=25 memory_gib=78.5")
    assert (cluster.n_gpus, cluster.n_hosts, cluster.gpu) == (16, 2, "h100")
    assert (cluster.inter_host_gb_per_s, cluster.memory_gib) == (25.0, 78.5)


def test_a_cluster_of_gb200_has_links_beyond_a_host():
    assert parse_cluster("36x4 gb200").gpus_per_link_domain == 72
    assert parse_cluster("4x4 gb200").gpus_per_link_domain == 16
    assert parse_cluster("4x4 gb200 link_domain_gpus=8").gpus_per_link_domain == 8


def test_a_gpu_of_ones_own():
    figures = "memory_gib=60 peak_bf16_tflops=500 hbm_gb_per_s=2000 intra_host_gb_per_s=300"
    cluster = parse_cluster(f"4x8 {figures} inter_host_gb_per_s=25")
    assert cluster.gpu is None
    assert (cluster.n_gpus, cluster.peak_bf16_tflops) == (32, 500.0)
    with pytest.raises(InstanceError, match="expected a GPU, or inter_host_gb_per_s; got"):
        parse_cluster(f"4x8 {figures}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2x8 h100 network=25", "unknown figure of a cluster 'network'"),
        ("2x8 h100 memory_gib=much", "memory_gib: expected a number, got 'much'"),
        ("2x8 h100 a100", "expected one GPU, got h100 and a100"),
        ("0x8 h100", "expected at least one host and GPU"),
        ("2x8", "expected HOSTSxGPUS and a GPU"),
    ],
)
def test_a_bad_cluster(text, message):
    with pytest.raises(ParaboltError, match=message):
        parse_cluster(text)
