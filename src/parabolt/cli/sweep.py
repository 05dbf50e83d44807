"""`parabolt sweep`: measure every configuration, for a table of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from parabolt.cli.output import Json, console, print_json
from parabolt.cli.trial_dry_run import run_dry
from parabolt.cli.trial_options import Config, DryRunFlag, RetryCrashed  # noqa: TC001 - typer reads them
from parabolt.cli.trial_result import print_result, result_as_json
from parabolt.cli.trial_view import watching
from parabolt.trials.candidates import candidates_of
from parabolt.trials.spec.file import load_spec
from parabolt.trials.sweep import EXPORT
from parabolt.trials.sweep import sweep as run_sweep


def sweep(
    spec: Annotated[Path, typer.Argument(help="The spec, a TOML file; see docs/tune.md.")],
    out: Annotated[Path, typer.Option(help="Directory of the sweep.")] = Path("runs/sweep"),
    retry_crashed: RetryCrashed = False,
    dry_run: DryRunFlag = False,
    config: Config = "",
    json: Json = False,
) -> None:
    """Measure all configurations of an instance, and write the raw export of a table.

    The same command goes on where an earlier one was stopped or killed. Exit status 1 if some
    configurations gave no outcome, and so have no row.
    """
    loaded, screen = load_spec(spec), console()
    if dry_run:
        run_dry(screen, loaded, out, config, needs_memory=True, json=json)
        return
    candidates = candidates_of(loaded)
    try:
        with watching(screen, loaded, len(candidates.space), is_quiet=json) as observer:
            history = run_sweep(loaded, out, retry_crashed=retry_crashed, observer=observer)
    except KeyboardInterrupt:
        typer.echo(f"stopped; the same command goes on from {out}", err=True)
        raise typer.Exit(130) from None
    unknown = [t for t in history.told if not t.outcome.status.is_definite]
    if json:
        print_json(
            {
                **result_as_json(loaded, history, out),
                "export": str(out / EXPORT),
                "left_out": list(candidates.left_out),
                "twins": [
                    {"configuration": twin.as_dict(), "same_launch_as": measured.as_dict()}
                    for twin, measured in candidates.twins
                ],
            }
        )
    else:
        print_result(screen, loaded, history, out)
        for trial in unknown:
            screen.print(
                f"no row for {trial.configuration}: {trial.outcome.status}, {trial.reason}",
                soft_wrap=True,
            )  # fmt: skip
        screen.print(f"export: {out / EXPORT}", soft_wrap=True)
    if unknown:
        raise typer.Exit(1)
