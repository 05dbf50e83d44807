"""The history that the records of a journal add up to; the records are in `records`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from parabolt.errors import JournalError
from parabolt.journal.about import About
from parabolt.journal.records import VERSION
from parabolt.outcome import GIB_PER_GB, Outcome, Status
from parabolt.space.configuration import Configuration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from parabolt.journal.file import Record

_SET_ASIDE = (Status.CRASHED, Status.NODE)


@dataclass
class Trial:
    """A trial so far.

    Attributes:
        number: From 0, in the order they were asked.
        configuration: What is tried.
        repeats: The trial that it runs again to confirm it; None for one of the search itself.
        n_launched: Attempts that were launched.
        n_crashed: Attempts that crashed since it was asked or reopened.
        n_lost_place: Attempts that hardware, network or the scheduler ended since then.
        ending: The outcome; None while the trial is under way.
        reason: Why it ended as it did.
        statistics: Statistics as recorded; None unless it finished.
        folder: Folder of its last attempt, below the run's folder.
        wall_time_s: Duration of all attempts, in seconds.
        saved_s: Running time that early termination saved, in seconds (an estimate).
    """

    number: int
    configuration: Configuration
    repeats: int | None = None
    n_launched: int = 0
    n_crashed: int = 0
    n_lost_place: int = 0
    ending: Outcome | None = None
    reason: str = ""
    statistics: dict[str, Any] | None = None
    folder: str = ""
    wall_time_s: float = 0.0
    saved_s: float = 0.0

    @property
    def outcome(self) -> Outcome:
        """The outcome of a trial that has ended.

        Raises:
            JournalError: If it is under way.
        """
        if self.ending is None:
            raise JournalError(f"trial {self.number} is under way and has no outcome yet")
        return self.ending

    @property
    def was_set_aside(self) -> bool:
        """Whether it crashed or lost its place for good: nothing is known of its configuration."""
        return self.ending is not None and self.ending.status in _SET_ASIDE

    @property
    def is_counted(self) -> bool:
        """Whether it counts towards a budget of trials: it was run, and its outcome stands."""
        said_nothing = (*_SET_ASIDE, Status.INVALID)
        is_told = self.ending is not None and self.ending.status not in said_nothing
        return is_told and self.repeats is None


@dataclass(frozen=True)
class Leader:
    """A configuration with the trials that it finished.

    Attributes:
        configuration: The configuration.
        trials: Its trials, in order, at least one.
    """

    configuration: Configuration
    trials: tuple[Trial, ...]

    @property
    def step_times_s(self) -> tuple[float, ...]:
        """The timed steps of all trials, in seconds."""
        return tuple(t for trial in self.trials for t in (trial.statistics or {})["step_times_s"])

    @property
    def throughput(self) -> float:
        """Iterations/s over the timed steps of all trials."""
        if len(self.trials) == 1:
            return self.trials[0].outcome.throughput
        return len(self.step_times_s) / math.fsum(self.step_times_s)

    @property
    def peak_memory_gib(self) -> float:
        """Largest peak memory of all trials in GiB; NaN where none was reported."""
        peaks = [trial.outcome.peak_memory_gib for trial in self.trials]
        return max((peak for peak in peaks if peak > 0.0), default=math.nan)


@dataclass
class TrialHistory:
    """All trials of a journal.

    Attributes:
        identity: Identity of the spec; None while the journal is new.
        about: What is searched.
        trials: The trials.
        events: What was asked of an optimizer and told to it, in order: a trial with None as it
            begins, and with its outcome as that stands.
    """

    identity: dict[str, Any] | None = None
    about: About = field(default_factory=About)
    trials: list[Trial] = field(default_factory=list)
    events: list[tuple[Trial, Outcome | None]] = field(default_factory=list)

    @classmethod
    def of(cls, records: Iterable[Record]) -> TrialHistory:
        """The history that records add up to.

        Raises:
            JournalError: If a record isn't one of this version.
        """
        history = cls()
        for number, record in enumerate(records, start=1):
            try:
                history.apply(record)
            except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
                raise JournalError(f"record {number} can't be read: {error!r}") from error
        return history

    def apply(self, record: Record) -> None:
        """Takes one more record in."""
        kind = record["kind"]
        if kind == "created":
            if record["version"] != VERSION:
                raise JournalError(
                    f"expected a journal of version {VERSION}, got {record['version']}"
                )
            self.identity = _checked("identity", record["identity"], dict)
            self.about = About.from_record(_checked("about", record["about"], dict))
            return
        if kind == "asked":
            configuration = Configuration.from_dict(record["configuration"])
            if record["trial"] != len(self.trials):
                raise ValueError(f"trial {record['trial']} out of order")
            repeats = record.get("repeats")
            if repeats is not None:
                repeats = self._trial(repeats).number
            trial = Trial(len(self.trials), configuration, repeats)
            self.trials.append(trial)
            if trial.repeats is None:
                self.events.append((trial, None))
            return
        trial = self._trial(record["trial"])
        if kind == "launched":
            trial.n_launched += 1
            trial.folder = _checked("folder", record["folder"], str)
        elif kind == "ended":
            record = _from_version_0_1(record, self.about.memory_gib)
            outcome = Outcome.from_record(record["outcome"])
            trial.n_crashed += outcome.status is Status.CRASHED
            trial.n_lost_place += outcome.status is Status.NODE
            if not math.isnan(outcome.wall_time_s):
                trial.wall_time_s += _duration("wall_time_s", outcome.wall_time_s)
            if outcome.status is Status.OK and not 0.0 < outcome.throughput < math.inf:
                raise ValueError(f"throughput: expected one of a finished run, got {outcome}")
            trial.saved_s += _duration("saved_s", record["saved_s"])
            trial.statistics = _checked_statistics(record["statistics"])
            trial.reason = _checked("reason", record["reason"], str)
            if _checked("is_final", record["is_final"], bool):
                trial.ending = outcome
                self.events.append((trial, outcome))
        elif kind == "reopened":
            trial.ending, trial.n_crashed, trial.n_lost_place = None, 0, 0
        else:
            raise ValueError(f"unknown kind {kind!r}")

    def _trial(self, number: Any) -> Trial:
        if type(number) is not int or not 0 <= number < len(self.trials):
            raise ValueError(f"trial: expected one of {len(self.trials)} so far, got {number!r}")
        return self.trials[number]

    @property
    def told(self) -> list[Trial]:
        """Trials whose outcome stands."""
        return [trial for trial in self.trials if trial.ending is not None]

    @property
    def under_way(self) -> Trial | None:
        """The trial that was asked and not told; None if there is none."""
        return next((trial for trial in self.trials if trial.ending is None), None)

    @property
    def incumbent(self) -> Trial | None:
        """The finished trial with the highest throughput; a stopped one can't win."""
        finished = [trial for trial in self.told if trial.outcome.is_feasible]
        return max(finished, key=lambda trial: trial.outcome.throughput, default=None)

    @property
    def leaders(self) -> list[Leader]:
        """The configurations that finished each time they ran to an end, fastest first."""
        return _leaders(self.told)

    @property
    def leaders_of_search(self) -> list[Leader]:
        """The same by the trials of the search itself, without those that confirm others."""
        return _leaders([trial for trial in self.told if trial.repeats is None])

    @property
    def best(self) -> Leader | None:
        """The fastest configuration; of those that were confirmed where there are some."""
        leaders = self.leaders
        confirmed = [leader for leader in leaders if len(leader.trials) > 1]
        return next(iter(confirmed or leaders), None)

    @property
    def wall_time_s(self) -> float:
        """Duration of all attempts that ended, in seconds."""
        return math.fsum(trial.wall_time_s for trial in self.trials)

    @property
    def saved_s(self) -> float:
        """Running time that early termination saved, in seconds (an estimate)."""
        return math.fsum(trial.saved_s for trial in self.trials)


