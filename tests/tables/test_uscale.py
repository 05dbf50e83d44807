"""The tables of the Ultra-Scale Playbook's sweep: figures of the source, and their script."""

import csv
import importlib.util
import re
from importlib import resources
from pathlib import Path

import pytest

import parabolt
from parabolt.errors import InstanceError, TableError
from parabolt.instances.catalogue import instance_text, load_instance, parse_instance
from parabolt.outcome import OOM_MARGIN, Outcome, Source, Status
from parabolt.problems.registry import problem_names
from parabolt.space.configuration import Configuration
from parabolt.tables.reading.number_lists import parse_number_lists
from parabolt.tables.sources import EMBEDDED, USCALE, WITHOUT_OPTIMUM, locate

ROOT = Path(__file__).parents[2]
TOKENS = 256 * 4096

#: Runs in the source, distinct consistent configurations (without those of the 80B's other shape
#: only), and how many of them finished.
COUNTS = {
    "1b": {8: (65, 60, 30), 16: (120, 117, 59), 32: (127, 123, 68), 64: (149, 142, 95),
           128: (158, 156, 121), 256: (111, 108, 93), 512: (78, 78, 61)},
    "8b": {8: (61, 60, 13), 16: (116, 114, 35), 32: (122, 121, 55), 64: (145, 144, 72),
           128: (176, 176, 116), 256: (122, 119, 111), 512: (93, 93, 88)},
    "80b": {8: (57, 57, 0), 16: (87, 87, 0), 32: (125, 118, 4), 64: (150, 139, 15),
            128: (185, 176, 28), 256: (122, 113, 30), 512: (95, 95, 45)},
}  # fmt: skip
BY_NAME = {f"uscale-{m}-{n}": c for m, counts in COUNTS.items() for n, c in counts.items()}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("uscale", ROOT / "scripts" / "uscale.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_names_and_sizes():
    assert set(USCALE) == set(BY_NAME)
    assert sum(n_runs for n_runs, _, _ in BY_NAME.values()) == 2464
    folder = resources.files("parabolt.tables") / "embedded"
    assert sum(len((folder / f"{name}.parquet").read_bytes()) for name in EMBEDDED) < 1_000_000


@pytest.mark.parametrize("name", USCALE)
def test_counts_are_those_of_the_source(name):
    n_runs, n_rows, n_finished = BY_NAME[name]
    table = parabolt.load_table(name)
    assert (len(table), int(table.is_feasible.sum())) == (n_rows, n_finished)
    assert {str(outcome.status) for outcome in table.outcomes} <= {"ok", "failed"}
    card = (ROOT / "data" / name / "README.md").read_text(encoding="utf-8")
    assert f"- Of {n_runs} runs " in card
    assert f"{n_finished} of {n_rows}\n  configurations run" in card


@pytest.mark.parametrize("name", USCALE)
def test_each_table_has_a_card_that_holds_and_is_the_embedded_one(name):
    located = locate(ROOT / "data" / name)
    assert list(located.verify().findings) == []
    assert located.load().content_hash == parabolt.load_table(name).content_hash
    assert located.instance == load_instance(name)
    assert (ROOT / "data" / name / "instance.toml").read_text() == instance_text(name)


#: Runs of the source: dp, tp, pp, micro-batch, ZeRO; tokens/s and memory, None for a failure.
RUNS = [
    ("uscale-1b-8", (8, 1, 1, 2, 0), (321_200, 50.2)),
    ("uscale-1b-256", (2, 16, 8, 2, 1), (107_725, 2.9)),
    ("uscale-8b-256", (32, 1, 8, 1, 1), (83_500, 45.3)),
    ("uscale-80b-512", (2, 32, 8, 4, 1), (13_880, 22.4)),
    ("uscale-8b-32", (1, 2, 16, 256, 0), None),
    ("uscale-80b-64", (2, 4, 8, 8, 1), None),
    # Two runs that both finished, with very different figures: their median.
    ("uscale-8b-16", (2, 8, 1, 1, 1), ((55_189 + 11_792) / 2, (19.2 + 17.8) / 2)),
    # Three runs, of which one (9,014 tokens/s at 13.0 % MFU: 456 GFLOP per token) is of the other
    # shape, and left out.
    ("uscale-80b-32", (1, 8, 4, 1, 0), ((9_120 + 8_042) / 2, (66.0 + 66.3) / 2)),
]


@pytest.mark.parametrize(("name", "knobs", "figures"), RUNS)
def test_rows_are_those_of_the_source(name, knobs, figures):
    table = parabolt.load_table(name)
    values = dict(zip(("dp", "tp", "pp", "micro_batch", "zero"), knobs, strict=True))
    found = table.outcomes[table.space.row(Configuration(bucket=25, **values))]
    if figures is None:
        assert found == Outcome(Status.FAILED)
        return
    tokens_per_s, memory_gib = figures
    assert found.throughput * TOKENS == pytest.approx(tokens_per_s, rel=1e-12)
    assert found.peak_memory_gib == pytest.approx(memory_gib, rel=1e-12)
    assert found.memory_margin == pytest.approx(memory_gib / 79.6475 - 1, rel=1e-12)
    assert (found.status, found.throughput_source) == (Status.OK, Source.MEASURED)


def test_repeats_are_kept_and_contradictions_marked():
    table = parabolt.load_table("uscale-8b-16")
    lists = parse_number_lists(table.data.column("throughput_repeats"))
    assert (lists.numbers * TOKENS).round(6).tolist() == [55_189, 11_792]
    marked = {
        name: sum(table.data.column("is_contradictory").to_pylist())
        for name in USCALE
        if "is_contradictory" in (table := parabolt.load_table(name)).data.column_names
    }
    assert {name: n for name, n in marked.items() if n} == {
        "uscale-1b-8": 3, "uscale-1b-16": 2, "uscale-1b-32": 2, "uscale-1b-64": 2,
    }  # fmt: skip


def test_the_row_says_which_shape_an_80b_has():
    table = parabolt.load_table("uscale-80b-512")
    shapes = table.data.column("model_shape").to_pylist()
    finished = table.is_feasible.tolist()
    assert {s for s, ok in zip(shapes, finished, strict=True) if not ok} == {"not recorded"}
    assert "without grouped queries" in shapes
    assert "with grouped queries" not in shapes
    assert "model_shape" not in parabolt.load_table("uscale-8b-8").data.column_names


def test_instances_without_a_finished_run_are_tables_and_no_problems():
    assert WITHOUT_OPTIMUM == ("uscale-80b-8", "uscale-80b-16")
    assert set(EMBEDDED) - set(problem_names()) == set(WITHOUT_OPTIMUM)
    for name in WITHOUT_OPTIMUM:
        with pytest.raises(TableError, match="expected a feasible row, got none"):
            parabolt.load_problem(name)


def test_what_is_imputed_for_a_failed_run_is_marked():
    problem = parabolt.load_problem("uscale-8b-8")
    told = parabolt.ImputedProblem(problem).evaluate_many(problem.space.encoded)
    failed = ~told.is_feasible
    assert failed.sum() == 47
    assert set(told.memory_margin[failed]) == {OOM_MARGIN}
    assert {told[i].memory_source for i in failed.nonzero()[0]} == {Source.IMPUTED}


def test_the_dialect_of_the_sweep():
    instance = load_instance("uscale-8b-16")
    across_hosts = Configuration(bucket=25, dp=1, tp=16, pp=1, micro_batch=1)
    instance.check(across_hosts)  # tensor parallelism over both hosts
    uneven = Configuration(bucket=25, dp=1, tp=1, pp=16, micro_batch=1)
    load_instance("uscale-1b-16").check(uneven)
    reasons = {
        Configuration(bucket=25, dp=1, tp=16, pp=1, zero=1, micro_batch=1): "replicas to share",
        Configuration(bucket=25, dp=2, tp=16, pp=1, micro_batch=1): "expected the 16 GPUs",
        Configuration(bucket=25, dp=16, tp=1, pp=1, micro_batch=32): "does not divide the batch",
    }
    for configuration, reason in reasons.items():
        with pytest.raises(parabolt.errors.InvalidConfigurationError, match=reason):
            instance.check(configuration)
    assert instance.workload.is_sequence_parallel
    with pytest.raises(
        InstanceError, match=r"unknown dialect 'x': expected one of any, bolt, .*nanotr"
    ):
        parse_instance(
            instance_text("uscale-8b-16").replace('dialect = "nanotron"', 'dialect = "x"'),
            origin="i",
        )


def row(**changes):
    own = {
        "model": "3B", "nodes": 2, "gpus": 16, "dp": 16, "tp": 1, "pp": 1, "mbs": 2, "grad_acc": 8,
        "gbs": 256, "zero": 0, "status": "ok", "mfu_percent": 40.0, "tokens_per_s_per_gpu": 17_000,
        "tokens_per_s": 272_000, "gpu_memory_gb": 60.5, "consistent": 1,
    }  # fmt: skip
    return own | changes


FAILED = {
    "status": "crashed_or_oom", "mfu_percent": "", "tokens_per_s_per_gpu": "", "tokens_per_s": "",
    "gpu_memory_gb": "",
}  # fmt: skip


def written(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row()))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_script_builds_another_family_unchanged(script, tmp_path, capsys):
    rows = [
        row(),
        row(mbs=1, grad_acc=16, tokens_per_s=250_000, gpu_memory_gb=40),
        row(mbs=1, grad_acc=16, **FAILED),
        row(dp=8, tp=2, grad_acc=16, **FAILED),
        row(dp=8, tp=4),  # 32 GPUs: inconsistent, though it is said to be consistent
        row(mbs=4, consistent=0),
        row(nodes=1, gpus=8, dp=8, grad_acc=16, **FAILED),
        row(nodes=1, gpus=8, dp=4, tp=2, grad_acc=32, zero=1, **FAILED),
    ]
    script.main(written(tmp_path / "runs.csv", rows), tmp_path / "out")
    assert "uscale-3b-16: 6 runs, 3 candidates, 2 finished" in capsys.readouterr().out
    problem = parabolt.load_problem(tmp_path / "out" / "uscale-3b-16")
    assert problem.instance.model.n_layers == 28
    assert problem.instance.model.is_tied
    assert problem.optimum.value == 272_000 / TOKENS
    table = problem.table
    assert [o.status for o in table.outcomes] == ["ok", "ok", "failed"]
    assert table.data.column("is_contradictory").to_pylist() == [False, True, False]
    card = (tmp_path / "out" / "uscale-3b-16" / "README.md").read_text(encoding="utf-8")
    assert "- Of 6 runs 2 are left out" in card
    assert "1 configurations have several runs" in card
    assert "1 of them finished once and failed once" in card
    with pytest.raises(TableError, match="expected a feasible row"):
        parabolt.load_problem(tmp_path / "out" / "uscale-3b-8")


