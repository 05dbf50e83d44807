"""`parabolt bench`: compare optimizers on problems."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from parabolt.analysis.report import COLUMNS, score_as_json, score_cells, write_report
from parabolt.analysis.statistics import leaderboard
from parabolt.cli.output import Json, console, print_json
from parabolt.errors import OptionError
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.runner import run_all
from parabolt.experiments.store import RunStore
from parabolt.problems.registry import load_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from parabolt.analysis.metrics import Score


def bench(
    problems: Annotated[list[str], typer.Argument(help="Names of problems, such as pco32 pco64.")],
    optimizers: Annotated[str, typer.Option(help="Names, comma-separated.")] = "random,tpe,logeic",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, from 0.")] = 10,
    out: Annotated[Path, typer.Option(help="Directory of the runs.")] = Path("runs/bench"),
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    json: Json = False,
) -> None:
    """Run optimizers on problems with the published protocol, and rank them.

    Finished runs stay in the directory, and are not run again.
    """
    names = [name.strip() for name in optimizers.split(",") if name.strip()]
    for what, given in (("problems", problems), ("optimizers", names)):
        if not given or len(set(given)) < len(given):
            raise OptionError(f"{what}: expected distinct names, got {', '.join(given) or 'none'}")
    screen = console()
    found = [load_problem(name) for name in problems]
    if jobs != -1 and jobs < 1:
        raise OptionError(f"jobs: expected -1 or a positive whole number, got {jobs}")
    store = RunStore(out)
    try:
        with _progress(screen, is_quiet=json) as advance:
            runs = run_all(
                found,
                names,
                range(seeds),
                protocol=Protocol.published,
                store=store,
                n_jobs=jobs,
                progress=advance,
            )
    except KeyboardInterrupt:
        screen.print(f"stopped; finished runs are in {out}, the same command goes on from there")
        raise typer.Exit(130) from None
    report = write_report(runs, out)
    scores = leaderboard(runs)
    if json:
        print_json({"report": str(report), "leaderboard": [score_as_json(s) for s in scores]})
        return
    for problem in problems:
        _print_leaderboard(screen, problem, [s for s in scores if s.problem == problem])
    screen.print(f"report: {report}", soft_wrap=True)


@contextmanager
def _progress(screen: Console, *, is_quiet: bool) -> Iterator[Callable[[int, int], None]]:
    columns = ("[bold]runs", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, disable=is_quiet or not screen.is_terminal) as bar:
        task = bar.add_task("runs", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print_leaderboard(screen: Console, problem: str, scores: list[Score]) -> None:
    table = Table(title=f"{problem}: {scores[0].n_evaluations} evaluations", title_justify="left")
    for number, heading in enumerate(COLUMNS):
        table.add_column(heading, justify="right" if number else "left")
    for score in scores:
        table.add_row(*score_cells(score))
    screen.print(table)
