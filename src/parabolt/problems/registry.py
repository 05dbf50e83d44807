"""Problems by name, path or address."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from parabolt.errors import UnknownNameError
from parabolt.instances.catalogue import instance_names
from parabolt.problems.tabular import TabularProblem
from parabolt.tables.sources import EMBEDDED, WITHOUT_OPTIMUM, is_name, load_table

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance

#: What the address of a simulated machine starts with.
SIMULATED = "simulated:"


def problem_names() -> tuple[str, ...]:
    """Names of the problems whose tables are embedded, those without a finished run left out."""
    return tuple(name for name in EMBEDDED if name not in WITHOUT_OPTIMUM)


def load_problem(
    name: str | os.PathLike[str],
    *,
    instance: Instance | None = None,
    source: str = "embedded",
) -> TabularProblem:
    """The problem of a table; for an embedded one the same object each time.

    Args:
        name: `pco32` or `pco64`; a path or address, as `load_table` takes it; or a simulated
            machine such as `simulated:pco16?seed=3&noise=0.05`, see `SimulatedProblem.at`.
        instance: The instance, where `name` is a path or address and the instance can't be told
            from the table.
        source: Which data a built-in name stands for: `embedded`, or `hub` for the original.

    Raises:
        UnknownNameError: If there is no table of that name.
        InstanceError: If the instance of a file can't be told.
        TableError: If the table can't be read or fetched, or contradicts the schema or its card.
    """
    if name in EMBEDDED and source == "embedded" and instance is None:
        return _embedded(os.fspath(name))
    if os.fspath(name).startswith(SIMULATED):
        from parabolt.problems.simulated import SimulatedProblem  # scipy and the cost model

        return SimulatedProblem.at(os.fspath(name))
    if name in instance_names() and name not in EMBEDDED and source == "embedded":
        raise UnknownNameError(
            f"{name} is a known instance without an embedded table: expected one of "
            f"{', '.join(EMBEDDED)}; try load_problem({name!r}, source='hub') for the original, or "
            f"{SIMULATED}{name} for a simulated machine"
        )
    if is_name(name) and name not in instance_names():
        raise UnknownNameError.of("problem", os.fspath(name), EMBEDDED)
    return TabularProblem(load_table(name, instance=instance, source=source))


@cache
def _embedded(name: str) -> TabularProblem:
    return TabularProblem(load_table(name))
