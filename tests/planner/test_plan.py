from dataclasses import replace

import pytest

from parabolt.costmodel.calibration.evidence import Evidence
from parabolt.costmodel.predictor import CostModel
from parabolt.errors import (
    InstanceError,
    ObservationError,
    OptionError,
    TableError,
    UnknownNameError,
)
from parabolt.instances.catalogue import instance_text, load_instance
from parabolt.instances.model_shape import ModelShape
from parabolt.instances.models import load_model
from parabolt.instances.specs import Workload
from parabolt.outcome import Outcome, Outcomes
from parabolt.planner.plan import make_plan
from parabolt.planner.request import parse_cluster, plan_instance, plan_rules
from parabolt.planner.trials_file import read_trials
from parabolt.space.configuration import Configuration
from parabolt.space.rules import check

WORK = Workload(8192, 512, micro_batch_size=1, recomputation="layer")
#: What trials were measured on, in words.
COLUMNS = "model,cluster,sequence_length,batch_size"
CELLS = "qwen3-32b,16x4 h100-96gb,8192,512"


@pytest.fixture(scope="module")
def instance():
    return plan_instance(load_model("qwen3-32b"), parse_cluster("16x4 h100-96gb"), WORK)


@pytest.fixture(scope="module")
def plan(instance):
    return make_plan(instance, n_best=8)


def test_the_list_is_ranked_fits_and_is_valid(instance, plan):
    assert len(plan.entries) == 8
    throughput = [entry.throughput for entry in plan.entries]
    assert throughput == sorted(throughput, reverse=True)
    for entry in plan.entries:
        check(entry.configuration, plan_rules(instance))
        assert entry.p_oom <= 0.1
        assert entry.peak_memory_gib < 96
        assert entry.throughput_low < entry.throughput < entry.throughput_high
        assert entry.tokens_per_s == pytest.approx(entry.throughput * 512 * 8192)
        assert entry.n_micro_batches == 512 // entry.configuration.dp
        assert entry.as_dict()["source"] == "predicted"
    twins = [replace(entry.configuration, bucket=64) for entry in plan.entries]
    assert len(set(twins)) == 8


def test_nothing_faster_was_left_out(instance, plan):
    """Brute force over the whole lattice, one configuration at a time."""
    model = CostModel(instance)
    best = plan.entries[0]
    for dp in (1, 2, 4, 8, 16, 32, 64):
        for tp in (1, 2, 4):
            for pp in (1, 2, 4, 8, 16):
                c = Configuration(dp=dp, tp=tp, pp=pp, sp=tp, bucket=256)
                if dp * tp * pp != 64 or 512 // dp % pp:
                    continue
                found = model.predict([c])
                if found.p_oom[0] <= 0.1:
                    assert found.throughput[0] <= best.throughput


def test_mfu_is_plausible(instance, plan):
    """6 parameters FLOP per token, with a fourth forward-equivalent for recomputation.

    Megatron-LM's own H100 figures are 41 to 48 % of peak without recomputation.
    """
    flops = 6 * 32.8e9 * plan.entries[0].tokens_per_s / 64
    assert 0.41 * 989e12 * 3 / 4 < flops < 0.48 * 989e12
    assert plan.assumptions == ("network not stated, 25 GB/s per GPU",)


