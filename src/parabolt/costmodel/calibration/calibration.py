"""Calibration: what trials say about the coefficients of the cost model.

`Calibration.prior()` is what specifications say. `fit` gives the posterior after any number of
trials of any status; the posterior of one instance is, `transferred`, the prior of the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from parabolt.costmodel.calibration.belief import CoefficientBelief, update
from parabolt.costmodel.calibration.evidence import Evidence, StackedTrials
from parabolt.costmodel.calibration.failure import FailureBelief, fit_failures
from parabolt.costmodel.calibration.likelihood import memory_residuals, time_residuals
from parabolt.costmodel.step_time import TIME_TERMS
from parabolt.costmodel.terms.crash import CRASH_FEATURES, PRIOR_LOG_ODDS, PRIOR_STD
from parabolt.costmodel.terms.memory import MEMORY_TERMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.costmodel.terms.term import Term

#: Scatter of step time and of peak memory about the calibrated model, before any trial.
_TIME_SIGMA, _MEMORY_SIGMA = 0.03, 0.02
#: Share of the memory that a run can use before it dies, before any trial: the CUDA context and
#: NCCL buffers take 1 to 3 GiB of 80 or 96, fragmentation some more.
_USABLE, _USABLE_LOG_STD = 0.94, 0.03
#: A new instance may differ in each coefficient by this share of what no knowledge allows.
_TRANSFER_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Calibration:
    """Beliefs about all coefficients.

    Attributes:
        time: Logarithms of the coefficients of `TIME_TERMS`.
        memory: Logarithms of the coefficients of `MEMORY_TERMS`.
        failures: Usable memory, and the hazard of crashes.
        n_trials: Trials that were used.
        instances: Names of the instances they were run on.
    """

    time: CoefficientBelief
    memory: CoefficientBelief
    failures: FailureBelief
    n_trials: int = 0
    instances: tuple[str, ...] = ()

    @classmethod
    def prior(cls) -> Calibration:
        """The belief before any trial: specifications with honest doubts."""
        n = len(CRASH_FEATURES)
        crash_mean = np.zeros(n)
        crash_mean[0] = PRIOR_LOG_ODDS
        crash = CoefficientBelief(CRASH_FEATURES, crash_mean, PRIOR_STD**2 * np.eye(n), 1.0)
        return cls(
            _of_terms(TIME_TERMS, _TIME_SIGMA),
            _of_terms(MEMORY_TERMS, _MEMORY_SIGMA),
            FailureBelief(_USABLE, _USABLE_LOG_STD, crash),
        )

    def fit(self, evidence: Evidence | Sequence[Evidence] | StackedTrials) -> Calibration:
        """The belief after trials, this one being the prior.

        Trials of several instances may be pooled. Only measured and simulated figures are used;
        imputed and interpolated ones are no trials. Step times are compared by logarithm. An
        out-of-memory trial says that the peak exceeds what is usable, or that the run crashed.

        Args:
            evidence: Trials of one instance, or of several.
        """
        if isinstance(evidence, Evidence):
            evidence = [evidence]
        trials = evidence if isinstance(evidence, StackedTrials) else StackedTrials.of(evidence)
        failures, blame = fit_failures(self.failures, self.memory, trials)
        memory = update(self.memory, memory_residuals(trials, failures.usable, blame))
        return Calibration(
            update(self.time, time_residuals(trials)),
            memory,
            fit_failures(self.failures, memory, trials)[0],
            self.n_trials + len(trials),
            tuple(sorted({*self.instances, *trials.instances})),
        )

    def transferred(self, share: float = _TRANSFER_SHARE) -> Calibration:
        """This belief as the prior of another instance: doubts grown by a share of the first ones.

        Args:
            share: Of the standard deviations before any trial; 0 for the very same machine, model
                and software, 1 for hardly any relation.
        """
        start = Calibration.prior()

        def widen(belief: CoefficientBelief, first: CoefficientBelief) -> CoefficientBelief:
            return replace(
                belief.widened(share * np.sqrt(np.diag(first.covariance))),
                sigma=max(belief.sigma, first.sigma),
            )

        usable_log_std = np.hypot(
            self.failures.usable_log_std, share * start.failures.usable_log_std
        )
        crash = widen(self.failures.crash, start.failures.crash)
        return replace(
            self,
            time=widen(self.time, start.time),
            memory=widen(self.memory, start.memory),
            failures=replace(self.failures, usable_log_std=float(usable_log_std), crash=crash),
        )


def _of_terms(terms: Sequence[Term], sigma: float) -> CoefficientBelief:
    return CoefficientBelief(
        tuple(term.name for term in terms),
        np.log([term.coefficient for term in terms]),
        np.diag([term.log_std**2 for term in terms]),
        sigma,
    )
