"""Optimizers that learn from other instances, worked by hand."""

import numpy as np
import pytest

import parabolt
from parabolt.costmodel.calibration.evidence import Evidence
from parabolt.errors import OptionError
from parabolt.instances.catalogue import load_instance
from parabolt.optimizers.gp.fit import fit_gp
from parabolt.optimizers.gp.gp import GaussianProcess
from parabolt.optimizers.registry import make_optimizer
from parabolt.optimizers.transfer.mean_rank import normalised_ranks
from parabolt.optimizers.transfer.ranking_weights import (
    leave_one_out,
    misrankings,
    misrankings_left_out,
    ranking_weights,
)
from parabolt.optimizers.transfer.rgpe import _combined
from parabolt.optimizers.transfer.shared_inputs import SharedInputs, nearest
from parabolt.outcome import Outcome, Outcomes, Status
from parabolt.space.configuration import Configuration
from parabolt.testing import OptimizerContract

NAMES = ("best-of-history", "mean-rank", "rgpe")


def trials(name, *rows):
    """Trials of an instance: (tp, pp, micro-batch, ZeRO) and throughput, None for a failure."""
    instance = load_instance(name)
    configurations = [configuration(instance, *knobs) for knobs, _ in rows]
    outcomes = [Outcome(Status.FAILED) if y is None else Outcome.ok(y) for _, y in rows]
    return Evidence(instance, configurations, Outcomes.of(outcomes))


def configuration(instance, tp, pp, micro_batch, zero):
    dp = instance.cluster.n_gpus // (tp * pp)
    return Configuration(dp=dp, tp=tp, pp=pp, bucket=25, zero=zero, micro_batch=micro_batch)


def space_of(name, *candidates):
    """An instance with these candidates only."""
    instance = load_instance(name)
    wanted = [configuration(instance, *knobs) for knobs in candidates]
    return parabolt.SearchSpace(instance, instance.encoding.encode(wanted))


def knobs(configuration):
    c = configuration
    return c.tp, c.pp, c.micro_batch, int(c.zero)


def asked(optimizer, n):
    return [knobs(configuration) for configuration in optimizer.ask(n)]


def table_of(name):
    table = parabolt.load_table(name)
    return Evidence(table.instance, table.space.encoded, table.outcomes)


class TestWithHistory(OptimizerContract):
    """The contract holds where trials of other instances are given."""

    name: str

    @pytest.fixture(params=(*NAMES, "parabolt"), autouse=True)
    def _name(self, request):
        request.instance.name = request.param

    def make_optimizer(self, space, **options):
        past = [table_of("uscale-8b-8"), table_of("uscale-80b-8")]
        return make_optimizer(self.name, space, **{"history": past, **options})


def test_nearest_by_hand():
    points = np.array([[0.0, 0.0], [1.0, 1.0]])
    among = np.array([[0.0, 0.5], [0.5, 0.0], [1.0, 0.9]])
    assert nearest(points, among).tolist() == [0, 2]  # of two equally near the first


def test_an_equal_layout_on_more_gpus_is_the_nearest():
    wanted = [(2, 2, 4, 1), (4, 1, 2, 0), (8, 1, 1, 0)]
    space = space_of("uscale-8b-64", (4, 1, 1, 0), (2, 2, 4, 0), *wanted, (16, 1, 1, 0))
    past = trials("uscale-8b-8", *((knobs, 1.0) for knobs in wanted))
    inputs = SharedInputs.of(space, [past])
    rows = nearest(inputs.past[0], inputs.candidates)
    assert [knobs(space.candidates[row]) for row in rows] == wanted
    # tp, pp, micro-batch and ZeRO vary, the rest does not: sequence parallelism is on where tp > 1.
    assert inputs.candidates.shape == (6, 4)
    # tp from 2 to 16, pp from 1 to 2, 1 to 4 sequences, ZeRO 0 and 1.
    assert inputs.candidates[4].tolist() == pytest.approx([2 / 3, 0, 0, 0])


def test_accumulation_is_compared_by_the_size_of_a_micro_batch():
    """pco32: dp 32 leaves 8,192 tokens, in one or two micro-batches; uscale: 8 or 2 sequences."""
    table = parabolt.load_table("pco32")
    rows = table.space.encoded[:1]
    own = Evidence(table.instance, rows, table.outcomes.take(np.array([0])))
    assert own.layout.micro_tokens[0] == own.layout.rank_tokens[0] / own.layout.n_micro[0]
    other = trials("uscale-8b-8", ((2, 1, 8, 0), 1.0), ((2, 1, 2, 0), 1.0))
    inputs = SharedInputs.of(parabolt.load_problem("uscale-8b-16").space, [other])
    n_doublings = np.log2(256)  # micro-batches of 1 to 256 sequences are asked for
    difference = np.ptp(inputs.past[0], axis=0)
    assert difference[difference > 0].tolist() == pytest.approx([2.0 / n_doublings])


