"""A callback for Lightning's Trainer that reports its steps to `parabolt tune` and `sweep`."""

from __future__ import annotations

from typing import Any

from parabolt.errors import MissingDependencyError

try:
    from lightning.pytorch import Callback, Trainer
except ImportError as error:
    raise MissingDependencyError.of("lightning", "lightning") from error

from parabolt.integrations.step_report import StepReport


class ReportCallback(Callback):
    """Reports each optimizer step on the first rank, and the peak memory on every rank.

    A step is all batches that accumulate into it. Validation belongs to no step. Outside a trial it
    does nothing.
    """

    def __init__(self) -> None:
        self._report = StepReport()
        self._global_step = self._n_steps = 0

    def on_train_start(self, trainer: Trainer, *_: Any) -> None:
        """The first step begins."""
        self._global_step = trainer.global_step
        self._report.start()

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """A batch has ended, and an optimizer step with it if the count of steps has grown."""
        if trainer.global_step > self._global_step:
            self._global_step = trainer.global_step
            if trainer.is_global_zero:
                self._n_steps += 1
                self._report.end_step(self._n_steps)

    def on_validation_end(self, *_: Any) -> None:
        """The time of a validation belongs to no step."""
        self._report.start()

    def on_train_end(self, trainer: Trainer, *_: Any) -> None:
        """All steps are done."""
        self._report.end_training(trainer.global_rank)
