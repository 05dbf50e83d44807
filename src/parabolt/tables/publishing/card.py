"""The data-set card, read: from ours and from other publishers, however its prose is worded.

The sections and figures are those of the BoLT cards (Hub data sets `Glow-AI/pco32_tabular_data` and
`Glow-AI/pco64_tabular_data`, tag v0.1.0).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from parabolt.errors import TableError
from parabolt.tables.publishing.markdown import uncell, unescaped
from parabolt.tables.schema import shape_columns, table_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.instances.specs import Instance

_SIZES = ("K", "M", "B", "T")


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
        n_valid: Valid configurations of the instance; None where it says that all candidates are
            there, or nothing.
        n_feasible: Rows whose run finished.
        largest_peak_mem: Largest peak memory of a finished run, in the unit of the column; empty,
            as what is said of the best row, where no run finished.
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
    n_valid: int | None
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


def parse_card(text: str, *, origin: str) -> Card:
    """Reads a card, however its prose is worded or wrapped.

    Args:
        text: Markdown.
        origin: Where it comes from, for error messages.

    Raises:
        TableError: Naming the statement that is missing.
    """
    front, _, body = text.replace("\r\n", "\n").removeprefix("---\n").partition("\n---\n")
    about = _front_matter(front, origin)
    sections = {
        title.strip(): content
        for title, _, content in (part.partition("\n") for part in body.split("\n## ")[1:])
    }

    def find(what: str, pattern: str, where: str) -> re.Match[str]:
        match = re.search(pattern, where)
        if match is None:
            raise TableError(f"{origin}: expected a card that states {what}, got none")
        return match

    name = find("a name", r"(?m)^# +(.+?) *$", "\n" + body)
    prose = " ".join(("\n" + body)[name.end() :].split())  # whatever the name says is no statement
    cluster = find("GPUs and hosts", r"(\d+) GPUs across (\d+) hosts?", prose)
    counts = find("how many configurations run", r"(\d+) of (\d+) configurations run", prose)
    rows = find("the number of rows", r"\b(\d+) rows are\b(?: \d+ of (\d+) valid)?", prose)
    if rows[1] != counts[2]:
        raise TableError(f"{origin}: expected one number of rows, got {rows[1]} and {counts[2]}")
    peak, best = "", None
    if int(counts[1]):
        peak = find("the largest peak memory", r"reach ([\d.]+) Gi?B", prose)[1]
        pattern = r"`throughput_mean` = ([\d.]+) at (.*?)\(peak memory ([\d.]+) Gi?B"
        best = find("the best row", pattern, prose)
    return Card(
        license=_stated(about, "license", "a licence", origin)[0],
        pretty_name=_stated(about, "pretty_name", "a title", origin)[0],
        size_category=_stated(about, "size_categories", "a size", origin)[0],
        tags=_stated(about, "tags", "tags", origin),
        name=unescaped(name[1]),
        n_gpus=int(cluster[1]),
        n_hosts=int(cluster[2]),
        n_rows=int(counts[2]),
        n_valid=None if rows[2] is None else int(rows[2]),
        n_feasible=int(counts[1]),
        largest_peak_mem=peak,
        threshold_separates="no memory threshold" not in prose,
        context=dict(_cells(sections.get("Instance context", ""), 2)),
        columns=tuple(_cells(sections.get("Columns", ""), 3)),
        best_throughput=best[1] if best else "",
        best_settings=dict(re.findall(r"`(\w+)`=([\w-]+)", best[2])) if best else {},
        best_peak_mem=best[3] if best else "",
        source=find("a source", r"(`+) ?(.+?) ?\1", sections.get("Provenance", ""))[2],
    )


def _front_matter(text: str, origin: str) -> dict[str, Any]:
    try:
        # Every value as the text that stands there: a title "No" is not taken for a bool.
        found = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes nothing but texts
    except (yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise TableError(f"{origin}: expected YAML at the top of the card: {reason}") from error
    return found if isinstance(found, dict) else {}


def _stated(about: dict[str, Any], key: str, what: str, origin: str) -> tuple[str, ...]:
    """The texts that the front matter gives for a key, at least one."""
    value = about.get(key)
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise TableError(f"{origin}: expected a card that states {what}, got {value!r}")
    return tuple(texts)


def _cells(section: str, n: int) -> list[Any]:
    """The rows of a section's table as tuples of n texts, without header."""
    rows = re.findall(r"(?m)^\|(.*)\|\s*$", section)
    cells = [tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", row)) for row in rows]
    names = [uncell(row[0].removeprefix("`").removesuffix("`")) for row in cells]
    return [(name, *row[1:]) for name, row in zip(names, cells, strict=True) if len(row) == n][2:]
