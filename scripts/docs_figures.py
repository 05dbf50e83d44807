"""Draws the pictures of docs/semantics.md: `python scripts/docs_figures.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np

import parabolt
from parabolt.outcome import SOURCES, Source

if TYPE_CHECKING:
    from parabolt.problems.tabular import TabularProblem

FOLDER = Path(__file__).parents[1] / "docs" / "figures"


def rank(axes: Any, problem: TabularProblem) -> None:
    """Throughput of every candidate, best first."""
    outcomes = problem.table.outcomes
    feasible = np.flatnonzero(outcomes.is_feasible)
    order = feasible[np.argsort(-outcomes.throughput[feasible])]
    relative = 100.0 * outcomes.throughput[order] / problem.optimum.value
    measured = outcomes.throughput_source[order] == SOURCES.index(Source.MEASURED)
    place = np.arange(1, len(order) + 1)
    axes.plot(place[measured], relative[measured], ".", markersize=3, label="measured")
    axes.plot(place[~measured], relative[~measured], "o", fillstyle="none", label="interpolated")
    n_died = len(problem.space) - len(order)
    axes.axvspan(len(order), len(problem.space), alpha=0.15, color="tab:red", label=f"{n_died} OOM")
    axes.set(title=problem.name, xlabel="candidates, best first", ylabel="% of the optimum")
    axes.legend()


def imputation(axes: Any, problem: TabularProblem) -> None:
    """Throughput over the bucket for some shapes of the grid, and where runs died."""
    imputed = parabolt.ImputedProblem(problem)
    buckets = (64, 128, 256, 512)
    shapes = ({"dp": 64}, {"dp": 32, "pp": 2}, {"dp": 32, "tp": 2}, {"dp": 16, "pp": 4})
    for number, shape in enumerate(shapes):
        tried = [parabolt.Configuration(**shape, bucket=bucket) for bucket in buckets]
        outcomes = [imputed.evaluate(configuration) for configuration in tried]
        died = not outcomes[0].is_feasible
        axes.plot(
            buckets,
            [outcome.throughput for outcome in outcomes],
            "x--" if died else "o-",
            color=f"C{number}",
            label=" ".join(f"{k}{v}" for k, v in shape.items())
            + (", died: imputed" if died else ""),
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(buckets, buckets)
    axes.set(title=f"{problem.name}, ZeRO 0", xlabel="bucket, MB", ylabel="iterations/s")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def main() -> None:
    """Writes both pictures."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for found, name in zip(axes, ("pco32", "pco64"), strict=True):
        rank(found, parabolt.load_problem(name))
    figure.savefig(FOLDER / "semantics_rank.png", dpi=130)
    figure, single = plt.subplots(figsize=(6, 3.2), layout="constrained")
    imputation(single, parabolt.load_problem("pco64"))
    figure.savefig(FOLDER / "semantics_imputation.png", dpi=130)


if __name__ == "__main__":
    main()
