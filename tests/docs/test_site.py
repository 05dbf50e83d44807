"""The site builds strictly, and nothing is fetched when a page is read."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import parabolt
from parabolt.analysis.leaderboard import leaderboard, score_cells
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
from parabolt.experiments.study import read_study

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_site(tmp_path):
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert {"index.html", "semantics.html", "faq.html"} <= {path.name for path in pages}
    fetched = r"<(?:script|img|iframe|source)[^>]+src=\"?https?:|<link[^>]+href=\"?https?:"
    for path, text in pages.items():
        assert not re.search(fetched, text), path
    for path in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import", path.read_text(encoding="utf-8")), path
    integrations = pages[site / "api" / "integrations.html"]
    for name in ("botorch.PCO32", "optuna.Objective", "carps.make_task", "ray_tune.trainable"):
        assert f'id="parabolt.integrations.{name}"' in integrations
    assert (site / "reports" / "grid.html").exists()


def test_the_grid_page_is_of_the_study_and_of_the_embedded_data():
    report = html.unescape((ROOT / "docs" / "reports" / "grid.html").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "grid.md").read_text(encoding="utf-8")
    study = read_study(ROOT / "benchmarks" / "studies" / "grid.toml")
    for name in study.problems:
        problem = parabolt.load_problem(name)
        board = report[report.index(f"<h2>{name}</h2>") :]
        board = re.sub("</?span[^>]*>", "", board[: board.index("</table>")])
        lines = re.findall("<tr[^>]*>.*?</tr>", board)
        rows = [re.findall("<td>(.*?)</td>", line) for line in lines][1:]
        assert {row[0] for row in rows} == {choice.label for choice in study.optimizers}
        assert f"{name}: data {problem.version}, SHA-256 {problem.content_hash[:12]}" in report
        for row in rows:
            assert f"| {' | '.join(row)} |" in page
        (random,) = (row for row in rows if row[0] == "random")
        protocol = Protocol.published(name)
        keys = [RunKey.of(problem, "random", seed, protocol) for seed in study.seeds]
        again = score_cells(leaderboard([execute(problem, key) for key in keys])[0])
        assert random[:-1] == again[:-1]  # all but its time per step


def test_pictures_and_pages_that_pages_name_exist():
    for page in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page}: {target}"
