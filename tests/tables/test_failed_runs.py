"""Runs that failed for a reason that nobody recorded, and configurations that ran several times."""

import math

import numpy as np
import pytest

import parabolt
from parabolt.errors import TableError
from parabolt.instances.catalogue import parse_instance
from parabolt.outcome import OOM_MARGIN, Outcome, Source, Status
from parabolt.problems.imputation import ImputedProblem
from parabolt.tables.publishing.build import build
from parabolt.tables.sources import locate

TOML = """
name = "six"
model = {n_layers = 4, n_heads = 4, hidden_size = 8, ffn_size = 8}
cluster = {n_gpus = 4, n_hosts = 1, memory_gib = 80}
workload = {sequence_length = 8, batch_size = 8}
knobs = {dp = [1, 2, 4], tp = [1, 2, 4], pp = [1, 2, 4], bucket = [1]}
"""
SIX = parse_instance(TOML, origin="six")
CONTEXT = {
    "num_layers": 4, "num_attention_heads": 4, "hidden_size": 8, "ffn_hidden_size": 8,
    "batch_size": 8, "seq_length": 8, "log2_num_gpus": 2, "log2_num_hosts": 0,
}  # fmt: skip
#: dp, tp, pp as logarithms; whether it ran; throughput; peak memory; margin; status; the runs'
#: throughputs and peaks; whether they contradict each other. 20 of 80 is a margin of -0.75.
ROWS = [
    (2, 0, 0, "True", "0.5", "20", "-0.75", "ok", "", "", "False"),
    (1, 1, 0, "True", "0.3", "40", "-0.5", "ok", "[0.2, 0.4, 0.3]", "[40, 38, 44]", "False"),
    (1, 0, 1, "True", "0.25", "60", "-0.25", "ok", "[nan, 0.25]", "[nan, 60]", "True"),
    (0, 1, 1, "False", "", "", "", "failed", "[nan, nan]", "", "False"),
    (0, 0, 1, "False", "", "inf", "0.2", "oom", "", "", "False"),
]
HEADER = [
    "log2_dp_size", "log2_tp_size", "log2_pp_size", "ran_successfully", "throughput_mean",
    "peak_mem", "peak_mem_normalised", "status", "throughput_repeats", "peak_mem_repeats",
    "is_contradictory",
]  # fmt: skip
ROWS[4] = (0, 1, 1, *ROWS[4][3:])
ROWS[3] = (0, 0, 2, *ROWS[3][3:])


def written(path, rows=ROWS, without=()):
    kept = [i for i, name in enumerate(HEADER) if name not in without]
    lines = [[*(HEADER[i] for i in kept), *CONTEXT]]
    lines += [[*(f'"{row[i]}"' for i in kept), *CONTEXT.values()] for row in rows]
    path.write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n")
    return path


def changed(row, column, value):
    rows = [list(r) for r in ROWS]
    rows[row][HEADER.index(column)] = value
    return rows


def test_each_row_is_an_outcome(tmp_path):
    table = parabolt.Table.from_csv(written(tmp_path / "six.csv"), SIX)
    measured = {"throughput_source": Source.MEASURED, "memory_source": Source.MEASURED}
    assert list(table.outcomes) == [
        Outcome(Status.OK, 0.5, 20.0, -0.75, **measured),
        Outcome(Status.OK, 0.3, 40.0, -0.5, **measured),
        Outcome(Status.OK, 0.25, 60.0, -0.25, **measured),
        Outcome(Status.FAILED),
        Outcome.oom(),
    ]
    assert table.is_feasible.tolist() == [True, True, True, False, False]
    without = written(tmp_path / "a.csv", without=["peak_mem_normalised"])
    margins = parabolt.Table.from_csv(without, SIX).outcomes.memory_margin
    assert margins[:3].tolist() == [-0.75, -0.5, -0.25]
    assert math.isnan(margins[3])
    assert margins[4] == OOM_MARGIN


def test_what_an_optimizer_is_told_of_a_failed_run_is_marked_imputed(tmp_path):
    table = parabolt.Table.from_csv(written(tmp_path / "six.csv"), SIX)
    problem = parabolt.TabularProblem(table)
    told = ImputedProblem(problem).evaluate_many(problem.space.encoded)
    imputed = (Source.IMPUTED, Source.IMPUTED)
    failed, oom = told[3], told[4]
    assert (failed.throughput_source, failed.memory_source) == imputed
    assert (failed.status, failed.memory_margin) == (Status.FAILED, OOM_MARGIN)
    # dp1 tp1 pp4 is nearest to dp2 tp1 pp2: one step in each of two knobs.
    assert failed.throughput == 0.25
    assert (oom.throughput_source, oom.memory_source) == (Source.IMPUTED, Source.NONE)
    assert list(told)[:3] == list(table.outcomes)[:3]


