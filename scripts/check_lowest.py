"""Checks that each dependency is installed at the minimum version that pyproject.toml states.

Usage: python scripts/check_lowest.py, in the environment that `make test-lowest` makes. A minimum
that another dependency has pushed up is not the one that the tests ran with, and has to be raised.
"""

import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
EXTRA = "test-lowest"


def main() -> None:
    """Prints every minimum; ends with status 1 if one isn't what is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    stated = [Requirement(text) for text in project["dependencies"]]
    stated += requirements(EXTRA, extras)
    wrong = []
    for requirement in sorted(set(stated), key=lambda r: r.name.lower()):
        floor, found = minimum(requirement), Version(version(requirement.name))
        # A local label, as in 2.13.0+cpu, is the same version.
        if Version(found.public) != floor:
            wrong.append(requirement.name)
        print(f"{requirement.name:20} minimum {floor!s:10} installed {found}")
    if wrong:
        sys.exit(f"error: expected the minimum versions, got others of {', '.join(wrong)}")


def requirements(extra: str, extras: dict[str, list[str]]) -> Iterator[Requirement]:
    """The requirements of an extra, with those of the extras that it names."""
    for text in extras[extra]:
        requirement = Requirement(text)
        if requirement.name == "parabolt":
            for name in requirement.extras:
                yield from requirements(name, extras)
        else:
            yield requirement


def minimum(requirement: Requirement) -> Version:
    """The version that a requirement is at least."""
    (floor,) = (s.version for s in requirement.specifier if s.operator in (">=", "=="))
    return Version(floor)


if __name__ == "__main__":
    main()