def test_columns_of_a_table_with_every_knob():
    """pco64, worked out from its configurations: 2^18 tokens an iteration, pp x accum batches."""
    space = parabolt.load_problem("pco64").space
    rows = [
        [
            np.log2(c.tp), np.log2(c.pp), np.log2(c.cp), np.log2(c.chunks),
            np.log2(2**18 / (c.dp * c.cp) / (c.pp * c.grad_accum)), np.log2(c.bucket), c.sp > 1,
            {0: 1.0, 2: 2.0, 3: 3.0}[int(c.zero)],  # stage 0 shards the optimizer here
        ]
        for c in space.candidates
    ]  # fmt: skip
    expected = np.array(rows, dtype=float)
    spread = np.ptp(expected, axis=0)
    varies = spread > 0
    expected = (expected - expected.min(axis=0))[:, varies] / spread[varies]
    inputs = SharedInputs.of(space, [])
    assert inputs.candidates.shape == expected.shape
    assert inputs.candidates == pytest.approx(expected)


def test_best_of_history_by_hand():
    past = [
        trials("uscale-1b-32", ((1, 1, 8, 0), 1.0), ((1, 2, 2, 0), 0.5)),  # 3 doublings away
        trials("uscale-8b-8", ((4, 2, 1, 0), 3.0), ((2, 2, 4, 1), 5.0), ((8, 1, 1, 0), None)),  # 2
        trials("uscale-8b-16", ((2, 4, 1, 0), 1.0), ((4, 4, 2, 0), 9.0), ((4, 1, 2, 0), 5.0)),  # 1
    ]
    expected = [
        (4, 4, 2, 0), (2, 2, 4, 1), (1, 1, 8, 0),  # the best of each, the most similar first
        (4, 1, 2, 0), (4, 2, 1, 0), (1, 2, 2, 0),  # the second best
        (2, 4, 1, 0),
    ]  # fmt: skip
    space = space_of("uscale-8b-32", (8, 2, 8, 0), *expected[::-1])
    optimizer = make_optimizer("best-of-history", space, history=past)
    assert asked(optimizer, 8) == [*expected, (8, 2, 8, 0)]  # then what nothing is said of


def test_ranks_by_hand():
    outcomes = [Outcome.ok(4.0), Outcome.ok(2.0), Outcome.ok(2.0), Outcome(Status.FAILED)]
    assert normalised_ranks(Outcomes.of(outcomes)).tolist() == [0.0, 0.5, 0.5, 1.0]
    assert normalised_ranks(Outcomes.of(outcomes[:1])).tolist() == [0.0]


def test_mean_rank_by_hand():
    a, b, c = (2, 2, 4, 1), (4, 1, 2, 0), (2, 1, 1, 0)
    past = [
        trials("uscale-8b-8", (a, 3.0), (b, 2.0), (c, None)),  # ranks 0, 1/2, 1
        trials("uscale-8b-32", (a, None), (b, 2.0), (c, 1.0)),  # ranks 1, 0, 1/2
    ]
    space = space_of("uscale-8b-16", c, a, b)
    # Means: a 1/2, b 1/4, c 3/4.
    assert asked(make_optimizer("mean-rank", space, history=past), 3) == [b, a, c]


@pytest.mark.parametrize("name", ["best-of-history", "mean-rank"])
def test_an_order_is_gone_through_once_before_repeats(name):
    space = parabolt.load_problem("uscale-8b-8").space
    past = [table_of("uscale-8b-16")]
    optimizer = make_optimizer(name, space, history=past, repeats="allow")
    first = [optimizer.ask() for _ in range(len(space))]
    assert len(set(first)) == len(space)
    assert optimizer.ask() in space.candidates


def test_losses_by_hand():
    y = np.array([1.0, 2.0, 3.0])
    # The last two are ranked the wrong way round: two ordered pairs of nine.
    assert misrankings(np.array([[1.0, 3.0, 2.0], [10.0, 20.0, 30.0]]), y).tolist() == [2.0, 0.0]
    # Equal observations rank nothing: pairs of the first and the last, and of the second and the
    # last are left, and the second of them is wrong, both ways round.
    ties = np.array([1.0, 1.0, 2.0])
    assert misrankings(np.array([[1.0, 3.0, 2.0]]), ties).tolist() == [2.0]
    assert misrankings(np.array([[1.0, 3.0, 2.0]]), np.ones(3)).tolist() == [0.0]
    # Left out, the second is 3, which is not below the third's y = 3, though its y = 2 is.
    assert misrankings_left_out(np.array([[1.0, 3.0, 2.0]]), y).tolist() == [1.0]


@pytest.mark.parametrize(
    ("bases", "target", "weights"),
    [
        ([[1, 3], [1, 0]], [2, 2], [0.25, 0.75, 0.0]),  # a tie is shared
        ([[2, 2]], [2, 3], [0.5, 0.5]),  # a tie with the target is the target's
        ([[3, 1]], [1.5, 1.5], [0.0, 1.0]),  # median 2 above 1.5: dropped
        ([], [1, 2], [1.0]),
    ],
)
def test_weights_by_hand(bases, target, weights):
    losses = np.array(bases, dtype=float).reshape(-1, 2)
    assert ranking_weights(losses, np.array(target, dtype=float)).tolist() == weights


