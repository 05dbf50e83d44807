"""`parabolt suggest`: what to try next, and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, cast

import typer

from parabolt.cli.output import Json, console, print_json
from parabolt.costmodel.resolved_instance import ResolvedInstance
from parabolt.instances.catalogue import load_instance
from parabolt.instances.search_space import SearchSpace
from parabolt.optimizers.registry import make_optimizer
from parabolt.planner.past_trials import optimizer_options, read_own_trials

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance
    from parabolt.optimizers.physics.parabolt import ParaboltOptimizer
    from parabolt.space.configuration import Configuration

#: Chance to finish below which a candidate isn't likely to.
_LIKELY = 0.5


def suggest(
    instance: Annotated[str, typer.Argument(help="Built-in name, or TOML file.")],
    trials: Annotated[str, typer.Option(help="Trials so far: CSV, journal, sweep.")] = "",
    history: Annotated[
        list[str] | None, typer.Option(help="Table or journal of other instances; repeatable.")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many to try at once.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    json: Json = False,
) -> None:
    """Say which configurations to try next, what is expected of them, and when to stop."""
    found = load_instance(instance)
    space = SearchSpace.lattice(found)
    options = optimizer_options({"history": history or []})
    optimizer = cast("ParaboltOptimizer", make_optimizer("parabolt", space, seed=seed, **options))
    if trials:
        evidence = read_own_trials(trials, found)
        configurations = cast("list[Configuration]", evidence.configurations)
        for configuration, outcome in zip(configurations, evidence.outcomes, strict=True):
            optimizer.tell(configuration, outcome)
    is_exhausted = not len(optimizer.available_rows())
    stop, best = is_exhausted or optimizer.should_stop(), optimizer.recommend()
    asked = [] if is_exhausted else optimizer.ask(n)
    reasons = [optimizer.explain(configuration) for configuration in asked]
    assumptions = ResolvedInstance.of(found).assumptions
    doubt = _doubt(found, float(optimizer.belief().p_feasible.max()))
    if json:
        print_json(
            {
                "assumptions": list(assumptions),
                "doubt": doubt,
                "should_stop": stop,
                "recommendation": best.as_dict() if best else None,
                "next": [
                    {**asdict(r), "configuration": r.configuration.as_dict()} for r in reasons
                ],
            }
        )
        return
    out = console()
    for text in assumptions:
        out.print(f"assumed: {text}")
    if doubt:
        out.print(doubt, soft_wrap=True)
    if best:
        out.print(f"best so far: {best}")
    if is_exhausted:
        out.print("stop: all candidates have been tried")
    elif stop:
        out.print("stop: no further trial is expected to gain what it costs")
    for reason in reasons:
        out.print(str(reason), soft_wrap=True)


def _doubt(instance: Instance, p_feasible: float) -> str:
    """What to say where no candidate is likely to finish; empty where one is."""
    if p_feasible >= _LIKELY:
        return ""
    workload, chosen = instance.workload, dict(instance.levels).get("micro_batch", ())
    advice = "try more GPUs, recomputation, or larger knobs that split the model"
    if workload.micro_batch_size is None and len(chosen) < 2:
        advice = (
            "an iteration has pp x grad_accum micro-batches, each a large share of the batch; try "
            "[workload] micro_batch_size = 1, or more sizes of grad_accum"
        )
    return f"no candidate is likely to fit: the best chance to finish is {p_feasible:.2f}; {advice}"
