"""HEBO needs an older numpy than the rest of the tests, so it is tested in its own environment."""

import os
import subprocess
import venv
from pathlib import Path

import pytest

import parabolt

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_hebo_in_an_environment_of_its_own(tmp_path):
    venv.create(tmp_path / "environment", with_pip=True)
    python = tmp_path / "environment" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # torch as the extra `test` pins it
    install = ("pip", "install", "--quiet", f"{ROOT}[hebo]", "torch==2.13.0", "pytest",
               "pytest-timeout")  # fmt: skip
    inside = ("pytest", "--strict-skips", "-p", "no:cacheprovider",
              Path(__file__).with_name("hebo_environment.py"))  # fmt: skip
    for command in (install, inside):
        done = subprocess.run(
            [python, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def test_without_it_one_line_says_what_to_install(pco32):
    with pytest.raises(parabolt.MissingDependencyError, match=r"pip install 'parabolt\[hebo\]'"):
        parabolt.make_optimizer("hebo", pco32.space)
