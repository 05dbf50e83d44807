"""Suites: problems that are run together, and whose scores are averaged over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from parabolt.errors import UnknownNameError
from parabolt.problems.registry import load_problem
from parabolt.tables.sources import USCALE, WITHOUT_OPTIMUM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from parabolt.problems.tabular import TabularProblem

_USCALE = tuple(name for name in USCALE if name not in WITHOUT_OPTIMUM)

#: Suite to the names of its problems. pco4-cpu is in none: it was not measured on GPUs.
SUITES: dict[str, tuple[str, ...]] = {"uscale": _USCALE, "all": ("pco32", "pco64", *_USCALE)}


@dataclass(frozen=True)
class Suite:
    """Problems that are run together.

    Attributes:
        name: Name of the suite.
        problems: Its problems.
    """

    name: str
    problems: tuple[TabularProblem, ...]


def load_suite(name: str) -> Suite:
    """A suite by name.

    Raises:
        UnknownNameError: If there is no suite of that name.
    """
    if name not in SUITES:
        raise UnknownNameError.of("suite", name, SUITES)
    return Suite(name, tuple(load_problem(problem) for problem in SUITES[name]))


def problems_of(names: Iterable[str]) -> tuple[str, ...]:
    """Names of problems, where a suite stands for its problems; each once, in order."""
    listed = (problem for name in names for problem in SUITES.get(name, (name,)))
    return tuple(dict.fromkeys(listed))
