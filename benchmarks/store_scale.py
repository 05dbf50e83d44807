"""Ten thousand runs in one store: time of `study status`, time and memory of the full analysis.

Usage: python benchmarks/store_scale.py [FOLDER]

The runs are real random runs on pco32 and pco64, stored under eight labels and 625 seeds each. What
is timed runs in processes of its own; memory is the largest resident set.
"""

import dataclasses
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import parabolt
from parabolt.experiments.manifest import save_manifest
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
from parabolt.experiments.store import RunStore
from parabolt.experiments.study import OptimizerChoice, Study

N_LABELS, N_SEEDS, N_REAL = 8, 625, 25


def fill(folder: Path) -> None:
    """Stores the runs and what makes the directory a study."""
    problems = [parabolt.load_problem(name) for name in ("pco32", "pco64")]
    labels = [f"method-{number}" for number in range(N_LABELS)]
    study = Study(
        problems=("pco32", "pco64"),
        optimizers=tuple(OptimizerChoice("random", label) for label in labels),
        seeds=tuple(range(N_SEEDS)),
    )
    store = RunStore(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_manifest(study, problems, [key for _, key in study.keys(problems)], folder)
    for problem in problems:
        protocol = Protocol.published(problem.name)
        real = [
            execute(problem, RunKey.of(problem, "random", seed, protocol)) for seed in range(N_REAL)
        ]
        for number, label in enumerate(labels):
            for seed in range(N_SEEDS):
                key = RunKey.of(problem, label, seed, protocol, method="random")
                store.save(dataclasses.replace(real[(seed * (number + 1)) % N_REAL], key=key))


def timed(what: str, *arguments: str, target_s: float) -> None:
    """Runs the command line and prints how long it took."""
    start = time.perf_counter()
    command = [sys.executable, "-c", "from parabolt.cli.main import run; run()", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    peak_gib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    print(f"{what:<28} {seconds:7.2f} s (target {target_s:g}), largest so far {peak_gib:.2f} GB")


def main(folder: Path) -> None:
    """Fills a store unless it is filled, and times what a user does with it."""
    if len(RunStore(folder).finished()) < 2 * N_LABELS * N_SEEDS:
        fill(folder)
    timed("study status", "study", "status", str(folder), target_s=1)
    timed("full analysis and report", "report", str(folder), "--format", "html,csv", target_s=30)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
