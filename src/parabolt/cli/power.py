"""`parabolt study power`: how many seeds a comparison needs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from parabolt.cli.output import Json, console, print_json
from parabolt.errors import OptionError
from parabolt.experiments.results import read_results

if TYPE_CHECKING:
    from parabolt.analysis.power import SeedsNeeded

#: Shares of seeds that the better optimizer wins, where none is given.
_WIN_SHARES = (0.6, 0.7, 0.8, 0.9, 1.0)


def power(
    folder: Annotated[
        Path | None, typer.Argument(help="Runs to learn the differences from; none to assume them.")
    ] = None,
    against: Annotated[
        str, typer.Option(help="With runs: the optimizer that all others are compared with.")
    ] = "parabolt",
    methods: Annotated[int, typer.Option(min=2, help="Without runs: optimizers compared.")] = 4,
    win_share: Annotated[
        float | None,
        typer.Option(help="Without runs: share of seeds on which the better optimizer wins."),
    ] = None,
    level: Annotated[
        float, typer.Option(help="Level of the test, after Holm's correction.")
    ] = 0.05,
    chance: Annotated[float, typer.Option(help="Wanted chance to see the difference.")] = 0.8,
    json: Json = False,
) -> None:
    """Tell how many seeds show a difference by the report's test, signed ranks with Holm.

    With runs, further seeds are taken to be like those that are there. Without, differences are
    taken as normal, and an effect is the share of seeds that the better optimizer wins.
    """
    from parabolt.analysis.power import MAX_SEEDS, seeds_for_runs, seeds_for_share

    if folder is None:
        families = (methods - 1, methods * (methods - 1) // 2)
        shares = _WIN_SHARES if win_share is None else (win_share,)
        needed = [
            seeds_for_share(share, n, level=level, power=chance)
            for share in shares
            for n in dict.fromkeys(families)
        ]
    elif win_share is not None:
        raise OptionError("win share: expected none with runs, which say it themselves")
    else:
        runs = read_results([folder]).counted()
        needed = seeds_for_runs(runs, against, level=level, power=chance)
    if json:
        print_json([asdict(one) for one in needed])
        return
    console().print(_table(needed, MAX_SEEDS, f"level {level:g}, chance {chance:g}"))


def _table(needed: list[SeedsNeeded], most: int, title: str) -> Table:
    table = Table(title=title, title_justify="left")
    is_learned = any(one.problem for one in needed)
    for heading in ["problem", "optimizers"] if is_learned else []:
        table.add_column(heading)
    for heading in ("won seeds", "comparisons", "seeds needed"):
        table.add_column(heading, justify="right")
    for one in needed:
        who = [one.problem, f"{one.first} / {one.second}"] if is_learned else []
        seeds = f"> {most}" if one.n_seeds is None else str(one.n_seeds)
        table.add_row(*who, f"{100 * one.win_share:.0f} %", str(one.n_comparisons), seeds)
    return table
