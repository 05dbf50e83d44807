"""`parabolt tune`: find the best configuration of a real program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from parabolt.cli.output import Json, console, print_json
from parabolt.cli.trial_dry_run import run_dry
from parabolt.cli.trial_options import Config, DryRunFlag, RetryCrashed  # noqa: TC001 - typer reads them
from parabolt.cli.trial_result import print_result, result_as_json
from parabolt.cli.trial_view import watching
from parabolt.trials.spec.file import load_spec
from parabolt.trials.tune import tune as run_tuning


def tune(
    spec: Annotated[Path, typer.Argument(help="The spec, a TOML file; see docs/tune.md.")],
    out: Annotated[Path, typer.Option(help="Directory of journal and trials.")] = Path("runs/tune"),
    retry_crashed: RetryCrashed = False,
    dry_run: DryRunFlag = False,
    config: Config = "",
    json: Json = False,
) -> None:
    """Search for the fastest configuration of a real training program, in few real runs.

    The same command goes on where an earlier one was stopped or killed.
    """
    loaded, screen = load_spec(spec), console()
    if dry_run:
        run_dry(screen, loaded, out, config, needs_memory=False, json=json)
        return
    n_trials = None if loaded.budget is None else loaded.budget.trials
    try:
        with watching(screen, loaded, n_trials, is_quiet=json) as observer:
            history = run_tuning(loaded, out, retry_crashed=retry_crashed, observer=observer)
    except KeyboardInterrupt:
        typer.echo(f"stopped; the same command goes on from {out}", err=True)
        raise typer.Exit(130) from None
    if json:
        print_json(result_as_json(loaded, history, out))
    else:
        print_result(screen, loaded, history, out)
    if history.incumbent is None:
        raise typer.Exit(1)
