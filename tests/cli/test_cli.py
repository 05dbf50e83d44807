"""The command line as a user meets it: real processes, exit statuses, one-line errors."""

import json
import subprocess
import sys

import pytest

from command_line import parabolt


def output(*arguments, **options):
    done = parabolt(*arguments, **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_problems():
    text = output("problems")
    assert "pco32" in text
    assert "379" in text
    lines = json.loads(output("problems", "--json"))
    assert [(p["problem"], p["n_candidates"], p["n_feasible"]) for p in lines[:4]] == [
        ("pco32", 379, 339),
        ("pco64", 780, 560),
        ("pco4-cpu", 80, 58),
        ("uscale-1b-8", 60, 30),
    ]


def test_a_failed_run_is_named_so():
    text = output("show", "uscale-8b-8")
    assert "60 candidates, 13 feasible, 47 failed (memory or a crash)" in text
    counts = json.loads(output("show", "uscale-8b-8", "--json"))
    assert [counts[f"n_{what}"] for what in ("feasible", "oom", "failed")] == [13, 0, 47]
    config = "dp=8 zero=0 bucket=25 micro_batch=1"
    assert "failed, and whether for memory or a crash is not recorded" in " ".join(
        output("evaluate", "uscale-8b-8", "--config", config).split()
    )


def test_show():
    text = output("show", "pco64")
    assert "780 candidates, 560 feasible, 220 out of memory" in text
    assert "dp16 tp4 pp1 cp1 sp4 bucket64 zero2 chunks1" in text
    assert "0.270684 iterations/s, 74.2 GiB" in text
    histograms = [int(line.split()[-1]) for line in text.splitlines() if " to " in line]
    assert len(histograms) == 24
    assert sum(histograms[:12]) == sum(histograms[12:]) == 560
    shown = json.loads(output("show", "pco64", "--json"))
    assert shown["direction"] == "maximize"
    assert shown["context"]["ffn_hidden_size"] == 25600
    assert shown["knobs"]["zero"] == [0, 2, 3]
    assert shown["optimum"]["throughput"] == 0.270684453437186


def test_evaluate():
    best = ("evaluate", "pco32", "--config", "dp=32 zero=2 bucket=256")
    text = output(*best)
    assert "dp32 tp1 pp1 cp1 sp1 bucket256 zero2 chunks1 on pco32: ok" in text
    assert "0.469576 iterations/s (measured), 0.00 % below the optimum" in text
    result = json.loads(output(*best, "--json"))
    assert result["throughput"] == 0.469575911560675
    assert result["configuration"]["bucket"] == 256


def test_evaluate_out_of_memory_gives_null_for_nan_and_a_text_for_infinity():
    result = json.loads(output("evaluate", "pco64", "--config", "dp=64 bucket=64", "--json"))
    assert result["status"] == "oom"
    assert result["throughput"] is None
    assert result["peak_memory_gib"] == "inf"
    text = output("evaluate", "pco64", "--config", "dp=64 bucket=64")
    assert "exhausted GPU memory" in text


def test_a_table_tells_failed_rows_apart():
    assert "60 rows, 13 feasible, 47 failed (memory or a crash), no findings" in " ".join(
        output("table", "verify", "uscale-8b-8").split()
    )
    counts = json.loads(output("table", "verify", "uscale-8b-8", "--json"))
    assert (counts["n_oom"], counts["n_failed"]) == (0, 47)


def test_bench_with_a_budget_of_ones_own(tmp_path):
    out = str(tmp_path / "x")
    arguments = ("bench", "uscale-8b-8", "--optimizers", "random", "--seeds", "2", "--out", out)
    (score,) = json.loads(output(*arguments, "--evaluations", "5", "--json"))["leaderboard"]
    assert score["n_evaluations"] == 15


@pytest.mark.needs("plotly", "matplotlib")
def test_bench(tmp_path):
    arguments = ("bench", "pco32", "--optimizers", "random,logeic", "--seeds", "2")
    text = output(*arguments, "--out", str(tmp_path / "x"))
    assert "pco32: 60 evaluations" in text
    assert str(tmp_path / "x" / "report.html") in text
    again = json.loads(output(*arguments, "--out", str(tmp_path / "x"), "--json"))
    assert {s["optimizer"] for s in again["leaderboard"]} == {"random", "logeic"}
    assert len(list((tmp_path / "x" / "runs").glob("*.parquet"))) == 4


STUDY = """
problems = ["pco32"]
optimizers = ["random", { name = "logeic", label = "eager", options = { n_initial = 5 } }]
seeds = 2

[protocol]
n_evaluations = 4
"""


@pytest.mark.needs("plotly", "matplotlib")
def test_a_study_from_file_to_report(tmp_path):
    (tmp_path / "mine.toml").write_text(STUDY)
    text = output("study", "run", "mine.toml", cwd=tmp_path)
    assert text == "4 of 4 runs done, 0 failed\n"
    folder = tmp_path / "runs" / "mine"
    state = json.loads(output("study", "status", str(folder), "--json"))
    assert (state["n_total"], state["n_done"], state["n_failed"]) == (4, 4, 0)
    next((folder / "runs").glob("pco32-eager-001-*")).unlink()
    (folder / "runs" / "x.tmp").write_text("half")
    assert "3 of 4 runs done" in output("study", "status", str(folder))
    assert output("study", "clean", str(folder)) == "removed 1 files\n"
    assert json.loads(output("study", "resume", str(folder), "--json"))["n_done"] == 4
    text = output("report", str(folder), "--format", "md,csv")
    assert text == f"report: {folder / 'report.md'}\n"
    assert "| eager |" in (folder / "report.md").read_text()
    against = ("report", str(folder), "--format", "md", "--against", "random", "--json")
    (comparison,) = json.loads(output(*against))["comparisons"]
    assert (comparison["first"], comparison["second"], comparison["n_seeds"]) == (
        "random",
        "eager",
        2,
    )
    assert comparison["smallest_holm_p"] == 0.5
    (needed,) = json.loads(output("study", "power", str(folder), "--against", "random", "--json"))
    assert (needed["second"], needed["n_comparisons"]) == ("eager", 1)
    assert output("study", "clean", str(folder), "--everything") == "removed 4 files\n"


def test_reports_of_several_directories(tmp_path):
    for name in ("a", "b"):
        text = STUDY.replace('"random"', f'{{ name = "random", label = "{name}" }}')
        (tmp_path / f"{name}.toml").write_text(text)
        output("study", "run", f"{name}.toml", cwd=tmp_path)
    together = json.loads(
        output("report", "runs/a", "--with", "runs/b", "--format", "csv", "--json", cwd=tmp_path)
    )
    assert {s["optimizer"] for s in together["leaderboard"]} == {"a", "b", "eager"}


def test_published_runs_beside_ones_own(tmp_path):
    import parabolt as package
    from parabolt.experiments.run import execute
    from parabolt.experiments.run_key import RunKey
    from parabolt.experiments.store import RunStore

    problem, protocol = package.load_problem("pco32"), package.Protocol.published("pco32")
    for label in ("mine", "random"):
        key = RunKey.of(problem, label, 4, protocol, method="random")
        for name in ("mine", "published"):
            RunStore(tmp_path / name).save(execute(problem, key))
    report = ("report", "mine", "--with", "published", "--against", "mine", "--format", "csv")
    told = json.loads(output(*report, "--json", cwd=tmp_path))
    scores = {s["optimizer"]: s for s in told["leaderboard"]}
    assert {s["problem"] for s in scores.values()} == {"pco32"}
    assert len(scores) == 17
    assert {s["n_runs"] for s in scores.values()} == {1}  # the seed that all have
    mine, theirs = scores["mine"], scores["random"]
    assert mine["final_regret_percent"] == theirs["final_regret_percent"]
    assert "160 runs of the published grid were added" in told["notes"]
    folder = ("report", "mine", "--with", "./published", "--format", "csv", "--json")
    assert len(json.loads(output(*folder, cwd=tmp_path))["leaderboard"]) == 2


def test_seeds_that_an_effect_needs():
    shown = output("study", "power", "--methods", "16", "--win-share", "1")
    rows = [line.split("│")[1:4] for line in shown.splitlines() if "100 %" in line]
    assert [[cell.strip() for cell in row[1:]] for row in rows] == [["15", "10"], ["120", "13"]]
    done = parabolt("study", "power", "--win-share", "0.4")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "win share: expected more than 0.5" in done.stderr


@pytest.mark.needs("plotly")
def test_the_landscape_of_a_table_of_ones_own(tmp_path):
    """Where `bench` ran it, where the study's file names it, and where it is brought."""
    import parabolt as package

    table = package.load_table("pco4-cpu")
    part = package.Table(table.data.slice(0, 60), table.instance)
    part.to_parquet(tmp_path / "mine.parquet")
    bench = ("bench", "mine.parquet", "--optimizers", "random", "--seeds", "1", "--out", "x")
    output(*bench, cwd=tmp_path)
    assert 'id="heat-0"' in (tmp_path / "x/report.html").read_text()
    output("report", "x", "--out", "again", cwd=tmp_path)
    assert 'id="heat-0"' in (tmp_path / "again/report.html").read_text()
    (tmp_path / "mine.parquet").rename(tmp_path / "moved.parquet")
    output("report", "x", "--out", "without", cwd=tmp_path)
    assert "No landscape of" in (tmp_path / "without/report.html").read_text()
    output("report", "x", "--problem", "moved.parquet", "--out", "brought", cwd=tmp_path)
    assert 'id="heat-0"' in (tmp_path / "brought/report.html").read_text()


def test_bench_leaves_a_study_that_can_be_resumed(tmp_path):
    output("bench", "pco32", "--optimizers", "random", "--seeds", "2", "--out", "x", cwd=tmp_path)
    next((tmp_path / "x" / "runs").glob("pco32-random-000-*")).unlink()
    assert "2 of 2 runs done" in output("study", "resume", "x", cwd=tmp_path)


def test_version_and_help():
    assert output("--version") == "parabolt 0.2.0\n"
    assert "bench" in output("--help")
    for command in ("problems", "show", "evaluate", "bench", "report", "study run", "study power"):
        assert "--json" in output(*command.split(), "--help")


def test_the_module_is_the_command():
    for arguments, status in ((["--version"], 0), (["show", "pco33"], 2)):
        command = [sys.executable, "-m", "parabolt", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        expected = parabolt(*arguments)
        assert done.returncode == expected.returncode == status
        assert (done.stdout, done.stderr) == (expected.stdout, expected.stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "pco33"], "unknown problem 'pco33': expected one of pco32, pco4-cpu, pco64"),
        (["show", "pco16"], "pco16 is a known instance without an embedded table"),
        (["show"], "Missing argument"),
        (["show", "pco32", "--frob"], "--frob"),
        (["frob"], "No such command 'frob'"),
        (["evaluate", "pco32"], "Missing option '--config'"),
        (["evaluate", "pco32", "--config", "dp=32"], "expected a size for bucket"),
        (["evaluate", "pco32", "--config", "dp=16 bucket=64"], "expected the 32 GPUs"),
        (["evaluate", "pco32", "--config", "dp=2 pp=8 cp=2 bucket=64"], "not among its 379"),
        (["bench", "pco32", "--optimizers", "sota"], "unknown optimizer 'sota'"),
        (["bench", "pco32", "--optimizers", ","], "optimizers: expected distinct names"),
        (["bench", "pco32", "pco32"], "problems: expected distinct names"),
        (["bench", "pco32", "--seeds", "0"], "seeds: expected a count up to"),
        (["bench", "pco32", "--seeds", "two"], "Invalid value for '--seeds'"),
        (["bench", "pco32", "--evaluations", "-1"], "n_evaluations: expected a whole number >= 0"),
        (["bench", "pco32", "--jobs", "0"], "jobs: expected -1 or a positive"),
        (["study", "run", "absent.toml"], "cannot read study file absent.toml"),
        (["study", "status", "absent"], "expected a study's directory, got absent"),
        pytest.param(
            ["report", "absent"],
            "expected runs in absent, got nothing there",
            marks=pytest.mark.needs("plotly"),
        ),
        (["bench", "pco32", "--executor", "spark://x"], "executor: expected local, local:N"),
        (["bench", "pco32", "--out", "/dev/null/x", "--optimizers", "random"], "cannot write"),
    ],
)
def test_misuse_is_one_line_and_status_2(arguments, message, tmp_path):
    done = parabolt(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
