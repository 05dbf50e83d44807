"""The figures asked of the `parabolt` optimizer, with 95 % bootstrap intervals.

Usage: python benchmarks/optimizer_figures.py FOLDER [--against STORE]

Runs the studies in benchmarks/studies (resumed if FOLDER holds them) and prints, per problem and
optimizer: share of runs that found the optimum, median and 90th percentile of evaluations to it,
share of out-of-memory trials, milliseconds per step. With --against, compares final and interim
regret with every optimizer of another store on the same problems, at equal numbers of evaluations.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import bootstrap, mannwhitneyu

import parabolt
from parabolt.analysis.metrics import evaluations_to, group_runs, simple_regret
from parabolt.experiments.run import Run
from parabolt.experiments.runner import run_study
from parabolt.experiments.store import RunStore
from parabolt.experiments.study import read_study
from parabolt.outcome import OOM, FloatArray

STUDIES = ("optimizer_cold", "optimizer_warm_pco32", "optimizer_warm_pco64")
BUDGETS = (1, 2, 3, 5, 8, 10, 15, 20, 30, 40, 50, 60, 80, 100)


def run_all(folder: Path) -> list[Run]:
    """All runs of all studies."""
    runs = []
    for name in STUDIES:
        study = read_study(Path(__file__).parent / "studies" / f"{name}.toml")
        problems = [parabolt.load_problem(problem) for problem in study.problems]
        run_study(study, problems, folder / name)
        runs += RunStore(folder / name).load_all()
    return runs


def quantile(counts: FloatArray, q: float) -> str:
    """A quantile with its interval; a count past the budget stands for 'never'."""
    value = np.quantile(counts, q, method="inverted_cdf")
    if np.ptp(counts) == 0:
        return f"{value:g} [{value:g}, {value:g}]"
    ends = bootstrap(
        (counts,),
        lambda x, axis: np.quantile(x, q, axis=axis, method="inverted_cdf"),
        method="percentile",
        random_state=np.random.default_rng(0),
        n_resamples=2000,
    ).confidence_interval
    return f"{value:g} [{ends.low:g}, {ends.high:g}]"


def print_figures(runs: list[Run]) -> None:
    """One line per problem and optimizer."""
    head = ("optimizer", "found", "median", "90 %", "OOM", "ms")
    print(f"{'problem':<8}{head[0]:<20}" + "".join(f"{name:>14}" for name in head[1:]))
    for problem, groups in group_runs(runs).items():
        for name, group in groups.items():
            found = [evaluations_to(run) for run in group]
            counts = np.array([float(n or len(r) + 1) for n, r in zip(found, group, strict=True)])
            until = [r.outcomes.status[: int(n)] for n, r in zip(counts, group, strict=True)]
            share = np.mean([n is not None for n in found])
            step_ms = 1e3 * np.mean([np.nanmean(run.step_time_s) for run in group])
            oom = np.mean(np.concatenate(until) == OOM)
            cells = [f"{100 * share:.0f}%", quantile(counts, 0.5), quantile(counts, 0.9)]
            cells += [f"{100 * oom:.1f}%", f"{step_ms:.1f}"]
            print(f"{problem:<8}{name:<20}" + "".join(f"{cell:>14}" for cell in cells))


def print_comparison(runs: list[Run], others: list[Run]) -> None:
    """At each budget: methods that are significantly better than ours, or that ours beats."""
    for problem, groups in group_runs(others).items():
        ours = group_runs(runs)[problem]["parabolt"]
        for name, group in groups.items():
            line = []
            for budget in BUDGETS:
                a = [simple_regret(r)[min(budget, len(r)) - 1] for r in ours]
                b = [simple_regret(r)[min(budget, len(r)) - 1] for r in group]
                if np.ptp(a + b) == 0.0:
                    line.append(f"{budget}: tie")
                    continue
                worse = mannwhitneyu(a, b, alternative="greater").pvalue
                better = mannwhitneyu(a, b, alternative="less").pvalue
                word = "better" if better < 0.05 else "WORSE" if worse < 0.05 else "tie"
                line.append(f"{budget}: {word} ({min(better, worse):.1g})")
            print(f"{problem} against {name}: {', '.join(line)}")


def main() -> None:
    """Prints all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--against", type=Path)
    arguments = parser.parse_args()
    runs = run_all(arguments.folder)
    print_figures(runs)
    if arguments.against:
        print_comparison(runs, RunStore(arguments.against).load_all())


if __name__ == "__main__":
    main()
