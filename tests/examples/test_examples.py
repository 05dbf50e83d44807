"""Every numbered example runs and prints figures."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("[0-9][0-9]_*.py"))


def test_numbered():
    assert [path.name[:3] for path in EXAMPLES] == [f"{i:02d}_" for i in range(1, 8)]


@pytest.mark.needs("optuna", "torch", "botorch", "matplotlib", "plotly")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path):
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d", done.stdout)
    assert not list(tmp_path.iterdir()), "an example leaves no files"
