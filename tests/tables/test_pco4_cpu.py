"""The table that was measured with parabolt's own tools: export, card and embedded copy agree."""

import json
from pathlib import Path

import numpy as np

import parabolt
from parabolt.instances.search_space import SearchSpace
from parabolt.tables.sources import locate
from parabolt.tables.table import Table
from parabolt.trials.spec.file import load_spec

FOLDER = Path(__file__).parents[2] / "data" / "pco4-cpu"


def test_export_folder_and_embedded_copy_are_one_table():
    embedded = parabolt.load_table("pco4-cpu")
    export = Table.from_csv(FOLDER / "sweep.csv", embedded.instance)
    located = locate(FOLDER)
    assert embedded.content_hash == export.content_hash == located.load().content_hash
    assert len(located.verify().findings) == 0
    assert located.card is not None


def test_every_configuration_of_the_lattice_was_measured():
    table = parabolt.load_table("pco4-cpu")
    lattice = SearchSpace.lattice(table.instance)
    assert np.array_equal(table.space.encoded, lattice.encoded)
    assert set(table.data.column("source_feasible").to_pylist()) == {"measured"}


def test_memory_tells_what_fits():
    """The limit and the measure are one quantity, so what finished stayed below the capacity."""
    table = parabolt.load_table("pco4-cpu")
    outcomes = table.outcomes
    assert 0 < (~outcomes.is_feasible).sum() < len(table) / 2
    assert np.array_equal(outcomes.memory_margin < 0, outcomes.is_feasible)
    for row in np.flatnonzero(outcomes.is_feasible):
        per_gpu = json.loads(table.data.column("peak_mem_per_gpu")[int(row)].as_py())
        assert len(per_gpu) == 4
        assert max(per_gpu) == table.data.column("peak_mem")[int(row)].as_py()


def test_throughput_is_that_of_the_steps():
    table = parabolt.load_table("pco4-cpu")
    spec = load_spec(FOLDER / "spec.toml")
    mean, std = (table.data.column(f"throughput_{what}").to_numpy() for what in ("mean", "std"))
    for row in np.flatnonzero(table.is_feasible):
        t = np.array(json.loads(table.data.column("all_time_steps")[int(row)].as_py()))
        assert len(t) == spec.trial.timed_steps
        assert np.isclose(mean[row], 1 / t.mean(), rtol=1e-12)
        assert np.isclose(std[row], (1 / t).std(ddof=1), rtol=1e-12)


def test_it_is_a_problem_that_optimizers_can_be_tried_on():
    problem = parabolt.load_problem("pco4-cpu")
    optimizer = parabolt.make_optimizer("random", problem.space, seed=0)
    for _ in range(len(problem.space)):
        configuration = optimizer.ask()
        optimizer.tell(configuration, problem.evaluate(configuration))
    assert optimizer.recommend() == problem.optimum.configuration
