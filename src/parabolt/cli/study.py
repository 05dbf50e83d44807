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
from rich.text import Text

from parabolt.cli.output import Json, console, print_json
from parabolt.cli.power import power
from parabolt.errors import StudyError
from parabolt.experiments.bundle import check_bundle, make_bundle
from parabolt.experiments.executors.addresses import make_executor
from parabolt.experiments.manifest import Manifest, load_manifest
from parabolt.experiments.progress import StudyProgress, read_progress
from parabolt.experiments.runner import lock_store, run_study
from parabolt.experiments.store import RunStore
from parabolt.experiments.study import Study, read_study
from parabolt.optimizers.registry import is_import_path
from parabolt.problems.registry import load_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from parabolt.problems.problem import Problem

app = typer.Typer(no_args_is_help=True, help="Run, watch, resume and clean a study.")
app.command()(power)

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
    _finish(_manifest_of(folder).study, folder, executor=executor, json=json)


@app.command()
def status(folder: Folder, json: Json = False) -> None:
    """Tell how far a study is, by what can be read back."""
    wanted = _manifest_of(folder).keys
    store, last = RunStore(folder), read_progress(folder)
    there = store.finished()
    done = {key.digest[:16] for key in wanted} & there.keys()
    failures = [failed for failed in store.load_failures() if failed.key in set(wanted)]
    state = {
        "n_total": len(wanted),
        "n_done": len(done),
        "n_failed": len(failures),
        "n_other": len(there) - len(done),
        "damaged": [str(path) for path in store.paths() if path not in set(there.values())],
        "leaders": last.get("leaders", {}),
        "remaining_s": last.get("remaining_s"),
    }
    if json:
        print_json(state)
        return
    lines = [f"{state['n_done']} of {len(wanted)} runs done, {len(failures)} failed"]
    if state["n_other"]:
        lines.append(
            f"{state['n_other']} more finished runs are of seeds, budgets or optimizers that the "
            "study does not name now"
        )
    lines += [
        f"damaged: {path}; `parabolt study resume` runs it again" for path in state["damaged"]
    ]
    lines += [
        f"{problem}: {leader} has the smallest mean regret of the last session's runs"
        for problem, leader in state["leaders"].items()
    ]
    lines += [
        f"failed: {f.key.problem}, {f.key.optimizer}, seed {f.key.seed}: {f.reason}"
        for f in failures
    ]
    for line in lines:
        console().print(line, soft_wrap=True, markup=False)


@app.command()
def clean(
    folder: Folder,
    everything: Annotated[
        bool, typer.Option("--everything", help="Remove the finished runs, too.")
    ] = False,
    json: Json = False,
) -> None:
    """Remove what unfinished and failed runs left; with --everything the finished ones, too."""
    _manifest_of(folder)
    with lock_store(folder):
        n_removed = RunStore(folder).clean(is_everything=everything)
    if json:
        print_json({"n_removed": n_removed})
    else:
        console().print(f"removed {n_removed} files")


@app.command()
def submit(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option(help="The archive; by default FOLDER.zip beside it.")
    ] = None,
    json: Json = False,
) -> None:
    """Bundle a study of which every run has ended into one file, and say what to publish."""
    path = out or folder.resolve().parent / f"{folder.resolve().name}.zip"
    _manifest_of(folder)
    with lock_store(folder):
        bundle = make_bundle(folder, path)
    if json:
        print_json({**vars(bundle), "path": str(path)})
        return
    for line in (
        f"bundled {bundle.n_runs} finished and {bundle.n_failed} failed runs: {path}",
        f"SHA-256 {bundle.sha256}",
        "publish the file and its hash, and the code of optimizers that are not of parabolt; "
        f"anyone checks it with: parabolt study check {path.name}",
    ):
        console().print(line, soft_wrap=True, markup=False)


