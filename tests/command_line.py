"""The `parabolt` command in a process of its own that need not import the package first.

Each call is a real process, with its own exit status, output, environment and working directory.
It is forked from a server that has imported the commands already, because importing takes longer
than most of what the tests ask for.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

#: The installed command, for tests that need a process of another kind.
COMMAND = Path(sys.executable).with_name("parabolt")
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        "parabolt.cli.main", "parabolt.problems.registry", "parabolt.optimizers.registry",
        "parabolt.experiments.runner", "parabolt.analysis.report", "parabolt.analysis.charts",
        "scipy.optimize", "scipy.stats", "pyarrow.parquet", "plotly.graph_objects",
    ]
)  # fmt: skip


def parabolt(*arguments, cwd=None, timeout_s=300):
    """What `parabolt ARGUMENTS` leaves behind, as `subprocess.run` with captured text tells it."""
    words = [str(word) for word in arguments]
    if "COVERAGE_PROCESS_START" in os.environ:  # a recording of lines follows new programs alone
        return subprocess.run(
            [COMMAND, *words], capture_output=True, text=True, check=False, cwd=cwd
        )
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        place = Path(cwd or ".").resolve()
        process = _SERVER.Process(target=_run, args=(words, place, dict(os.environ), out, err))
        process.start()
        process.join(timeout_s)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(words, timeout_s, out.read_bytes(), err.read_bytes())
        status = process.exitcode
        process.close()
        return subprocess.CompletedProcess(words, status, out.read_text(), err.read_text())


def _run(arguments, cwd, environment, out, err):
    from parabolt.cli.main import run

    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = [str(COMMAND), *arguments]
    run()
