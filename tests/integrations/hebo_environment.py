"""What test_hebo.py runs where HEBO is installed."""

import random
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hebo.optimizers.general import GeneralBO
from hebo.optimizers.hebo import HEBO

import parabolt
from parabolt.experiments.manifest import manifest
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
from parabolt.experiments.study import OptimizerChoice, Study
from parabolt.integrations.box import CandidateBox
from parabolt.integrations.hebo import Objective, design_space
from parabolt.optimizers.registry import make_optimizer, optimizer_class
from parabolt.outcome import Outcome, Status
from parabolt.testing import OptimizerContract

ROOT = Path(__file__).parents[2]


def points(problem, rows):
    box = CandidateBox(problem.space)
    return pd.DataFrame([box.levels_of(row) for row in rows])


def test_the_environment_is_that_of_the_extra():
    assert np.__version__.startswith("1.24.")
    assert not Path(parabolt.__file__).is_relative_to(ROOT)


def test_the_page(tmp_path):
    blocks = runpy.run_path(str(ROOT / "tests" / "docs" / "test_code_blocks.py"))
    blocks["test_blocks_run"]("how-to/hebo.md", tmp_path)


class TestContract(OptimizerContract):
    n_evaluations = 11  # one of them by the model, which takes seconds

    def make_optimizer(self, space, **options):
        return make_optimizer("hebo", space, **options)


def test_the_design_space_is_the_box(problem):
    space = design_space(problem.space)
    box = CandidateBox(problem.space)
    assert list(space.paras) == list(box.levels)
    ends = zip(space.opt_lb.tolist(), space.opt_ub.tolist(), strict=True)
    assert list(ends) == list(box.levels.values())
    np.random.seed(0)  # noqa: NPY002 - HEBO samples from the global generator
    drawn = space.sample(500)
    assert {(drawn[name].min(), drawn[name].max()) for name in drawn} == set(box.levels.values())
    everything = points(problem, range(len(problem.space)))
    there, _ = space.transform(everything)
    assert np.array_equal(there.numpy(), problem.space.encoded)


def test_losses_and_margins(problem):
    objective = Objective(problem, with_constraint=True)
    values = objective(points(problem, range(len(problem.space))))
    outcomes = problem.table.outcomes
    assert all(placed.is_candidate for placed in objective.last_placed)
    assert np.array_equal(values[:, 0], -np.nan_to_num(outcomes.throughput))
    assert np.array_equal(values[:, 1], outcomes.memory_margin)
    assert np.array_equal(values[:, 1] <= 0, problem.table.is_feasible)
    assert values[:, 0].argmin() == problem.space.row(problem.optimum.configuration)
    assert np.array_equal(Objective(problem)(points(problem, [3, 1])), values[[3, 1], :1])


def test_off_the_candidates(pco32):
    objective = Objective(pco32)
    box = CandidateBox(pco32.space)
    corner = {name: high for name, (_, high) in box.levels.items()}
    (value,) = objective(pd.DataFrame([corner]))
    (placed,) = objective.last_placed
    assert not placed.is_candidate
    assert value == -pco32.evaluate(placed.configuration).throughput
    with pytest.raises(parabolt.InvalidConfigurationError, match="expected a value for each of dp"):
        objective(pd.DataFrame([{"dp_log2": 1}]))


@pytest.mark.parametrize("make", [HEBO, lambda space: GeneralBO(space, num_constr=1, evo_iters=9)])
def test_hebo_takes_what_the_objective_gives(make, pco64):
    optimizer = make(design_space(pco64.space))
    objective = Objective(pco64, with_constraint=isinstance(optimizer, GeneralBO))
    optimizer.rand_sample = 4
    for _ in range(5):
        proposed = optimizer.suggest()
        optimizer.observe(proposed, objective(proposed))
    assert len(optimizer.X) == 5


def test_how_a_run_that_died_is_told(pco64):
    optimizer = make_optimizer("hebo", pco64.space, n_initial=2)
    space = pco64.space
    told = (Outcome.ok(0.25), Outcome.ok(0.5), Outcome.oom(), Outcome(Status.CRASHED))
    for row, outcome in enumerate(told[:2]):
        optimizer.tell(space.candidates[row], outcome)
    optimizer.ask()
    for row, outcome in enumerate(told[2:], start=2):
        optimizer.tell(space.candidates[row], outcome)
    assert optimizer._guest.y.ravel().tolist() == [-0.25, -0.5, 0.0]
    assert optimizer._guest.X.to_numpy(dtype=float).tolist() == space.encoded[:3].tolist()


def test_the_generators_of_python_and_pytorch_have_no_say(pco64):
    """As `TestContract` requires of numpy's."""
    asked = []
    for seed in (0, 1):
        optimizer = make_optimizer("hebo", pco64.space, n_initial=3, seed=7)
        for configuration in pco64.space.candidates[:300:100]:
            optimizer.tell(configuration, pco64.evaluate(configuration))
        random.seed(seed)
        torch.manual_seed(seed)
        before, torch_before = random.getstate(), torch.get_rng_state()
        asked.append(optimizer.ask())
        assert random.getstate() == before
        assert torch.equal(torch.get_rng_state(), torch_before)
    assert asked[0] == asked[1]


def test_a_search_finds_more_than_its_initial_design(pco32):
    run = execute(pco32, RunKey.of(pco32, "hebo", 0, Protocol(n_evaluations=3)))
    found = np.where(run.outcomes.is_feasible, run.outcomes.throughput, 0.0)
    assert found.max() > found[: run.n_initial].max()


def test_its_name_and_its_libraries(pco32):
    assert optimizer_class("hebo").name == "hebo"
    study = Study(problems=("pco32",), optimizers=(OptimizerChoice("hebo", "hebo"),), seeds=(0,))
    assert {"HEBO", "torch", "gpytorch", "pymoo"} <= set(manifest(study, [pco32])["packages"])
    with pytest.raises(parabolt.OptionError, match="hebo: expected no ask_time_limit_s"):
        make_optimizer("hebo", pco32.space, ask_time_limit_s=1.0)
