"""`parabolt bench`: compare optimizers on problems."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from parabolt.analysis.words import with_interval
from parabolt.cli.output import Json, console, print_json
from parabolt.cli.study import ExecutorOption, load_problems, run_with_progress, tell_failures
from parabolt.errors import MissingDependencyError, OptionError
from parabolt.experiments.results import read_results
from parabolt.experiments.study import OptimizerChoice, Study, seeds_of
from parabolt.problems.suites import problems_of

if TYPE_CHECKING:
    from rich.console import Console

    from parabolt.analysis.findings import BoardFindings
    from parabolt.analysis.suite_scores import SuiteScore


def bench(
    problems: Annotated[
        list[str],
        typer.Argument(
            help="Problems or suites by name, path or address, such as pco32 or uscale."
        ),
    ],
    optimizers: Annotated[
        str,
        typer.Option("--optimizers", "--optimizer", help="Names or module:Class, comma-separated."),
    ] = "parabolt,random,tpe,logeic",
    seeds: Annotated[int, typer.Option(help="Number of seeds, from 0.")] = 10,
    evaluations: Annotated[
        int | None,
        typer.Option(help="Evaluations after the initial design; by default as published."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory of the runs.")] = Path("runs/bench"),
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    executor: ExecutorOption = None,
    json: Json = False,
) -> None:
    """Run optimizers on problems with the published protocol, and rank them.

    Finished runs stay in the directory, and are not run again. The directory holds the study file
    for `parabolt study`, too.
    """
    from parabolt.analysis.findings import find  # scipy.stats is slow
    from parabolt.analysis.leaderboard import score_as_json
    from parabolt.analysis.report import write_report
    from parabolt.analysis.suite_scores import compare_over_problems, problem_scores, suite_scores

    names = [name.strip() for name in optimizers.split(",") if name.strip()]
    for what, given in (("problems", problems), ("optimizers", names)):
        if not given or len(set(given)) < len(given):
            raise OptionError(f"{what}: expected distinct names, got {', '.join(given) or 'none'}")
    if jobs != -1 and jobs < 1:
        raise OptionError(f"jobs: expected -1 or a positive whole number, got {jobs}")
    study = Study(
        problems=problems_of(problems),
        optimizers=tuple(OptimizerChoice(name, name) for name in names),
        seeds=seeds_of(seeds),
        protocol=() if evaluations is None else (("n_evaluations", evaluations),),
        executor=executor or ("local" if jobs == -1 else f"local:{jobs}"),
    )
    loaded = load_problems(study)
    final = run_with_progress(study, loaded, out, is_quiet=json)
    results = read_results([out], only=[key for _, key in study.keys(loaded)])
    findings = find(results, problems=loaded)
    try:
        report = str(write_report(findings, out))
    except MissingDependencyError as error:
        report = f"none, for {error}"
    n_candidates = {problem.name: len(problem.space) for problem in loaded}
    labels = {found.board.label: found.board.problem for found in findings.boards}
    by_problem = problem_scores(
        results.counted(), {label: n_candidates[name] for label, name in labels.items()}
    )
    if json:
        print_json(
            {
                "report": report,
                "leaderboard": [score_as_json(score) for score in findings.scores],
                "problems": [asdict(score) for score in by_problem],
                "suite": [asdict(score) for score in suite_scores(by_problem)],
                "comparisons": [asdict(c) for c in compare_over_problems(by_problem)],
            }
        )
        tell_failures(final, out)
        return
    screen = console()
    for found in findings.boards:
        _print_leaderboard(screen, found)
    if len(labels) > 1:
        _print_suite(screen, suite_scores(by_problem))
    for note in findings.notes:
        screen.print(note, soft_wrap=True, markup=False)
    screen.print(f"report: {report}", soft_wrap=True, markup=False)
    tell_failures(final, out)


def _print_suite(screen: Console, scores: list[SuiteScore]) -> None:
    title = f"mean over {scores[0].n_problems} problems"
    table = Table(title=title, title_justify="left")
    for heading in (
        "optimizer",
        "final regret, %",
        "area, %",
        "within 1 %",
        "candidates until then",
    ):
        table.add_column(heading, justify="left" if heading == "optimizer" else "right")
    for score in scores:
        table.add_row(
            score.optimizer,
            with_interval(
                score.regret_percent, score.regret_low_percent, score.regret_high_percent
            ),
            f"{score.area_percent:.2f}",
            f"{100.0 * score.close_share:.0f} %",
            f"{100.0 * score.close_fraction:.1f} %",
        )
    screen.print(table)


def _print_leaderboard(screen: Console, found: BoardFindings) -> None:
    from parabolt.analysis.leaderboard import COLUMNS, score_cells

    title = f"{found.board.label}: {found.scores[0].n_evaluations} evaluations"
    table = Table(title=title, title_justify="left")
    for number, heading in enumerate(COLUMNS):
        table.add_column(heading, justify="right" if number else "left")
    for score in found.scores:
        table.add_row(*score_cells(score))
    screen.print(table)
    for note in found.notes:
        screen.print(note, soft_wrap=True)
