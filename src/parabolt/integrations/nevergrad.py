"""The problems as Nevergrad functions, and Nevergrad's optimizers in our studies.

Nevergrad's conventions: it minimises, so the loss is -throughput in iterations/s (0 where the run
died); a constraint violation is positive where the constraint doesn't hold; the seed belongs to the
parametrization.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import MissingDependencyError, UnknownNameError
from parabolt.integrations.box import CandidateBox
from parabolt.integrations.cost import cost
from parabolt.integrations.library_optimizer import LibraryOptimizer
from parabolt.optimizers.told_margin import told_margin

try:
    import nevergrad as ng
except ImportError as error:
    raise MissingDependencyError.of("nevergrad", "nevergrad") from error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import FloatArray, Outcome
    from parabolt.problems.problem import Problem


def parametrization(space: SearchSpace, *, seed: int = 0) -> Any:
    """One `ng.p.TransitionChoice` of raw sizes for each searched knob, seeded."""
    box = CandidateBox(space)
    choices = {name: ng.p.TransitionChoice(sizes) for name, sizes in box.sizes.items()}
    found = ng.p.Instrumentation(**choices)
    found.random_state = np.random.RandomState(seed)
    return found


class Function:
    """An instrumented function for `optimizer.minimize`.

    A proposal that is no candidate stands for its nearest one; `last_placed` says which.

        function = Function(problem, seed=0)
        optimizer = ng.optimizers.NGOpt(function.parametrization, budget=50)
        optimizer.minimize(function, constraint_violation=[function.violation])

    Args:
        problem: The problem.
        seed: Seed of the parametrization.
    """

    def __init__(self, problem: Problem, *, seed: int = 0) -> None:
        self.problem = problem
        self.parametrization = parametrization(problem.space, seed=seed)
        self._box = CandidateBox(problem.space)
        self.last_placed: Any = None
        self._last_outcome: Any = None

    def __call__(self, **sizes: int) -> float:
        """The loss: -throughput in iterations/s, and 0 where the run died."""
        self.last_placed = self._box.place_sizes(sizes)
        self._last_outcome = self.problem.evaluate(self.last_placed.configuration)
        return cost(self._last_outcome)

    def violation(self, value: tuple[tuple[Any, ...], dict[str, int]]) -> float:
        """The memory margin of a candidate's value (args, kwargs): positive where the run died.

        The trial that `__call__` made last is not made again: objective and constraint are coupled.
        """
        placed = self._box.place_sizes(value[1])
        if placed != self.last_placed:
            self(**value[1])
        return told_margin(self._last_outcome)


class NevergradOptimizer(LibraryOptimizer):
    """An optimizer of Nevergrad by its own name; what was tried is told in place of what was asked.

    Args:
        space: Instance and candidates.
        method: Name in Nevergrad's registry, such as `NGOpt`, `DiscreteOnePlusOne`.
        budget: Evaluations that Nevergrad plans for.
        **options: `n_initial`, `seed` and `repeats`, see `DesignedOptimizer`.

    Raises:
        UnknownNameError: If Nevergrad has no such method.
    """

    name = "nevergrad"
    libraries = ("nevergrad",)

    def __init__(
        self, space: SearchSpace, *, method: str = "NGOpt", budget: int = 100, **options: Any
    ) -> None:
        super().__init__(space, **options)
        if method not in ng.optimizers.registry:
            raise UnknownNameError.of("method of Nevergrad", method, ng.optimizers.registry)
        self.method, self.budget = method, budget

    def _set_up(self, seed: int) -> None:
        self._global_state: Any = np.random.RandomState(seed).get_state()
        made = ng.optimizers.registry[self.method]
        with self._seeded():
            self._optimizer = made(parametrization(self.space, seed=seed), budget=self.budget)

    def _propose(self) -> tuple[Any, FloatArray]:
        with self._seeded():
            asked = self._optimizer.ask()
        return asked, self.box.encode(asked.kwargs)

    def _report(self, proposal: Any, row: int, outcome: Outcome) -> None:
        sizes, margin = self.box.sizes_of(row), told_margin(outcome)
        with self._seeded():
            if proposal is None or proposal.kwargs != sizes:
                proposal = self._optimizer.parametrization.spawn_child(new_value=((), sizes))
            self._optimizer.tell(proposal, cost(outcome), [margin] if np.isfinite(margin) else None)

    @contextmanager
    def _seeded(self) -> Iterator[None]:
        """Lends numpy's global generator, which Nevergrad's methods draw from, an own state.

        It is quiet as well: methods warn when they hear what they didn't ask.
        """
        before = np.random.get_state()  # noqa: NPY002 - see above
        np.random.set_state(self._global_state)  # noqa: NPY002 - see above
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            self._global_state = np.random.get_state()  # noqa: NPY002 - see above
            np.random.set_state(before)  # noqa: NPY002 - see above


class NGOpt(NevergradOptimizer):
    """Nevergrad's NGOpt, which chooses among its own methods."""

    name = "nevergrad-ngopt"


class DiscreteOnePlusOne(NevergradOptimizer):
    """Nevergrad's discrete (1+1) evolution strategy."""

    name = "nevergrad-oneplusone"

    def __init__(
        self, space: SearchSpace, *, method: str = "DiscreteOnePlusOne", **options: Any
    ) -> None:
        super().__init__(space, method=method, **options)
