"""An optimizer in twenty lines, run like any other."""

import numpy as np

import parabolt
from parabolt.outcome import IntArray


class Neighbours(parabolt.Optimizer):
    """Goes on to an untried neighbour of the best candidate so far."""

    def _next_row(self, available: IntArray) -> int:
        best = self.history.best_feasible_row()
        if best is None:
            return self._random_row(available)
        X = self.space.encoded
        steps = np.abs(X[available] - X[best]).sum(axis=1)
        return self._random_row(available[steps == steps.min()])


problem = parabolt.load_problem("pco32")
optimizer = Neighbours(problem.space, seed=0)
for _ in range(40):
    configuration = optimizer.ask()
    optimizer.tell(configuration, problem.evaluate(configuration))
if found := optimizer.recommend():
    percent = 100 * problem.evaluate(found).throughput / problem.optimum.value
    print(f"{found}: {percent:.1f} % of the optimum")