def test_a_family_of_other_sizes_is_searched_with_the_published_ones_as_history(script, tmp_path):
    """Sizes and counts come from the file: 1,024 GPUs are on no published table."""
    sizes = [
        (256, 4, 1, 1, 0),
        (128, 8, 1, 2, 1),
        (128, 4, 2, 2, 0),
        (64, 4, 4, 4, 1),
        (64, 16, 1, 1, 0),
    ]
    rows = [
        row(nodes=128, gpus=1024, dp=dp, tp=tp, pp=pp, mbs=mbs, zero=zero,
            grad_acc=256 // (dp * mbs), tokens_per_s=5_000_000 + 1_000 * tp)
        for dp, tp, pp, mbs, zero in sizes
    ]  # fmt: skip
    script.main(written(tmp_path / "runs.csv", rows), tmp_path / "out")
    (folder,) = (tmp_path / "out").iterdir()
    assert folder.name == "uscale-3b-1024"
    protocol = {
        "n_initial": 0, "min_feasible": 0, "n_evaluations": 4, "repeats": "avoid",
        "history": "leave-one-model-out",
    }  # fmt: skip
    methods = ["parabolt", "best-of-history", "mean-rank", "rgpe"]
    results = parabolt.run_study(folder, methods, seeds=1, protocol=protocol, executor="local:1")
    assert {run.key.optimizer for run in results.counted()} == set(methods)
    assert {run.key.problem for run in results.counted()} == {"uscale-3b-1024"}
    assert all(len(set(map(str, run.configurations))) == 4 for run in results.counted())


@pytest.mark.parametrize(
    ("mfu", "tokens_per_s_per_gpu", "shape"),
    [
        (14.8, 285, "without grouped queries"),  # 513.8 GFLOP per token
        (13.0, 282, "with grouped queries"),  # 456.2
        (0.1, 2, "not recorded"),  # 198 to 990 within the rounding
    ],
)
def test_gflop_per_token_tell_the_shapes_apart(mfu, tokens_per_s_per_gpu, shape, script):
    figures = row(model="80B", mfu_percent=mfu, tokens_per_s_per_gpu=tokens_per_s_per_gpu)
    assert script.shape_of("80B", {k: str(v) for k, v in figures.items()}) == shape
    assert script.shape_of("8B", {}) == "without grouped queries"


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([row(model="2B")], "expected models among 1B, 3B, 8B, 80B, got ['2B']"),
        ([row(status="fine")], "expected status ok or crashed_or_oom, got ['fine']"),
    ],
)
def test_another_file_is_refused(rows, complaint, script, tmp_path):
    with pytest.raises(SystemExit, match=re.escape(complaint)):
        script.main(written(tmp_path / "runs.csv", rows), tmp_path / "out")
    (tmp_path / "bad.csv").write_text("model\n1B\n")
    with pytest.raises(SystemExit, match="missing"):
        script.main(tmp_path / "bad.csv", tmp_path / "out")
