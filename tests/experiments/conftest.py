import pytest

from parabolt.experiments.executors.executor import TaskResult, guarded


class Here:
    """Runs tasks in this very process: for what does not depend on where they run."""

    n_workers = 1

    def map(self, function, items, limits):
        for index, item in enumerate(items):
            yield TaskResult(index, *guarded(function, item))


@pytest.fixture
def here():
    return Here()
