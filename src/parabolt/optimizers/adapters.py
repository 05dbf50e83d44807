"""Optimizers from anything that can propose: classes, fresh instances, functions, ask and tell."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import OptionError
from parabolt.optimizers.optimizer import Optimizer
from parabolt.space.configuration import Configuration

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import IntArray, Outcome

#: Options of every optimizer; others are those of what is adapted.
_COMMON = ("rng", "repeats", "history", "ask_time_limit_s")


class FunctionOptimizer(Optimizer):
    """Asks a function.

    Args:
        space: Instance and candidates.
        propose: `f(space, history, rng)` that gives the next candidate: a `Configuration`, a
            mapping of knobs to sizes, or a row number of `space`. `history` is what was told so
            far, see `History`, and `rng` the only source of randomness.
        seed: See `Optimizer`.
        **options: Those of `Optimizer`; others are passed to the function.
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        propose: Callable[..., Any],
        seed: int | np.random.Generator = 0,
        **options: Any,
    ) -> None:
        common, others = _split(options)
        super().__init__(space, seed=seed, **common)
        self.name = describe(propose)
        self._propose = partial(propose, **others)

    def _next_row(self, available: IntArray) -> int:  # noqa: ARG002 - `ask` checks the row
        return _row(self.space, self._propose(self.space, self.history, self.rng))


class AskTellOptimizer(Optimizer):
    """Drives an object that has `ask()` and `tell(configuration, outcome)`.

    `ask` gives what a function may give, see `FunctionOptimizer`. Where the object has a
    `recommend()` that gives a `Configuration` or None, that is the recommendation.

    Args:
        space: Instance and candidates.
        make: `make(space, seed=SEED)` gives the object. Where it has a parameter `history` and
            there are trials of other instances, it gets them, too.
        seed: See `Optimizer`.
        **options: Those of `Optimizer`; others are passed to `make`.
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        make: Callable[..., Any],
        seed: int | np.random.Generator = 0,
        **options: Any,
    ) -> None:
        common, others = _split(options)
        super().__init__(space, seed=seed, **common)
        if self.past and "history" in signature(make).parameters:
            others["history"] = self.past
        self._inner = make(space, seed=int(self.rng.integers(2**31)), **others)
        self.name = type(self._inner).__name__

    def tell(self, configuration: Configuration, outcome: Outcome) -> None:
        """See `Optimizer.tell`."""
        super().tell(configuration, outcome)
        self._inner.tell(configuration, outcome)

    def _next_row(self, available: IntArray) -> int:  # noqa: ARG002 - `ask` checks the row
        return _row(self.space, self._inner.ask())

    def _recommended_row(self) -> int | None:
        if not hasattr(self._inner, "recommend"):
            return super()._recommended_row()
        recommended = self._inner.recommend()
        return None if recommended is None else _row(self.space, recommended)


def optimizer_factory(source: object, name: str = "") -> Callable[..., Optimizer]:
    """What makes optimizers of `source`: a callable that takes the arguments of `Optimizer`.

    Args:
        source: A subclass of `Optimizer`; an instance that was told nothing yet, which stands for
            its class and options; a function `f(space, history, rng)`; a class whose instances,
            made by `cls(space, seed=SEED)`, have `ask` and `tell`; or an object that has them, of
            which every run gets a copy.
        name: How messages call it.

    Raises:
        OptionError: If it is none of these.
    """
    if isinstance(source, type) and issubclass(source, Optimizer):
        return source
    if isinstance(source, Optimizer):
        return _fresh(source)
    can_ask = callable(getattr(source, "ask", None)) and callable(getattr(source, "tell", None))
    if can_ask and isinstance(source, type):
        return partial(AskTellOptimizer, make=source)
    if can_ask:
        return partial(AskTellOptimizer, make=partial(_copy, source))
    if callable(source) and not isinstance(source, type):
        return partial(FunctionOptimizer, propose=source)
    raise OptionError(
        f"optimizer {name or describe(source)!r}: expected a subclass of parabolt.Optimizer, a "
        f"function f(space, history, rng), or an object with ask and tell, got {source!r}"
    )


def describe(source: object) -> str:
    """`module:name` of a class or function, or of an object's class."""
    while isinstance(source, partial):
        source = source.func
    found = source if hasattr(source, "__qualname__") else type(source)
    return f"{found.__module__}:{found.__qualname__}"


def _fresh(optimizer: Optimizer) -> Callable[..., Optimizer]:
    if len(optimizer.history) or optimizer.pending_rows:
        raise OptionError(
            f"optimizer {describe(optimizer)!r}: expected an instance that was asked and told "
            f"nothing, got one with {len(optimizer.history)} observations; try its class"
        )
    return partial(type(optimizer), **optimizer.given_options)


def _split(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    common = {name: value for name, value in options.items() if name in _COMMON}
    return common, {name: value for name, value in options.items() if name not in _COMMON}


def _copy(source: Any, space: SearchSpace, *, seed: int) -> Any:  # noqa: ARG001 - it has its own
    return deepcopy(source)


def _row(space: SearchSpace, proposed: object) -> int:
    """The row of a proposal; row numbers are passed on, `Optimizer.ask` checks them."""
    if isinstance(proposed, Configuration):
        return space.row(proposed)
    if isinstance(proposed, Mapping):
        return space.row(Configuration.from_dict(proposed))
    if isinstance(proposed, (int, np.integer)) and not isinstance(proposed, bool):
        return int(proposed)
    raise OptionError(
        f"expected a Configuration, a mapping of knobs to sizes or a row number as a proposal, "
        f"got {proposed!r}"
    )
