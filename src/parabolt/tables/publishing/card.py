"""The data-set card: written from a table's facts, and read back, also from other publishers.

The sections and figures are those of the BoLT cards (Hub data sets `Glow-AI/pco32_tabular_data` and
`Glow-AI/pco64_tabular_data`, tag v0.1.0).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from parabolt.errors import TableError
from parabolt.tables.schema import context_values, shape_columns, table_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.instances.specs import Instance
    from parabolt.tables.publishing.facts import TableFacts

_TAGS = ("bayesian-optimization", "benchmark", "parallelism-configuration", "tabular")
_SIZES = ("K", "M", "B", "T")
#: In the order in which they are replaced.
_ESCAPES = {"\\": "\\\\", "|": "\\|", "\n": "\\n", "\r": "\\r"}


@dataclass(frozen=True)
class Publication:
    """What a card says that no table knows.

    Attributes:
        title: Title on the Hub.
        license: Identifier of the licence, as the Hub spells it.
        source: Name of the raw export.
    """

    title: str
    license: str
    source: str


@dataclass(frozen=True)
class Card:
    """What a card states, as texts with the digits that it gives.

    Attributes:
        license: Identifier of the licence.
        pretty_name: Title on the Hub.
        size_category: Such as `n<1K`.
        tags: Tags.
        name: Name of the instance.
        n_gpus: GPUs.
        n_hosts: Hosts.
        n_rows: Rows.
        n_feasible: Rows whose run finished.
        largest_peak_mem: Largest peak memory of a finished run, in the unit of the column.
        threshold_separates: Whether it says that a memory threshold separates finished runs from
            failed ones.
        context: Column to value of the instance context.
        columns: Column, role and meaning.
        best_throughput: Throughput of the best row, in iterations/s.
        best_settings: Column to raw value of the best row's searched knobs.
        best_peak_mem: Peak memory of the best row, likewise.
        source: Name of the raw export.
    """

    license: str
    pretty_name: str
    size_category: str
    tags: tuple[str, ...]
    name: str
    n_gpus: int
    n_hosts: int
    n_rows: int
    n_feasible: int
    largest_peak_mem: str
    threshold_separates: bool
    context: dict[str, str]
    columns: tuple[tuple[str, str, str], ...]
    best_throughput: str
    best_settings: dict[str, str]
    best_peak_mem: str
    source: str


def size_category(n_rows: int) -> str:
    """The Hub's word for a number of rows: `n<1K`, `1K<n<10K` and so on."""
    if n_rows < 1000:
        return "n<1K"
    digits = len(str(n_rows)) - 1
    low, high = (f"{10 ** (d % 3)}{_SIZES[d // 3 - 1]}" for d in (digits, digits + 1))
    return f"{low}<n<{high}"


def render_card(
    facts: TableFacts, instance: Instance, columns: Sequence[str], publication: Publication
) -> str:
    """The card of a table as Markdown.

    Args:
        facts: The figures.
        instance: The instance.
        columns: Names of the table's columns.
        publication: What the table doesn't know.

    Raises:
        TableError: If no run finished, so that there is nothing to publish a best row of.
    """
    if facts.n_feasible == 0:
        raise TableError(f"{instance.name}: expected a run that finished, got none in the table")
    sections = (
        _front_matter(facts, publication),
        f"# {instance.name}",
        _description(facts, instance),
        _meaning(facts, instance, columns),
        _memory_threshold(facts, instance, columns),
        _context(instance),
        _columns(instance, columns),
        _best(facts, instance),
        "## Provenance\n\n"
        f"`{publication.source}`, converted to Parquet with every value unchanged.",
    )
    return "\n\n".join(sections) + "\n"


def _front_matter(facts: TableFacts, publication: Publication) -> str:
    lines = [
        "---",
        f"license: {_scalar(publication.license)}",
        f"pretty_name: {_scalar(publication.title)}",
        "task_categories:",
        "- other",
        "tags:",
        *(f"- {tag}" for tag in _TAGS),
        "size_categories:",
        f"- {size_category(facts.n_rows)}",
        "---",
    ]
    return "\n".join(lines)


def _scalar(text: str) -> str:
    """A text as YAML: plain where that is safe, else as a JSON string, which YAML reads too."""
    return text if re.fullmatch(r"[A-Za-z][\w ()./+-]*", text) else json.dumps(text)


