"""`parabolt study`: run, watch, resume and clean a study."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from parabolt.cli.output import Json, console, print_json
from parabolt.errors import StudyError
from parabolt.experiments.executors.executor import make_executor
from parabolt.experiments.progress import Progress, read_progress
from parabolt.experiments.runner import run_study
from parabolt.experiments.store import RunStore
from parabolt.experiments.study import Study, read_study
from parabolt.optimizers.registry import is_own
from parabolt.problems.registry import load_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

app = typer.Typer(no_args_is_help=True, help="Run, watch, resume and clean a study.")

Out = Annotated[Path | None, typer.Option(help="Directory of the results; by default the study's.")]
ExecutorOption = Annotated[
    str | None,
    typer.Option(help="local, local:N, dask://HOST:PORT, dask://slurm?jobs=N, ray://HOST:PORT."),
]
Folder = Annotated[Path, typer.Argument(help="Directory of the results.")]


@app.command("run")
def run_(
    study: Annotated[Path, typer.Argument(help="Study file (TOML).")],
    out: Out = None,
    executor: ExecutorOption = None,
    json: Json = False,
) -> None:
    """Run a study; what is finished already is not run again."""
    found = read_study(study)
    folder = out or Path("runs") / study.stem
    _finish(found, folder, executor=executor, json=json)


@app.command()
def resume(folder: Folder, executor: ExecutorOption = None, json: Json = False) -> None:
    """Go on with a study where it stopped."""
    _finish(_study_of(folder), folder, executor=executor, json=json)


@app.command()
def status(folder: Folder, json: Json = False) -> None:
    """Tell how far a study is."""
    found = _study_of(folder)
    store, last = RunStore(folder), read_progress(folder)
    n_total = len(found.problems) * len(found.optimizers) * len(found.seeds)
    state = {
        "n_total": n_total,
        "n_done": len(store.finished()),
        "n_failed": len(store.failed()),
        "leaders": last.get("leaders", {}),
        "remaining_s": last.get("remaining_s"),
    }
    if json:
        print_json(state)
        return
    out = console()
    out.print(f"{state['n_done']} of {n_total} runs done, {state['n_failed']} failed")
    for problem, leader in state["leaders"].items():
        out.print(f"{problem}: {leader} has the smallest mean regret of the last session's runs")
    for name in sorted(store.failed()):
        out.print(f"failed: {folder / 'failed' / name}.json", soft_wrap=True)


@app.command()
def clean(
    folder: Folder,
    everything: Annotated[
        bool, typer.Option("--everything", help="Remove the finished runs, too.")
    ] = False,
    json: Json = False,
) -> None:
    """Remove what unfinished and failed runs left; with --everything the finished ones, too."""
    _study_of(folder)
    n_removed = RunStore(folder).clean(is_everything=everything)
    if json:
        print_json({"n_removed": n_removed})
    else:
        console().print(f"removed {n_removed} files")


def carry_out(study: Study, folder: Path, *, executor: str | None, is_quiet: bool) -> Progress:
    """Runs what is missing of a study and shows how far it is; after Ctrl-C exits with 130."""
    if any(is_own(choice.name) for choice in study.optimizers):
        sys.path.append(str(Path.cwd()))  # where `python` would look; last, so it hides nothing
    problems = [load_problem(name) for name in study.problems]
    engine = make_executor(executor or study.executor)
    screen = console()
    try:
        with _interruptible(), _shown(screen, is_quiet=is_quiet) as observe:
            return run_study(study, problems, folder, executor=engine, observe=observe)
    except KeyboardInterrupt:
        screen.print(
            f"stopped; finished runs are in {folder}, the same command goes on from there",
            soft_wrap=True,
        )
        raise typer.Exit(130) from None


def tell_failures(final: Progress, folder: Path) -> None:
    """Exits with status 1 if runs failed, and says where their reasons are."""
    if final.n_failed:
        failed = folder / "failed"
        typer.echo(f"error: {final.n_failed} runs failed; their reasons are in {failed}", err=True)
        raise typer.Exit(1)


def _finish(study: Study, folder: Path, *, executor: str | None, json: bool) -> None:
    final = carry_out(study, folder, executor=executor, is_quiet=json)
    if json:
        print_json({"folder": str(folder), **_plain(final)})
    else:
        console().print(_line(final))
    tell_failures(final, folder)


def _study_of(folder: Path) -> Study:
    path = folder / "study.toml"
    if not path.exists():
        raise StudyError(f"expected a study's directory, got {folder} without a study.toml")
    return read_study(path)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Lets SIGTERM, which schedulers send, end a study as cleanly as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _shown(screen: Console, *, is_quiet: bool) -> Iterator[Callable[[Progress], None]]:
    if is_quiet or not screen.is_terminal:
        yield lambda progress: None  # noqa: ARG005 - nobody watches
        return
    with Live(console=screen, refresh_per_second=4) as live:
        yield lambda progress: live.update(_panel(progress))


def _panel(progress: Progress) -> Table:
    panel = Table.grid(padding=(0, 1))
    panel.add_row(
        ProgressBar(total=progress.n_total, completed=progress.n_done + progress.n_failed),
    )
    panel.add_row(_line(progress))
    for problem, leader in progress.leaders.items():
        panel.add_row(f"{problem}: {leader} leads")
    return panel


def _line(progress: Progress) -> str:
    text = f"{progress.n_done} of {progress.n_total} runs done, {progress.n_failed} failed"
    if progress.n_retried:
        text += f", {progress.n_retried} tried again"
    if progress.n_running:
        text += f", {progress.n_running} running"
        if progress.remaining_s == progress.remaining_s:
            text += f", about {progress.remaining_s:.0f} s left"
    return text


def _plain(progress: Progress) -> dict[str, Any]:
    return {
        "n_total": progress.n_total,
        "n_done": progress.n_done,
        "n_failed": progress.n_failed,
        "n_retried": progress.n_retried,
        "elapsed_s": progress.elapsed_s,
        "leaders": progress.leaders,
    }
