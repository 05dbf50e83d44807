"""The reader of public runs, on rows written by hand."""

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from accuracy_board import _left_out, _rows, predicted
from measured_runs import read_runs
from parabolt.costmodel.predictor import CostModel

NAMES = (
    "source,n_layers,hidden,ffn,heads,kv_heads,vocab,gated,n_gpus,gpu,gpus_per_host,dp,tp,pp,cp,ep,"
    "sp,zero,chunks,micro_batch,global_batch,seq,recompute,precision,tokens_per_s_per_gpu,"
    "tflops_per_gpu,step_time_s,peak_memory_gb,note"
)
SHAPE = "12,1024,4096,16,16,50000,0"
ROWS = (
    f"a/one README,{SHAPE},16,a100-80gb,8,4,2,2,1,,1,0,3,2,64,2048,layer,fp16,,,2.5,40,"
    "[net=25] [grad=2] [fused=0] tied",
    f"a/one README,{SHAPE},8,h100-80gb,8,8,,,,,0,3,,4,64,4096,none,bf16,8192,,,,[hbm=2000]",
    f"b/two@v1,{SHAPE},8,a100-80gb,8,8,1,1,1,,0,0,1,4,64,1024,layer,bf16,,100,,,[hwflops]",
    f"b/two@v1,{SHAPE},8,a100-80gb,8,8,1,1,1,,0,0,1,4,64,1024,layer,bf16,,,,,[oom]",
    f"c/three,{SHAPE},8,a100-80gb,8,8,1,1,1,8,0,0,1,4,64,1024,none,bf16,,,1,,",
    f"c/three,{SHAPE},8,b200,8,8,1,1,1,,0,0,1,4,64,1024,none,fp8,,,1,,",
    f"c/three,{SHAPE},8,h9000,8,8,1,1,1,,0,0,1,4,64,1024,none,bf16,,,1,,",
    f"c/three,{SHAPE},8,a100-80gb,8,8,1,1,1,,0,0,1,,64,1024,none,bf16,,,1,,",
)


@pytest.fixture
def read(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("\n".join([NAMES, *ROWS]) + "\n", encoding="utf-8")
    return read_runs(path)


def test_what_a_row_says(read):
    runs, _ = read
    first, second, third, oom = runs
    assert [run.source for run in runs] == ["a/one", "a/one", "b/two", "b/two"]
    x = CostModel(first.instance).layout(first.configurations)
    assert (x.dp, x.tp, x.pp, x.cp, x.chunks) == (4, 2, 2, 1, 3)
    assert x.is_sp.all()
    assert (x.n_micro, x.micro_tokens) == (8, 4096)
    s = x.instance
    assert (s.n_embeddings, s.gradient_bytes, s.is_attention_fused) == (1, 2, False)
    assert (s.recomputation, s.n_ffn_inputs) == ("layer", 1)
    assert s.hardware.inter_host_byte_per_s == 25e9
    assert (first.step_time_s, first.peak_memory_gib, first.is_oom) == (2.5, 40.0, False)
    # 64 sequences of 4096 tokens; 8 GPUs take 8192 tokens a second each.
    assert second.step_time_s == 4.0
    assert second.instance.cluster.hbm_gb_per_s == 2000
    assert CostModel(second.instance).layout(second.configurations).is_z3.all()
    # 96 B s l h^2 (1 + s / 6h + V / 16lh) FLOPs at 8 x 100 TFLOP/s.
    flops = 96 * 64 * 1024 * 12 * 1024**2 * (1 + 1 / 6 + 50_000 / (16 * 12 * 1024))
    assert third.step_time_s == pytest.approx(flops / 8e14)
    assert oom.is_oom
    assert math.isnan(oom.step_time_s)


def test_what_is_left_out_has_a_reason(read):
    reasons = read[1]
    assert sorted(reasons.values()) == [1, 1, 1, 1]
    text = _left_out(reasons)
    for reason in ("experts", "precision fp8", "unknown GPU 'h9000'", "micro_batch is not stated"):
        assert f"1 runs: {reason}" in text


def test_the_rows_of_the_board(read):
    runs, reasons = read
    rows = _rows(runs, reasons).splitlines()
    assert [row.split(" | ")[0] for row in rows] == ["| a/one", "| b/two", "| all"]
    values = [predicted(run) for run in runs]
    errors = [abs(v[1] / v[0] - 1.0) for v in values[:3]]
    assert rows[1].split(" | ")[3] == f"{errors[2]:.1%}"
    assert rows[2].split(" | ")[1] == "3"
    assert rows[2].split(" | ")[3] == f"{sum(errors) / 3:.1%}"
    assert rows[0].split(" | ")[6] == f"1: {abs(values[0][4] / 40.0 - 1.0):.1%}"
