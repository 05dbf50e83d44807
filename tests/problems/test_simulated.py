import pickle

import numpy as np
import pytest

import parabolt
from parabolt.errors import OptionError, TableError
from parabolt.instances.models import load_model
from parabolt.instances.specs import Workload
from parabolt.outcome import OOM_MARGIN, SOURCES, Source
from parabolt.planner.request import parse_cluster, plan_instance
from parabolt.problems.simulated import Effects, SimulatedProblem
from parabolt.tables.table import Table


@pytest.fixture
def problem():
    return SimulatedProblem(parabolt.load_instance("pco64"), seed=7)


def test_everything_is_marked_simulated(problem):
    assert problem.name == "simulated:pco64?seed=7"
    assert problem.instance.name == "simulated-pco64"
    assert problem.version == "simulated"
    ok = problem.table.is_feasible
    outcomes = problem.table.outcomes
    simulated = SOURCES.index(Source.SIMULATED)
    assert (outcomes.throughput_source[ok] == simulated).all()
    assert (outcomes.memory_source[ok] == simulated).all()
    assert "simulated" in problem.optimum.provenance
    assert set(problem.table.data.column("source_feasible").to_pylist()) == {"simulated"}


def test_the_seed_decides(problem):
    again = SimulatedProblem(parabolt.load_instance("pco64"), seed=7)
    other = SimulatedProblem(parabolt.load_instance("pco64"), seed=8)
    assert again == problem
    assert again.content_hash == problem.content_hash != other.content_hash
    assert pickle.loads(pickle.dumps(problem)).optimum == problem.optimum


def test_a_simulated_machine_has_an_address(problem):
    assert parabolt.load_problem("simulated:pco64?seed=7") == problem
    noisy = parabolt.load_problem("simulated:pco16?noise=0.05&seed=3")
    assert noisy.name == "simulated:pco16?seed=3&noise=0.05"
    assert (noisy.seed, noisy.effects) == (3, Effects(noise=0.05))
    assert parabolt.load_problem(noisy.name) == noisy
    plain = parabolt.load_problem("simulated:pco16?seed=3")
    assert plain.content_hash != noisy.content_hash
    assert parabolt.load_problem("simulated:pco16") == SimulatedProblem(
        parabolt.load_instance("pco16"), seed=0
    )


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "simulated:pco16?sed=3",
            "each option once and among seed, coefficient_scale, .*got sed=3",
        ),
        ("simulated:pco16?seed=3&seed=4", "each option once"),
        ("simulated:pco16?seed=x", "simulated:pco16.seed=x: invalid literal"),
        ("simulated:pco16?seed=-1", "seed: expected a whole number >= 0, got -1"),
        ("simulated:pco16?noise=nan", "noise: expected a number >= 0, got nan"),
        ("simulated:pco17", "unknown instance 'pco17'"),
    ],
)
def test_addresses_that_cannot_be(address, message):
    with pytest.raises(parabolt.ParaboltError, match=message):
        parabolt.load_problem(address)


def test_the_table_keeps_the_cards_schema(problem, tmp_path):
    problem.table.to_parquet(tmp_path / "t.parquet")
    again = Table.from_parquet(tmp_path / "t.parquet", problem.instance)
    assert again.content_hash == problem.table.content_hash
    real = set(parabolt.load_table("pco64").data.column_names)
    assert real <= set(problem.table.data.column_names)


def test_it_looks_like_a_measured_table(problem):
    ok = problem.table.is_feasible
    assert 0.3 < ok.mean() < 0.95
    outcomes = problem.table.outcomes
    assert (outcomes.memory_margin[~ok] == OOM_MARGIN).all()
    # A hidden OOM: some run dies although its like, of the same peak, goes through.
    quiet = SimulatedProblem(
        parabolt.load_instance("pco64"),
        seed=7,
        effects=Effects(fragmentation=0.0, structure=0.0, noise=0.0, slow_share=0.0),
    )
    assert quiet.table.is_feasible.mean() != ok.mean()
    # Rows that differ only in a bucket that does nothing differ by noise alone.
    names = [knob.name for knob in problem.knobs]
    keep = [i for i, name in enumerate(names) if name != "bucket"]
    zero = problem.space.encoded[:, names.index("zero")] == 0
    rows = np.flatnonzero(zero & ok)
    families = np.unique(problem.space.encoded[rows][:, keep], axis=0, return_inverse=True)[1]
    log_t = np.log(outcomes.throughput[rows])
    spread = [np.ptp(log_t[families.ravel() == f]) for f in range(families.max() + 1)]
    assert 0.002 < np.median(spread) < 0.02


def test_no_effects_give_the_specifications():
    effects = Effects(0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    instance = parabolt.load_instance("pco32")
    problem = SimulatedProblem(instance, seed=0, effects=effects)
    found = parabolt.CostModel(instance).predict(problem.space.encoded)
    ok = problem.table.is_feasible
    assert problem.table.outcomes.throughput[ok] == pytest.approx(found.throughput[ok])
    assert problem.table.outcomes.peak_memory_gib[ok] == pytest.approx(found.peak_memory_gib[ok])


@pytest.mark.parametrize(
    ("model", "cluster"), [("llama3-8b", "1x8 h100-80gb"), ("gpt3-175b", "2048x8 h100-80gb")]
)
def test_any_size(model, cluster):
    workload = Workload(8192, 2048, micro_batch_size=1, recomputation="layer")
    instance = plan_instance(load_model(model), parse_cluster(cluster), workload)
    problem = SimulatedProblem(instance, seed=0)
    assert problem.instance.cluster.n_gpus in (8, 16384)
    assert problem.optimum.value > 0


def test_what_cannot_be():
    instance = parabolt.load_instance("pco32")
    with pytest.raises(OptionError, match="seed: expected a whole number >= 0, got -1"):
        SimulatedProblem(instance, seed=-1)
    with pytest.raises(OptionError, match="noise: expected a number >= 0, got -1"):
        Effects(noise=-1)
    tiny = plan_instance(
        load_model("gpt3-175b"),
        parse_cluster("1x8 a100-40gb"),
        Workload(8192, 64, micro_batch_size=1),
    )
    with pytest.raises(TableError, match="expected a feasible row, got none"):
        SimulatedProblem(tiny, seed=0)
