"""`tune`: the search for the best configuration of a real program, in few real runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from parabolt.errors import CandidatesExhaustedError, SpecError
from parabolt.optimizers.gp.acquisition import log_expected_improvement
from parabolt.optimizers.registry import make_optimizer
from parabolt.planner.past_trials import optimizer_options
from parabolt.trials.candidates import candidates_of
from parabolt.trials.session import Session, SessionState
from parabolt.trials.stopping import Belief

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from parabolt.instances.search_space import SearchSpace
    from parabolt.journal.history import Trial, TrialHistory
    from parabolt.optimizers.optimizer import Optimizer
    from parabolt.outcome import FloatArray
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
    n_confirmed: int = 0,
    observer: Callable[[SessionState], None] | None = None,
) -> TrialHistory:
    """Searches until the budget is used up or no candidate is left.

    A search that was killed goes on where it was: the same history, and only the trial that was
    under way is launched again.

    Args:
        spec: The spec, with a budget.
        folder: Where journal and trials are kept.
        retry_crashed: Whether trials that an earlier session set aside run again first.
        n_confirmed: How many of the fastest configurations are run once more at the end, beyond
            the budget.
        observer: Called at each look at a running trial and at each event.

    Returns:
        All trials.

    Raises:
        SpecError: If the spec has no budget, or its framework can express no configuration.
        OptionError: For an option of the optimizer that cannot be.
        LockedError: If another process is writing there.
        JournalError: If the spec has changed.
        LaunchError: If nothing can be launched, or one trial after the other crashes.
    """
    if spec.budget is None:
        raise SpecError("[budget] expected trials, wall_clock_h or gpu_hours, got none")
    candidates = candidates_of(spec)
    make = _Maker(spec, candidates.space)
    make(replayed=0)  # a wrong optimizer or option is told before anything is made
    with Session(
        spec, folder, purpose="tune", retry_crashed=retry_crashed, observer=observer
    ) as session:
        history = session.history
        for line in candidates.left_out:
            session.say(f"not searched: {line}")
        n_trials, n_candidates = spec.budget.trials or 0, len(candidates.space)
        if n_trials > n_candidates:
            session.say(f"the budget is {n_trials} trials, and there are {n_candidates} candidates")
        optimizer = _replay(make, session)
        n_gpus = spec.instance.cluster.n_gpus
        while history.under_way is not None or not _is_spent(spec.budget, history, n_gpus):
            trial = history.under_way
            if trial is None:
                try:
                    trial = session.ask(optimizer.ask())
                except CandidatesExhaustedError:
                    session.say("all candidates have been tried")
                    break
            belief, session.expected_gain = _outlook(optimizer, trial, history)
            rule = None if trial.repeats is not None else _stopping_question(spec, history, belief)
            session.run(trial, stops=rule)
            optimizer.tell(trial.configuration, trial.outcome)
        _confirm(session, n_confirmed)
        return history


def _confirm(session: Session, n: int) -> None:
    """Runs the n fastest configurations once more, where that hasn't been done yet."""
    history = session.history
    first = [leader.trials[0] for leader in history.leaders_of_search[:n]]
    done = {trial.repeats for trial in history.trials}
    for trial in first:
        if trial.number not in done:
            session.say(f"trial {trial.number} is run once more, to confirm it")
            session.expected_gain = None
            session.run(session.ask(trial.configuration, repeats=trial.number))


class _Maker:
    """Makes the optimizer of a spec; what `history` names is read once."""

    def __init__(self, spec: Spec, space: SearchSpace) -> None:
        self._spec, self._space = spec, space
        self._options = optimizer_options(spec.optimizer.options, folder=spec.folder)

    def __call__(self, *, replayed: int) -> Optimizer:
        """An optimizer; after a replay that went astray one with a seed of its own."""
        chosen = self._spec.optimizer
        seed = np.random.default_rng([chosen.seed, replayed]) if replayed else chosen.seed
        return make_optimizer(chosen.name, self._space, seed=seed, **self._options)


def _replay(make: _Maker, session: Session) -> Optimizer:
    """The optimizer as it was: asked and told again all that is in the journal.

    Should it ask differently (another version, or other rounding), what was measured still counts:
    a fresh one is told everything, and goes on from there.
    """
    optimizer = make(replayed=0)
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
            return _informed(make, session.history)
    return optimizer


def _informed(make: _Maker, history: TrialHistory) -> Optimizer:
    optimizer = make(replayed=len(history.trials))
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
    optimizer: Optimizer, trial: Trial, history: TrialHistory
) -> tuple[Belief | None, float | None]:
    """What the surrogate believes of a candidate, and its expected improvement."""
    incumbent = history.incumbent
    if incumbent is None or not isinstance(optimizer, _HasSurrogate):
        return None, None
    surrogate, row = optimizer.surrogate(), optimizer.space.row(trial.configuration)
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
