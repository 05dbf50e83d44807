"""Ranking-weighted Gaussian-process ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import OptionError
from parabolt.optimizers.gp.acquisition import log_expected_improvement, log_probability_feasible
from parabolt.optimizers.gp.fit import GPOptions, fit_gp
from parabolt.optimizers.gp.gp import Standardization
from parabolt.optimizers.gp.sampling import draw_by_cholesky
from parabolt.optimizers.published.surrogate_optimizer import AcquisitionOptimizer
from parabolt.optimizers.transfer.ranking_weights import (
    leave_one_out,
    misrankings,
    misrankings_left_out,
    ranking_weights,
)
from parabolt.optimizers.transfer.shared_inputs import SharedInputs
from parabolt.outcome import OOM_MARGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from parabolt.instances.search_space import SearchSpace
    from parabolt.optimizers.gp.gp import GaussianProcess
    from parabolt.optimizers.gp.surrogate import Model, Surrogate
    from parabolt.outcome import FloatArray, IntArray, Outcomes

#: Samples of the ranking loss, and observations from which on the target takes part.
_N_SAMPLES, _MIN_OBSERVED = 256, 3
#: Trials of a past instance that its model is fitted to.
N_TRIALS = 50


@dataclass(frozen=True, eq=False)
class _Base:
    """A model of one past instance.

    Attributes:
        gp: Posterior over the shared inputs.
        mean: Its mean at the candidates (N,).
        std: Its standard deviation there (N,).
    """

    gp: GaussianProcess
    mean: FloatArray
    std: FloatArray


class RGPE(AcquisitionOptimizer):
    """An ensemble of models of past instances and of this one (Feurer et al., arXiv 1802.02219).

    Models weigh by how well they rank what was observed here, see `ranking_weights`. The mean is
    the weighted sum of the members' means, the variance that of their variances with squared
    weights. Throughput is combined in each model's standardised unit, as scales differ between
    instances. The memory margin has an ensemble of its own, in its own unit, which is the same
    everywhere. The acquisition is log EI + log P(feasible), as of `logeic`, whose models the
    target's are; while nothing has finished here, the improvement is over the least expected one.

    With a history there is no random design; until three observations are told, all past instances
    weigh alike. Without one it is `logeic`.

    Args:
        space: Instance and candidates.
        n_trials: Trials of each past instance that its model is fitted to; of more, so many are
            drawn at random. The paper's past runs are about as long.
        **options: See `SurrogateOptimizer`.

    Attributes:
        weights: Of the ensemble of throughput at the last proposal of the model (B + 1,): past
            instances in order, the target last; past instances on which nothing finished have no
            model. Empty before.
    """

    name = "rgpe"
    is_log = True

    def __init__(self, space: SearchSpace, *, n_trials: int = N_TRIALS, **options: Any) -> None:
        super().__init__(space, **options)
        if type(n_trials) is not int or n_trials < 1:
            raise OptionError(f"n_trials: expected a positive whole number, got {n_trials!r}")
        self.weights: FloatArray = np.zeros(0)
        self._n_trials = n_trials
        self._speed = self._base_models(_throughput)
        self._memory = self._base_models(_margin)

    def _next_row(self, available: IntArray) -> int:
        if self._speed and len(available) > 1:
            return self._model_row(available)
        return super()._next_row(available)

    def _acquisition(self, surrogate: Surrogate) -> FloatArray:
        if not self._speed:
            return self._log_eic(surrogate)
        return self._log_improvement(surrogate) + self._log_feasible(surrogate)

    def _log_improvement(self, surrogate: Surrogate) -> FloatArray:
        """Log EI (N,), in standardised units."""
        own = self.surrogate().objective
        unit = Standardization(0.0, 1.0) if own is None else own.gp.standardization
        means = [b.gp.standardization.apply(b.mean) for b in self._speed]
        means.append(unit.apply(surrogate.mean))
        stds = [b.std / b.gp.standardization.scale for b in self._speed]
        stds.append(surrogate.std / unit.scale)
        self.weights = self._weigh(self._speed, own)
        mean, std = _combined(self.weights, means, stds)
        best = self._best_observed()
        least = float(mean.min()) if best is None else (best - unit.shift) / unit.scale
        return log_expected_improvement(mean, std, least)

    def _log_feasible(self, surrogate: Surrogate) -> FloatArray:
        """Log P(feasible), (N,)."""
        if not self._memory:
            return surrogate.log_feasible
        weights = self._weigh(self._memory, self.surrogate().constraint)
        means = [*(b.mean for b in self._memory), surrogate.margin_mean]
        stds = [*(b.std for b in self._memory), surrogate.margin_std]
        return log_probability_feasible(*_combined(weights, means, stds))

    def _weigh(self, bases: Sequence[_Base], own: Model | None) -> FloatArray:
        """Weights (B + 1,) of base models and target, given the target's model."""
        if own is None or len(own.rows) < _MIN_OBSERVED:
            return np.append(np.full(len(bases), 1.0 / len(bases)), 0.0)
        y, X = own.gp.y, self._inputs_of_past.candidates[own.rows]
        losses = [misrankings(draw_by_cholesky(b.gp, X, _N_SAMPLES, self.rng), y) for b in bases]
        mean, std = leave_one_out(own.gp)
        left_out = mean + std * self.rng.standard_normal((_N_SAMPLES, len(y)))
        return ranking_weights(np.array(losses), misrankings_left_out(left_out, y))

    @cached_property
    def _inputs_of_past(self) -> SharedInputs:
        return SharedInputs.of(self.space, self.past)

    def _base_models(self, figures: Callable[[Outcomes], FloatArray]) -> list[_Base]:
        """A model per past instance of which there are figures (n,), NaN where a trial has none."""
        models = []
        for number, item in enumerate(self.past):
            points = self._inputs_of_past.past[number]
            values = figures(item.outcomes)
            known = np.flatnonzero(np.isfinite(values))
            if len(known) > self._n_trials:
                known = np.sort(self.rng.choice(known, size=self._n_trials, replace=False))
            if len(known):
                options = GPOptions(self.kernel)
                gp, succeeded = fit_gp(points[known], values[known], options)
                self.n_failed_fits += not succeeded
                models.append(_Base(gp, *gp.predict(self._inputs_of_past.candidates)))
        return models


def _throughput(outcomes: Outcomes) -> FloatArray:
    return np.where(outcomes.is_timed, outcomes.throughput, np.nan)


def _margin(outcomes: Outcomes) -> FloatArray:
    """Memory margins; that of the published pad where a run failed without one."""
    is_padded = outcomes.is_infeasible & np.isnan(outcomes.memory_margin)
    return np.where(is_padded, OOM_MARGIN, outcomes.memory_margin)


def _combined(
    weights: FloatArray, means: Sequence[FloatArray], stds: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation (N,) of an ensemble: sum w m, and the root of sum w^2 s^2."""
    mean = sum((w * m for w, m in zip(weights, means, strict=True)), np.zeros(len(means[0])))
    variance = sum(((w * s) ** 2 for w, s in zip(weights, stds, strict=True)), np.zeros(len(mean)))
    return mean, np.sqrt(variance)
