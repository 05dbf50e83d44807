"""Whether the methods behave as their published runs: same protocol, same seeds, same design.

Usage: python benchmarks/parity.py DIR [--figures docs/figures] [--methods ucbc,tpe]

DIR holds `pco32.csv` and `pco64.csv`: every evaluation of the published runs (columns method, seed,
evaluation, the searched knobs as in a table, observed_throughput, slack). Per table and method it
prints the mean final regret of both, the two-sided Mann-Whitney p of final regret and of the
evaluations to the optimum (budget + 1 where it was not found), and after how many model-based steps
the paths part (first, median and last of the seeds; `all` where a run is the same to its end).

Paths part for good at the first different choice, so the deterministic methods are also replayed:
told the published evaluations up to each step, do they choose what the published run chose next?
cKG only counts where one candidate alone has the largest gain; elsewhere both pick at random.
"""

import argparse
import csv
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy.stats import mannwhitneyu

import parabolt
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
from parabolt.outcome import FloatArray, IntArray
from parabolt.problems.problem import Problem
from parabolt.space.configuration import Configuration

mpl.use("Agg")
PROBLEMS = ("pco32", "pco64")
#: Methods whose choice follows from the past alone.
REPLAYED = ("ucbc", "ckg", "admmbo")


@dataclass(frozen=True)
class Trace:
    """The candidates that a run evaluated, what it was told, and its simple regret after each."""

    rows: IntArray
    regret: FloatArray
    told: FloatArray

    @classmethod
    def of(cls, problem: Problem, rows: IntArray, told: FloatArray) -> "Trace":
        """Scores rows (t,) of a problem."""
        outcomes = problem.evaluate_many(problem.space.encoded[rows])
        feasible = np.where(outcomes.is_feasible, outcomes.throughput, -np.inf)
        best = np.maximum.accumulate(feasible)
        regret = np.clip(problem.optimum.value - best, 0.0, problem.optimum.value)
        return cls(rows, regret, told)

    @property
    def evaluations_to_optimum(self) -> int:
        """Number of evaluations until the optimum, budget + 1 where it was not found."""
        hits = np.flatnonzero(self.regret <= 0.0)
        return int(hits[0]) + 1 if len(hits) else len(self.rows) + 1


