"""A callback for the Hugging Face Trainer that reports its steps to `parabolt tune` and `sweep`.

It serves what builds on the Trainer: `Trainer(..., callbacks=[ReportTrainerCallback()])`, TRL's
trainers, and axolotl, LLaMA-Factory and ms-swift by their options for own callbacks.
"""

from __future__ import annotations

from typing import Any

from parabolt.errors import MissingDependencyError

try:
    from transformers import TrainerCallback, TrainerState, TrainingArguments
except ImportError as error:
    raise MissingDependencyError.of("transformers", "transformers") from error

from parabolt.integrations.step_report import StepReport


class ReportTrainerCallback(TrainerCallback):
    """Reports each optimizer step on the first rank, and the peak memory on every rank.

    Evaluation and saving belong to no step. Outside a trial it does nothing.
    """

    def __init__(self) -> None:
        self._report = StepReport()

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """The first step begins."""
        self._report.start()

    def on_step_end(
        self, _args: TrainingArguments, state: TrainerState, *_: Any, **__: Any
    ) -> None:
        """An optimizer step has ended."""
        if state.is_world_process_zero:
            self._report.end_step(state.global_step)

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        """The time of an evaluation belongs to no step."""
        self._report.start()

    def on_save(self, *_: Any, **__: Any) -> None:
        """The time of a checkpoint belongs to no step."""
        self._report.start()

    def on_train_end(self, args: TrainingArguments, *_: Any, **__: Any) -> None:
        """All steps are done."""
        self._report.end_training(args.process_index)
