"""`parabolt show`: one problem at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from parabolt.cli.output import Json, Source, bold, console, print_json
from parabolt.outcome import FAILED
from parabolt.problems.registry import load_problem
from parabolt.tables.schema import context_values

if TYPE_CHECKING:
    from rich.console import Console

    from parabolt.outcome import FloatArray
    from parabolt.problems.tabular import TabularProblem

_N_BINS = 12
_BAR_WIDTH = 40


def show(
    problem: Annotated[str, typer.Argument(help="Name of the problem, such as pco32.")],
    source: Source = "embedded",
    json: Json = False,
) -> None:
    """Show context, knobs, counts, best row and histograms of a problem."""
    found = load_problem(problem, source=source)
    if json:
        print_json(_as_json(found))
        return
    out = console()
    outcomes = found.table.outcomes
    n_feasible, n_oom = int(outcomes.is_feasible.sum()), int(outcomes.is_oom.sum())
    n_failed = int((outcomes.status == FAILED).sum())
    counts = [f"{len(outcomes)} candidates", f"{n_feasible} feasible"]
    counts += [f"{n_oom} out of memory"] if n_oom or not n_failed else []
    counts += [f"{n_failed} failed (memory or a crash)"] if n_failed else []
    out.print(bold(found.name), f": {', '.join(counts)}", sep="")
    out.print(f"data {found.version}, SHA-256 {found.content_hash}")
    _print_context(out, found)
    _print_knobs(out, found)
    best = found.evaluate(found.optimum.configuration)
    out.print("best:", bold(found.optimum.configuration))
    out.print(
        f"      {best.throughput:.6f} iterations/s, {best.peak_memory_gib:.1f} GiB peak memory "
        f"({found.optimum.provenance})"
    )
    feasible = outcomes.is_feasible
    _print_histogram(out, "throughput, iterations/s", outcomes.throughput[feasible], ".3f")
    _print_histogram(out, "peak memory, GiB", outcomes.peak_memory_gib[feasible], ".1f")


def _as_json(problem: TabularProblem) -> dict[str, Any]:
    optimum = problem.optimum
    axes = problem.instance.encoding.axes
    return {
        "problem": problem.name,
        "direction": problem.direction,
        "data_version": problem.version,
        "content_hash": problem.content_hash,
        "n_candidates": len(problem.space),
        "n_feasible": int(problem.table.is_feasible.sum()),
        "n_oom": int(problem.table.outcomes.is_oom.sum()),
        "n_failed": int((problem.table.outcomes.status == FAILED).sum()),
        "context": context_values(problem.instance),
        "memory_gib": problem.instance.cluster.memory_gib,
        "knobs": {a.knob.name: [a.knob.plain(v) for v in a.values] for a in axes},
        "optimum": {
            "configuration": optimum.configuration.as_dict(),
            "provenance": optimum.provenance,
            **problem.evaluate(optimum.configuration).to_record(),
        },
    }


def _print_context(out: Console, problem: TabularProblem) -> None:
    table = Table("context", "value", title="instance", title_justify="left")
    for name, value in context_values(problem.instance).items():
        table.add_row(name, str(value))
    table.add_row("GPU memory", f"{problem.instance.cluster.memory_gib:g} GiB")
    out.print(table)


def _print_knobs(out: Console, problem: TabularProblem) -> None:
    table = Table("knob", "meaning", "sizes", title="knobs", title_justify="left")
    for axis in problem.instance.encoding.axes:
        table.add_row(axis.knob.name, axis.knob.meaning, ", ".join(axis.words))
    out.print(table)


def _print_histogram(out: Console, title: str, values: FloatArray, form: str) -> None:
    counts, edges = np.histogram(values, bins=_N_BINS)
    out.print("\n", bold(title), f", {len(values)} feasible rows", sep="")
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        bar = "█" * round(_BAR_WIDTH * count / counts.max())
        out.print(f"{low:>8{form}} to {high:>8{form}}  {bar} {count}")
