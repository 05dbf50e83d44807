import ast
import importlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import parabolt
from parabolt.experiments.executors.executor import TaskResult, guarded
from parabolt.optimizers.registry import LIBRARY_OPTIMIZERS, OPTIMIZERS

# An example may take long on a busy machine.
settings.register_profile("parabolt", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("parabolt")

PUBLISHED = ("pco32", "pco64")


def pytest_addoption(parser):
    parser.addoption(
        "--strict-skips", action="store_true", help="fail the session if any test was skipped"
    )
    parser.addoption(
        "--installed-only",
        action="store_true",
        help="leave out tests of libraries that are not installed",
    )


def pytest_ignore_collect(collection_path, config):
    """Leaves out a file that imports a library which is not here, if that was asked for."""
    if not config.getoption("--installed-only") or collection_path.suffix != ".py":
        return None
    imports = [
        name
        for node in ast.parse(collection_path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
    ]
    return None if all(map(_can_import, imports)) else True


def pytest_collection_modifyitems(config, items):
    """Leaves out tests marked with a library that is not here, if that was asked for."""
    if not config.getoption("--installed-only"):
        return
    missing = [item for item in items if not _has_its_libraries(item)]
    config.hook.pytest_deselected(items=missing)
    items[:] = [item for item in items if item not in missing]


def _has_its_libraries(item):
    """Whether the libraries are here that a test names: by its mark, or by an optimizer."""
    named = [name for mark in item.iter_markers("needs") for name in mark.args]
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    optimizers = OPTIMIZERS | LIBRARY_OPTIMIZERS
    addresses = [optimizers[v] for v in values if isinstance(v, str) and v in optimizers]
    return all(map(_can_import, [*named, *(text.split(":")[0] for text in addresses)]))


@cache
def _can_import(name):
    try:
        importlib.import_module(name)
    except (ImportError, parabolt.MissingDependencyError):
        return False
    return True


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--strict-skips") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


class Here:
    """Runs tasks in this very process: for what does not depend on where they run."""

    n_workers = 1

    def map(self, function, items, limits):
        for index, item in enumerate(items):
            yield TaskResult(index, *guarded(function, item))


@pytest.fixture
def here():
    return Here()


@pytest.fixture(params=PUBLISHED)
def problem(request):
    return parabolt.load_problem(request.param)


@pytest.fixture
def pco32():
    return parabolt.load_problem("pco32")


@pytest.fixture
def pco64():
    return parabolt.load_problem("pco64")


@pytest.fixture(scope="module")
def slurm_cluster(tmp_path_factory):
    """A real Slurm with two nodes on this machine, that the commands of Slurm talk to."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    programs = ("sbatch", "slurmctld", "slurmd", "munged")
    if missing := [name for name in programs if not shutil.which(name, path=path)]:
        pytest.skip(f"no Slurm here: {', '.join(missing)} missing")
    script = Path(__file__).parent / "slurm_cluster.sh"
    folder = tmp_path_factory.mktemp("slurm")
    subprocess.run([script, "start", folder], check=True, timeout=90)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        yield folder
    subprocess.run([script, "stop", folder], check=True, timeout=30)
