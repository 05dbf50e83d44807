"""An instance whose knobs all have one size: a space of one configuration, without any input."""

import numpy as np
import pytest

import parabolt
from parabolt.errors import CandidatesExhaustedError
from parabolt.instances.catalogue import instance_text, parse_instance
from parabolt.outcome import Outcome

KNOBS = """[knobs]
dp = [4]
tp = [1]
pp = [1]
cp = [1]
sp = [1]
bucket = [2]
zero = [0]
chunks = [1]
"""


@pytest.fixture(scope="module")
def space():
    text = instance_text("pco4-cpu").split("[knobs]")[0] + KNOBS
    return parabolt.SearchSpace.lattice(parse_instance(text, origin="test"))


@pytest.mark.parametrize("name", parabolt.optimizer_names())
def test_its_configuration_is_tried_recommended_and_then_nothing_is_left(space, name):
    optimizer = parabolt.make_optimizer(name, space, seed=0)
    assert optimizer.recommend() is None
    configuration = optimizer.ask()
    optimizer.tell(configuration, Outcome.ok(0.5, memory_margin=-0.1))
    assert optimizer.recommend() == configuration == space.candidates[0]
    with pytest.raises(CandidatesExhaustedError, match=r"all 1 candidates of .* have been"):
        optimizer.ask()


@pytest.mark.parametrize("name", parabolt.optimizer_names())
def test_with_repeats_it_is_tried_again_and_again(space, name):
    optimizer = parabolt.make_optimizer(name, space, seed=0, repeats="allow")
    for k in range(14):
        optimizer.tell(optimizer.ask(), Outcome.ok(0.5 + k / 100, memory_margin=-0.1))
    assert optimizer.history.rows.tolist() == [0] * 14
    if hasattr(optimizer, "surrogate"):
        surrogate = optimizer.surrogate()
        assert surrogate.mean == pytest.approx([np.mean(optimizer.history.throughput)], abs=0.02)


def test_a_design_larger_than_the_space_is_refused():
    space = parabolt.load_problem("pco32").space
    with pytest.raises(parabolt.OptionError, match="at most the 379 candidates of pco32, got 400"):
        parabolt.make_optimizer("logeic", space, n_initial=400)
