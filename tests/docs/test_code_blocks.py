"""Every fenced Python and shell block of the documentation runs, page by page, in order.

A block with `title="FILE"` is that file; one with `title="output"` must be in what the block before
it printed. `pip install` lines are checked against the extras, not run. Each page runs in a process
and an empty directory of its own.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

#: Pages that take more than ten seconds.
SLOW = {"how-to/ax.md", "how-to/botorch.md", "how-to/carps.md", "how-to/guests.md",
        "how-to/nevergrad.md", "how-to/optuna.md", "how-to/own-optimizer.md", "how-to/ray-tune.md",
        "how-to/smac.md", "tune.md", "tutorials/researcher.md"}  # fmt: skip

#: Pages that need a file that no reader of the page makes, or an environment of their own: what
#: they are tested by instead, and how one sees it there.
ELSEWHERE = {
    "studies.md": ("tests/experiments/test_published_logs.py", "read_published"),
}

RUNNER = """
import contextlib, io, json, pathlib, subprocess, sys

names, printed = {"__name__": "page"}, ""
sys.path.insert(0, "")
for kind, title, code in json.loads(pathlib.Path("blocks.json").read_text()):
    if title == "output":
        for line in code.splitlines():
            assert line.strip() in printed, f"expected {line!r} in {printed!r}"
    elif title:
        pathlib.Path(title).write_text(code)
    elif kind == "python":
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, "block", "exec"), names)
        printed = out.getvalue()
    elif kind == "sh":
        done = subprocess.run(["bash", "-eu", "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, f"{code}{done.stdout}{done.stderr}"
        printed = done.stdout
"""


def blocks(page):
    for kind, title, code in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "sh":
            lines = code.splitlines(keepends=True)
            code = "".join(line for line in lines if not line.startswith("pip install"))
        yield kind, title, code


def pages():
    for page in sorted(DOCS.rglob("*.md")):
        name = page.relative_to(DOCS).as_posix()
        runs = any(kind in ("python", "sh") for kind, *_ in blocks(page))
        if runs and name not in ELSEWHERE:
            yield pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())


@pytest.mark.needs("optuna", "torch", "botorch", "matplotlib", "plotly", "huggingface_hub")
@pytest.mark.parametrize("name", list(pages()))
def test_blocks_run(name, tmp_path):
    (tmp_path / "blocks.json").write_text(json.dumps(list(blocks(DOCS / name))))
    scripts = str(Path(sys.executable).parent)
    environment = {
        **os.environ, "PATH": os.pathsep.join([scripts, os.environ["PATH"]]), "TQDM_DISABLE": "1"
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", RUNNER], cwd=tmp_path, env=environment, capture_output=True,
        text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


def test_pages_tested_elsewhere_are():
    for name, (test, sign) in ELSEWHERE.items():
        assert (DOCS / name).exists()
        assert sign in (ROOT / test).read_text()


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda p: p.stem)
def test_extras_that_are_named_exist(page):
    for extras in re.findall(r"parabolt\[([\w,-]+)\]", page.read_text(encoding="utf-8")):
        assert set(extras.split(",")) <= set(EXTRAS), extras


def test_every_integration_has_a_page_and_an_extra():
    modules = {path.stem for path in (ROOT / "src/parabolt/integrations").glob("*.py")}
    text = "".join(page.read_text() for page in [*(DOCS / "how-to").glob("*.md"), DOCS / "tune.md"])
    shared = {"__init__", "box", "candidate_walk", "cost", "library_optimizer", "step_report"}
    for module in modules - shared:
        assert f"parabolt.integrations.{module} import" in text, module
        assert f"::: parabolt.integrations.{module}" in (DOCS / "api/integrations.md").read_text()