def test_trials_move_the_plan(instance, plan, tmp_path):
    path = tmp_path / "trials.csv"
    c = plan.entries[0].configuration
    knobs = f"{c.dp},{c.tp},{c.pp},{c.cp},{c.sp},{c.bucket},{c.zero},{c.chunks}"
    path.write_text(
        f"{COLUMNS},dp,tp,pp,cp,sp,bucket,zero,chunks,status,step_time_s,peak_memory_gib\n"
        f"{CELLS},{knobs},ok,{1.25 / plan.entries[0].throughput},60\n"
        f"{CELLS},64,1,1,1,1,256,2,1,oom,,\n",
        encoding="utf-8",
    )
    trials = read_trials(path, instance)
    assert len(trials.outcomes) == 2
    found = make_plan(instance, trials=trials)
    assert found.n_trials == 2
    assert found.entries[0].throughput < 0.92 * plan.entries[0].throughput


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dp,status,throughput\n", "expected the columns bucket, status"),
        ("dp,bucket,state,throughput\n", r"expected columns among .*, got \['state'\]"),
        ("dp,bucket,status,throughput\n64,256,done,1\n", "line 2: status: expected one of ok"),
        ("dp,bucket,status,throughput\n64,256,ok,\n", "line 2: throughput: expected a number"),
        ("dp,bucket,status,throughput\n64,256,ok,-1\n", "expected a positive number, got -1"),
        ("dp,bucket,status,throughput\n64,256,ok,x\n", "expected a number, got 'x'"),
        ("dp,bucket,status,throughput\nx,256,ok,1\n", "dp: expected a positive whole .*, got 'x'"),
        ("dp,bucket,status,throughput\n2,256,ok,1\n", "expected the 64 GPUs of the cluster"),
        ("dp,dp,bucket,status,throughput\n", "expected each column once, got dp twice"),
        ("dp,bucket,status,throughput\n64,256,ok,1,9\n", "line 2: expected 8 cells, .*got more"),
        ("dp,bucket,status,throughput\n64,256,ok\n", "line 2: expected 8 cells, .*got fewer"),
    ],
)
def test_a_bad_trials_file_gives_one_clear_error(instance, tmp_path, text, message):
    path = tmp_path / "t.csv"
    header, *rows = text.splitlines()
    lines = [f"{COLUMNS},{header}", *(f"{CELLS},{row}" for row in rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(TableError, match=message):
        read_trials(path, instance)


@pytest.mark.parametrize(
    ("columns", "cells", "message"),
    [
        ("dp", "64", "expected what the trials were measured on, in the column instance or in"),
        (f"{COLUMNS},dp", "qwen3-32b,16x4 h100-96gb,4096,512,64", r"sequence_length \(4096, not 8"),
        (f"{COLUMNS},dp", "qwen3-32b,16x4 h100-96gb,8192,256,64", r"batch_size \(256, not 512\)"),
        (f"{COLUMNS},dp", "qwen3-32b,8x8 h100-96gb,8192,512,64", r"cluster.n_hosts \(8, not 16\)"),
        (f"{COLUMNS},dp", "qwen3-14b,16x4 h100-96gb,8192,512,64", r"model.n_layers \(40, not 64"),
        (f"{COLUMNS},dp", "qwen3-32b,16x4 h100-96gb,8192,,64", "batch_size: expected what the tri"),
        (f"{COLUMNS},micro_batch_size,dp", f"{CELLS},2,64", r"micro_batch_size \(2, not 1\)"),
        (f"{COLUMNS},recomputation,dp", f"{CELLS},none,64", r"recomputation \(none, not layer\)"),
        ("instance,dp", "pco32,64", r"model.n_layers \(40, not 64\)"),
        ("instance,dp", "pco33,64", "unknown instance 'pco33'"),
    ],
)
def test_trials_of_something_else_are_refused(instance, tmp_path, columns, cells, message):
    path = tmp_path / "t.csv"
    path.write_text(f"{columns},bucket,status,throughput\n{cells},256,ok,1\n", encoding="utf-8")
    with pytest.raises(TableError, match=message):
        read_trials(path, instance)


def test_a_file_names_its_instance_by_a_path_from_its_folder(tmp_path):
    pco32 = load_instance("pco32")
    (tmp_path / "own.toml").write_text(instance_text("pco32"), encoding="utf-8")
    path = tmp_path / "t.csv"
    path.write_text("instance,dp,bucket,status,throughput\nown.toml,32,256,ok,1\n")
    assert read_trials(path, pco32).outcomes.throughput.tolist() == [1.0]


def test_evidence_of_another_instance_is_refused(instance):
    longer = plan_instance(instance.model, instance.cluster, replace(WORK, sequence_length=4096))
    outcomes = Outcomes.of([Outcome.ok(0.05)])
    evidence = Evidence(longer, [Configuration(dp=64, bucket=256, zero=2)], outcomes)
    with pytest.raises(ObservationError, match=r"workload.sequence_length \(4096, not 8192\)"):
        make_plan(instance, trials=evidence)


def test_what_cannot_be(instance, tmp_path):
    with pytest.raises(InstanceError, match="expected HOSTSxGPUS and a GPU, got '64 h100'"):
        parse_cluster("64 h100")
    with pytest.raises(UnknownNameError, match="unknown GPU 'h101'"):
        parse_cluster("16x4 h101")
    with pytest.raises(InstanceError, match="expected at least one host and GPU, got '0x4 h200'"):
        parse_cluster("0x4 h200")
    with pytest.raises(InstanceError, match="micro_batch_size: expected a number"):
        plan_instance(load_model("qwen3-8b"), parse_cluster("2x8 h200"), Workload(8192, 64))
    with pytest.raises(OptionError, match="n_best: expected a positive whole number, got 0"):
        make_plan(instance, n_best=0)
    with pytest.raises(OptionError, match="max_risk: expected a probability above 0, got 0"):
        make_plan(instance, max_risk=0.0)
    with pytest.raises(TableError, match="cannot read"):
        read_trials(tmp_path / "none.csv", instance)


def test_nothing_fits():
    small = plan_instance(load_model("gpt3-175b"), parse_cluster("1x8 a100-40gb"), WORK)
    plan = make_plan(small)
    assert plan.entries == ()
    assert plan.n_fitting == 0
    assert plan.n_candidates > 100


def test_the_largest_lattice_is_planned():
    """400 billion parameters on 16,384 GPUs; 128 layers, so that pipelines of all depths count."""
    model = ModelShape(128, 128, 16384, 53248, n_kv_heads=8, vocabulary=128256)
    work = Workload(8192, 2048, micro_batch_size=1, recomputation="layer")
    instance = plan_instance(model, parse_cluster("2048x8 h100-80gb"), work)
    plan = make_plan(instance)
    assert len(plan.entries) == 5
    assert plan.n_candidates > 1000
