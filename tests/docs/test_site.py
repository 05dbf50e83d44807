"""The site builds strictly, and nothing is fetched when a page is read."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_site(tmp_path):
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    html = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert {"index.html", "semantics.html", "faq.html"} <= {path.name for path in html}
    fetched = r"<(?:script|img|iframe|source)[^>]+src=\"?https?:|<link[^>]+href=\"?https?:"
    for path, text in html.items():
        assert not re.search(fetched, text), path
    for path in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import", path.read_text(encoding="utf-8")), path
    integrations = html[site / "api" / "integrations.html"]
    for name in ("botorch.PCO32", "optuna.Objective", "carps.make_task", "ray_tune.trainable"):
        assert f'id="parabolt.integrations.{name}"' in integrations
    # A page that isn't written yet is left out of the navigation, one that is, is in it.
    for title, page in (("Real trials", "tune.md"), ("Planner", "planner.md")):
        assert (title in html[site / "index.html"]) == (ROOT / "docs" / page).exists()


def test_pictures_and_pages_that_pages_name_exist():
    for page in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page}: {target}"
