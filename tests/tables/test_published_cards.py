"""Every number in the text of the two published data-set cards, against the embedded tables."""

import numpy as np
import pytest

import parabolt
from parabolt.space.configuration import Configuration
from parabolt.tables.schema import context_values

#: What the cards say (Hub data sets Glow-AI/pco32_tabular_data and pco64_tabular_data, v0.1.0).
CARDS = {
    "pco32": {
        "gpus": 32, "hosts": 8, "rows": 379, "feasible": 339, "largest_feasible_gb": 88.5,
        "context": {
            "num_layers": 40, "num_attention_heads": 40, "hidden_size": 5120,
            "ffn_hidden_size": 17408, "batch_size": 512, "seq_length": 8192,
            "log2_num_gpus": 5, "log2_num_hosts": 3, "log2_grad_accum_steps": 0,
        },
        "best": 0.46958, "best_gb": 82.6, "exact": 0.469575911560675,
        "at": Configuration(dp=32, bucket=256, zero=2),
    },
    "pco64": {
        "gpus": 64, "hosts": 16, "rows": 780, "feasible": 560, "largest_feasible_gb": 79.3,
        "context": {
            "num_layers": 64, "num_attention_heads": 64, "hidden_size": 5120,
            "ffn_hidden_size": 25600, "batch_size": 512, "seq_length": 8192,
            "log2_num_gpus": 6, "log2_num_hosts": 4, "log2_grad_accum_steps": 0,
        },
        "best": 0.27068, "best_gb": 74.2, "exact": 0.270684453437186,
        "at": Configuration(dp=16, tp=4, sp=4, bucket=64, zero=2),
    },
}  # fmt: skip


@pytest.fixture(params=CARDS)
def card(request):
    return parabolt.load_table(request.param), CARDS[request.param]


def test_counts(card):
    table, says = card
    assert len(table) == says["rows"]
    assert int(table.is_feasible.sum()) == says["feasible"]
    assert table.instance.cluster.n_gpus == says["gpus"]
    assert table.instance.cluster.n_hosts == says["hosts"]


def test_context_is_constant_and_as_stated(card):
    table, says = card
    for name, value in says["context"].items():
        assert set(table.data.column(name).to_pylist()) == {value}, name
    assert context_values(table.instance) == says["context"]


def test_best_row(card):
    table, says = card
    problem = parabolt.load_problem(table.instance.name)
    assert problem.optimum.value == says["exact"]
    assert round(problem.optimum.value, 5) == says["best"]
    assert problem.optimum.configuration == says["at"]
    assert round(problem.evaluate(says["at"]).peak_memory_gib, 1) == says["best_gb"]


def test_memory(card):
    table, says = card
    peak = table.outcomes.peak_memory_gib
    assert round(peak[table.is_feasible].max(), 1) == says["largest_feasible_gb"]
    assert np.isposinf(peak[~table.is_feasible]).all()
    margin = table.outcomes.memory_margin
    assert (margin[table.is_feasible] < 0).all()
    assert set(margin[~table.is_feasible]) == {0.2}


def test_columns_of_the_cards_are_in_the_schema(card):
    table, _ = card
    from parabolt.tables.schema import table_columns

    roles = {column.name: column.role for column in table_columns(table.instance)}
    inputs = [name for name, role in roles.items() if role == "input"]
    assert inputs == [
        "log2_dp_size", "log2_tp_size", "log2_pp_size", "log2_cp_size", "log2_sp_size",
        "log2_dp_bucket_size_mb", "zero_stage", "log2_num_model_chunks",
    ]  # fmt: skip
    assert roles["log2_grad_accum_steps"] == "context"
    outputs = {name for name, role in roles.items() if role == "output"}
    own = {"status", "throughput_repeats", "peak_mem_repeats", "is_contradictory"}
    assert outputs - own == {
        "ran_successfully", "throughput_mean", "throughput_std", "peak_mem_normalised",
        "overall_time", "all_time_steps", "peak_mem", "peak_mem_per_gpu",
    }  # fmt: skip


def test_zero_stage_stays_raw(card):
    table, _ = card
    assert set(table.data.column("zero_stage").to_pylist()) == {0, 2, 3}


def test_interpolated_figures_are_marked_as_such():
    interpolated = parabolt.outcome.SOURCES.index(parabolt.Source.INTERPOLATED)
    counts = {
        name: int((parabolt.load_table(name).outcomes.throughput_source == interpolated).sum())
        for name in CARDS
    }
    assert counts == {"pco32": 12, "pco64": 27}
