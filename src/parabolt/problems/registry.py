"""Problems by name."""

from __future__ import annotations

from functools import cache

from parabolt.errors import UnknownNameError
from parabolt.instances.catalogue import instance_names
from parabolt.problems.tabular import TabularProblem
from parabolt.tables.sources import EMBEDDED, load_table


def problem_names() -> tuple[str, ...]:
    """Names that `load_problem` knows."""
    return EMBEDDED


@cache
def load_problem(name: str) -> TabularProblem:
    """The problem of a published table; the same object each time.

    Args:
        name: `pco32` or `pco64`.

    Raises:
        UnknownNameError: If there is no table of that name.
    """
    if name in instance_names() and name not in EMBEDDED:
        raise UnknownNameError(
            f"{name} is a known instance without an embedded table: expected one of "
            f"{', '.join(EMBEDDED)}; try SearchSpace.lattice(load_instance({name!r})) for its "
            "configurations"
        )
    if name not in EMBEDDED:
        raise UnknownNameError.of("problem", name, EMBEDDED)
    return TabularProblem(load_table(name))