@app.command()
def check(
    bundle: Annotated[Path, typer.Argument(help="File that `parabolt study submit` made.")],
    runs: Annotated[int, typer.Option(min=1, help="How many runs to run again.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    json: Json = False,
) -> None:
    """Check the hashes of a bundle and run a sample of it again; exit status 1 if it differs."""
    sys.path.append(str(Path.cwd()))  # where own optimizers are looked up
    found = check_bundle(bundle, n_runs=runs, seed=seed)
    if json:
        print_json(vars(found))
    else:
        n = len(found.checked)
        lines = [f"{n - len(found.different)} of {n} runs came out the same, of {found.n_runs}"]
        lines += [f"different: {words}" for words in found.different]
        for line in lines:
            console().print(line, soft_wrap=True, markup=False)
    if found.different:
        raise typer.Exit(1)


def run_with_progress(
    study: Study, problems: Sequence[Problem], folder: Path, *, is_quiet: bool
) -> StudyProgress:
    """Runs what is missing of a study and shows how far it is; after Ctrl-C exits with 130."""
    engine = make_executor(study.executor)
    screen = console()
    try:
        with _interruptible(), _shown(screen, is_quiet=is_quiet) as observe:
            return run_study(study, problems, folder, executor=engine, observe=observe)
    except KeyboardInterrupt:
        screen.print(
            f"stopped; finished runs are in {folder}, the same command goes on from there",
            soft_wrap=True,
            markup=False,
        )
        raise typer.Exit(130) from None


def load_problems(study: Study) -> list[Problem]:
    """The problems of a study; from now on own optimizers are found in the current directory."""
    if any(is_import_path(choice.name) for choice in study.optimizers):
        sys.path.append(str(Path.cwd()))  # where `python` would look; last, so it hides nothing
    return [load_problem(name) for name in study.problems]


def tell_failures(final: StudyProgress, folder: Path) -> None:
    """Exits with status 1 if runs failed, and says where their reasons are."""
    for notice in final.notices:
        typer.echo(notice, err=True)
    if final.n_failed:
        failed = folder / "failed"
        typer.echo(f"error: {final.n_failed} runs failed; their reasons are in {failed}", err=True)
        raise typer.Exit(1)


def _finish(study: Study, folder: Path, *, executor: str | None, json: bool) -> None:
    from dataclasses import replace

    if executor:
        study = replace(study, executor=executor)
    final = run_with_progress(study, load_problems(study), folder, is_quiet=json)
    if json:
        print_json({"folder": str(folder), **_plain(final)})
    else:
        console().print(_line(final))
    tell_failures(final, folder)


def _manifest_of(folder: Path) -> Manifest:
    found = load_manifest(folder)
    if found is None:
        raise StudyError(f"expected a study's directory, got {folder} without a study.json")
    return found


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
def _shown(screen: Console, *, is_quiet: bool) -> Iterator[Callable[[StudyProgress], None]]:
    if is_quiet or not screen.is_terminal:
        yield lambda progress: None  # noqa: ARG005 - nobody watches
        return
    with Live(console=screen, refresh_per_second=4) as live:
        yield lambda progress: live.update(_panel(progress))


def _panel(progress: StudyProgress) -> Table:
    panel = Table.grid(padding=(0, 1))
    panel.add_row(
        ProgressBar(total=progress.n_total, completed=progress.n_done + progress.n_failed),
    )
    panel.add_row(_line(progress))
    for problem, leader in progress.leaders.items():
        panel.add_row(Text(f"{problem}: {leader} leads"))
    return panel


def _line(progress: StudyProgress) -> str:
    text = f"{progress.n_done} of {progress.n_total} runs done, {progress.n_failed} failed"
    if progress.n_retried:
        text += f", {progress.n_retried} tried again"
    if progress.n_running:
        text += f", {progress.n_running} running"
        if progress.remaining_s == progress.remaining_s:
            text += f", about {progress.remaining_s:.0f} s left"
    return text


def _plain(progress: StudyProgress) -> dict[str, Any]:
    return {
        "n_total": progress.n_total,
        "n_done": progress.n_done,
        "n_failed": progress.n_failed,
        "n_retried": progress.n_retried,
        "elapsed_s": progress.elapsed_s,
        "leaders": progress.leaders,
        "notices": progress.notices,
    }
