"""`parabolt plan`: the best configurations of a model on a cluster, before the first run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from parabolt.cli.output import Json, bold, console, print_json
from parabolt.instances.models import load_model
from parabolt.instances.specs import Workload
from parabolt.planner.past_trials import read_own_trials
from parabolt.planner.plan import make_plan
from parabolt.planner.request import parse_cluster, plan_instance

if TYPE_CHECKING:
    from rich.console import Console

    from parabolt.planner.plan import Plan, PlannedConfiguration


def plan(
    model: Annotated[str, typer.Option(help="Catalogue name, or path of a config.json.")],
    cluster: Annotated[str, typer.Option(help='Hosts x GPUs per host and GPU: "16x4 h100-96gb".')],
    seq: Annotated[int, typer.Option(help="Tokens per sequence.")],
    batch: Annotated[int, typer.Option(help="Sequences per iteration.")],
    micro_batch: Annotated[int, typer.Option(help="Sequences per micro-batch.")] = 1,
    recompute: Annotated[str, typer.Option(help="none, layer or chunk.")] = "layer",
    trials: Annotated[str, typer.Option(help="Trials to learn from: CSV, journal, sweep.")] = "",
    top: Annotated[int, typer.Option(help="How many configurations to list.")] = 5,
    max_risk: Annotated[float, typer.Option(help="Largest acceptable P(OOM).")] = 0.1,
    explain: Annotated[bool, typer.Option("--explain", help="Break the best down.")] = False,
    json: Json = False,
) -> int:
    """Rank configurations by predicted throughput, with memory, risk and launch flags."""
    workload = Workload(seq, batch, micro_batch_size=micro_batch, recomputation=recompute)
    instance = plan_instance(load_model(model), parse_cluster(cluster), workload)
    evidence = read_own_trials(trials, instance) if trials else None
    found = make_plan(instance, trials=evidence, n_best=top, max_risk=max_risk)
    if json:
        print_json(found.as_dict())
    else:
        _show(console(), found, instance.cluster.memory_gib, explain=explain)
    return 0 if found.entries else 1


def _show(out: Console, found: Plan, capacity_gib: float, *, explain: bool) -> None:
    basis = f"calibrated on {found.n_trials} trials" if found.n_trials else "specifications only"
    out.print(
        f"{found.n_candidates} configurations, {found.n_fitting} fit into {capacity_gib:g} GiB; "
        f"all figures are predicted ({basis})"
    )
    for assumption in found.assumptions:
        out.print(f"assumed: {assumption}")
    if not found.entries:
        out.print("no configuration fits within the risk; try more GPUs, --recompute or --max-risk")
        return
    out.print(_table(found))
    best = found.entries[0]
    if explain:
        out.print(str(best.explanation))
    for launch in best.launches:
        name = bold(f"{launch.framework} {launch.version}")
        out.print("\n", name, f" ({launch.documentation})", sep="")
        if launch.reason:
            out.print(f"cannot express {best.configuration}: {launch.reason}")
        for flag in launch.flags:
            out.print(f"  {flag}", soft_wrap=True)
        for note in launch.notes:
            out.print(f"  # {note}", soft_wrap=True)


def _table(found: Plan) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("configuration", overflow="fold")
    for title in ("m", "it/s (90 %)", "tokens/s", "GiB", "P(OOM)"):
        table.add_column(title, justify="right")
    table.add_column("bound by")
    for entry in found.entries:
        table.add_row(*_cells(entry))
    return table


def _cells(entry: PlannedConfiguration) -> tuple[str, ...]:
    low, high = entry.throughput_low, entry.throughput_high
    return (
        str(entry.configuration),
        str(entry.n_micro_batches),
        f"{entry.throughput:.4f} ({low:.4f}-{high:.4f})",
        f"{entry.tokens_per_s:,.0f}",
        f"{entry.peak_memory_gib:.1f}",
        f"{entry.p_oom:.3f}",
        entry.explanation.bound_by,
    )
