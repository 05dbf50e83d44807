"""A release is built, checked and tried from an empty environment."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_release(tmp_path):
    command = [sys.executable, ROOT / "scripts" / "check_release.py", tmp_path / "dist"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("are fit to be released")
    assert len(list((tmp_path / "dist").iterdir())) == 2
