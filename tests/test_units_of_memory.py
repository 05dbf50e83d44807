"""One unit of memory, GiB, from logs, reports and files of version 0.1 to margin and table."""

import json

import numpy as np
import pytest

import parabolt
from parabolt.frameworks.measurements import Measurements
from parabolt.instances.catalogue import load_instance, parse_instance
from parabolt.instances.hardware import load_gpu
from parabolt.journal.history import TrialHistory
from parabolt.outcome import GIB, GIB_PER_GB
from parabolt.tables.publishing.build import build
from parabolt.trials.measurements import ReportReader
from parabolt.trials.spec.file import parse_spec
from parabolt.trials.sweep import EXPORT, sweep

INSTANCE = """
name = "h100x4"
[model]
n_layers = 8
n_heads = 8
hidden_size = 256
ffn_size = 1024
[cluster]
n_gpus = 4
n_hosts = 1
{memory}
gpu = "h100-80gb"
[workload]
sequence_length = 64
batch_size = 8
[knobs]
dp = [4]
bucket = [2, 16]
"""

#: Log format, the lines of a step, and the peak in GiB. 80,000 MiB are 78.125 GiB.
LOGS = {
    "torchtitan": ("step: {step}  loss: 1.0  memory: 78.20GiB(98%)  tps: 128,000", 78.2),
    "megatron": (
        " iteration {step}/ 9 | elapsed time per iteration (ms): 1.0 |\n"
        "[Rank 0] (after 1 iterations) memory (MB) | allocated: 1.0 | max allocated: 2.0 | "
        "reserved: 3.0 | max reserved: 80000.0",
        78.125,
    ),
}


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("memory", ["memory_gib = 80", "memory_gb = 80"])
def test_a_log_line_reaches_margin_and_table(name, memory, tmp_path):
    """78.2 GiB of 80 fit; they are not 83.97 of 80."""
    line, peak_gib = LOGS[name]
    (tmp_path / "i.toml").write_text(INSTANCE.format(memory=memory))
    (tmp_path / "log.txt").write_text("\n".join(line.format(step=step) for step in range(1, 4)))
    spec = parse_spec(
        "instance = 'i.toml'\ncommand = ['cat', 'log.txt']\n"
        "environment = {SIZES = '{configuration}'}\n"
        f"[trial]\nwarmup_steps = 1\ntimed_steps = 2\nlog_format = '{name}'\n"
        f"[launcher]\nworking_directory = '{tmp_path}'\n",
        origin="spec.toml",
        folder=tmp_path,
    )
    outcomes = [trial.outcome for trial in sweep(spec, tmp_path / "s").told]
    assert [o.peak_memory_gib for o in outcomes] == [peak_gib] * 2
    assert [o.memory_margin for o in outcomes] == [peak_gib / 80 - 1] * 2
    built = build(
        tmp_path / "s" / EXPORT, spec.instance, tmp_path / "t", version="1", title="t",
        instance_text=(tmp_path / "i.toml").read_text(), license="mit",
    )  # fmt: skip
    assert list(built.findings) == []
    unit = "GB" if "gb" in memory else "GiB"
    card = (tmp_path / "t" / "README.md").read_text()
    assert f"`peak_mem` ({unit}, `inf` where" in card
    assert f"(peak / 80 {unit} - 1:" in card
    table = parabolt.load_table(str(tmp_path / "t"))
    assert table.outcomes.peak_memory_gib.tolist() == [peak_gib] * 2


def test_a_gib_and_a_gb():
    assert GIB == 1_073_741_824
    assert pytest.approx(0.931322574615) == GIB_PER_GB


@pytest.mark.parametrize(
    ("name", "mib"),
    [
        ("a100-40gb", 40_960), ("a100-80gb", 81_920), ("h100-80gb", 81_559), ("h100-96gb", 97_871),
        ("h200", 143_771), ("b200", 183_359), ("mi300x", 206_141_652_992 / 2**20),
        ("mi250x-gcd", 65_520),
    ],
)  # fmt: skip
def test_a_gpu_has_what_its_driver_reports(name, mib):
    assert load_gpu(name).memory_gib == pytest.approx(mib / 1024, abs=1e-4)


@pytest.mark.parametrize(("name", "capacity"), [("pco16", 80), ("pco32", 96), ("pco64", 96)])
def test_a_published_table_keeps_its_unit_and_its_figures(name, capacity):
    instance = load_instance(name)
    assert instance.peak_mem_column.unit == "GB"
    assert instance.peak_mem_column.capacity == instance.cluster.memory_gib == capacity
    assert instance.gib_per_peak_mem == 1.0
    if name != "pco16":
        table = parabolt.load_table(name)
        assert np.array_equal(table.outcomes.peak_memory_gib, table.data.column("peak_mem"))


