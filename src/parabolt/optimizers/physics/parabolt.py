"""The `parabolt` optimizer: physics first, and what the trials say where physics is wrong.

What sets it apart from the published methods:

- Log throughput of timed runs only; nothing imputed. A Gaussian process whose prior is the cost
  model, its coefficients uncertain, plus a residual over the structure of a configuration
  (`throughput_model`).
- An out-of-memory trial is evidence about memory, censored, and says nothing about speed
  (`costmodel.calibration`). How far the predicted risk can be trusted is learned from how earlier
  predictions turned out.
- The first proposals are what physics expects to be fastest and to fit: no random design.
- Trials of other instances (`history`) sharpen the coefficients beforehand.

The acquisition is log expected improvement of log throughput plus log P(feasible). The
recommendation is the finished run with the best posterior mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.costmodel.calibration.evidence import Evidence
from parabolt.costmodel.predictor import CostModel
from parabolt.costmodel.step_time import time_features
from parabolt.errors import MissingConfigurationError, OptionError
from parabolt.optimizers.choice import first_best
from parabolt.optimizers.gp.acquisition import (
    log_expected_improvement,
    log_expected_improvement_t,
)
from parabolt.optimizers.optimizer import Optimizer
from parabolt.optimizers.physics.feasibility_model import failure_probability
from parabolt.optimizers.physics.reason import Reason
from parabolt.optimizers.physics.structure import structure_inputs
from parabolt.optimizers.physics.throughput_model import Posterior, ThroughputModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import FloatArray, IntArray, Outcome
    from parabolt.space.configuration import Configuration

#: With more candidates than this, only those that physics finds most promising are looked at.
MAX_CANDIDATES = 20_000
#: Of a larger set, candidates are ranked by predicted log throughput, less this per e-fold of
#: memory beyond what is usable.
_EXCESS_COST = 3.0
_BLOCK = 50_000
#: Weight of log P(feasible) beside log expected improvement: an out-of-memory trial costs as much
#: as one that finishes and tells less. It grows while more trials than the budget fail.
_CAUTION, _OOM_BUDGET, _CAUTION_GROWTH = 3.0, 0.05, 10.0
#: What is to be tried is chosen with the tails of Student's t, 8 degrees of freedom. With
#: those of a Gaussian, once all that is safe is surely slower, only what surely fails leaves hope.
#: Chosen on simulated machines, where the share of failures fell to less than half.
_log_improvement_t = partial(log_expected_improvement_t, dof=8.0)
#: Physics is doubted when its last forecasts of throughput were off by more than this (root mean
#: square of the logarithm) and no better than the mean of what had been seen, or when at least half
#: of the last runs failed though less than half as many were forecast. Then every other proposal is
#: random.
_N_FORECASTS, _DOUBTFUL_MISS, _DOUBTFUL_FAILURES = 6, 0.15, 0.5
#: Parts that can be left out: the cost model; the inputs of `structure_inputs`, for plain knobs;
#: out-of-memory trials as evidence about memory; the first proposals, for a random design.
PARTS = ("physics", "structure", "censoring", "design")
_RANDOM_DESIGN, _FLAT_RISK = 10, 0.1
#: Stop when no candidate is expected to gain more than this fraction of throughput.
MIN_GAIN = 0.002
#: Fewest trials before stopping can be advised.
_MIN_TRIALS = 5


@dataclass(frozen=True, eq=False)
class CandidateBelief:
    """What is believed of the candidates looked at, arrays (m,).

    Attributes:
        rows: Row numbers, ascending.
        log_throughput: Posterior of log throughput.
        p_feasible: Probability that the run finishes.
        peak_memory_gib: Median of the predicted peak memory, GiB.
        calibration: The cost model's coefficients after all trials.
    """

    rows: IntArray
    log_throughput: Posterior
    p_feasible: FloatArray
    peak_memory_gib: FloatArray
    calibration: Calibration


class ParaboltOptimizer(Optimizer):
    """Physics with uncertain coefficients, plus a Gaussian process for what it misses.

    Args:
        space: Instance and candidates.
        without: Parts to leave out, among `PARTS`, to see what each is worth.
        **options: See `Optimizer`. A `history`, such as tables of other clusters, sharpens the cost
            model's coefficients beforehand.

    Raises:
        OptionError: For an unknown part.
    """

    name = "parabolt"
    # Another trial of a candidate tells of noise alone, which is worth less than a new candidate.
    prefers_new = True

    def __init__(
        self,
        space: SearchSpace,
        *,
        without: Sequence[str] = (),
        **options: Any,
    ) -> None:
        super().__init__(space, **options)
        if unknown := sorted(set(without) - set(PARTS)):
            raise OptionError(f"without: expected among {', '.join(PARTS)}, got {unknown[0]}")
        self._without = frozenset(without)
        self._prior = Calibration.prior()
        if self.past:
            self._prior = self._prior.fit(list(self.past)).transferred()
        self._looked_at = self._promising_rows()
        self._inputs = self._kernel_inputs()
        self._throughput = self._throughput_model()
        self._forecasts: list[tuple[float, float]] = []
        self._belief: CandidateBelief | None = None
        self._n_believed = -1

    def _belief_in_time(self) -> CandidateBelief:
        """What is believed; as of the last trial but one where the time limit is over already."""
        if self._belief is not None and self._deadline.is_over():
            return self._belief
        return self.belief()

    def _kernel_inputs(self) -> FloatArray:
        if "structure" not in self._without:
            return structure_inputs(self.space, self._looked_at)
        inputs: FloatArray = 2.0 * self.space.unit_cube[self._looked_at]
        return inputs

    def _throughput_model(self) -> ThroughputModel:
        model = CostModel(self.space.instance, self._prior)
        layout = model.layout(self.space.encoded[self._looked_at])
        if "physics" in self._without:
            return ThroughputModel.flat(self._inputs)
        return ThroughputModel(
            time_features(layout),
            self._inputs,
            self._prior.time,
            std_median=2.0 * self._prior.time.sigma,
        )

    def belief(self) -> CandidateBelief:
        """What is believed now, given everything told."""
        if self._belief is None or self._n_believed != len(self.history):
            self._belief = self._believe()
            self._n_believed = len(self.history)
        return self._belief

    def expected_gain(self) -> float:
        """Largest expected gain of one more trial, as a fraction of the best run's throughput.

        NaN before a run has finished; 0 where nothing is left to try.
        """
        belief = self.belief()
        left = np.isin(belief.rows, self.available_rows())
        if belief.log_throughput.best is None:
            return float("nan")
        gain = np.exp(_log_gain(belief.log_throughput)) * belief.p_feasible
        return float(gain[left].max()) if left.any() else 0.0

    def should_stop(self, *, min_gain: float = MIN_GAIN) -> bool:
        """Whether more trials are not expected to be worth their cost.

        Args:
            min_gain: Smallest expected gain, as a fraction of throughput, that is worth a trial.
        """
        gain = self.expected_gain()
        return len(self.history) >= _MIN_TRIALS and bool(gain < min_gain)

    def explain(self, configuration: Configuration) -> Reason:
        """What is predicted and hoped of a configuration, such as the one just asked for.

        Raises:
            MissingConfigurationError: If it is no candidate, or one that is not looked at.
        """
        belief = self.belief()
        place = self._place(self.space.row(configuration))
        if place is None:
            raise MissingConfigurationError(
                f"{configuration} is not among the {len(belief.rows)} candidates looked at"
            )
        throughput = belief.log_throughput
        mean, std = float(throughput.mean[place]), float(throughput.std[place])
        gain = better = float("nan")
        if throughput.best is not None:
            ahead = mean - throughput.mean[throughput.best]
            gain = float(np.exp(_log_gain(throughput)[place]) * belief.p_feasible[place])
            better = float(ndtr(ahead / throughput.gain_std()[place]) * belief.p_feasible[place])
        shares = CostModel(self.space.instance, belief.calibration).explain(configuration)
        total = sum(shares.time_s.values())
        largest = sorted(shares.time_s.items(), key=lambda item: -item[1])[:4]
        return Reason(
            configuration=configuration,
            throughput=math.exp(mean),
            throughput_interval=(
                math.exp(mean - 1.645 * std),
                math.exp(mean + 1.645 * std),
            ),
            peak_memory_gib=float(belief.peak_memory_gib[place]),
            p_feasible=float(belief.p_feasible[place]),
            p_better=better,
            expected_gain=gain,
            terms={name: seconds / total for name, seconds in largest},
        )

    def _observe(self, row: int, outcome: Outcome) -> None:
        place = self._place(row)
        forecast = (float("nan"), float("nan"))
        if place is not None:
            belief = self._belief or self.belief()
            forecast = (
                1.0 - float(belief.p_feasible[place]),
                float(belief.log_throughput.mean[place]),
            )
        super()._observe(row, outcome)
        self._forecasts.append(forecast)

    def _next_row(self, available: IntArray) -> int:
        belief = self._belief_in_time()
        left = np.isin(belief.rows, available)
        n_told = len(self.history) + len(self._pending)
        if "design" in self._without and n_told < _RANDOM_DESIGN:
            return self._random_row(available)
        # Of a very large set, all that was looked at may have been tried.
        if not left.any() or (self._is_doubtful() and self.rng.random() < 0.5):
            return self._random_row(available)
        throughput = self._fantasy(belief) if self._pending else belief.log_throughput
        value = _log_gain(throughput, _log_improvement_t) + self._caution() * np.log(
            belief.p_feasible
        )
        return int(belief.rows[first_best(np.where(left, value, -np.inf), unit=1.0)])

    def _recommended_row(self) -> int | None:
        """The finished run that is expected to be the fastest when it is run again."""
        feasible = self.history.is_feasible
        rows = np.unique(self.history.rows[feasible])
        if len(rows) == 0:
            return None
        belief = self.belief()
        known = rows[np.isin(rows, belief.rows)]
        if len(known) == 0:
            return self.history.best_feasible_row()
        expected = self._throughput.expected(belief.log_throughput.mean, *self._timed())
        return int(known[first_best(expected[np.searchsorted(belief.rows, known)], unit=1.0)])

    def _believe(self) -> CandidateBelief:
        calibration = self._calibration()
        predicted = CostModel(self.space.instance, calibration).predict(
            self.space.encoded[self._looked_at]
        )
        risk = predicted.p_oom
        if "physics" in self._without:
            risk = np.full(len(risk), _FLAT_RISK)
        self._throughput = self._throughput.fit(*self._timed())
        return CandidateBelief(
            rows=self._looked_at,
            log_throughput=self._throughput.posterior(*self._timed()),
            p_feasible=1.0 - self._risk(risk),
            peak_memory_gib=predicted.peak_memory_gib,
            calibration=calibration,
        )

    def _calibration(self) -> Calibration:
        used = np.arange(len(self.history))
        if "censoring" in self._without:
            used = used[~self.history.is_infeasible]
        if len(used) == 0:
            return self._prior
        told = self.space.encoded[self.history.rows[used]]
        outcomes = self.history.outcomes.take(used)
        return self._prior.fit(Evidence(self.space.instance, told, outcomes))

    def _risk(self, predicted: FloatArray) -> FloatArray:
        counted = self.history.is_infeasible | self.history.is_feasible
        counted &= np.isin(self.history.rows, self._looked_at)
        at = np.searchsorted(self._looked_at, self.history.rows[counted])
        return failure_probability(predicted, self._inputs, at, self.history.is_infeasible[counted])

    def _timed(self) -> tuple[IntArray, FloatArray]:
        """Places and log throughput of timed runs among the candidates looked at."""
        used = self.history.is_timed & (self.history.throughput > 0.0)
        used &= np.isin(self.history.rows, self._looked_at)
        places = np.searchsorted(self._looked_at, self.history.rows[used])
        return places, np.log(self.history.throughput[used])

    def _fantasy(self, belief: CandidateBelief) -> Posterior:
        """The posterior as if what is pending had given exactly what is expected of it."""
        places, y = self._timed()
        pending = [p for p in map(self._place, self._pending) if p is not None]
        at = np.append(places, np.array(pending, dtype=np.int64))
        return self._throughput.posterior(at, np.append(y, belief.log_throughput.mean[pending]))

    def _caution(self) -> float:
        """Weight of log P(feasible), larger while too many trials run out of memory."""
        n_oom = int(self.history.is_infeasible.sum())
        share = (n_oom - 1) / max(n_oom + int(self.history.is_feasible.sum()), 1)
        return _CAUTION + _CAUTION_GROWTH * max(share - _OOM_BUDGET, 0.0)

    def _is_doubtful(self) -> bool:
        """Whether the last forecasts were so wrong that physics had better not lead."""
        failed, finished = self.history.is_infeasible, self.history.is_feasible
        risk, expected = np.array(self._forecasts).reshape(-1, 2).T
        used = np.flatnonzero((failed | finished) & np.isfinite(risk))[-_N_FORECASTS:]
        share = float(failed[used].mean()) if len(used) >= 4 else 0.0
        if share >= _DOUBTFUL_FAILURES and 2.0 * risk[used].mean() < share:
            return True
        known = finished & np.isfinite(expected) & (self.history.throughput > 0.0)
        y = np.log(self.history.throughput[known])
        if len(y) < 3:
            return False
        so_far = np.cumsum(y)[:-1] / np.arange(1, len(y))
        miss = (y - expected[known])[1:][-_N_FORECASTS:]
        spread = (y[1:] - so_far)[-_N_FORECASTS:]
        is_off = np.sqrt(np.mean(miss**2)) > _DOUBTFUL_MISS
        return bool(is_off and (miss**2).sum() >= (spread**2).sum())

    def _place(self, row: int) -> int | None:
        place = int(np.searchsorted(self._looked_at, row))
        if place < len(self._looked_at) and self._looked_at[place] == row:
            return place
        return None

    def _promising_rows(self) -> IntArray:
        """All rows; of a very large set those that physics expects to be fast and to fit."""
        n = len(self.space)
        if n <= MAX_CANDIDATES:
            return np.arange(n)
        model = CostModel(self.space.instance, self._prior)
        score = np.empty(n)
        for start in range(0, n, _BLOCK):
            block = slice(start, start + _BLOCK)
            step_time_s, memory_gib = model.point(self.space.encoded[block])
            usable_gib = self._prior.failures.usable * self.space.instance.cluster.memory_gib
            excess = np.maximum(np.log(memory_gib / usable_gib), 0.0)
            score[block] = -np.log(step_time_s) - _EXCESS_COST * excess
        return np.sort(np.argpartition(-score, MAX_CANDIDATES)[:MAX_CANDIDATES])


def _log_gain(
    throughput: Posterior, improvement: Callable[..., FloatArray] = log_expected_improvement
) -> FloatArray:
    """Log expected improvement (m,) over the best finished run; the mean itself without one."""
    if throughput.best is None:
        return throughput.mean
    best = float(throughput.mean[throughput.best])
    return improvement(throughput.mean, throughput.gain_std(), best)
