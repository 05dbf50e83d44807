"""A session: a spec, its folder with the journal, and trials that are run and recorded in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from parabolt.errors import JournalError, LaunchError
from parabolt.outcome import Status
from parabolt.trials import records
from parabolt.trials.attempt import AttemptRunner
from parabolt.trials.journal import Journal
from parabolt.trials.launchers.local import LocalLauncher
from parabolt.trials.launchers.slurm import SlurmLauncher
from parabolt.trials.records import History

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from parabolt.space.configuration import Configuration
    from parabolt.trials.journal import Record
    from parabolt.trials.launchers.launcher import Launcher
    from parabolt.trials.records import Trial
    from parabolt.trials.spec.spec import Spec

#: So many trials set aside one after the other mean that the program is broken, not they.
_MAX_IN_A_ROW = 5

#: Name of the journal in a session's folder.
JOURNAL = "journal.jsonl"


@dataclass(frozen=True)
class Progress:
    """What is going on, for whoever watches.

    Attributes:
        history: All trials so far.
        trial: The trial under way; None between trials.
        step_times_s: Its timed steps so far.
        running_s: Seconds since its attempt began to run.
        expected_gain: Expected improvement over the incumbent in iterations/s, as the surrogate
            saw it when the trial was chosen; None where there is no surrogate.
        message: Something that happened, in words; empty for a mere look.
    """

    history: History
    trial: Trial | None = None
    step_times_s: tuple[float, ...] = ()
    running_s: float = 0.0
    expected_gain: float | None = None
    message: str = ""


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
        observer: Callable[[Progress], None] | None = None,
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
            self.history = History.of(self._journal.records)
            self._check_identity({"purpose": purpose, **spec.identity()})
        except BaseException:
            self._journal.close()
            raise
        if self._journal.notice:
            self.say(self._journal.notice)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._journal.close()

    def say(self, message: str) -> None:
        """Tells the observer that something happened."""
        self._tell(message=message)

    def ask(self, configuration: Configuration) -> Trial:
        """Begins a trial."""
        self._record(records.asked(len(self.history.trials), configuration))
        return self.history.trials[-1]

    def run(
        self,
        trial: Trial,
        *,
        stops: Callable[[Sequence[float]], bool] | None = None,
    ) -> None:
        """Runs a trial until its outcome stands: a crashed attempt is retried.

        A trial that was under way when its session was killed is launched anew, and what it left
        running is ended first.

        Raises:
            LaunchError: If nothing can be launched, or one trial after the other crashes.
        """
        self._trial = trial
        if trial.n_launched and self._launcher.end_leftovers(self.folder / trial.folder):
            self.say(f"ended what trial {trial.number} had left running")
        self.say(f"trial {trial.number}: {trial.configuration}")
        while True:
            name = f"trials/{trial.number:04d}/attempt-{trial.n_launched + 1}"
            self._record(records.launched(trial.number, name))
            attempt = self._runner.run(trial.configuration, self._new_folder(name), stops=stops)
            status = attempt.verdict.status
            is_final = status is not Status.CRASHED or trial.n_crashed >= self.spec.trial.retries
            self._record(records.ended(trial.number, attempt, is_final=is_final))
            if is_final:
                break
            self.say(f"trial {trial.number} crashed and is run again: {attempt.verdict.reason}")
        why = f": {trial.reason}" if trial.reason else ""
        self._trial = None
        self.say(f"trial {trial.number} {status}{why}")
        self._check_not_broken()

    def _new_folder(self, name: str) -> Path:
        folder = self.folder / name
        if folder.exists():
            raise JournalError(
                f"{folder} is there already, and not in the journal; try another directory"
            )
        return folder

    def _check_not_broken(self) -> None:
        last = self.history.told[-_MAX_IN_A_ROW:]
        if len(last) == _MAX_IN_A_ROW and all(trial.was_set_aside for trial in last):
            raise LaunchError(
                f"the last {_MAX_IN_A_ROW} trials crashed, so the program or the cluster is at "
                f"fault rather than the configurations; the last one: {last[-1].reason}; its logs "
                f"are in {self.folder / last[-1].folder}"
            )

    def _check_identity(self, identity: dict[str, str]) -> None:
        found = self.history.identity
        if found is None:
            spec = self.spec
            about = {
                "purpose": identity["purpose"],
                "instance": spec.instance.name,
                "n_gpus": spec.instance.cluster.n_gpus,
                "memory_gb": spec.memory_gb,
                "optimizer": spec.optimizer.name,
                "command": list(spec.command.arguments),
            }
            self._record(records.created(identity, about))
            return
        changed = [name for name in identity if identity[name] != found.get(name)]
        if changed:
            raise JournalError(
                f"{self.folder / JOURNAL} was begun with another {', '.join(changed)}, and goes on "
                "only with the same; try another directory"
            )

    def _record(self, record: Record) -> None:
        self._journal.append(record)
        self.history.apply(record)

    def _watch(self, steps: Sequence[float], running_s: float) -> None:
        self._tell(steps, running_s)

    def _tell(self, steps: Sequence[float] = (), running_s: float = 0.0, message: str = "") -> None:
        if self._observer is not None:
            self._observer(
                Progress(
                    self.history, self._trial, tuple(steps), running_s, self.expected_gain, message
                )
            )
