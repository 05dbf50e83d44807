"""The candidates as a ConfigSpace, with the validity rules as forbidden clauses.

ConfigSpace is what SMAC3 and CARP-S search. A configuration of the space is a candidate, and each
candidate is one: rules are clauses over just their knobs, and a valid configuration that a table
doesn't have is a clause over all knobs.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from parabolt.errors import MissingDependencyError
from parabolt.instances.search_space import SearchSpace
from parabolt.integrations.box import CandidateBox
from parabolt.space.configuration import Configuration
from parabolt.space.configurations import Configurations

try:
    import ConfigSpace
except ImportError as error:
    raise MissingDependencyError.of("ConfigSpace", "smac") from error

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from parabolt.space.axis import Axis
    from parabolt.space.rules import Rule


def configuration_space(space: SearchSpace, *, seed: int = 0) -> Any:
    """A `ConfigurationSpace` of ordinal raw sizes whose legal configurations are the candidates.

    The default configuration is the first candidate.

    Args:
        space: Instance and candidates.
        seed: Seed of the space's own sampling.
    """
    box = CandidateBox(space)
    first = box.sizes_of(0)
    found = ConfigSpace.ConfigurationSpace(name=space.instance.name, seed=seed)
    found.add(_hyperparameter(axis, first[axis.knob.name]) for axis in space.instance.encoding.axes)
    clauses = [
        _clause(found, forbidden)
        for rule in space.instance.rules
        for forbidden in _forbidden_by(rule, space)
    ]
    clauses += [_clause(found, missing) for missing in _missing(space)]
    found.add(clauses)
    return found


def candidate(space: SearchSpace, config: Mapping[str, Any]) -> Configuration:
    """The candidate that a configuration of the space is.

    Raises:
        InvalidConfigurationError: If knobs are missing, or it isn't valid.
        MissingConfigurationError: If it isn't a candidate.
    """
    constants = space.instance.encoding.constants
    sizes = {k: v if isinstance(v, str) else int(v) for k, v in dict(config).items()}
    configuration = Configuration.from_dict({**constants, **sizes})
    space.row(configuration)
    return configuration


def _forbidden_by(rule: Rule, space: SearchSpace) -> Iterator[dict[str, Any]]:
    """Sizes that break a rule: one for each knob but the last, and a list for the last."""
    encoding = space.instance.encoding
    axes = [axis for axis in encoding.axes if axis.knob.name in rule.knobs]
    if not axes:
        return
    *others, last = axes
    for values in product(*(axis.values for axis in others)):
        chosen = {axis.knob.name: value for axis, value in zip(others, values, strict=True)}
        tried = Configurations({**encoding.constants, **chosen, last.knob.name: last.array})
        holds = np.broadcast_to(rule.holds(tried), len(tried))
        if not holds.all():
            sizes = {axis.knob.name: axis.knob.plain(chosen[axis.knob.name]) for axis in others}
            broken = last.array[~holds].tolist()
            yield {**sizes, last.knob.name: [last.knob.plain(value) for value in broken]}


def _hyperparameter(axis: Axis, default: int | str) -> Any:
    name, words = axis.knob.name, [axis.knob.plain(value) for value in axis.values]
    if axis.is_choice:
        return ConfigSpace.CategoricalHyperparameter(name, words, default_value=default)
    return ConfigSpace.OrdinalHyperparameter(name, words, default_value=default)


def _missing(space: SearchSpace) -> Iterator[dict[str, Any]]:
    whole = SearchSpace.lattice(space.instance)
    known = {tuple(row) for row in space.encoded.tolist()}
    for row, levels in enumerate(whole.encoded.tolist()):
        if tuple(levels) not in known:
            yield CandidateBox(whole).sizes_of(row)


def _clause(found: Any, forbidden: Mapping[str, Any]) -> Any:
    parts = [
        ConfigSpace.ForbiddenInClause(found[name], sizes)
        if isinstance(sizes, list)
        else ConfigSpace.ForbiddenEqualsClause(found[name], sizes)
        for name, sizes in forbidden.items()
    ]
    return parts[0] if len(parts) == 1 else ConfigSpace.ForbiddenAndConjunction(*parts)
