"""Options that `tune` and `sweep` share."""

from __future__ import annotations

from typing import Annotated

import typer

#: Runs trials again that nothing is known of.
RetryCrashed = Annotated[
    bool,
    typer.Option("--retry-crashed", help="Run trials again that ended as crashed or node."),
]

#: Launches one configuration and shows what is read.
DryRunFlag = Annotated[
    bool,
    typer.Option("--dry-run", help="Launch one configuration, show what is read of it, and stop."),
]

#: Which configuration a dry run launches.
Config = Annotated[
    str, typer.Option("--config", help='For a dry run: what to launch, such as "dp=4 bucket=256".')
]
