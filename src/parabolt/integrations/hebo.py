"""The problems in HEBO, and HEBO in our studies.

HEBO's conventions: it minimises; points come and go as rows of a pandas DataFrame, values as a
column (n, 1); an observation that is not finite is left out; constraints, feasible where <= 0, are
further columns, which `GeneralBO` understands and `HEBO` doesn't; seeds are those of the global
generators. So the loss is -throughput in iterations/s, 0 where the run died (it made no iteration,
and 0 is more than the loss of any run that finished), and the memory margin is the constraint.

HEBO 0.3.6 needs numpy < 1.25, so its extra wants an environment of its own. Importing it sets
PyTorch to one thread.
"""

from __future__ import annotations

import random
import warnings
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import MissingDependencyError
from parabolt.integrations.box import CandidateBox, Placed
from parabolt.integrations.guest import GuestOptimizer, loss
from parabolt.outcome import Status

try:
    import pandas as pd
    import torch
    from hebo.design_space.design_space import DesignSpace
    from hebo.optimizers.hebo import HEBO
except ImportError as error:
    raise MissingDependencyError.of("HEBO", "hebo") from error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import FloatArray, Outcome
    from parabolt.problems.problem import Problem


def design_space(space: SearchSpace) -> Any:
    """A `DesignSpace` of whole numbers: the levels of the encoding, `dp_log2` and so on."""
    levels = CandidateBox(space).levels.items()
    return DesignSpace().parse(
        [{"name": name, "type": "int", "lb": low, "ub": high} for name, (low, high) in levels]
    )


class Objective:
    """Tries what `suggest` proposes, and gives what `observe` takes.

    A proposal that is no candidate stands for its nearest one; `last_placed` says which.

        objective = Objective(problem)
        optimizer = HEBO(design_space(problem.space))
        proposed = optimizer.suggest()
        optimizer.observe(proposed, objective(proposed))

    Args:
        problem: The problem.
        with_constraint: Whether to give the memory margin as well, for `GeneralBO(num_constr=1)`.

    Attributes:
        last_placed: The candidates that the rows of the last call stood for.
    """

    def __init__(self, problem: Problem, *, with_constraint: bool = False) -> None:
        self.problem = problem
        self.with_constraint = with_constraint
        self.last_placed: list[Placed] = []
        self._box = CandidateBox(problem.space)

    def __call__(self, proposed: Any) -> FloatArray:
        """Losses of the rows of a DataFrame, (n, 1); (n, 2) with their memory margins.

        Raises:
            InvalidConfigurationError: If columns are missing or unknown.
        """
        self.last_placed = [self._box.place_levels(row) for row in proposed.to_dict("records")]
        outcomes = [self.problem.evaluate(placed.configuration) for placed in self.last_placed]
        values = [(loss(outcome), outcome.memory_margin) for outcome in outcomes]
        return np.array(values).reshape(-1, 2)[:, : 1 + self.with_constraint]


class HEBOOptimizer(GuestOptimizer):
    """HEBO with its own settings; what was tried is told in place of what was asked.

    It knows no constraints, so a run that died is told as a loss of 0. Of one that crashed or was
    ended nothing is known: its loss is NaN, and HEBO leaves it out. Until HEBO has two observations
    its proposals are its own quasi-random ones.
    """

    name = "hebo"
    libraries = ("HEBO", "torch", "gpytorch", "pymoo")

    def _set_up(self, seed: int) -> None:
        self._seed = seed
        with self._seeded():
            self._guest = HEBO(design_space(self.space), rand_sample=2, scramble_seed=seed)

    def _propose(self) -> tuple[Any, FloatArray]:
        with self._seeded():
            proposed = self._guest.suggest()
        return None, proposed[list(self.box.levels)].to_numpy(dtype=np.float64)[0]

    def _report(self, proposal: Any, row: int, outcome: Outcome) -> None:  # noqa: ARG002 - see the class
        is_known = outcome.status in (Status.OK, Status.OOM)
        value = loss(outcome) if is_known else np.nan
        with self._seeded():
            self._guest.observe(pd.DataFrame([self.box.levels_of(row)]), np.array([[value]]))

    @contextmanager
    def _seeded(self) -> Iterator[None]:
        """Seeds the global generators that HEBO draws from, and gives them back as they were.

        It is quiet as well: HEBO prints and warns when a matrix is close to singular.
        """
        self._seed += 1
        state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002 - see above
        try:
            with (
                torch.random.fork_rng(devices=[]),
                redirect_stdout(StringIO()),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                random.seed(self._seed)
                np.random.seed(self._seed % 2**32)  # noqa: NPY002 - see above
                torch.manual_seed(self._seed)
                yield
        finally:
            random.setstate(state)
            np.random.set_state(numpy_state)  # noqa: NPY002 - see above