def test_pco4_cpu_counted_in_ten_to_the_nine_bytes():
    table = parabolt.load_table("pco4-cpu")
    assert table.instance.cluster.memory_gib * GIB == pytest.approx(0.1e9)
    outcomes, published = table.outcomes, table.data.column("peak_mem").to_numpy()
    fits = outcomes.is_feasible
    assert outcomes.peak_memory_gib[fits] * GIB == pytest.approx(published[fits] * 1e9)
    ratio = outcomes.peak_memory_gib[fits] / table.instance.cluster.memory_gib
    assert ratio - 1 == pytest.approx(outcomes.memory_margin[fits], abs=1e-6)


def test_an_instance_of_version_0_1_has_its_gpu_in_gib_and_its_tables_in_gb():
    old = parse_instance(INSTANCE.format(memory="memory_gb = 80"), origin="old")
    new = parse_instance(INSTANCE.format(memory="memory_gib = 80"), origin="new")
    assert old.cluster == new.cluster
    assert (old.peak_mem_column.unit, old.peak_mem_column.capacity) == ("GB", 80)
    assert (new.peak_mem_column.unit, new.peak_mem_column.capacity) == ("GiB", 80)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("memory_gb = 80\nmemory_gib = 80", r"\[cluster\]: expected keys .* got memory_gb"),
        ("", r"\[cluster\]: expected memory_gib, got"),
        ("memory_gib = 8\n[peak_mem]\nunit = 'GB'\ncapacity = 0", r"\[peak_mem\] capacity: exp"),
        ("memory_gib = 8\n[peak_mem]\nunit = 1\ncapacity = 9", r"\[peak_mem\] unit: expected a"),
    ],
)  # fmt: skip
def test_what_is_no_memory_is_refused(text, complaint):
    body = INSTANCE.replace("{memory}\ngpu", "gpu").replace("[workload]", f"{text}\n[workload]")
    with pytest.raises(parabolt.errors.InstanceError, match=complaint):
        parse_instance(body, origin="x")


def test_a_report_of_version_0_1_is_converted(tmp_path):
    path, found = tmp_path / "report.jsonl", Measurements()
    path.write_text('{"rank": 0, "peak_memory_gb": 64}\n{"rank": 1, "peak_memory_gib": 64}\n')
    ReportReader(path, found).read()
    assert found.peak_memory_gib == {0: pytest.approx(64e9 / 2**30), 1: 64.0}


def test_a_journal_of_version_0_1_is_converted():
    outcome = {
        "status": "ok", "throughput": 2.0, "peak_memory_gb": 83.97, "memory_margin": 0.0496,
        "wall_time_s": 3.0, "throughput_source": "measured", "memory_source": "measured",
    }  # fmt: skip
    statistics = {"throughput": 2.0, "throughput_std": None, "step_times_s": [0.5]}
    records = [
        {"kind": "created", "version": 1, "identity": {}, "about": {"memory_gb": 80}},
        {"kind": "asked", "trial": 0, "configuration": {"dp": 4, "bucket": 2}},
        {"kind": "launched", "trial": 0, "folder": "f"},
        {"kind": "ended", "trial": 0, "is_final": True, "outcome": outcome, "reason": "",
         "saved_s": 0.0, "statistics": {**statistics, "peak_memory_per_gpu_gb": [83.97, 1.0]}},
    ]  # fmt: skip
    (trial,) = TrialHistory.of(json.loads(json.dumps(records))).trials
    assert trial.outcome.peak_memory_gib == pytest.approx(78.2, abs=0.005)
    assert trial.outcome.memory_margin == pytest.approx(78.2 / 80 - 1, abs=1e-4)
    assert trial.statistics["peak_memory_per_gpu_gib"] == pytest.approx([78.2, 0.9313], abs=0.005)


def test_a_spec_of_version_0_1(tmp_path):
    text = "instance = 'pco16'\ncommand = ['x', '{configuration}']\n[trial]\nmemory_gb = 70\n"
    assert parse_spec(text, origin="s", folder=tmp_path).memory_gib == 70
    with pytest.raises(
        parabolt.errors.SpecError, match=r"expected memory_gib, in GiB .*, got memory_gb of"
    ):
        parse_spec(text.replace("'x'", "'{memory_gb}'"), origin="s", folder=tmp_path)
