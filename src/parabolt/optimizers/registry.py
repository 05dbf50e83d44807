"""Optimizers by name."""

from __future__ import annotations

import importlib
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from parabolt.errors import OptionError, ParaboltError, UnknownNameError
from parabolt.optimizers.adapters import describe, optimizer_factory

if TYPE_CHECKING:
    import numpy as np

    from parabolt.instances.search_space import SearchSpace
    from parabolt.optimizers.optimizer import Optimizer

#: Name to module and class; imported only when asked for.
OPTIMIZERS: dict[str, str] = {
    "parabolt": "parabolt.optimizers.physics.parabolt:ParaboltOptimizer",
    "random": "parabolt.optimizers.published.random:RandomOptimizer",
    "logeic": "parabolt.optimizers.published.logeic:LogEIC",
    "lognei": "parabolt.optimizers.published.lognei:LogNEI",
    "ucbc": "parabolt.optimizers.published.ucbc:UCBC",
    "cts": "parabolt.optimizers.published.cts:CTS",
    "scbo": "parabolt.optimizers.published.scbo:SCBO",
    "cmes": "parabolt.optimizers.published.cmes:CMES",
    "ckg": "parabolt.optimizers.published.ckg:CKG",
    "admmbo": "parabolt.optimizers.published.admmbo:ADMMBO",
    "lognei+prior": "parabolt.optimizers.published.lognei:LogNEIWithPrior",
    "ucbc+prior": "parabolt.optimizers.published.ucbc:UCBCWithPrior",
    "ckg+prior": "parabolt.optimizers.published.ckg:CKGWithPrior",
    "admmbo+prior": "parabolt.optimizers.published.admmbo:ADMMBOWithPrior",
    "tpe": "parabolt.optimizers.published.tpe:TPE",
    "cmaes": "parabolt.optimizers.published.cmaes:CMAES",
    "best-of-history": "parabolt.optimizers.transfer.best_of_history:BestOfHistory",
    "mean-rank": "parabolt.optimizers.transfer.mean_rank:MeanRank",
    "rgpe": "parabolt.optimizers.transfer.rgpe:RGPE",
}

#: Other libraries' optimizers, each with an extra of its own; they stand above this layer, so
#: nothing but their address is known here.
LIBRARY_OPTIMIZERS: dict[str, str] = {
    "optuna-gp": "parabolt.integrations.optuna:OptunaGP",
    "nevergrad-ngopt": "parabolt.integrations.nevergrad:NGOpt",
    "nevergrad-oneplusone": "parabolt.integrations.nevergrad:DiscreteOnePlusOne",
    "ax": "parabolt.integrations.ax:AxOptimizer",
    "smac": "parabolt.integrations.smac:SMACOptimizer",
}


def optimizer_names() -> tuple[str, ...]:
    """Names of this package's optimizers; `make_optimizer` also knows `LIBRARY_OPTIMIZERS`."""
    return tuple(OPTIMIZERS)


def optimizer_class(name: str) -> type[Optimizer]:
    """The class of an optimizer of this package or of `LIBRARY_OPTIMIZERS`.

    Raises:
        UnknownNameError: If there is none of that name.
        MissingDependencyError: If a library that it needs is not installed.
    """
    known = OPTIMIZERS | LIBRARY_OPTIMIZERS
    if name not in known:
        raise UnknownNameError.of("optimizer", name, known)
    module, _, attribute = known[name].partition(":")
    found: type[Optimizer] = getattr(importlib.import_module(module), attribute)
    return found


def is_import_path(name: str) -> bool:
    """Whether a name is `module:attribute`, an optimizer from elsewhere."""
    return ":" in name


def find_optimizer(name: str) -> object:
    """What a name stands for: a class of this package, or what stands at `module:attribute`.

    Raises:
        UnknownNameError: If there is none of that name.
        OptionError: If `module:attribute` can't be imported.
        MissingDependencyError: If a library that it needs is not installed.
    """
    if not is_import_path(name):
        return optimizer_class(name)
    module, _, attribute = name.partition(":")
    try:
        found: object = attrgetter(attribute)(importlib.import_module(module))
    except ParaboltError:
        raise
    except Exception as error:  # a module that is being written may raise anything
        raise OptionError(
            f"optimizer {name!r}: expected module:Class, got {type(error).__name__}: {error}"
        ) from error
    return found


def make_optimizer(
    optimizer: str | object,
    space: SearchSpace,
    *,
    seed: int | np.random.Generator = 0,
    **options: Any,
) -> Optimizer:
    """An optimizer for the candidates of `space`, by name or from anything that can propose.

    Args:
        optimizer: One of `optimizer_names()` or of `LIBRARY_OPTIMIZERS`, `module:attribute`, or an
            object that `optimizer_factory` takes.
        space: Instance and candidates, such as `problem.space`.
        seed: Seed, or a generator to draw from. The same seed gives the same sequence.
        **options: Options of the optimizer, such as `repeats="allow"`.

    Raises:
        UnknownNameError: If there is none of that name.
        OptionError: For an unknown option, or a value outside what is allowed.
        MissingDependencyError: If a library that it needs is not installed.
    """
    name = optimizer if isinstance(optimizer, str) else describe(optimizer)
    found = find_optimizer(optimizer) if isinstance(optimizer, str) else optimizer
    try:
        return optimizer_factory(found, name)(space, seed=seed, **options)
    except TypeError as error:
        raise OptionError(f"{name}: {error}; got options {sorted(options)}") from error
