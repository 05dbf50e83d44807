"""The lattice that is not listed, against the one that is; what rules remove, against counts."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parabolt.instances.catalogue import load_instance
from parabolt.space.configuration import Configuration
from parabolt.space.knobs import KNOBS
from parabolt.space.lattice import enumerate_lattice
from parabolt.space.lazy_lattice import LazyLattice
from parabolt.space.removals import removals
from parabolt.space.rules import Rule, gpu_count, layers_divisible

NEUTRAL = {name: (knob.neutral,) for name, knob in KNOBS.items()} | {"bucket": (64,)}


def a_rule(knobs, divisor):
    """A rule over some knobs that means nothing: the sum of their values has a remainder."""
    return Rule(
        f"{'_'.join(knobs)}_{divisor}",
        knobs,
        lambda c: sum(getattr(c, name) for name in knobs) % divisor != 0,
        lambda c: f"{sum(getattr(c, name) for name in knobs)} is a multiple of {divisor}",
        is_definition=divisor == 5,
    )


NAMES = ("dp", "tp", "zero", "chunks", "recompute", "first_layers")
SIZES = {name: st.sets(st.integers(1, 3), min_size=1) for name in NAMES}
RULES = st.lists(
    st.builds(
        a_rule,
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple),
        st.integers(2, 5),
    ),
    max_size=5,
    unique_by=lambda rule: rule.name,
)


@settings(deadline=None)
@given(st.fixed_dictionaries(SIZES), RULES)
def test_every_number_is_the_configuration_that_listing_gives(sizes, rules):
    levels = NEUTRAL | {name: tuple(sorted(values)) for name, values in sizes.items()}
    listed = enumerate_lattice(levels, rules)
    lazy = LazyLattice(levels, rules)
    assert lazy.n == len(listed)
    assert list(lazy.at(np.arange(lazy.n))) == list(listed)


@settings(deadline=None)
@given(st.fixed_dictionaries(SIZES), RULES)
def test_what_each_rule_removes(sizes, rules):
    """Each configuration counts for the first rule that it breaks, definitions before all."""
    levels = NEUTRAL | {name: tuple(sorted(values)) for name, values in sizes.items()}
    expected, reasons = Counter(), {}
    for values in itertools.product(*(levels[name] for name in NAMES)):
        c = Configuration(**{**dict(zip(NAMES, values, strict=True)), "bucket": 64})
        if any(rule.is_definition and not rule.holds(c) for rule in rules):
            continue
        broken = next((r for r in rules if not r.is_definition and not r.holds(c)), None)
        if broken is not None:
            expected[broken.name] += 1
            reasons.setdefault(broken.name, Counter())[broken.reason(c)] += 1
    found = removals(levels, rules)
    assert {removal.rule: removal.n for removal in found} == expected
    assert {removal.rule: dict(removal.reasons) for removal in found} == reasons


@pytest.mark.parametrize("name", ["pco16", "pco32", "pco64", "uscale-8b-64"])
def test_the_built_in_instances(name):
    instance = load_instance(name)
    listed = enumerate_lattice(dict(instance.levels), instance.rules)
    lazy = LazyLattice(dict(instance.levels), instance.rules)
    assert lazy.at(np.arange(lazy.n)) == listed
    definitions = [rule for rule in instance.rules if rule.is_definition]
    n_removed = sum(removal.n for removal in removals(dict(instance.levels), instance.rules))
    assert LazyLattice(dict(instance.levels), definitions).n == len(listed) + n_removed


def test_reasons_in_words_with_their_numbers_worked_by_hand():
    """8 GPUs as dp x pp: pp = 1, 2, 4, 8, each with four buckets; 6 layers split over 1 and 2."""
    levels = NEUTRAL | {"dp": (1, 2, 4, 8), "pp": (1, 2, 4, 8), "bucket": (1, 2, 4, 8)}
    (found,) = removals(levels, [gpu_count(8), layers_divisible(6)])
    assert found.rule == "layers_divisible"
    assert found.n == 8
    assert found.reasons == (
        ("6 layers do not split over 4 stages", 4), ("6 layers do not split over 8 stages", 4),
    )  # fmt: skip
    assert str(found) == (
        "6 layers do not split over 4 stages: 4 configurations (8 for such reasons)"
    )
    assert found.as_dict()["reasons"][0]["n"] == 4
    assert removals(levels, [gpu_count(8)]) == ()


def test_counts_beyond_int64_are_exact():
    many = tuple(range(1, 1001))
    names = ("dp", "tp", "pp", "cp", "bucket", "chunks", "micro_batch", "first_layers")
    levels = NEUTRAL | dict.fromkeys(names, many)
    rule = Rule("even", ("last_layers", "first_layers"), lambda c: c.first_layers % 2 == 0, str)
    lazy = LazyLattice(levels, [rule])
    assert lazy.n == 1000**7 * 500
    last = lazy.at([lazy.n - 1])[0]
    assert {getattr(last, name) for name in names} == {1000}
    (found,) = removals(levels, [rule])
    assert found.n == 1000**7 * 500
    drawn = lazy.sample(50, np.random.default_rng(0))
    assert len(drawn) == 50
    assert (drawn.first_layers % 2 == 0).all()


def test_a_sample_is_distinct_in_order_and_even():
    instance = load_instance("pco64")
    lazy = LazyLattice(dict(instance.levels), instance.rules)
    everything = list(lazy.at(np.arange(lazy.n)))
    seen = Counter()
    for seed in range(300):
        drawn = list(lazy.sample(78, np.random.default_rng(seed)))
        assert drawn == sorted(set(drawn))
        seen.update(drawn)
    assert seen.keys() == set(everything)
    counts = np.array([seen[c] for c in everything])
    # Each is drawn 300 x 78 / 780 = 30 times on average, with a deviation of 5.2.
    assert 4.6 < counts.std() < 5.8
    assert list(lazy.sample(9999, np.random.default_rng(0))) == everything
    most = list(lazy.sample(779, np.random.default_rng(0)))
    assert most == sorted(set(most))
    assert len(most) == 779


def test_numbers_outside():
    instance = load_instance("pco32")
    lazy = LazyLattice(dict(instance.levels), instance.rules)
    for number in (-1, 392):
        with pytest.raises(IndexError, match="expected numbers from 0 to 391"):
            lazy.at([number])
    assert len(lazy.at([])) == 0


def test_a_rule_that_nothing_meets():
    levels = NEUTRAL | {"dp": (1, 2)}
    none = replace(gpu_count(64), is_definition=False)
    lazy = LazyLattice(levels, [none])
    assert lazy.n == 0
    assert len(lazy.sample(3, np.random.default_rng(0))) == 0
    fixed = LazyLattice(NEUTRAL, [none])
    assert fixed.n == 0
    assert LazyLattice(NEUTRAL, [gpu_count(1)]).n == 1