def published_paths(file: Path, problem: Problem) -> dict[str, dict[int, Trace]]:
    """Method to seed to path, from a file of published evaluations."""
    found: dict[str, dict[int, list[Configuration]]] = defaultdict(lambda: defaultdict(list))
    told: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with file.open(encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            sizes = {
                axis.knob.name: axis.values[axis.cells.index(int(line[axis.column]))]
                for axis in problem.instance.encoding.axes
            }
            method, seed = line["method"], int(line["seed"])
            found[method][seed].append(Configuration(**sizes))
            told[method][seed].append(float(line["observed_throughput"]))
    return {
        method: {
            seed: Trace.of(problem, problem.space.rows(run), np.array(told[method][seed]))
            for seed, run in seeds.items()
        }
        for method, seeds in found.items()
    }


def own_path(problem: Problem, method: str, seed: int) -> Trace:
    """The path of one of our runs, with the published protocol."""
    run = execute(problem, RunKey.of(problem, method, seed, Protocol.published(problem.name)))
    return Trace.of(problem, problem.space.rows(list(run.configurations)), run.observed)


def steps_shared(one: Trace, other: Trace) -> int:
    """Evaluations until the paths part; their length where they don't."""
    n = min(len(one.rows), len(other.rows))
    parted = np.flatnonzero(one.rows[:n] != other.rows[:n])
    return int(parted[0]) if len(parted) else n


def replay(
    problem: Problem, method: str, seed: int, path: Trace, n_initial: int = 10
) -> list[bool]:
    """Whether each choice after the design is the published one, given the published past."""
    optimizer = parabolt.make_optimizer(method, problem.space, seed=seed, repeats="allow")
    outcomes = parabolt.ImputedProblem(problem).evaluate_many(problem.space.encoded[path.rows])
    same = []
    for t, row in enumerate(path.rows):
        if t >= n_initial:
            chosen = optimizer.ask()
            if getattr(optimizer, "n_tied", 1) == 1:
                same.append(problem.space.row(chosen) == row)
            optimizer.tell(chosen, parabolt.Outcome(parabolt.Status.CRASHED))  # teaches nothing
        outcome = replace(outcomes[t], throughput=float(path.told[t]))
        optimizer.tell(problem.space.candidates[int(row)], outcome)
    return same


def line(method: str, own: list[Trace], theirs: list[Trace], n_initial: int = 10) -> str:
    """One row of the table."""
    regrets = [[p.regret[-1] for p in paths] for paths in (own, theirs)]
    hits = [[p.evaluations_to_optimum for p in paths] for paths in (own, theirs)]
    p_regret, p_hits = (float(mannwhitneyu(*pair).pvalue) for pair in (regrets, hits))
    shared = sorted(steps_shared(a, b) for a, b in zip(own, theirs, strict=True))
    total = len(theirs[0].rows)
    words = [
        "all" if n == total else str(n - n_initial)
        for n in (shared[0], shared[len(shared) // 2], shared[-1])
    ]
    verdict = "met" if min(p_regret, p_hits) > 0.05 else "DIFFERS"
    return (
        f"{method:<8} regret {np.mean(regrets[0]):.4f} / {np.mean(regrets[1]):.4f}  "
        f"p {p_regret:.3f}  found {sum(h <= total for h in hits[0])} / "
        f"{sum(h <= total for h in hits[1])} of {len(own)}  p {p_hits:.3f}  {verdict:<8}"
        f"steps shared {', '.join(words)}"
    )


def draw(file: Path, name: str, curves: dict[str, tuple[list[Trace], list[Trace]]]) -> None:
    """Mean regret by evaluation, ours and published, with the range of the middle 80 % of runs."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        2, (len(curves) + 1) // 2, figsize=(11, 5), sharex=True, sharey=True, squeeze=False
    )
    for axis, (method, pair) in zip(axes.flat, curves.items(), strict=False):
        for paths, colour, label in zip(
            pair, ("tab:blue", "tab:orange"), ("parabolt", "published"), strict=True
        ):
            regret = np.stack([p.regret for p in paths])
            steps = np.arange(1, regret.shape[1] + 1)
            low, high = np.quantile(regret, (0.1, 0.9), axis=0)
            axis.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
            axis.plot(steps, regret.mean(axis=0), color=colour, label=label)
        axis.set_title(method, fontsize=10)
        axis.set_yscale("symlog", linthresh=1e-3)
    for axis in axes.flat[len(curves) :]:
        axis.set_visible(False)
    axes[0, 0].legend(fontsize=8)
    figure.supxlabel("evaluations, initial design included")
    figure.supylabel("simple regret (iterations/s)")
    figure.suptitle(f"{name}: mean over 10 seeds, band: 10 to 90 % of runs", fontsize=11)
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=70)
    plt.close(figure)


def main() -> None:
    """Compares, prints and draws."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--figures", type=Path, default=None, help="write the curves here")
    parser.add_argument("--methods", default="", help="only these, separated by commas")
    options = parser.parse_args()
    wanted = set(filter(None, options.methods.split(",")))
    for name in PROBLEMS:
        problem = parabolt.load_problem(name)
        print(f"\n{name}: ours / published")
        curves = {}
        for method, published in published_paths(options.folder / f"{name}.csv", problem).items():
            if wanted and method not in wanted:
                continue
            own = [own_path(problem, method, seed) for seed in published]
            curves[method] = own, list(published.values())
            print(line(method, *curves[method]), flush=True)
        for method in REPLAYED:
            if method in curves:
                paths = dict(enumerate(curves[method][1]))
                same = [replay(problem, method, seed, path) for seed, path in paths.items()]
                first, every = [run[0] for run in same if run], np.concatenate(same)
                print(
                    f"replayed {method:<8} same choice in {every.sum()} of {len(every)} steps, "
                    f"{sum(first)} of {len(first)} first ones",
                    flush=True,
                )
        if options.figures:
            draw(options.figures / f"parity_{name}.png", name, curves)


if __name__ == "__main__":
    main()
