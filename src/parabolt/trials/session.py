"""A session: a spec, its folder with the journal, and trials that are run and recorded in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from parabolt.errors import JournalError, LaunchError
from parabolt.instances.catalogue import instance_document
from parabolt.journal import records
from parabolt.journal.about import About
from parabolt.journal.file import JOURNAL, Journal
from parabolt.journal.history import TrialHistory
from parabolt.outcome import Status
from parabolt.trials.attempt import AttemptRunner
from parabolt.trials.giving_up import GivingUp
from parabolt.trials.launchers.local import LocalLauncher
from parabolt.trials.launchers.slurm import SlurmLauncher
from parabolt.trials.spec.identity import changed_keys, identity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from parabolt.journal.file import Record
    from parabolt.journal.history import Trial
    from parabolt.space.configuration import Configuration
    from parabolt.trials.launchers.launcher import Launcher
    from parabolt.trials.spec.spec import Spec

#: So often a trial is run again that hardware, network or the scheduler ended.
_MAX_LOST_PLACES = 5


@dataclass(frozen=True)
class SessionState:
    """What is going on, for whoever watches.

    Attributes:
        history: All trials so far.
        trial: The trial under way; None between trials.
        step_times_s: Its timed steps so far.
        running_s: Seconds since its attempt began to run.
        expected_gain: Expected improvement over the incumbent in iterations/s, as the surrogate
            saw it when the trial was chosen; None where there is no surrogate.
        message: Something that happened, in words; empty for a mere look.
        ended: The trial that has just ended; None for other messages.
    """

    history: TrialHistory
    trial: Trial | None = None
    step_times_s: tuple[float, ...] = ()
    running_s: float = 0.0
    expected_gain: float | None = None
    message: str = ""
    ended: Trial | None = None


def make_launcher(spec: Spec) -> Launcher:
    """The launcher that a spec asks for."""
    if spec.launcher.kind == "slurm":
        return SlurmLauncher(spec.instance.cluster, options=spec.launcher.options)
    return LocalLauncher(gpus=spec.launcher.gpus)


class Session:
    """An open journal with what is needed to run trials. Use it as a context manager.

    Args:
        spec: The spec.
        folder: Folder of the journal and of the trials' folders.
        purpose: `tune` or `sweep`; a journal of one doesn't go on as the other.
        retry_crashed: Whether trials that an earlier session set aside run again.
        observer: Called at each look and each event.

    Raises:
        LockedError: If another process is writing.
        JournalError: If the journal is of another spec.
    """

    def __init__(
        self,
        spec: Spec,
        folder: Path,
        *,
        purpose: str,
        retry_crashed: bool = False,
        observer: Callable[[SessionState], None] | None = None,
    ) -> None:
        self.spec = spec
        self.folder = folder.resolve()
        self.expected_gain: float | None = None
        self._observer = observer
        self._trial: Trial | None = None
        self._launcher = make_launcher(spec)
        self._runner = AttemptRunner(
            spec, self._launcher, needs_memory=purpose == "sweep", watch=self._watch
        )
        self._journal = Journal(self.folder / JOURNAL)
        try:
            self.history = TrialHistory.of(self._journal.records)
            self._check_identity({"purpose": purpose, **spec.parts})
        except BaseException:
            self._journal.close()
            raise
        if self._journal.notice:
            self.say(self._journal.notice)
        self._giving_up = GivingUp()
        if retry_crashed:
            set_aside = [trial for trial in self.history.trials if trial.was_set_aside]
            self._reopen(set_aside)
            self.say(f"{len(set_aside)} trials that were set aside run again")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self._journal.check()
        finally:
            self._journal.close()

    def say(self, message: str, *, ended: Trial | None = None) -> None:
        """Tells the observer that something happened, such as that a trial ended."""
        self._tell(message=message, ended=ended)

    def ask(self, configuration: Configuration, *, repeats: int | None = None) -> Trial:
        """Begins a trial; `repeats` is the trial that it runs again to confirm it, if any."""
        number = len(self.history.trials)
        self._record(records.asked(number, configuration, repeats=repeats))
        return self.history.trials[-1]

    def run(
        self,
        trial: Trial,
        *,
        stops: Callable[[Sequence[float]], bool] | None = None,
    ) -> None:
        """Runs a trial until its outcome stands.

        An attempt that crashed is run again as often as the spec says; one that lost its place
        doesn't count, and is run again some more times. A trial that was under way when its session
        was killed is launched anew, and what it left running is ended first.

        Raises:
            LaunchError: If nothing can be launched, or the trials say that the program or the
                cluster is at fault.
        """
        self._trial = trial
        if trial.n_launched and self._launcher.end_leftovers(self.folder / trial.folder):
            self.say(f"ended what trial {trial.number} had left running")
        gain = self.expected_gain
        hope = "" if gain is None else f" (expected gain {gain:.3g} iterations/s)"
        self.say(f"trial {trial.number}: {trial.configuration}{hope}")
        while True:
            name = f"trials/{trial.number:04d}/attempt-{trial.n_launched + 1}"
            self._record(records.launched(trial.number, name))
            attempt = self._runner.run(trial.configuration, self._new_folder(name), stops=stops)
            status, statistics = attempt.verdict.status, attempt.statistics
            is_final = not self._runs_again(trial, status)
            self._record(
                records.ended(
                    trial.number,
                    attempt.outcome,
                    reason=attempt.verdict.reason,
                    saved_s=attempt.saved_s,
                    statistics=None if statistics is None else statistics.as_dict(),
                    is_final=is_final,
                )
            )
            if is_final:
                break
            self.say(f"trial {trial.number} {status}, and is run again: {attempt.verdict.reason}")
        self._trial = None
        why = f": {trial.reason}" if trial.reason else ""
        self.say(f"trial {trial.number} {trial.outcome.status}{why}", ended=trial)
        if (reason := self._giving_up.add(trial)) is not None:
            self._reopen(self._giving_up.trials)
            raise LaunchError(
                f"{reason}; its logs are in {self.folder / trial.folder}; mend it, and the same "
                "command runs these trials again (with --retry-crashed also those that had been "
                "set aside before)"
            )

    def _runs_again(self, trial: Trial, status: Status) -> bool:
        if status is Status.NODE:
            return trial.n_lost_place < _MAX_LOST_PLACES
        return status is Status.CRASHED and trial.n_crashed < self.spec.trial.retries

    def _reopen(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            self._record(records.reopened(trial.number))

    def _new_folder(self, name: str) -> Path:
        folder = self.folder / name
        if folder.exists():
            raise JournalError(
                f"{folder} is there already, and not in the journal; try another directory"
            )
        return folder

    def _check_identity(self, parts: dict[str, Any]) -> None:
        begun = self.history.identity
        if begun is None:
            spec = self.spec
            about = About(
                purpose=parts["purpose"],
                instance=spec.instance.name,
                n_gpus=spec.instance.cluster.n_gpus,
                memory_gib=spec.memory_gib,
                optimizer=spec.optimizer.name,
                command=spec.command.arguments,
                document=instance_document(spec.instance),
            )
            self._record(records.created(identity(parts), about))
        elif changed := changed_keys(begun, parts):
            raise JournalError(
                f"{self.folder / JOURNAL} was begun with another {', '.join(changed)}, and goes on "
                "only with the same; try another directory"
            )

    def _record(self, record: Record) -> None:
        self._journal.append(record)
        self.history.apply(record)

    def _watch(self, steps: Sequence[float], running_s: float) -> None:
        self._tell(steps, running_s)

    def _tell(
        self,
        steps: Sequence[float] = (),
        running_s: float = 0.0,
        message: str = "",
        ended: Trial | None = None,
    ) -> None:
        if self._observer is not None:
            self._observer(
                SessionState(
                    self.history,
                    self._trial,
                    tuple(steps),
                    running_s,
                    self.expected_gain,
                    message,
                    ended,
                )
            )
