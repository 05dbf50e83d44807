import json
import re
import struct
import sys

import pytest

import parabolt
from parabolt.analysis.report import write_report
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.runner import run_all
from parabolt.experiments.store import RunStore


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return run_all(
        [parabolt.load_problem("pco32"), parabolt.load_problem("pco64")],
        ["random", "tpe"], range(3),
        protocol=lambda _: Protocol(n_evaluations=8),
        store=RunStore(tmp_path_factory.mktemp("runs")), n_jobs=1,
    )  # fmt: skip


def test_page_holds_the_leaderboard_and_needs_no_network(runs, tmp_path):
    page = write_report(runs, tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "http" not in text
    assert re.findall(r"<h2>(pco\d\d)</h2>", text) == ["pco32", "pco64"]
    rows = re.findall(r"<tr><td>(\w+)</td><td>(\d+)/3</td>", text)
    scores = json.loads((tmp_path / "leaderboard.json").read_text())
    assert rows == [(s["optimizer"], str(s["n_found"])) for s in scores]
    assert "SHA-256 3c4334851441" in text


def test_figure_is_a_png_of_a_size_to_look_at(runs, tmp_path):
    write_report(runs, tmp_path)
    data = (tmp_path / "regret.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert width > 1000
    assert height > 600


def test_without_matplotlib_the_page_says_what_to_install(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    text = write_report(runs, tmp_path).read_text(encoding="utf-8")
    assert "matplotlib is not installed; try: pip install" in text
    assert not (tmp_path / "regret.png").exists()


def test_a_directory_that_cannot_be_written(runs, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(parabolt.OptionError, match="cannot write the report to"):
        write_report(runs, tmp_path / "file")