def test_leaving_one_out_is_a_posterior_without_it():
    rng = np.random.default_rng(0)
    X, y = rng.random((7, 2)), rng.normal(3.0, 2.0, 7)
    gp, _ = fit_gp(X, y)
    mean, std = leave_one_out(gp)
    for i in range(7):
        rest = np.arange(7) != i
        others = GaussianProcess(X[rest], y[rest], gp.hyper, gp.standardization)
        assert (mean[i], std[i]) == pytest.approx([v[0] for v in others.predict(X[i : i + 1])])


def test_an_ensemble_by_hand():
    mean, std = _combined(
        np.array([0.25, 0.75]),
        [np.array([1.0])] * 1 + [np.array([3.0])],
        [np.array([2.0]), np.array([4.0])],
    )
    assert (mean[0], std[0]) == pytest.approx((2.5, np.sqrt(0.25 + 9.0)))


def speed(c):
    """A made-up throughput that the layout alone decides."""
    return 1.0 + np.log2(c.micro_batch) - 0.5 * np.log2(c.tp) - 0.3 * np.log2(c.pp)


def of_function(name, f):
    space = parabolt.load_problem(name).space
    ys = [10.0 + f(c) for c in space.candidates]
    return Evidence(space.instance, space.encoded, Outcomes.of([Outcome.ok(y) for y in ys]))


def test_rgpe_trusts_the_instance_that_ranks_alike():
    past = [
        of_function("uscale-8b-8", speed),
        of_function("uscale-8b-32", lambda c: -speed(c)),
    ]
    space = parabolt.load_problem("uscale-8b-16").space
    optimizer = make_optimizer("rgpe", space, history=past, seed=1)
    for number in range(8):
        asked = optimizer.ask()
        if number < 3:
            assert optimizer.weights.tolist() == [0.5, 0.5, 0.0]
        optimizer.tell(asked, Outcome.ok(20.0 + 3.0 * speed(asked)))
    optimizer.ask()
    alike, reverse, own = optimizer.weights
    assert reverse == 0.0
    assert alike + own == pytest.approx(1.0)
    assert alike > 0.0


def test_the_unit_of_throughput_changes_nothing_for_rgpe():
    past = [of_function("uscale-8b-8", speed), of_function("uscale-8b-32", lambda c: -speed(c))]
    space = parabolt.load_problem("uscale-8b-16").space
    sequences = []
    for unit in (1.0, 1000.0):
        optimizer = make_optimizer("rgpe", space, history=past, seed=1)
        sequence = []
        for _ in range(8):
            sequence.append(optimizer.ask())
            optimizer.tell(
                sequence[-1], Outcome.ok(unit * (20.0 + np.sin(3 * speed(sequence[-1]))))
            )
        sequences.append(sequence)
        assert optimizer.weights[-1] > 0.0, "its own model counts"
    assert sequences[0] == sequences[1]


def test_rgpe_without_history_is_logeic():
    problem = parabolt.load_problem("uscale-8b-8")
    found = []
    for name in ("rgpe", "logeic"):
        optimizer = make_optimizer(name, problem.space, seed=4)
        sequence = []
        for _ in range(14):
            sequence.append(optimizer.ask())
            optimizer.tell(sequence[-1], problem.evaluate(sequence[-1]))
        found.append(sequence)
    assert found[0] == found[1]


@pytest.mark.parametrize("name", parabolt.optimizer_names())
def test_every_optimizer_takes_a_history_of_others_only(name):
    space = parabolt.load_problem("uscale-8b-8").space
    other = table_of("uscale-8b-16")
    assert make_optimizer(name, space, history=[other]).past == (other,)
    with pytest.raises(OptionError, match="history: expected trials of other instances, got some"):
        make_optimizer(name, space, history=[table_of("uscale-8b-8")])


def test_n_trials_is_checked():
    with pytest.raises(OptionError, match="n_trials: expected a positive whole number, got 0"):
        make_optimizer("rgpe", parabolt.load_problem("uscale-8b-8").space, n_trials=0)


class Asks:
    """Not one of ours: it is told what it has a parameter for."""

    def __init__(self, space, seed, history=()):
        self.space, self.history = space, history

    def ask(self):
        return self.space.candidates[len(self.history)]

    def tell(self, configuration, outcome):
        pass


def test_an_object_with_ask_and_tell_may_have_history_too():
    space = parabolt.load_problem("uscale-8b-8").space
    past = [table_of("uscale-8b-16"), table_of("uscale-8b-32")]
    assert space.row(make_optimizer(Asks, space, history=past).ask()) == 2
    assert space.row(make_optimizer(Asks, space).ask()) == 0
