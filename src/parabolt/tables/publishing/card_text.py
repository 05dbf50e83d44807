"""The data-set card, written: from a table's facts, in the sections of the BoLT cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from parabolt.tables.publishing.card import card_columns, size_category
from parabolt.tables.publishing.markdown import cell, code, escaped
from parabolt.tables.schema import context_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.instances.specs import Instance
    from parabolt.tables.checks.coverage import Coverage
    from parabolt.tables.publishing.facts import TableFacts
    from parabolt.tables.publishing.provenance import Provenance

_TAGS = ["bayesian-optimization", "benchmark", "parallelism-configuration", "tabular"]


@dataclass(frozen=True)
class Publication:
    """What a card says that no table knows.

    Attributes:
        title: Title on the Hub.
        license: Identifier of the licence, as the Hub spells it.
        source: Name of the raw export.
        provenance: How the rows were measured.
    """

    title: str
    license: str
    source: str
    provenance: Provenance


def render_card(
    facts: TableFacts,
    instance: Instance,
    columns: Sequence[str],
    coverage: Coverage,
    publication: Publication,
) -> str:
    """The card of a table as Markdown.

    Args:
        facts: The figures.
        instance: The instance.
        columns: Names of the table's columns.
        coverage: Which of the valid configurations have a row.
        publication: What the table doesn't know.
    """
    sections = (
        _front_matter(facts, publication),
        f"# {escaped(instance.name)}",
        _description(facts, instance, coverage),
        _meaning(facts, instance, columns),
        _memory_threshold(facts, instance, columns),
        _context(instance),
        _columns(instance, columns),
        _best(facts, instance),
        *_measured_with(publication.provenance),
        _source(publication),
    )
    return "\n\n".join(sections) + "\n"


def _front_matter(facts: TableFacts, publication: Publication) -> str:
    about = {
        "license": publication.license,
        "pretty_name": publication.title,
        "task_categories": ["other"],
        "tags": _TAGS,
        "size_categories": [size_category(facts.n_rows)],
    }
    return f"---\n{yaml.safe_dump(about, sort_keys=False, allow_unicode=True, width=1 << 16)}---"


def _description(facts: TableFacts, instance: Instance, coverage: Coverage) -> str:
    cluster = instance.cluster
    scope = "for each parallelism configuration" if coverage.is_whole else (
        "by parallelism configuration"
    )  # fmt: skip
    rows = "all of the candidates." if coverage.is_whole else f"{coverage.description}."
    return (
        f"Throughput of distributed LLM training {scope}, on\n"
        f"{cluster.n_gpus} GPUs across {cluster.n_hosts} hosts.\n"
        f"It is a problem to search: its {facts.n_rows}\n"
        f"rows are {rows}{_not_measured(facts)}"
    )


def _not_measured(facts: TableFacts) -> str:
    if facts.n_not_measured == 0:
        return ""
    return (
        f"\n\n**Not everything is measured**: throughput or peak memory of {facts.n_not_measured} "
        "rows is\ninterpolated or simulated; the `source_*` columns say which."
    )


def _meaning(facts: TableFacts, instance: Instance, columns: Sequence[str]) -> str:
    unit, capacity = instance.peak_mem_column.unit, instance.peak_mem_column.capacity
    no_peak = "`inf` where the run failed" if facts.n_failed == 0 else (
        "`inf` where the run ran out of memory, `NaN` where `status` is `failed`"
    )  # fmt: skip
    auxiliary = [f"`peak_mem` ({unit}, {no_peak})"]
    if "peak_mem_normalised" in columns:
        auxiliary.append(
            f"`peak_mem_normalised`\n  (peak / {capacity:g} {unit} - 1: `< 0` if "
            "and only if the run fits; a fixed pad\n  where it failed)"
        )
    if "overall_time" in columns:
        auxiliary.append("`overall_time` (wall clock in seconds, `NaN` where\n  the run failed)")
    why = "ran\n  out of memory" if facts.n_failed == 0 else "did\n  not finish"
    return (
        f"- **Objective** `throughput_mean` in iterations/s, to maximise. `NaN` where the run {why}"
        ": nothing was measured there, which is not the same as a low value.\n"
        f"- **Constraint** `ran_successfully`. {facts.n_feasible} of {facts.n_rows}\n"
        f"  configurations run; {_the_others(facts)}. Only a trial tells which, so one\n"
        "  trial reveals objective and constraint together.\n"
        f"- **Auxiliary** {', '.join(auxiliary)}."
    )


def _the_others(facts: TableFacts) -> str:
    if facts.n_failed == 0:
        return "the others exhaust GPU memory"
    failed = (
        f"{facts.n_failed} did not finish, and it is not recorded\n  whether for lack of memory or "
        "for a crash (`status` is `failed`)"
    )
    return f"{facts.n_oom} exhaust GPU memory,\n  and {failed}" if facts.n_oom else failed


def _memory_threshold(facts: TableFacts, instance: Instance, columns: Sequence[str]) -> str:
    """Whether a threshold on memory tells the classes apart.

    A failed run reports no peak (the schema has `inf` there), so its need is not known and no
    threshold can be read off the table; without failed runs there is nothing to separate.
    """
    if facts.n_feasible == 0:
        return "No run finished, so there is nothing to search, and no memory threshold to find."
    reach = f"{facts.largest_peak_mem:.1f} {instance.peak_mem_column.unit}"
    if facts.n_infeasible == 0:
        return (
            "`peak_mem` does **not** define the constraint: every run finished, and they reach\n"
            f"{reach}. There are no failed runs, so no memory threshold is needed."
        )
    margin = "`peak_mem_normalised` does so by construction." if (
        "peak_mem_normalised" in columns and facts.n_failed == 0
    ) else "`ran_successfully` does."  # fmt: skip
    return (
        "`peak_mem` does **not** define the constraint: finished runs reach\n"
        f"{reach}, and what a failed run would have needed is not recorded, so no memory\n"
        f"threshold separates the classes. {margin}"
    )


def _context(instance: Instance) -> str:
    lines = [f"| `{name}` | {value} |" for name, value in context_values(instance).items()]
    return "\n".join(
        [
            "## Instance context\n",
            "The same in every row: what the instance is, not what is searched.\n",
            "| field | value |",
            "|---|---|",
            *lines,
        ]
    )


def _columns(instance: Instance, columns: Sequence[str]) -> str:
    stated = card_columns(instance, columns)
    return "\n".join(
        [
            "## Columns\n",
            "The columns are those of the export, unchanged. Sizes halve and double, so they are",
            f"given as `log2_*` and their levels are evenly spaced.{_ordinals(instance)}\n",
            "| column | role | meaning |",
            "|---|---|---|",
            *(f"| `{cell(name)}` | {role} | {meaning} |" for name, role, meaning in stated),
        ]
    )


def _ordinals(instance: Instance) -> str:
    axis = next((a for a in instance.encoding.axes if a.knob.name == "zero"), None)
    if axis is None:
        return ""
    stages = "/".join(axis.words)
    ordinals = "/".join(f"{point:g}" for point in axis.scale.points[:, 0])
    return f" `zero_stage` is the raw\nstage ({stages}), searched as the ordinal {ordinals}."


def _best(facts: TableFacts, instance: Instance) -> str:
    if facts.n_feasible == 0:
        return "## Best observed\n\nNone: no run finished."
    settings = ", ".join(f"`{name}`={value}" for name, value in facts.best_settings)
    return (
        "## Best observed\n\n"
        f"`throughput_mean` = {facts.best_throughput:.5f} at {settings}\n"
        f"(peak memory {facts.best_peak_mem:.1f} {instance.peak_mem_column.unit})."
    )


def _measured_with(provenance: Provenance) -> list[str]:
    known = {
        "GPU": escaped(provenance.gpu),
        "Software": escaped(provenance.software),
        "Command": code(provenance.command) if provenance.command else "",
        "Date": escaped(provenance.date),
    }
    lines = [f"- {what}: {text}" for what, text in known.items() if text]
    return ["\n".join(["## Measured with\n", *lines])] if lines else []


def _source(publication: Publication) -> str:
    notes = "".join(f"\n- {escaped(note)}" for note in publication.provenance.notes)
    return (
        "## Provenance\n\n"
        f"{code(publication.source)}, converted to Parquet with every value unchanged."
        f"{notes and chr(10)}{notes}"
    )
