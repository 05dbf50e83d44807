"""`tune`: the search for the best configuration of a real program, in few real runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from parabolt.errors import CandidatesExhaustedError, SpecError
from parabolt.optimizers.gp.acquisition import log_expected_improvement
from parabolt.optimizers.registry import make_optimizer
from parabolt.trials.candidates import candidates_of
from parabolt.trials.session import Session, SessionState
from parabolt.trials.stopping import Belief

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from parabolt.instances.search_space import SearchSpace
    from parabolt.journal.history import TrialHistory
    from parabolt.optimizers.optimizer import Optimizer
    from parabolt.outcome import FloatArray
    from parabolt.space.configuration import Configuration
    from parabolt.trials.spec.spec import Budget, Spec


class _Posterior(Protocol):
    mean: FloatArray
    std: FloatArray


@runtime_checkable
class _HasSurrogate(Protocol):
    def surrogate(self) -> _Posterior:
        """Posteriors at all candidates."""


def tune(
    spec: Spec,
    folder: Path,
    *,
    retry_crashed: bool = False,
    observer: Callable[[SessionState], None] | None = None,
) -> TrialHistory:
    """Searches until the budget is used up or no candidate is left.

    A search that was killed goes on where it was: the same history, and only the trial that was
    under way is launched again.

    Args:
        spec: The spec, with a budget.
        folder: Where journal and trials are kept.
        retry_crashed: Whether trials that an earlier session set aside run again first.
        observer: Called at each look at a running trial and at each event.

    Returns:
        All trials.

    Raises:
        SpecError: If the spec has no budget, or its framework can express no configuration.
        LockedError: If another process is writing there.
        JournalError: If the spec has changed.
        LaunchError: If nothing can be launched, or one trial after the other crashes.
    """
    if spec.budget is None:
        raise SpecError("[budget] expected trials, wall_clock_h or gpu_hours, got none")
    candidates = candidates_of(spec)
    space = candidates.space
    _make(spec, space, replayed=0)  # a wrong optimizer or option is told before anything is made
    with Session(
        spec, folder, purpose="tune", retry_crashed=retry_crashed, observer=observer
    ) as session:
        history = session.history
        for line in candidates.left_out:
            session.say(f"not searched: {line}")
        optimizer = _replay(spec, space, session)
        while not _is_spent(spec.budget, history, spec.instance.cluster.n_gpus):
            trial = history.under_way
            if trial is None:
                try:
                    trial = session.ask(optimizer.ask())
                except CandidatesExhaustedError:
                    session.say("all candidates have been tried")
                    break
            belief, session.expected_gain = _outlook(optimizer, trial.configuration, history)
            session.run(trial, stops=_stopping_question(spec, history, belief))
            optimizer.tell(trial.configuration, trial.outcome)
        return history


def _make(spec: Spec, space: SearchSpace, *, replayed: int) -> Optimizer:
    seed = spec.optimizer.seed
    if type(seed) is not int or seed < 0:
        raise SpecError(f"[optimizer] seed: expected a whole number of at least 0, got {seed!r}")
    chosen = np.random.default_rng([seed, replayed]) if replayed else seed
    return make_optimizer(spec.optimizer.name, space, seed=chosen, **spec.optimizer.options)


def _replay(spec: Spec, space: SearchSpace, session: Session) -> Optimizer:
    """The optimizer as it was: asked and told again all that is in the journal.

    Should it ask differently (another version, or other rounding), what was measured still counts:
    a fresh one is told everything, and goes on from there.
    """
    optimizer = _make(spec, space, replayed=0)
    for trial, outcome in session.history.events:
        if outcome is not None:
            optimizer.tell(trial.configuration, outcome)
            continue
        try:
            is_same = optimizer.ask() == trial.configuration
        except CandidatesExhaustedError:
            is_same = False
        if not is_same:
            session.say(
                f"the optimizer would not ask trial {trial.number} again; it goes on as a new one "
                "that knows the history"
            )
            return _make_informed(spec, space, session.history)
    return optimizer


def _make_informed(spec: Spec, space: SearchSpace, history: TrialHistory) -> Optimizer:
    optimizer = _make(spec, space, replayed=len(history.trials))
    for trial, outcome in history.events:
        if outcome is not None:
            optimizer.tell(trial.configuration, outcome)
    return optimizer


def _is_spent(budget: Budget, history: TrialHistory, n_gpus: int) -> bool:
    hours = history.wall_time_s / 3600.0
    n_outcomes = sum(trial.is_counted for trial in history.trials)
    return (
        (budget.trials is not None and n_outcomes >= budget.trials)
        or (budget.wall_clock_h is not None and hours >= budget.wall_clock_h)
        or (budget.gpu_hours is not None and hours * n_gpus >= budget.gpu_hours)
    )


def _outlook(
    optimizer: Optimizer, configuration: Configuration, history: TrialHistory
) -> tuple[Belief | None, float | None]:
    """What the surrogate believes of a candidate, and its expected improvement."""
    incumbent = history.incumbent
    if incumbent is None or not isinstance(optimizer, _HasSurrogate):
        return None, None
    surrogate, row = optimizer.surrogate(), optimizer.space.row(configuration)
    mean, std = surrogate.mean[row : row + 1], surrogate.std[row : row + 1]
    gain = np.exp(log_expected_improvement(mean, std, incumbent.outcome.throughput))
    return Belief(float(mean[0]), float(std[0])), float(gain[0])


def _stopping_question(
    spec: Spec, history: TrialHistory, belief: Belief | None
) -> Callable[[Sequence[float]], bool] | None:
    rule, incumbent = spec.stopping, history.incumbent
    if rule is None or incumbent is None:
        return None
    best = incumbent.outcome.throughput
    return lambda steps: rule.stops(
        steps, n_timed=spec.trial.timed_steps, incumbent=best, belief=belief
    )
