import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import parabolt
from parabolt.integrations.gymnasium import Bandit, Search


@pytest.mark.parametrize("make", [Bandit, Search])
def test_gymnasiums_own_checks(make, recwarn):
    check_env(make("pco64"), skip_render_check=True)
    assert not [w for w in recwarn if "parabolt" in str(w.message)]


def test_bandit(pco64):
    environment = Bandit(pco64)
    observation, info = environment.reset(seed=0)
    assert (observation, info) == (0, {})
    rewards = []
    for row in range(len(pco64.space)):
        environment.reset()
        _, reward, terminated, truncated, info = environment.step(row)
        assert terminated
        assert not truncated
        assert (info["status"] == "oom") == (reward == 0.0)
        rewards.append(reward)
    assert rewards == np.nan_to_num(pco64.table.outcomes.throughput).tolist()


def test_a_search_whose_return_is_the_best_it_found(pco64):
    environment = gymnasium.wrappers.TimeLimit(Search(pco64, budget=40), 100)

    def episode(seed):
        environment.reset(seed=seed)
        environment.action_space.seed(seed)
        rewards, found, over = [], [], False
        while not over:
            action = environment.action_space.sample()
            observation, reward, terminated, over, info = environment.step(action)
            assert not terminated
            assert observation["has_failed"] == (info["status"] == "oom")
            found.append(pco64.table.outcomes.throughput[action])
            rewards.append(reward)
        assert observation["left"] == 0
        assert observation["best"] == pytest.approx(sum(rewards))
        assert len(rewards) == 40
        assert sum(rewards) == pytest.approx(np.nanmax(found))
        return rewards

    assert episode(3) == episode(3) != episode(4)


def test_misuse():
    with pytest.raises(parabolt.OptionError, match="budget: expected a positive"):
        Search(budget=0)
    with pytest.raises(parabolt.UnknownNameError, match="pco33"):
        Bandit("pco33")
