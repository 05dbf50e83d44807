"""An optimizer that proposes what it may not is stopped by `ask`, and by the contract."""

import pytest

import parabolt
from parabolt.errors import ProposalError
from parabolt.testing import OptimizerContract


def proposing(row):
    class Proposes(parabolt.Optimizer):
        def _next_row(self, available):
            return row

    return Proposes


@pytest.mark.parametrize("row", [-1, 80, 3.0, "3", None, True])
def test_what_is_no_row_is_refused(row):
    space = parabolt.load_problem("pco4-cpu").space
    with pytest.raises(
        ProposalError, match=r"^Proposes proposed row .*: expected one of the 80 rows"
    ):
        proposing(row)(space, repeats="allow").ask()


def test_a_repeated_row_is_refused_where_repeats_are_to_be_avoided():
    space = parabolt.load_problem("pco4-cpu").space
    optimizer = proposing(5)(space)
    assert optimizer.ask() == space.candidates[5]
    with pytest.raises(ProposalError, match=r"expected one of the 79 rows of 80 .*repeats: avoid"):
        optimizer.ask()
    allowed = proposing(5)(space, repeats="allow")
    assert allowed.ask() == allowed.ask()


@pytest.mark.parametrize("row", [-1, 5])
def test_the_contract_catches_it(row):
    class Contract(OptimizerContract):
        def make_optimizer(self, space, **options):
            return proposing(row)(space, **options)

    with pytest.raises(ProposalError):
        Contract().test_asks_for_candidates_only()
