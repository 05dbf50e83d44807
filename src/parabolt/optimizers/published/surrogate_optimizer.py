"""Base of the published GP methods: own initial design, two GPs, an acquisition."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.optimizers.choice import first_best
from parabolt.optimizers.gp.acquisition import log_expected_improvement
from parabolt.optimizers.gp.fit import GPOptions, fit_gp
from parabolt.optimizers.gp.gp import GaussianProcess
from parabolt.optimizers.gp.kernels import KernelName, check_kernel
from parabolt.optimizers.gp.prior_mean import MemoryMean, PriorMean, ThroughputMean
from parabolt.optimizers.gp.product_set import ProductSet
from parabolt.optimizers.gp.sampling import draw_by_cholesky, draw_by_update
from parabolt.optimizers.gp.surrogate import Model, Surrogate
from parabolt.optimizers.initial_design import DesignedOptimizer

if TYPE_CHECKING:
    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import FloatArray, IntArray

#: Shares of a time limit by which the fits of objective and constraint end.
_OBJECTIVE_SHARE, _CONSTRAINT_SHARE = 0.4, 0.8
#: Candidates that are sampled jointly where the kernel is no product.
_MAX_CHOLESKY = 2000
#: Where fewer than one in so many candidates are asked for, they are sampled on their own.
_FEW = 100


class SurrogateOptimizer(DesignedOptimizer):
    """Base of the published GP methods: an own initial design, then an acquisition.

    Pending proposals are handled as fantasies at the posterior mean. The best feasible observation
    is recommended. The published rule may name a candidate that was never tried, and that runs out
    of memory: the largest posterior mean among all that are feasible with probability >= 0.95.

    With a time limit, the fits end at 80 % of it, and the parameters of the last fit serve where
    no time is left for another.

    Args:
        space: Instance and candidates.
        kernel: `rbf` (published) or `matern52`. With the latter, methods that draw joint samples
            draw them at a random 2,000 of the candidates where there are more.
        **options: See `DesignedOptimizer`.

    Attributes:
        step: t, how many proposals the model has made; the initial design doesn't count.
    """

    #: Whether both GPs have an analytic mean in place of a constant (`+prior`).
    uses_prior_mean = False

    def __init__(
        self,
        space: SearchSpace,
        *,
        kernel: KernelName = "rbf",
        **options: Any,
    ) -> None:
        super().__init__(space, **options)
        check_kernel(kernel)
        self.kernel: KernelName = kernel
        self._inputs = space.unit_cube
        self._fitted: Surrogate | None = None
        self._n_fitted = 0
        self.step = 0

    def surrogate(self) -> Surrogate:
        """The posteriors, given everything told so far."""
        history = self.history
        if self._fitted is None or self._n_fitted != len(history):
            last = self._fitted or Surrogate(self._inputs[:1], None, None)
            means: tuple[PriorMean | None, PriorMean | None] = (None, None)
            if self.uses_prior_mean:
                instance = self.space.instance
                means = ThroughputMean(instance, self.step), MemoryMean(instance)
            y, margin = history.throughput, history.memory_margin
            self._n_fitted = len(history)
            self._fitted = Surrogate(
                self._inputs,
                self._fit(y, means[0], last.objective, _OBJECTIVE_SHARE),
                self._fit(margin, means[1], last.constraint, _CONSTRAINT_SHARE),
            )
        return self._fitted

    @abstractmethod
    def _choose(self, surrogate: Surrogate, available: IntArray) -> int:
        """The row to try next, one of `available` (ascending, not empty)."""

    def _model_row(self, available: IntArray) -> int:
        surrogate = self.surrogate()
        if self._pending:
            surrogate = surrogate.fantasize(self.pending_rows)
        row = self._choose(surrogate, available)
        self.step += 1
        return row

    def _min_lengthscales(self) -> FloatArray | None:
        return None

    def _fit(
        self, values: FloatArray, mean: PriorMean | None, last: Model | None, share: float
    ) -> Model | None:
        counts = self.history.is_informative
        known = counts & np.isfinite(values)
        if not known.any():
            return None
        rows = self.history.rows[known]
        X, y = self._inputs[rows], values[known]
        if last is not None and self._deadline.is_over(share):
            # The last constant or theta stands for the same mean function, at most a step older.
            hyper, old_mean = last.gp.hyper, last.gp.prior_mean
            gp = GaussianProcess(X, y, hyper, kernel=self.kernel, prior_mean=old_mean)
            return Model(gp, rows)
        gp, succeeded = fit_gp(
            X,
            y,
            GPOptions(self.kernel, self._min_lengthscales(), mean),
            deadline=self._deadline,
            share=share,
        )
        self.n_failed_fits += not succeeded
        return Model(gp, rows)

    def _best_observed(self) -> float | None:
        """The highest throughput of a finished run; None while there is none."""
        feasible = self.history.is_feasible
        return float(np.max(self.history.throughput[feasible])) if feasible.any() else None

    def _log_eic(self, surrogate: Surrogate) -> FloatArray:
        """Log constrained EI (N,); log P(feasible) alone while nothing feasible is known."""
        best = self._best_observed()
        if best is None:
            return surrogate.log_feasible
        return log_expected_improvement(surrogate.mean, surrogate.std, best) + (
            surrogate.log_feasible
        )

    def _shortlist(self, surrogate: Surrogate, rows: IntArray, n: int) -> IntArray:
        """All of `rows` if they are at most n, else the n with the largest log EIC; ascending."""
        if len(rows) <= n:
            return rows
        value = self._log_eic(surrogate)[rows]
        return np.sort(rows[np.argpartition(-value, n - 1)[:n]])

    @cached_property
    def _product(self) -> ProductSet:
        return ProductSet.of(self._inputs)

    def _draw(
        self, surrogate: Surrogate, rows: IntArray, n: int
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Joint samples of throughput and margin.

        Returns:
            The m rows that were sampled: `rows`, or a random part of them where the kernel is no
            product and they are too many; throughput (n, m); margin (n, m).
        """
        if self.kernel != "rbf" and len(rows) > _MAX_CHOLESKY:
            rows = np.sort(self.rng.choice(rows, size=_MAX_CHOLESKY, replace=False))
        f = self._draw_one(surrogate.objective, rows, n)
        c = self._draw_one(surrogate.constraint, rows, n)
        if f is None:  # nothing is known: every order of the candidates is as likely
            f = self.rng.standard_normal((n, len(rows)))
        if c is None:  # no margin was ever told: every run fits
            c = np.full((n, len(rows)), -1.0)
        return rows, f, c

    def _draw_one(self, model: Model | None, rows: IntArray, n: int) -> FloatArray | None:
        if model is None:
            return None
        if self.kernel != "rbf" or len(rows) <= len(self._inputs) // _FEW:
            return draw_by_cholesky(model.gp, self._inputs[rows], n, self.rng)
        every = draw_by_update(model.gp, self._inputs, model.rows, self._product, n, self.rng)
        return every if len(rows) == every.shape[1] else every[:, rows]


class AcquisitionOptimizer(SurrogateOptimizer):
    """A GP method that tries the candidate with the largest value; of several the first.

    Attributes:
        is_log: Whether the value is a logarithm.
    """

    is_log = False

    @abstractmethod
    def _acquisition(self, surrogate: Surrogate) -> FloatArray:
        """Value of trying each candidate, (N,)."""

    def _choose(self, surrogate: Surrogate, available: IntArray) -> int:
        value = self._acquisition(surrogate)[available]
        return int(available[first_best(value, unit=float(self.is_log))])
