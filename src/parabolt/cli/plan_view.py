"""A plan for people: the list, what there was to choose from, and the flags of the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from parabolt.cli.output import bold

if TYPE_CHECKING:
    from rich.console import Console

    from parabolt.instances.specs import Instance
    from parabolt.planner.plan import CandidateSet, Plan, PlannedConfiguration


def show_candidates(out: Console, candidates: CandidateSet, instance: Instance) -> None:
    """How many configurations there are, and what each rule removed."""
    out.print(
        f"{candidates.n:,} configurations of {instance.cluster.n_gpus} GPUs meet the rules of "
        f"{instance.dialect}"
    )
    for removal in candidates.removals:
        out.print(f"left out: {removal}", soft_wrap=True)


def show_plan(out: Console, found: Plan, instance: Instance, *, is_explained: bool) -> None:
    """The whole plan."""
    show_candidates(out, found.candidates, instance)
    drawn = "" if found.n_compared == found.n_candidates else f"{found.n_compared:,} compared, "
    basis = f"calibrated on {found.n_trials} trials" if found.n_trials else "specifications only"
    out.print(
        f"{drawn}{found.n_fitting:,} fit into {instance.cluster.memory_gib:g} GiB; all figures are "
        f"predicted ({basis})"
    )
    for assumption in found.assumptions:
        out.print(f"assumed: {assumption}")
    for line in found.not_compared:
        out.print(f"not compared: {line}")
    if not found.entries:
        out.print("no configuration fits within the risk; try more GPUs, --recompute or --max-risk")
        return
    out.print(_table(found))
    best = found.entries[0]
    if is_explained:
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
