"""Calibration: what trials say about the coefficients of the cost model.

`Calibration.prior()` is what specifications say. `fit` gives the posterior after any number of
trials of any status; the posterior of one instance is, `transferred`, the prior of the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from parabolt.costmodel.calibration.belief import Belief, update
from parabolt.costmodel.calibration.evidence import Evidence, Trials, pooled
from parabolt.costmodel.calibration.failure import fit_failures
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
#: NCCL buffers take 1 to 3 GB of 80 or 96, fragmentation some more.
_USABLE, _USABLE_LOG_STD = 0.94, 0.03
#: A new instance may differ in each coefficient by this share of what no knowledge allows.
_TRANSFER_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Calibration:
    """Beliefs about all coefficients.

    Attributes:
        time: Logarithms of the coefficients of `TIME_TERMS`.
        memory: Logarithms of the coefficients of `MEMORY_TERMS`.
        crash: Weights of `CRASH_FEATURES`; its sigma means nothing.
        usable: Median share of a GPU's memory that a run can use.
        usable_log_std: Standard deviation of its logarithm.
        n_trials: Trials that were used.
        instances: Names of the instances they were run on.
    """

    time: Belief
    memory: Belief
    crash: Belief
    usable: float
    usable_log_std: float
    n_trials: int = 0
    instances: tuple[str, ...] = ()

    @classmethod
    def prior(cls) -> Calibration:
        """The belief before any trial: specifications with honest doubts."""
        crash_mean = np.zeros(len(CRASH_FEATURES))
        crash_mean[0] = PRIOR_LOG_ODDS
        return cls(
            _of_terms(TIME_TERMS, _TIME_SIGMA),
            _of_terms(MEMORY_TERMS, _MEMORY_SIGMA),
            Belief(CRASH_FEATURES, crash_mean, PRIOR_STD**2 * np.eye(len(CRASH_FEATURES)), 1.0),
            _USABLE,
            _USABLE_LOG_STD,
        )

    def fit(self, evidence: Evidence | Sequence[Evidence] | Trials) -> Calibration:
        """The belief after trials, this one being the prior.

        Trials of several instances may be pooled. Only measured and simulated figures are used;
        imputed and interpolated ones are no trials. Step times are compared by logarithm. An
        out-of-memory trial says that the peak exceeds what is usable, or that the run crashed.

        Args:
            evidence: Trials of one instance, or of several; or what `pooled` made of them.
        """
        if isinstance(evidence, Evidence):
            evidence = [evidence]
        trials = evidence if isinstance(evidence, Trials) else pooled(list(evidence))
        time = update(self.time, time_residuals(trials))
        failure = fit_failures(self, trials)
        memory = update(self.memory, memory_residuals(trials, failure))
        failure = fit_failures(replace(self, memory=memory), trials)
        return Calibration(
            time,
            memory,
            failure.crash,
            failure.usable,
            failure.usable_log_std,
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

        def widen(belief: Belief, first: Belief) -> Belief:
            return replace(
                belief.widened(share * np.sqrt(np.diag(first.covariance))),
                sigma=max(belief.sigma, first.sigma),
            )

        return replace(
            self,
            time=widen(self.time, start.time),
            memory=widen(self.memory, start.memory),
            crash=widen(self.crash, start.crash),
            usable_log_std=float(np.hypot(self.usable_log_std, share * start.usable_log_std)),
        )


def _of_terms(terms: Sequence[Term], sigma: float) -> Belief:
    return Belief(
        tuple(term.name for term in terms),
        np.log([term.coefficient for term in terms]),
        np.diag([term.log_std**2 for term in terms]),
        sigma,
    )
