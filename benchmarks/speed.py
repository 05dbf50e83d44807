"""Speed of the everyday calls, beside what issue 1 asks for.

Usage: OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py, so that a step is one core's work

Prints one line per figure: what, the median with the range over repeats, and the target. Libraries
are imported before anything is timed; imports are timed in processes of their own, in pairs.
"""

import statistics
import subprocess
import sys
import time
import timeit

import numpy as np

import parabolt
import parabolt.optimizers.published.logeic
from parabolt.problems.tabular import TabularProblem
from parabolt.tables.sources import load_table


def report(what: str, values: list[float], unit: str, target: float) -> None:
    """Prints one figure."""
    low, middle, high = min(values), statistics.median(values), max(values)
    verdict = "met" if middle <= target else "MISSED"
    print(
        f"{what:<48} {middle:9.3f} [{low:.3f}, {high:.3f}] {unit:<3} target {target:g}: {verdict}"
    )


def import_seconds(module: str) -> float:
    """Wall time of a fresh interpreter that imports a module."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.perf_counter() - start


def per_call(call: str, names: dict[str, object], *, scale: float, number: int) -> list[float]:
    """Time per call over 9 repeats."""
    times = timeit.repeat(call, globals=names, number=number, repeat=9)
    return [scale * t / number for t in times]


def load_milliseconds() -> list[float]:
    """Loading pco64 anew, past the cache."""
    times = []
    for _ in range(9):
        start = time.perf_counter()
        TabularProblem(load_table("pco64"))
        times.append(1e3 * (time.perf_counter() - start))
    return times


def logeic_step_milliseconds() -> list[float]:
    """One tell, fit and ask with 110 observations."""
    problem = parabolt.ImputedProblem(parabolt.load_problem("pco64"))
    times = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        optimizer = parabolt.make_optimizer("logeic", problem.space, seed=seed)
        rows = rng.choice(len(problem.space), 110, replace=False)
        for row in rows:
            configuration = problem.space.candidates[row]
            outcome = problem.evaluate(configuration)
            start = time.perf_counter()
            optimizer.tell(configuration, outcome)
        optimizer.ask()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def main() -> None:
    """Prints all figures."""
    problem = parabolt.load_problem("pco64")
    names: dict[str, object] = {
        "p": problem, "X": problem.space.encoded, "c": problem.optimum.configuration,
    }  # fmt: skip
    for module in ("numpy", "parabolt"):
        import_seconds(module)  # file caches
    extra = [import_seconds("parabolt, numpy") - import_seconds("numpy") for _ in range(9)]
    report("import parabolt beyond import numpy", extra, "s", 0.15)
    report("load_problem('pco64')", load_milliseconds(), "ms", 20)
    many = per_call("p.evaluate_many(X)", names, scale=1e3, number=200)
    report("evaluate_many, 780 encoded rows", many, "ms", 0.2)
    one = per_call("p.evaluate(c)", names, scale=1e6, number=5000)
    report("evaluate, one configuration", one, "us", 20)
    report("logeic step on pco64, 110 observations", logeic_step_milliseconds(), "ms", 40)


if __name__ == "__main__":
    main()
