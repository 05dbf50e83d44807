"""When a session gives up: then the program or the cluster is at fault, not the configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.outcome import Status

if TYPE_CHECKING:
    from parabolt.journal.history import Trial

#: So many trials in a row end a session: crashes of different configurations, rejections for one
#: and the same reason, and trials that lost their place each time they were run.
MAX_CRASHED, MAX_REJECTED, MAX_LOST = 5, 10, 3


class GivingUp:
    """Watches the trials of one session for signs that something else than they is at fault."""

    def __init__(self) -> None:
        self._crashed: list[Trial] = []
        self._rejected: list[Trial] = []
        self._lost: list[Trial] = []

    @property
    def trials(self) -> list[Trial]:
        """The trials in a row so far that may not be at fault themselves, in order."""
        in_a_row = [*self._crashed, *self._rejected, *self._lost]
        return sorted(in_a_row, key=lambda trial: trial.number)

    def add(self, trial: Trial) -> str | None:
        """Takes in a trial that has ended.

        A trial that lost its place or was rejected neither adds to the crashes before it nor ends
        their row: it says nothing of the program.

        Returns:
            Why to give up now; None to go on.
        """
        status = trial.outcome.status
        if status is not Status.NODE:
            self._lost.clear()
        if status is not Status.INVALID or self._is_new_reason(trial):
            self._rejected.clear()
        if status not in (Status.NODE, Status.INVALID, Status.CRASHED):
            self._crashed.clear()
        if status is Status.NODE:
            self._lost.append(trial)
        elif status is Status.INVALID:
            self._rejected.append(trial)
        elif status is Status.CRASHED:
            self._crashed.append(trial)
        return self._reason()

    def _is_new_reason(self, trial: Trial) -> bool:
        return bool(self._rejected) and self._rejected[-1].reason != trial.reason

    def _reason(self) -> str | None:
        if len({trial.configuration for trial in self._crashed}) >= MAX_CRASHED:
            return (
                f"the last {MAX_CRASHED} configurations crashed, so the program or the cluster is "
                f"at fault rather than they; the last one: {self._crashed[-1].reason}"
            )
        if len(self._rejected) >= MAX_REJECTED:
            return (
                f"the program rejected {MAX_REJECTED} configurations in a row for the same reason, "
                f"so its command is at fault rather than they: {self._rejected[-1].reason}"
            )
        if len(self._lost) >= MAX_LOST:
            return (
                f"the last {MAX_LOST} trials lost their place each time they were run, so the "
                f"cluster is at fault; the last one: {self._lost[-1].reason}"
            )
        return None
