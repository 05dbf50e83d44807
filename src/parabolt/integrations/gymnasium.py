"""The problems as Gymnasium environments.

Gymnasium's conventions: `reset(seed=...)` seeds the environment, `step` gives observation, reward,
terminated, truncated and info. The reward is in iterations/s, and 0 for a run that died.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from parabolt.errors import MissingDependencyError, OptionError
from parabolt.problems.registry import load_problem

try:
    import gymnasium
except ImportError as error:
    raise MissingDependencyError.of("gymnasium", "gymnasium") from error

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray, Outcome
    from parabolt.problems.problem import Problem


class Bandit(gymnasium.Env):
    """One step per episode: an action is a candidate, the reward is its throughput.

    The observation is always 0. `info` holds `configuration`, `status`, `throughput_source` and
    `memory_margin`.

    Args:
        problem: A problem, or the name of one.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, problem: Problem | str = "pco32") -> None:
        self.problem = load_problem(problem) if isinstance(problem, str) else problem
        self.action_space = gymnasium.spaces.Discrete(len(self.problem.space))
        self.observation_space = gymnasium.spaces.Discrete(1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Starts an episode."""
        super().reset(seed=seed, options=options)
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Tries a candidate, which ends the episode."""
        outcome = _try(self.problem, int(action))
        return 0, _reward(outcome), True, False, _info(self.problem, int(action), outcome)


class Search(gymnasium.Env):
    """A whole search per episode: the reward of a step is how much it raised the best throughput.

    So an episode's return is the best throughput that it found. The action is a candidate. The
    observation is a dict: `candidate`, the encoded candidate tried last (d,); `throughput` in
    iterations/s and `has_failed` of that try; `best` so far; `left`, the evaluations that are left.
    An episode is truncated when the budget is used up.

    Args:
        problem: A problem, or the name of one.
        budget: Evaluations in an episode.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, problem: Problem | str = "pco32", *, budget: int = 50) -> None:
        if type(budget) is not int or budget < 1:
            raise OptionError(f"budget: expected a positive whole number, got {budget!r}")
        self.problem = load_problem(problem) if isinstance(problem, str) else problem
        self.budget = budget
        spaces = gymnasium.spaces
        lower, upper = self.problem.instance.encoding.bounds
        number = spaces.Box(0.0, np.inf, shape=(), dtype=np.float64)
        self.action_space = spaces.Discrete(len(self.problem.space))
        self.observation_space = spaces.Dict(
            {
                "candidate": spaces.Box(np.minimum(lower, 0.0), upper, dtype=np.float64),
                "throughput": number,
                "has_failed": spaces.Discrete(2),
                "best": number,
                "left": spaces.Discrete(budget + 1),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts a search; before the first try the observation is all zeros."""
        super().reset(seed=seed, options=options)
        self._best, self._left = 0.0, self.budget
        return self._observation(
            np.zeros(self.problem.space.encoded.shape[1]), 0.0, has_failed=False
        ), {}

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Tries a candidate."""
        outcome = _try(self.problem, int(action))
        throughput = _reward(outcome)
        gain = max(0.0, throughput - self._best)
        self._best += gain
        self._left -= 1
        observation = self._observation(
            self.problem.space.encoded[int(action)], throughput, has_failed=not outcome.is_feasible
        )
        info = _info(self.problem, int(action), outcome)
        return observation, gain, False, self._left == 0, info

    def _observation(
        self, candidate: FloatArray, throughput: float, *, has_failed: bool
    ) -> dict[str, Any]:
        return {
            "candidate": candidate.copy(),
            "throughput": np.array(throughput),
            "has_failed": int(has_failed),
            "best": np.array(self._best),
            "left": self._left,
        }


def _try(problem: Problem, row: int) -> Outcome:
    return problem.evaluate(problem.space.candidates[row])


def _reward(outcome: Outcome) -> float:
    return max(0.0, outcome.throughput) if outcome.is_feasible else 0.0


def _info(problem: Problem, row: int, outcome: Outcome) -> dict[str, Any]:
    return {
        "configuration": str(problem.space.candidates[row]),
        "status": str(outcome.status),
        "throughput_source": str(outcome.throughput_source),
        "memory_margin": outcome.memory_margin,
    }
