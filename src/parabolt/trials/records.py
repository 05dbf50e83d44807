"""The records of a journal, and the history that they add up to.

Kinds: `created` (identity of the spec), `asked` (a trial begins), `launched` and `ended` (an
attempt of it; the last one is final, and its outcome stands), `reopened` (a trial that was set
aside runs again). A trial that was asked and has no outcome was under way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from parabolt.errors import JournalError
from parabolt.outcome import GIB_PER_GB, Outcome, Status
from parabolt.space.configuration import Configuration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from parabolt.trials.attempt import Attempt
    from parabolt.trials.journal import Record

#: Version of the records, in `created`.
VERSION = 1
_SET_ASIDE = (Status.CRASHED, Status.NODE)


@dataclass
class Trial:
    """A trial so far.

    Attributes:
        number: From 0, in the order they were asked.
        configuration: What is tried.
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
        return self.ending is not None and self.ending.status not in (*_SET_ASIDE, Status.INVALID)


@dataclass
class TrialHistory:
    """All trials of a journal.

    Attributes:
        identity: Identity of the spec; None while the journal is new.
        about: What is searched, for a report: instance, GPUs, memory, optimizer and command.
        trials: The trials.
        events: What was asked of an optimizer and told to it, in order: a trial with None as it
            begins, and with its outcome as that stands.
    """

    identity: dict[str, Any] | None = None
    about: dict[str, Any] = field(default_factory=dict)
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
            except (KeyError, IndexError, TypeError, ValueError) as error:
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
            self.identity, self.about = record["identity"], record["about"]
            if "memory_gb" in self.about:  # version 0.1
                self.about["memory_gib"] = self.about["memory_gb"]
            return
        if kind == "asked":
            configuration = Configuration.from_dict(record["configuration"])
            if record["trial"] != len(self.trials):
                raise ValueError(f"trial {record['trial']} out of order")
            self.trials.append(Trial(len(self.trials), configuration))
            self.events.append((self.trials[-1], None))
            return
        trial = self.trials[record["trial"]]
        if kind == "launched":
            trial.n_launched += 1
            trial.folder = record["folder"]
        elif kind == "ended":
            record = _from_version_0_1(record, self.about)
            outcome = Outcome.from_record(record["outcome"])
            trial.n_crashed += outcome.status is Status.CRASHED
            trial.n_lost_place += outcome.status is Status.NODE
            trial.wall_time_s += outcome.wall_time_s
            trial.saved_s += record["saved_s"]
            trial.statistics = record["statistics"]
            trial.reason = record["reason"]
            if record["is_final"]:
                trial.ending = outcome
                self.events.append((trial, outcome))
        elif kind == "reopened":
            trial.ending, trial.n_crashed, trial.n_lost_place = None, 0, 0
        else:
            raise ValueError(f"unknown kind {kind!r}")

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
    def wall_time_s(self) -> float:
        """Duration of all attempts that ended, in seconds."""
        return math.fsum(trial.wall_time_s for trial in self.trials)

    @property
    def saved_s(self) -> float:
        """Running time that early termination saved, in seconds (an estimate)."""
        return math.fsum(trial.saved_s for trial in self.trials)


def created(identity: dict[str, str], about: dict[str, Any]) -> Record:
    """The first record."""
    return {"kind": "created", "version": VERSION, "identity": identity, "about": about}


def asked(number: int, configuration: Configuration) -> Record:
    """A trial begins."""
    return {"kind": "asked", "trial": number, "configuration": configuration.as_dict()}


def launched(number: int, folder: str) -> Record:
    """An attempt begins."""
    return {"kind": "launched", "trial": number, "folder": folder}


def reopened(number: int) -> Record:
    """A trial that was set aside runs again."""
    return {"kind": "reopened", "trial": number}


def ended(number: int, attempt: Attempt, *, is_final: bool) -> Record:
    """An attempt has ended; if it is the trial's last, its outcome stands."""
    statistics = attempt.statistics
    return {
        "kind": "ended",
        "trial": number,
        "is_final": is_final,
        "outcome": attempt.outcome.to_record(),
        "reason": attempt.verdict.reason,
        "saved_s": attempt.saved_s,
        "statistics": None
        if statistics is None
        else {
            "throughput": statistics.throughput,
            "throughput_std": _number(statistics.throughput_std),
            "step_times_s": list(statistics.step_times_s),
            "peak_memory_per_gpu_gib": list(statistics.peak_memory_per_gpu_gib),
        },
    }


def _from_version_0_1(record: Record, about: dict[str, Any]) -> Record:
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
        found["memory_margin"] = peak * GIB_PER_GB / about["memory_gib"] - 1.0
    elif peak is not None:
        found["peak_memory_gib"] = peak
    if statistics is not None:
        per_gpu = [peak * GIB_PER_GB for peak in statistics["peak_memory_per_gpu_gb"]]
        statistics = {**statistics, "peak_memory_per_gpu_gib": per_gpu}
    return {**record, "outcome": found, "statistics": statistics}


def _number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)