def test_the_card_names_the_third_truth(tmp_path):
    sweep = written(tmp_path / "six.csv")
    about = {"instance_text": TOML, "version": "v1", "title": "T", "license": "mit"}
    found = build(sweep, SIX, tmp_path / "out", **about)
    assert (found.facts.n_feasible, found.facts.n_failed, found.facts.n_oom) == (3, 1, 1)
    prose = " ".join((tmp_path / "out" / "README.md").read_text(encoding="utf-8").split())
    assert "3 of 5 configurations run; 1 exhaust GPU memory, and 1 did not finish, and it" in prose
    assert "whether for lack of memory or for a crash (`status` is `failed`)" in prose
    assert "`NaN` where the run did not finish" in prose
    assert "`inf` where the run ran out of memory, `NaN` where `status` is `failed`" in prose
    assert "no memory threshold separates the classes. `ran_successfully` does." in prose
    assert list(locate(tmp_path / "out").verify().findings) == []


def test_a_table_without_a_run_that_finished_has_a_card_and_is_no_problem(tmp_path):
    sweep = written(tmp_path / "six.csv", rows=ROWS[3:])
    about = {"instance_text": TOML, "version": "v1", "title": "T", "license": "mit"}
    build(sweep, SIX, tmp_path / "out", **about)
    located = locate(tmp_path / "out")
    assert list(located.verify().findings) == []
    card = located.card
    assert (card.n_feasible, card.best_throughput, card.best_settings) == (0, "", {})
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "## Best observed\n\nNone: no run finished.\n" in text
    with pytest.raises(TableError, match="expected a feasible row, got none"):
        parabolt.load_problem(tmp_path / "out")


FAULTS = [
    (0, "status", "oom", "status", "ok, as the run finished"),
    (0, "status", "failed", "status", "ok, as the run finished"),
    (0, "status", "", "status", "ok, as the run finished"),
    (4, "status", "ok", "status", "oom or failed"),
    (4, "status", "crashed", "status", "oom or failed"),
    (3, "peak_mem", "inf", "unmeasured", "NaN where status is failed"),
    (3, "peak_mem", "70", "unmeasured", "NaN where status is failed"),
    (4, "peak_mem", "", "unmeasured", "inf where the run ran out of memory"),
    (3, "peak_mem_normalised", "0.2", "margin", "NaN where status is failed"),
    (4, "peak_mem_normalised", "", "margin", "0.2 where the run ran out of memory"),
    (1, "throughput_mean", "0.31", "median", "0.3, the median of its runs that finished"),
    (2, "throughput_mean", "0.2500004", "median", "0.25, the median of its runs that finished"),
    (1, "throughput_repeats", "0.3", "list", "a list of numbers, such as [0.31, nan]"),
    (1, "peak_mem_repeats", "[40, x]", "list", "a list of numbers, such as [0.31, nan]"),
    (2, "is_contradictory", "False", "contradiction", "true where some runs finished and some not"),
    (3, "is_contradictory", "True", "contradiction", "true where some runs finished and some not"),
    (0, "is_contradictory", "", "type", "True or False"),
]


@pytest.mark.parametrize(("row", "column", "value", "rule", "expected"), FAULTS)
def test_a_fault_is_found_where_it_is(row, column, value, rule, expected, tmp_path):
    path = written(tmp_path / "six.csv", changed(row, column, value))
    found = list(locate(path, instance=SIX).verify().findings)
    assert [(f.row, f.column, f.rule) for f in found] == [(row, column, rule)]
    assert found[0].expected.startswith(expected)


def test_a_table_without_fault_has_no_findings(tmp_path):
    assert list(locate(written(tmp_path / "six.csv"), instance=SIX).verify().findings) == []
    # A figure within the last digits of its runs' median is that median.
    rows = changed(2, "throughput_mean", "0.2500001")
    assert list(locate(written(tmp_path / "b.csv", rows), instance=SIX).verify().findings) == []
    assert np.isnan(parabolt.Table.from_csv(tmp_path / "b.csv", SIX).outcomes.throughput[3])


def test_a_peak_is_the_median_of_its_runs(tmp_path):
    rows = changed(1, "peak_mem_repeats", "[39, 38, 44]")
    (found,) = locate(written(tmp_path / "six.csv", rows), instance=SIX).verify().findings
    assert (found.row, found.column, found.rule) == (1, "peak_mem", "median")
    assert found.expected == "39, the median of its runs that finished"
