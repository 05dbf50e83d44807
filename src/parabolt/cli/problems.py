"""`parabolt problems`: what there is to optimize."""

from __future__ import annotations

from rich.table import Table

from parabolt.cli.output import Json, console, print_json
from parabolt.problems.registry import load_problem, problem_names


def problems(json: Json = False) -> None:
    """List the problems with their size, optimum and data version."""
    found = [load_problem(name) for name in problem_names()]
    lines = [
        {
            "problem": problem.name,
            "n_gpus": problem.instance.cluster.n_gpus,
            "n_candidates": len(problem.space),
            "n_feasible": int(problem.table.is_feasible.sum()),
            "optimum_throughput": problem.optimum.value,
            "optimum": str(problem.optimum.configuration),
            "data_version": problem.version,
            "content_hash": problem.content_hash,
        }
        for problem in found
    ]
    if json:
        print_json(lines)
        return
    table = Table("problem", "GPUs", "candidates", "feasible", "optimum, it/s", "at", "data")
    for line in lines:
        table.add_row(
            str(line["problem"]),
            str(line["n_gpus"]),
            str(line["n_candidates"]),
            str(line["n_feasible"]),
            f"{line['optimum_throughput']:.6f}",
            str(line["optimum"]),
            str(line["data_version"]),
        )
    console().print(table)