def _leaders(trials: Sequence[Trial]) -> list[Leader]:
    runs: dict[Configuration, list[Trial]] = {}
    for trial in trials:
        if trial.outcome.status.is_definite:
            runs.setdefault(trial.configuration, []).append(trial)
    finished = [
        Leader(configuration, tuple(its))
        for configuration, its in runs.items()
        if all(trial.outcome.is_feasible for trial in its)
    ]
    return sorted(finished, key=lambda leader: -leader.throughput)


def _checked(key: str, value: Any, of: type) -> Any:
    if not isinstance(value, of):
        raise TypeError(f"{key}: expected {of.__name__}, got {value!r}")
    return value


def _duration(key: str, value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0.0 <= value < math.inf:
        raise ValueError(f"{key}: expected seconds, got {value!r}")
    return float(value)


def _checked_statistics(statistics: Any) -> Any:
    """Statistics of which every figure is one; None for none."""
    if statistics is not None:
        for key, value in _checked("statistics", statistics, dict).items():
            for figure in value if isinstance(value, list) else [value]:
                if figure is not None:
                    _duration(key, figure)
    return statistics


def _from_version_0_1(record: Record, capacity_gib: float | None) -> Record:
    """An `ended` record with memory in GiB; version 0.1 had GB of 10^9 bytes.

    A GPU's own "GB" was a GiB already, so that the recorded margins were too large by 7 %.
    """
    outcome, statistics = record["outcome"], record["statistics"]
    if "peak_memory_gb" not in outcome:
        return record
    found = dict(outcome)
    peak = found.pop("peak_memory_gb")
    if isinstance(peak, (int, float)):
        found["peak_memory_gib"] = peak * GIB_PER_GB
        found["memory_margin"] = peak * GIB_PER_GB / (capacity_gib or math.nan) - 1.0
    elif peak is not None:
        found["peak_memory_gib"] = peak
    if statistics is not None:
        per_gpu = [peak * GIB_PER_GB for peak in statistics["peak_memory_per_gpu_gb"]]
        statistics = {**statistics, "peak_memory_per_gpu_gib": per_gpu}
    return {**record, "outcome": found, "statistics": statistics}
