"""`parabolt table` as a process: output, JSON and exit status."""

import json

import pytest

import command_line
import parabolt


def run(*arguments):
    return command_line.parabolt("table", *arguments)


@pytest.fixture
def sweep(tmp_path):
    path = tmp_path / "sweep.csv"
    parabolt.load_table("pco32").to_csv(path)
    return path


def test_build_verify_diff(sweep, tmp_path):
    out = str(tmp_path / "out")
    built = run("build", str(sweep), "--instance", "pco32", "--out", out)
    assert built.returncode == 0, built.stderr
    assert "379 rows, 339 feasible, no findings" in built.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "README.md", "data.parquet", "instance.toml",
    ]  # fmt: skip
    card = (tmp_path / "out" / "README.md").read_text()
    assert "license: mit\npretty_name: BoLT Parallelism Configuration (32 GPUs)" in card
    verified = run("verify", out, "--json")
    assert verified.returncode == 0
    found = json.loads(verified.stdout)
    assert (found["n_findings"], found["has_card"], found["best_row"]) == (0, True, 374)
    same = run("diff", "pco32", out)
    assert (same.returncode, same.stdout) == (0, "no difference\n")
    again = run("build", str(sweep), "--instance", "pco32", "--out", out)
    assert again.returncode == 2
    assert again.stderr.startswith("error: ")
    assert "exists already" in again.stderr


def test_findings_give_exit_status_1(sweep, tmp_path):
    lines = sweep.read_text().splitlines()
    lines[1] = lines[1].replace(",40,40,", ",41,40,", 1)
    lines[5] = lines[5].replace(",40,40,", ",40,39,", 1)
    sweep.write_text("\n".join([*lines, ""]))
    verified = run("verify", str(sweep), "--json", "--instance", "pco32")
    assert verified.returncode == 1
    findings = json.loads(verified.stdout)["findings"]
    assert [(f["row"], f["column"], f["expected"], f["found"]) for f in findings] == [
        (0, "num_layers", "40 as pco32 has it", "41"),
        (4, "num_attention_heads", "40 as pco32 has it", "39"),
    ]
    shown = run("verify", str(sweep), "--instance", "pco32", "--limit", "1")
    assert shown.returncode == 1
    assert "num_layers" in shown.stdout
    assert "and 1 more; try --limit 0" in shown.stdout
    built = run("build", str(sweep), "--instance", "pco32", "--out", str(tmp_path / "out"))
    assert built.returncode == 1
    assert "wrote" not in built.stdout


def test_a_difference_gives_exit_status_1(sweep, tmp_path):
    lines = sweep.read_text().splitlines()
    sweep.write_text("\n".join([lines[0], *lines[2:], ""]))
    shown = run("diff", "pco32", str(sweep))
    assert shown.returncode == 1
    assert "configurations of the first only: 1" in shown.stdout
    found = json.loads(run("diff", "pco32", str(sweep), "--json").stdout)
    assert found["only_a"][0]["dp"] == 2
    assert found["columns"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "pco33"], "unknown table 'pco33': expected one of pco32, pco4-cpu, pco64"),
        (["verify", "hub:a/b"], "expected hub:ORG/NAME@REVISION, got 'hub:a/b'"),
        (["verify", "absent.csv", "--instance", "pco32"], "cannot read absent.csv"),
        (["verify", "pco16"], "without an embedded table"),
        (["verify", "pco32", "--source", "web"], "expected embedded or hub, got 'web'"),
        (["push", ".", "--repo", "a/b"], "expected one Parquet file, got none"),
    ],
)
def test_errors_are_one_line_with_exit_status_2(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed = run(*arguments)
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr.startswith("error: ")
    assert message in failed.stderr
    assert failed.stderr.count("\n") == 1
