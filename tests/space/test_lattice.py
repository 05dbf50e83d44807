import csv
import itertools
from pathlib import Path

import numpy as np
import pytest

import parabolt
from parabolt.errors import InvalidConfigurationError
from parabolt.instances.catalogue import load_instance
from parabolt.instances.search_space import SearchSpace
from parabolt.space.configuration import Configuration
from parabolt.space.knobs import KNOBS
from parabolt.space.lattice import enumerate_lattice

DATA = Path(__file__).parents[1] / "data"


def lattice(name):
    return SearchSpace.lattice(load_instance(name))


def test_pco64_lattice_is_the_published_candidate_set_in_order():
    table = parabolt.load_table("pco64")
    assert len(table) == 780
    assert np.array_equal(lattice("pco64").encoded, table.space.encoded)


def test_pco32_lattice_is_the_published_set_and_13_absent_rows_all_with_pp_8():
    ours, published = (
        list(lattice("pco32").candidates),
        list(parabolt.load_table("pco32").space.candidates),
    )
    absent = [c for c in ours if c not in set(published)]
    assert len(ours) == 392
    assert len(published) == 379
    assert len(absent) == 13
    assert {c.pp for c in absent} == {8}
    assert [c for c in ours if c not in set(absent)] == published


def test_pco16_lattice_has_944_rows_without_context_parallelism():
    space = lattice("pco16")
    assert len(space) == 944
    assert [k.name for k in space.instance.encoding.knobs] == [
        "dp", "tp", "pp", "sp", "bucket", "zero", "chunks", "grad_accum",
    ]  # fmt: skip
    assert {c.grad_accum for c in space.candidates} == {1, 2, 4, 8}
    assert {c.cp for c in space.candidates} == {1}


@pytest.mark.parametrize("name", ["pco16", "pco32", "pco64"])
def test_lattice_is_sorted_and_distinct(name):
    candidates = list(lattice(name).candidates)
    assert candidates == sorted(set(candidates))


@pytest.mark.parametrize(
    "name",
    ["pco32", *(pytest.param(name, marks=pytest.mark.slow) for name in ("pco16", "pco64"))],
)
def test_lattice_is_what_checking_every_combination_one_by_one_gives(name):
    instance = load_instance(name)
    levels = dict(instance.levels)
    valid = []
    for sizes in itertools.product(*levels.values()):
        configuration = Configuration(**dict(zip(KNOBS, sizes, strict=True)))
        try:
            instance.check(configuration)
        except InvalidConfigurationError:
            continue
        valid.append(configuration)
    assert valid == list(lattice(name).candidates)


def test_published_random_runs_evaluate_lattice_rows_only():
    spaces = {name: lattice(name) for name in ("pco32", "pco64")}
    with (DATA / "published_random.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        levels = [float(level) for level in row["levels"].split()]
        levels[6] = {0: 0, 2: 1, 3: 2}[int(levels[6])]
        assert spaces[row["problem"]].rows([levels])[0] >= 0


def test_no_rules_give_the_whole_product():
    levels = {name: [1] for name in KNOBS} | {"dp": [1, 2], "bucket": [64, 128], "zero": [0, 2]}
    found = enumerate_lattice(levels, ())
    assert len(found) == 8
    assert found.dp.tolist() == [1] * 4 + [2] * 4
    assert found.zero.tolist() == [0, 2] * 4
    assert found.tp.tolist() == [1] * 8