def _description(facts: TableFacts, instance: Instance) -> str:
    cluster = instance.cluster
    return (
        "Throughput of distributed LLM training for each parallelism configuration, on\n"
        f"{cluster.n_gpus} GPUs across {cluster.n_hosts} hosts.\n"
        f"The problem `{instance.name}` searches this table: its {facts.n_rows}\n"
        f"rows are all of the candidates.{_not_measured(facts)}"
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
    auxiliary = [f"`peak_mem` ({unit}, `inf` where the run failed)"]
    if "peak_mem_normalised" in columns:
        auxiliary.append(
            f"`peak_mem_normalised`\n  (peak / {capacity:g} {unit} - 1: `< 0` if "
            "and only if the run fits; a fixed pad\n  where it failed)"
        )
    if "overall_time" in columns:
        auxiliary.append("`overall_time` (wall clock in seconds, `NaN` where\n  the run failed)")
    return (
        "- **Objective** `throughput_mean` in iterations/s, to maximise. `NaN` where the run ran\n"
        "  out of memory: nothing was measured there, which is not the same as a low value.\n"
        f"- **Constraint** `ran_successfully`. {facts.n_feasible} of {facts.n_rows}\n"
        "  configurations run; the others exhaust GPU memory. Only a trial tells which, so one\n"
        "  trial reveals objective and constraint together.\n"
        f"- **Auxiliary** {', '.join(auxiliary)}."
    )


def _memory_threshold(facts: TableFacts, instance: Instance, columns: Sequence[str]) -> str:
    """Whether a threshold on memory tells the classes apart.

    A failed run reports no peak (the schema has `inf` there), so its need is not known and no
    threshold can be read off the table; without failed runs there is nothing to separate.
    """
    reach = f"{facts.largest_peak_mem:.1f} {instance.peak_mem_column.unit}"
    if facts.n_failed == 0:
        return (
            "`peak_mem` does **not** define the constraint: every run finished, and they reach\n"
            f"{reach}. There are no failed runs, so no memory threshold is needed."
        )
    margin = "`peak_mem_normalised` does so by construction." if (
        "peak_mem_normalised" in columns
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
            "given as `log2_*` and their levels are evenly spaced. `zero_stage` is the raw",
            "stage (0/2/3), searched as the ordinal 0/1/2.\n",
            "| column | role | meaning |",
            "|---|---|---|",
            *(f"| `{_escape(name)}` | {role} | {meaning} |" for name, role, meaning in stated),
        ]
    )


def card_columns(instance: Instance, columns: Sequence[str]) -> list[tuple[str, str, str]]:
    """Column, role and meaning of what a card lists: all but the constants of its context table.

    A column that the schema doesn't know stands last, as `extra`.
    """
    known = {column.name: column for column in table_columns(instance)}
    stated = [
        (name, column.role, column.meaning)
        for name, column in known.items()
        if name in columns and name not in shape_columns(instance)
    ]
    extra = [(name, "extra", "not part of the schema") for name in columns if name not in known]
    return stated + extra


def _best(facts: TableFacts, instance: Instance) -> str:
    settings = ", ".join(f"`{name}`={value}" for name, value in facts.best_settings)
    return (
        "## Best observed\n\n"
        f"`throughput_mean` = {facts.best_throughput:.5f} at {settings}\n"
        f"(peak memory {facts.best_peak_mem:.1f} {instance.peak_mem_column.unit})."
    )


def parse_card(text: str, *, origin: str) -> Card:
    """Reads a card, however its prose is worded or wrapped.

    Args:
        text: Markdown.
        origin: Where it comes from, for error messages.

    Raises:
        TableError: Naming the statement that is missing.
    """
    front, _, body = text.replace("\r\n", "\n").removeprefix("---\n").partition("\n---\n")
    prose = " ".join(body.split())
    sections = {
        title.strip(): content
        for title, _, content in (part.partition("\n") for part in body.split("\n## ")[1:])
    }

    def find(what: str, pattern: str, where: str = prose) -> re.Match[str]:
        match = re.search(pattern, where)
        if match is None:
            raise TableError(f"{origin}: expected a card that states {what}, got none")
        return match

    cluster = find("GPUs and hosts", r"(\d+) GPUs across (\d+) hosts?")
    counts = find("how many configurations run", r"(\d+) of (\d+) configurations run")
    rows = find("the number of rows", r"\b(\d+) rows are")
    best = find("the best row", r"`throughput_mean` = ([\d.]+) at (.*?)\(peak memory ([\d.]+) Gi?B")
    if rows[1] != counts[2]:
        raise TableError(f"{origin}: expected one number of rows, got {rows[1]} and {counts[2]}")
    return Card(
        license=find("a licence", r"(?m)^license: *(\S+)", front)[1],
        pretty_name=find("a title", r"(?m)^pretty_name: *(.+?) *$", front)[1].strip('"'),
        size_category=find("a size", r"size_categories:\s*- *(\S+)", front)[1],
        tags=tuple(re.findall(r"- *(\S+)", find("tags", r"tags:\n((?:- .*\n)+)", front)[1])),
        name=find("a name", r"(?m)^# +(\S+)", "\n" + body)[1],
        n_gpus=int(cluster[1]),
        n_hosts=int(cluster[2]),
        n_rows=int(counts[2]),
        n_feasible=int(counts[1]),
        largest_peak_mem=find("the largest peak memory", r"reach ([\d.]+) Gi?B")[1],
        threshold_separates="no memory threshold" not in prose,
        context=dict(_cells(sections.get("Instance context", ""), 2)),
        columns=tuple(_cells(sections.get("Columns", ""), 3)),
        best_throughput=best[1],
        best_settings=dict(re.findall(r"`(\w+)`=([\w-]+)", best[2])),
        best_peak_mem=best[3],
        source=find("a source", r"`([^`]+)`", sections.get("Provenance", ""))[1],
    )


def _cells(section: str, n: int) -> list[Any]:
    """The rows of a section's table as tuples of n texts, without header."""
    rows = re.findall(r"(?m)^\|(.*)\|\s*$", section)
    cells = [tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", row)) for row in rows]
    names = [_unescape(row[0].removeprefix("`").removesuffix("`")) for row in cells]
    return [(name, *row[1:]) for name, row in zip(names, cells, strict=True) if len(row) == n][2:]


def _escape(name: str) -> str:
    """A name as a cell of a Markdown table: any text but line breaks and bare pipes."""
    for character, escaped in _ESCAPES.items():
        name = name.replace(character, escaped)
    return name


def _unescape(cell: str) -> str:
    originals = {escaped: character for character, escaped in _ESCAPES.items()}
    return re.sub(r"\\.", lambda match: originals.get(match[0], match[0]), cell)
