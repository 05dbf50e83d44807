"""`parabolt tune`: find the best configuration of a real program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parabolt.cli.output import Json, console, print_json
from parabolt.cli.trial_dry_run import run_dry
from parabolt.cli.trial_options import Config, DryRunFlag, RetryCrashed  # noqa: TC001 - typer reads them
from parabolt.cli.trial_result import print_result, result_as_json
from parabolt.cli.trial_view import watching
from parabolt.documents import is_there
from parabolt.trials.spec.file import load_spec
from parabolt.trials.tune import tune as run_tuning

if TYPE_CHECKING:
    from parabolt.trials.spec.spec import Spec


def tune(
    spec: Annotated[Path, typer.Argument(help="The spec, a TOML file; see docs/tune.md.")],
    out: Annotated[Path, typer.Option(help="Directory of journal and trials.")] = Path("runs/tune"),
    history: Annotated[
        list[str] | None,
        typer.Option(help="Table or journal of other instances to learn from; may be repeated."),
    ] = None,
    confirm: Annotated[
        int, typer.Option(min=0, help="Run the N fastest once more, beyond the budget.")
    ] = 0,
    retry_crashed: RetryCrashed = False,
    dry_run: DryRunFlag = False,
    config: Config = "",
    json: Json = False,
) -> None:
    """Search for the fastest configuration of a real training program, in few real runs.

    The same command goes on where an earlier one was stopped or killed.
    """
    loaded, screen = _with_history(load_spec(spec), history or []), console()
    if dry_run:
        run_dry(screen, loaded, out, config, needs_memory=False, json=json)
        return
    n_trials = None if loaded.budget is None else loaded.budget.trials
    try:
        with watching(screen, loaded, n_trials, is_quiet=json) as observer:
            done = run_tuning(
                loaded, out, retry_crashed=retry_crashed, n_confirmed=confirm, observer=observer
            )
    except KeyboardInterrupt:
        typer.echo(f"stopped; the same command goes on from {out}", err=True)
        raise typer.Exit(130) from None
    if json:
        print_json(result_as_json(loaded, done, out))
    else:
        print_result(screen, loaded, done, out)
    if done.best is None:
        raise typer.Exit(1)


def _with_history(spec: Spec, names: list[str]) -> Spec:
    """A spec whose optimizer also learns from the named tables and journals."""
    if not names:
        return spec
    found = [str(Path(name).resolve()) if is_there(name) else name for name in names]
    options = spec.optimizer.options
    options = {**options, "history": [*options.get("history", []), *found]}
    return replace(spec, optimizer=replace(spec.optimizer, options=options))
