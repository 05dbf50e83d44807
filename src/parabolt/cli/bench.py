"""`parabolt bench`: compare optimizers on problems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from parabolt.cli.output import Json, console, print_json
from parabolt.cli.study import ExecutorOption, carry_out, tell_failures
from parabolt.errors import MissingDependencyError, OptionError
from parabolt.experiments.store import RunStore
from parabolt.experiments.study import OptimizerChoice, Study
from parabolt.problems.registry import load_problem

if TYPE_CHECKING:
    from rich.console import Console

    from parabolt.analysis.leaderboard import Score


def bench(
    problems: Annotated[list[str], typer.Argument(help="Names of problems, such as pco32 pco64.")],
    optimizers: Annotated[
        str,
        typer.Option("--optimizers", "--optimizer", help="Names or module:Class, comma-separated."),
    ] = "random,tpe,logeic",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, from 0.")] = 10,
    out: Annotated[Path, typer.Option(help="Directory of the runs.")] = Path("runs/bench"),
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    executor: ExecutorOption = None,
    json: Json = False,
) -> None:
    """Run optimizers on problems with the published protocol, and rank them.

    Finished runs stay in the directory, and are not run again. The directory holds the study file
    for `parabolt study`, too.
    """
    from parabolt.analysis.leaderboard import leaderboard, score_as_json  # scipy.stats is slow
    from parabolt.analysis.report import write_report

    names = [name.strip() for name in optimizers.split(",") if name.strip()]
    for what, given in (("problems", problems), ("optimizers", names)):
        if not given or len(set(given)) < len(given):
            raise OptionError(f"{what}: expected distinct names, got {', '.join(given) or 'none'}")
    if jobs != -1 and jobs < 1:
        raise OptionError(f"jobs: expected -1 or a positive whole number, got {jobs}")
    study = Study(
        problems=tuple(problems),
        optimizers=tuple(OptimizerChoice(name, name) for name in names),
        seeds=tuple(range(seeds)),
        executor=executor or ("local" if jobs == -1 else f"local:{jobs}"),
    )
    final = carry_out(study, out, executor=None, is_quiet=json)
    store = RunStore(out)
    paths = [store.path(key) for _, key in study.keys([load_problem(name) for name in problems])]
    runs = [store.load(path) for path in paths if path.exists()]
    if not runs:
        tell_failures(final, out)
    try:
        report = str(write_report(runs, out))
    except MissingDependencyError as error:
        report = f"none, for {error}"
    scores = leaderboard(runs)
    if json:
        print_json({"report": report, "leaderboard": [score_as_json(s) for s in scores]})
        tell_failures(final, out)
        return
    screen = console()
    for problem in problems:
        _print_leaderboard(screen, problem, [s for s in scores if s.problem == problem])
    screen.print(f"report: {report}", soft_wrap=True)
    tell_failures(final, out)


def _print_leaderboard(screen: Console, problem: str, scores: list[Score]) -> None:
    from parabolt.analysis.leaderboard import COLUMNS, score_cells

    table = Table(title=f"{problem}: {scores[0].n_evaluations} evaluations", title_justify="left")
    for number, heading in enumerate(COLUMNS):
        table.add_column(heading, justify="right" if number else "left")
    for score in scores:
        table.add_row(*score_cells(score))
    screen.print(table)
