"""How many tokens an iteration had, where a table's card leaves it open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from parabolt.costmodel.calibration.belief import TAILS
from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.costmodel.calibration.evidence import Evidence, StackedTrials
from parabolt.costmodel.terms.memory import active_features
from parabolt.costmodel.terms.term import log_sum
from parabolt.errors import InstanceError

if TYPE_CHECKING:
    from parabolt.costmodel.calibration.belief import CoefficientBelief
    from parabolt.outcome import FloatArray

#: Powers of two that the stated product may be off by, either way.
_REACH = 6


def with_inferred_tokens(evidence: Evidence) -> Evidence:
    """The trials, with the tokens per iteration that memory and step time agree with best.

    A card's "batch size" need not be the sequences of one iteration. Activations and compute are
    proportional to tokens, weights are not, so a few finished trials tell the power of two: the one
    under which a calibration finds the trials least surprising. The result says what was inferred
    in `instance.workload.tokens_per_iteration`.

    Args:
        evidence: Trials of an instance without a micro-batch size.

    Raises:
        InstanceError: If the instance states a micro-batch size, so that its batch is meant as it
            says, or no trial finished.
    """
    work = evidence.instance.workload
    if work.micro_batch_size is not None:
        raise InstanceError(
            "micro_batch_size: expected none where tokens are to be inferred, got "
            f"{work.micro_batch_size}"
        )
    stated = work.tokens_per_iteration or work.batch_size * work.sequence_length
    candidates = [stated * 2**k // 2**_REACH for k in range(2 * _REACH + 1)]
    tried = [_with_tokens(evidence, tokens) for tokens in candidates if tokens > 0]
    return min(tried, key=_misfit)


def _with_tokens(evidence: Evidence, tokens: int) -> Evidence:
    work = replace(evidence.instance.workload, tokens_per_iteration=tokens)
    return replace(evidence, instance=replace(evidence.instance, workload=work))


def _misfit(evidence: Evidence) -> float:
    """Negative log-evidence of the trials."""
    trials = StackedTrials.of([evidence])
    if not trials.is_ok.any():
        raise InstanceError("expected a finished trial to infer tokens from, got none")
    start = Calibration.prior()
    fitted = start.fit(evidence)
    active = active_features(trials.memory, np.exp(fitted.memory.mean), trials.last_shares)
    return _surprise(start.time, fitted.time, trials.time, trials.step_time_s) + _surprise(
        start.memory, fitted.memory, active, trials.peak_memory_gib
    )


def _surprise(
    prior: CoefficientBelief,
    posterior: CoefficientBelief,
    features: FloatArray,
    measured: FloatArray,
) -> float:
    """Negative log-evidence of measured figures, by Laplace's approximation; constants left out."""
    known = np.isfinite(measured)
    error = np.log(measured[known]) - log_sum(features[known], posterior.mean)[0]
    squares = (error / posterior.sigma) ** 2
    scatter = 0.5 * (TAILS + 1.0) * np.log1p(squares / TAILS).sum()
    scatter += len(error) * np.log(posterior.sigma)
    offset = posterior.mean - prior.mean
    shift = 0.5 * offset @ np.linalg.solve(prior.covariance, offset)
    volume = np.linalg.slogdet(prior.covariance)[1] - np.linalg.slogdet(posterior.covariance)[1]
    return float(scatter + shift + 0.5 * volume)
