"""`parabolt table`: build, verify, fetch, compare and push measured tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as Grid

from parabolt.cli.output import Json, bold, console, print_json
from parabolt.errors import TableError
from parabolt.instances.catalogue import instance_text, load_instance
from parabolt.tables.checks.difference import difference
from parabolt.tables.publishing.build import CARD_FILE, DATA_FILE, INSTANCE_FILE
from parabolt.tables.publishing.build import build as build_folder
from parabolt.tables.publishing.hub import PUBLISHED, Upload
from parabolt.tables.publishing.hub import push as push_to_hub
from parabolt.tables.publishing.provenance import Provenance
from parabolt.tables.reading.reader import UNVERSIONED
from parabolt.tables.sources import is_name, load_table, locate

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance
    from parabolt.tables.checks.difference import TableDifference
    from parabolt.tables.checks.verification import Verification

app = typer.Typer(help="Build, check, fetch, compare and publish tables.", no_args_is_help=True)

_TABLE_HELP = "Name, CSV or Parquet file, directory, or hub:ORG/NAME@REVISION."
_InstanceOption = Annotated[
    str | None,
    typer.Option("--instance", help="Built-in name or TOML file; by default the one beside it."),
]
_Limit = Annotated[
    int, typer.Option(min=0, help="Findings to print; 0 for all. JSON has all of them.")
]


@app.command()
def build(
    sweep: Annotated[str, typer.Argument(help="Raw export: CSV or Parquet.")],
    instance: Annotated[str, typer.Option(help="Built-in name or TOML file.")],
    out: Annotated[str, typer.Option(help="Directory to write.")],
    data_version: Annotated[str, typer.Option(help="Version of the data.")] = UNVERSIONED,
    title: Annotated[str, typer.Option(help="Title of the card.")] = "",
    license_: Annotated[str, typer.Option("--license", help="Identifier of the licence.")] = "",
    gpu: Annotated[str, typer.Option(help="GPU, for the card.")] = "",
    software: Annotated[str, typer.Option(help="Software and versions, for the card.")] = "",
    command: Annotated[str, typer.Option(help="Command of a run, for the card.")] = "",
    date: Annotated[str, typer.Option(help="When it was measured, for the card.")] = "",
    limit: _Limit = 100,
    json: Json = False,
) -> None:
    """Turn a raw sweep export into a table with its card; nothing is written if it has findings.

    GPU, software, command and date are by default what `sweep` wrote of them beside its export.
    """
    found = load_instance(instance)
    is_published = found.name in PUBLISHED
    said = {"gpu": gpu, "software": software, "command": command, "date": date}
    stated: dict[str, Any] = {key: text for key, text in said.items() if text}
    provenance = replace(Provenance.load(Path(sweep)), **stated)
    verification = build_folder(
        Path(sweep),
        found,
        Path(out),
        instance_text=instance_text(instance),
        version=data_version,
        title=title or _title(found),
        license=license_ or ("mit" if is_published else "unknown"),
        provenance=provenance,
    )
    done = "" if verification.findings else f"wrote {DATA_FILE}, {CARD_FILE} and {INSTANCE_FILE}"
    _report(verification, sweep, limit, json=json, done=done and f"{done} to {out}")


@app.command()
def verify(
    table: Annotated[str, typer.Argument(help=_TABLE_HELP)],
    instance: _InstanceOption = None,
    source: Annotated[str, typer.Option(help="embedded or hub, for a built-in name.")] = "embedded",
    limit: _Limit = 100,
    json: Json = False,
) -> None:
    """Check a table against schema, itself and card; exit status 1 if there are findings."""
    located = locate(table, instance=_instance(instance), source=source)
    checked = "with its card" if located.card else "there is no card"
    origin = f"instance {located.instance.name} ({located.instance_origin}), {checked}"
    _report(located.verify(), table, limit, json=json, done=f"{origin}; data {located.version}")


@app.command()
def fetch(
    table: Annotated[str, typer.Argument(help="Built-in name or hub:ORG/NAME@REVISION.")],
    json: Json = False,
) -> None:
    """Download an original from the Hub into the cache, and check it against its card."""
    located = locate(table, source="hub")
    found = located.load()
    if json:
        print_json(
            {
                "table": table,
                "data_version": found.version,
                "content_hash": found.content_hash,
                "n_rows": len(found),
                "n_feasible": int(found.is_feasible.sum()),
                "path": str(located.raw.path),
            }
        )
        return
    out = console()
    out.print(bold(table), f": {len(found)} rows, {found.is_feasible.sum()} feasible", sep="")
    out.print(f"data {found.version}, SHA-256 {found.content_hash}", soft_wrap=True)
    out.print(str(located.raw.path), soft_wrap=True)
    if table in PUBLISHED:
        out.print(f'use it with --source hub, or load_problem("{table}", source="hub")')


@app.command()
def diff(
    a: Annotated[str, typer.Argument(help=_TABLE_HELP)],
    b: Annotated[str, typer.Argument(help=_TABLE_HELP)],
    instance: _InstanceOption = None,
    rtol: Annotated[float, typer.Option(help="Relative tolerance.")] = 0.0,
    atol: Annotated[float, typer.Option(help="Absolute tolerance.")] = 0.0,
    json: Json = False,
) -> None:
    """Compare two tables of one instance; exit status 1 if they differ."""
    given = _instance(instance)
    tables = [load_table(name, instance=None if is_name(name) else given) for name in (a, b)]
    found = difference(*tables, rtol=rtol, atol=atol)
    if json:
        print_json(_difference_as_json(found))
    else:
        _print_difference(found)
    if not found.is_empty:
        raise typer.Exit(1)


@app.command()
def push(
    folder: Annotated[str, typer.Argument(help="Directory that `table build` wrote.")],
    repo: Annotated[str, typer.Option(help="Data set, as ORG/NAME.")],
    dry_run: Annotated[bool, typer.Option(help="Only show what would go up.")] = False,
    json: Json = False,
) -> None:
    """Upload a table with its card to the Hub, if it has no findings."""
    located = locate(folder)
    if located.card is None:
        raise TableError(f"expected a card, {CARD_FILE}, in {folder}; try: parabolt table build")
    verification = located.verify()
    if verification.findings:
        _report(verification, folder, 100, json=json, done="")  # ends the command
    uploads = [
        Upload.of(path)
        for path in (located.raw.path, Path(folder, CARD_FILE), Path(folder, INSTANCE_FILE))
        if path.exists()
    ]
    message = f"{verification.instance.name}: {verification.facts.n_rows} rows, {located.version}"
    url = None if dry_run else push_to_hub(uploads, repo, message=message)
    if json:
        files = [{"name": u.name, "n_bytes": u.n_bytes, "sha256": u.sha256} for u in uploads]
        print_json({"repo": repo, "dry_run": dry_run, "commit": url, "files": files})
        return
    out = console()
    out.print(f"{'would upload' if dry_run else 'uploaded'} to {repo}: {message}")
    for upload in uploads:
        line = f"  {upload.name}  {upload.n_bytes} bytes  SHA-256 {upload.sha256}"
        out.print(line, soft_wrap=True)
    if url:
        out.print(url, soft_wrap=True)


def _instance(name: str | None) -> Instance | None:
    return None if name is None else load_instance(name)


def _title(instance: Instance) -> str:
    series = "BoLT " if instance.name in PUBLISHED else ""
    return f"{series}Parallelism Configuration ({instance.cluster.n_gpus} GPUs)"


def _report(verification: Verification, name: str, limit: int, *, json: bool, done: str) -> None:
    findings, facts = verification.findings, verification.facts
    if json:
        print_json(
            {
                "table": name,
                "instance": verification.instance.name,
                "n_rows": facts.n_rows,
                "n_feasible": facts.n_feasible,
                "n_oom": facts.n_oom,
                "n_failed": facts.n_failed,
                "n_valid": verification.coverage.n_valid,
                "missing": [c.as_dict() for c in verification.coverage.missing],
                "best_row": facts.best_row,
                "best_throughput": facts.best_throughput,
                "largest_peak_mem": facts.largest_peak_mem,
                "extra_columns": verification.extra_columns,
                "has_card": verification.has_card,
                "n_findings": len(findings),
                "findings": [vars(finding) for finding in findings],
            }
        )
    else:
        _print_findings(verification, name, limit)
        if done:
            console().print(done, soft_wrap=True)
    if findings:
        raise typer.Exit(1)


def _print_findings(verification: Verification, name: str, limit: int) -> None:
    out, findings, facts = console(), verification.findings, verification.facts
    failed = f"{facts.n_failed} failed (memory or a crash), " if facts.n_failed else ""
    out.print(
        bold(name),
        f": {facts.n_rows} rows, {facts.n_feasible} feasible, {failed}"
        f"{len(findings) or 'no'} finding{'' if len(findings) == 1 else 's'}",
        sep="",
        soft_wrap=True,
    )
    out.print(f"coverage: {verification.coverage.description}", soft_wrap=True)
    if verification.extra_columns:
        names = ", ".join(verification.extra_columns)
        out.print(f"kept, but not in the schema: {names}", soft_wrap=True)
    if not findings:
        return
    grid = Grid("row", "column", "expected", "found", "rule")
    for finding in findings.first(limit or len(findings)):
        row = "" if finding.row is None else str(finding.row)
        grid.add_row(row, finding.column, finding.expected, finding.found, finding.rule)
    out.print(grid)
    if 0 < limit < len(findings):
        out.print(f"and {len(findings) - limit} more; try --limit 0")


def _difference_as_json(found: TableDifference) -> dict[str, Any]:
    return {
        "is_empty": found.is_empty,
        "columns_only_a": found.columns_only_a,
        "columns_only_b": found.columns_only_b,
        "only_a": [configuration.as_dict() for configuration in found.only_a],
        "only_b": [configuration.as_dict() for configuration in found.only_b],
        "is_reordered": found.is_reordered,
        "columns": [
            {
                "column": column.column,
                "n_different": len(column.rows_a),
                "largest_absolute": column.largest_absolute,
                "largest_relative": column.largest_relative,
                "rows_a": column.rows_a.tolist(),
                "rows_b": column.rows_b.tolist(),
            }
            for column in found.columns
        ],
    }


def _print_difference(found: TableDifference) -> None:
    out = console()
    if found.is_empty:
        out.print("no difference")
        return
    for which, columns, only in (
        ("first", found.columns_only_a, found.only_a),
        ("second", found.columns_only_b, found.only_b),
    ):
        if columns:
            out.print(f"columns of the {which} only: {', '.join(columns)}")
        if only:
            out.print(f"configurations of the {which} only: {len(only)}, such as {only[0]}")
    if found.is_reordered:
        out.print("the common configurations stand in another order")
    if found.columns:
        grid = Grid("column", "cells", "largest difference", "relative", "first row")
        for column in found.columns:
            grid.add_row(
                column.column,
                str(len(column.rows_a)),
                f"{column.largest_absolute:.3g}",
                f"{column.largest_relative:.3g}",
                str(column.rows_a[0]),
            )
        out.print(grid)
