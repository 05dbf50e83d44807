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
from parabolt.experiments.packed import published_files, read_packed
from parabolt.experiments.results import have_same_evaluations
from parabolt.experiments.run import execute
from parabolt.experiments.study import read_study

ROOT = Path(__file__).parents[2]
GRID = ROOT / "benchmarks" / "studies" / "grid.toml"
#: Made when the site is built.
MADE = ("grid.html", "uscale.html")


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
    report = html.unescape(pages[site / "reports" / "grid.html"])
    for name in read_study(GRID).problems:
        problem = parabolt.load_problem(name)
        assert f"{name}: data {problem.version}, SHA-256 {problem.content_hash[:12]}" in report
    for made in MADE:
        assert f'href="reports/{made}"' in pages[site / "grid.html"]
    suite = html.unescape(pages[site / "reports" / "uscale.html"])
    for name in ("uscale-1b-64", "uscale-8b-64", "uscale-80b-64"):
        assert f"SHA-256 {parabolt.load_problem(name).content_hash[:12]}" in suite
    assert len(suite) < 12e6


def test_the_grid_page_is_of_the_study_and_of_the_embedded_data():
    page = (ROOT / "docs" / "grid.md").read_text(encoding="utf-8")
    study = read_study(GRID)
    (store,) = (path for path in published_files() if path.stem == "grid")
    runs, failed = read_packed(store)
    assert failed == []
    problems = [parabolt.load_problem(name) for name in study.problems]
    assert [run.key for run in runs] == [key for _, key in study.keys(problems)]
    for problem in problems:
        section = page[page.index(f"## {problem.name}\n") :].split("\n## ")[0]
        lines = [line.strip("| ").split(" | ") for line in section.splitlines() if "| " in line]
        own = [run for run in runs if run.key.problem == problem.name]
        assert lines[1:] == [list(score_cells(score)) for score in leaderboard(own)]
        stored = [run for run in own if run.key.optimizer == "random"]
        for run, again in zip(stored, [execute(problem, run.key) for run in stored], strict=True):
            assert have_same_evaluations(run, again)


def test_pictures_and_pages_that_pages_name_exist():
    for page in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if not target.startswith("http") and target not in {f"reports/{made}" for made in MADE}:
                assert (page.parent / target).exists(), f"{page}: {target}"
