"""Optimizers by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from parabolt.errors import OptionError, UnknownNameError

if TYPE_CHECKING:
    import numpy as np

    from parabolt.instances.search_space import SearchSpace
    from parabolt.optimizers.optimizer import Optimizer

#: Name to module and class; imported only when asked for.
OPTIMIZERS: dict[str, str] = {
    "parabolt": "parabolt.optimizers.parabolt:ParaboltOptimizer",
    "random": "parabolt.optimizers.random:RandomOptimizer",
    "logeic": "parabolt.optimizers.logeic:LogEIC",
    "lognei": "parabolt.optimizers.lognei:LogNEI",
    "ucbc": "parabolt.optimizers.ucbc:UCBC",
    "cts": "parabolt.optimizers.cts:CTS",
    "scbo": "parabolt.optimizers.scbo:SCBO",
    "cmes": "parabolt.optimizers.cmes:CMES",
    "ckg": "parabolt.optimizers.ckg:CKG",
    "admmbo": "parabolt.optimizers.admmbo:ADMMBO",
    "lognei+prior": "parabolt.optimizers.lognei:LogNEIWithPrior",
    "ucbc+prior": "parabolt.optimizers.ucbc:UCBCWithPrior",
    "ckg+prior": "parabolt.optimizers.ckg:CKGWithPrior",
    "admmbo+prior": "parabolt.optimizers.admmbo:ADMMBOWithPrior",
    "tpe": "parabolt.optimizers.tpe:TPE",
    "cmaes": "parabolt.optimizers.cmaes:CMAES",
}


def optimizer_names() -> tuple[str, ...]:
    """Names that `make_optimizer` knows."""
    return tuple(OPTIMIZERS)


def optimizer_class(name: str) -> type[Optimizer]:
    """The class of an optimizer.

    Raises:
        UnknownNameError: If there is none of that name.
        MissingDependencyError: If a library that it needs is not installed.
    """
    if name not in OPTIMIZERS:
        raise UnknownNameError.of("optimizer", name, OPTIMIZERS)
    module, _, attribute = OPTIMIZERS[name].partition(":")
    found: type[Optimizer] = getattr(importlib.import_module(module), attribute)
    return found


def make_optimizer(
    name: str, space: SearchSpace, *, seed: int | np.random.Generator = 0, **options: Any
) -> Optimizer:
    """An optimizer by name, for the candidates of `space`.

    Args:
        name: One of `optimizer_names()`.
        space: Instance and candidates, such as `problem.space`.
        seed: Seed, or a generator to draw from. The same seed gives the same sequence.
        **options: Options of the optimizer, such as `repeats="allow"`.

    Raises:
        UnknownNameError: If there is none of that name.
        OptionError: For an unknown option, or a value outside what is allowed.
        MissingDependencyError: If a library that it needs is not installed.
    """
    made = optimizer_class(name)
    try:
        return made(space, seed=seed, **options)
    except TypeError as error:
        raise OptionError(f"{name}: {error}; got options {sorted(options)}") from error
