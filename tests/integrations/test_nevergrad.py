import nevergrad as ng
import numpy as np
import pytest

from parabolt.integrations.nevergrad import Function, parametrization


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["NGOpt", "DiscreteOnePlusOne"])
def test_a_search(method, pco64):
    function = Function(pco64, seed=0)
    optimizer = ng.optimizers.registry[method](function.parametrization, budget=60)
    found = optimizer.minimize(function, constraint_violation=[function.violation])
    assert function.violation(found.value) < 0
    value = -function(**found.kwargs)
    assert value > np.nanmedian(pco64.table.outcomes.throughput)


def test_loss_and_violation(pco64):
    function = Function(pco64)
    sizes = {k: v for k, v in pco64.optimum.configuration.as_dict().items() if k != "grad_accum"}
    assert function(**sizes) == -pco64.optimum.value
    assert function.violation(((), sizes)) < 0
    assert function.last_placed.is_candidate
    died = pco64.space.candidates[int(np.flatnonzero(~pco64.table.is_feasible)[0])].as_dict()
    died.pop("grad_accum")
    assert function.violation(((), died)) == 0.2  # tried, though not called first
    assert function(**died) == 0.0


def test_seeds_belong_to_the_parametrization(pco32):
    def draws(seed):
        found = parametrization(pco32.space, seed=seed)
        return [found.sample().kwargs for _ in range(5)]

    assert draws(1) == draws(1) != draws(2)
