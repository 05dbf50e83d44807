"""A dry run: one configuration is launched and read, and nothing else follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from parabolt.optimizers.registry import make_optimizer
from parabolt.trials.attempt import AttemptRunner, launch_of
from parabolt.trials.candidates import candidates_of
from parabolt.trials.session import make_launcher

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from parabolt.space.configuration import Configuration
    from parabolt.trials.attempt import Attempt
    from parabolt.trials.launchers.launcher import Launch
    from parabolt.trials.spec.spec import Spec


@dataclass(frozen=True)
class DryRun:
    """What a dry run gave.

    Attributes:
        configuration: What was run.
        launch: How.
        attempt: What was read, and the verdict.
    """

    configuration: Configuration
    launch: Launch
    attempt: Attempt


def dry_run(
    spec: Spec,
    folder: Path,
    *,
    configuration: Configuration | None = None,
    needs_memory: bool = False,
    announce: Callable[[Configuration, Launch], None] | None = None,
) -> DryRun:
    """Launches one configuration as a trial is; no journal knows of it.

    Args:
        spec: The spec.
        folder: Session folder; the files go to a new folder `dry-run/<n>` in it.
        configuration: What to run; None for the one that the cost model expects most of.
        needs_memory: Whether memory must be reported, as for a sweep.
        announce: Called with what will be run, before it is.

    Raises:
        LaunchError: If nothing can be launched.
        InvalidConfigurationError: If the configuration breaks a rule of the instance.
        SpecError: If the framework can't express it.
    """
    space = candidates_of(spec).space
    if configuration is None:
        configuration = make_optimizer("parabolt", space, seed=0).ask()
    spec.instance.check(configuration)
    place = _new_folder(folder.resolve() / "dry-run")
    launch = launch_of(spec, configuration, place)
    if announce is not None:
        announce(configuration, launch)
    runner = AttemptRunner(spec, make_launcher(spec), needs_memory=needs_memory)
    return DryRun(configuration, launch, runner.run(configuration, place))


def _new_folder(parent: Path) -> Path:
    taken = [int(path.name) for path in parent.glob("[0-9]*") if path.name.isdigit()]
    return parent / str(max(taken, default=0) + 1)
