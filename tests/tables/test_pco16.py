"""pco16, which has no embedded table: gradient accumulation in place of context parallelism."""

import csv

import numpy as np

from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
from parabolt.instances.catalogue import load_instance
from parabolt.problems.registry import load_problem
from parabolt.space.configuration import Configuration
from parabolt.tables.publishing.card import parse_card
from parabolt.tables.schema import context_values, table_columns
from parabolt.tables.sources import locate

#: Parameter order of the published problem (bolt-bench 0.2.0, `PCO16.input_cols`).
INPUTS = [
    "log2_dp_size", "log2_tp_size", "log2_pp_size", "log2_sp_size", "log2_dp_bucket_size_mb",
    "zero_stage", "log2_num_model_chunks", "log2_grad_accum_steps",
]  # fmt: skip


def test_schema():
    instance = load_instance("pco16")
    columns = table_columns(instance)
    assert [c.name for c in columns if c.role == "input"] == INPUTS
    (fixed,) = [c for c in columns if c.name == "log2_cp_size"]
    assert (fixed.role, fixed.required) == ("context", False)
    assert context_values(instance)["log2_cp_size"] == 0
    assert "log2_grad_accum_steps" not in context_values(instance)


def test_problem_from_a_published_folder(pco16_table, published):
    folder = published(pco16_table)
    located = locate(folder)
    assert list(located.verify().findings) == []
    problem = load_problem(folder)
    assert problem.name == "pco16"
    assert [knob.column for knob in problem.knobs] == INPUTS
    best = int(np.nanargmax(pco16_table.outcomes.throughput))
    assert problem.optimum.configuration == pco16_table.space.candidates[best]
    published_best = Configuration(dp=16, bucket=256, zero=2, grad_accum=4)
    assert problem.space.row(published_best) >= 0
    card = parse_card((folder / "README.md").read_text(), origin="card")
    roles = {name: role for name, role, _ in card.columns}
    assert roles["log2_grad_accum_steps"] == "input"
    assert roles["log2_cp_size"] == "context"
    assert list(card.best_settings) == INPUTS


def test_context_parallel_may_be_left_out_but_not_differ(pco16_table, tmp_path):
    path = tmp_path / "a.csv"
    pco16_table.to_csv(path)
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    at = rows[0].index("log2_cp_size")

    def check(rows):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        return [(f.row, f.column, f.rule) for f in locate(path).verify().findings]

    assert check([row[:at] + row[at + 1 :] for row in rows]) == []
    rows[8][at] = "1"
    assert check(rows) == [(7, "log2_cp_size", "context")]
    rows[8][at] = "0"
    rows[3][rows[0].index("log2_grad_accum_steps")] = "4"
    assert (2, "log2_grad_accum_steps", "allowed_grad_accum") in check(rows)


def test_a_run_on_it(pco16_table, published):
    problem = load_problem(published(pco16_table))
    run = execute(problem, RunKey.of(problem, "random", 0, Protocol(n_evaluations=20)))
    assert len(run) >= 30
    assert run.optimum == np.nanmax(pco16_table.outcomes.throughput)
