"""`parabolt evaluate`: the outcome of one configuration."""

from __future__ import annotations

from typing import Annotated

import typer

from parabolt.cli.output import Json, Source, bold, console, print_json
from parabolt.outcome import Status
from parabolt.problems.registry import load_problem
from parabolt.space.configuration import Configuration


def evaluate(
    problem: Annotated[str, typer.Argument(help="Name of the problem, such as pco32.")],
    config: Annotated[str, typer.Option(help='Such as "dp=32 zero=2 bucket=256".')],
    source: Source = "embedded",
    json: Json = False,
) -> None:
    """Look one configuration up: ok, out of memory or failed; throughput, peak memory."""
    found = load_problem(problem, source=source)
    configuration = Configuration.parse(config)
    outcome = found.evaluate(configuration)
    if json:
        print_json(
            {
                "problem": found.name,
                "configuration": configuration.as_dict(),
                **outcome.to_record(),
            }
        )
        return
    out = console()
    out.print(bold(configuration), f" on {found.name}: ", bold(outcome.status), sep="")
    if outcome.is_feasible:
        optimum = found.optimum.value
        below = 100.0 * (1.0 - outcome.throughput / optimum)
        capacity = found.instance.cluster.memory_gib
        out.print(
            f"throughput   {outcome.throughput:.6f} iterations/s ({outcome.throughput_source}), "
            f"{below:.2f} % below the optimum"
        )
        out.print(
            f"peak memory  {outcome.peak_memory_gib:.1f} of {capacity:g} GiB "
            f"({outcome.memory_source}), margin {outcome.memory_margin:+.3f}"
        )
    else:
        reason = "exhausted GPU memory"
        if outcome.status is Status.FAILED:
            reason = "failed, and whether for memory or a crash is not recorded"
        out.print(f"the run {reason}; no throughput was measured")
