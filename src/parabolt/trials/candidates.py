"""What a spec can run: each command once, and nothing that its framework can't express."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from parabolt.errors import SpecError
from parabolt.frameworks.distinct import distinct_launches
from parabolt.frameworks.registry import launching_framework
from parabolt.instances.search_space import SearchSpace
from parabolt.space.removals import removals

if TYPE_CHECKING:
    from parabolt.space.configuration import Configuration
    from parabolt.trials.spec.spec import Spec


@dataclass(frozen=True)
class TrialCandidates:
    """The candidates of a search or a sweep.

    Attributes:
        space: What may be run.
        left_out: One line per kind of configuration that is left out, with a number and a reason:
            by the instance's rules, then by the framework.
        twins: Configurations that are left out because they give the same command as one that
            stays, each with that one.
    """

    space: SearchSpace
    left_out: tuple[str, ...] = ()
    twins: tuple[tuple[Configuration, Configuration], ...] = ()


def candidates_of(spec: Spec) -> TrialCandidates:
    """The candidates of a spec.

    Without a framework every searched knob occurs in the command, so that no two are the same.

    Raises:
        SpecError: If the framework can express no configuration of the instance.
    """
    space = SearchSpace.lattice(spec.instance)
    removed = tuple(map(str, removals(dict(spec.instance.levels), spec.instance.rules)))
    if spec.framework is None:
        return TrialCandidates(space, removed)
    launches = distinct_launches(
        launching_framework(spec.framework), spec.instance, space.candidates, command=spec.launched
    )
    if not launches.runs:
        raise SpecError(f"nothing to run: {'; '.join(launches.description)}")
    candidates = space.candidates
    twins = tuple((candidates[a], candidates[b]) for a, b in sorted(launches.twins.items()))
    rows = list(launches.runs)
    return TrialCandidates(
        SearchSpace(spec.instance, space.encoded[rows]), (*removed, *launches.description), twins
    )
