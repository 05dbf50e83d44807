"""Stages with layers of their own, by hand and against equal ones.

The model has 12 layers of 11.4 million parameters, and two embedding tables of 50 million.
"""

from dataclasses import replace

import numpy as np
import pytest

from parabolt.costmodel.predictor import CostModel
from parabolt.costmodel.step_time import TIME_TERMS
from parabolt.costmodel.terms.memory import MEMORY_TERMS
from parabolt.instances.model_shape import ModelShape
from parabolt.instances.specs import Cluster, Workload
from parabolt.planner.plan import make_plan
from parabolt.planner.request import plan_instance
from parabolt.space.configuration import Configuration

MODEL = ModelShape(
    n_layers=12, n_heads=10, n_kv_heads=2, hidden_size=1000, ffn_size=3000, vocabulary=50_000
)
EVEN = Configuration(dp=2, pp=4, bucket=64)


def layout(*configurations, recomputation="chunk"):
    work = Workload(500, 64, micro_batch_size=2, recomputation=recomputation)
    return CostModel(plan_instance(MODEL, Cluster(8, 2, 80), work)).layout(configurations)


@pytest.mark.parametrize(
    ("first", "last", "pp", "chunks", "layers", "chunk_layers", "millions"),
    [
        (0, 0, 4, 1, 3, 3, 3 * 11.4 + 50),
        (2, 2, 4, 1, 4, 4, 2 * 11.4 + 50),  # the ends have most parameters, the middle most layers
        (0, 0, 2, 2, 6, 3, 6 * 11.4 + 50),
        (5, 7, 2, 1, 7, 7, 7 * 11.4 + 50),
        (0, 3, 4, 1, 3, 3, 3 * 11.4 + 50),
        (1, 1, 3, 1, 10, 10, 10 * 11.4),  # 114 million are more than an end with a table
        (3, 3, 3, 2, 6, 3, 6 * 11.4 if 6 * 11.4 > 3 * 11.4 + 50 else 3 * 11.4 + 50),
        (5, 7, 2, 2, 7, 4, 7 * 11.4 + 50),  # chunks of 4 and 3
    ],
)
def test_the_heaviest_stage(first, last, pp, chunks, layers, chunk_layers, millions):
    x = layout(
        Configuration(dp=2, pp=pp, chunks=chunks, first_layers=first, last_layers=last, bucket=64)
    )
    assert (x.stage_layers[0], x.chunk_layers[0]) == (layers, chunk_layers)
    assert x.stage_parameters[0] == pytest.approx(1e6 * millions)


@pytest.mark.parametrize("recomputation", ["none", "layer", "chunk"])
def test_an_even_share_that_is_stated_changes_nothing(recomputation):
    stated = [replace(EVEN, first_layers=3), replace(EVEN, first_layers=3, last_layers=3)]
    x = layout(EVEN, *stated, recomputation=recomputation)
    for term in (*TIME_TERMS, *MEMORY_TERMS):
        assert len(set(np.broadcast_to(term.of(x), 3).tolist())) == 1, term.name


def test_time_is_that_of_the_stage_with_most_layers():
    x = layout(EVEN, replace(EVEN, first_layers=2, last_layers=2))
    by_name = {term.name: term.of(x) for term in TIME_TERMS}
    assert by_name["matmul"][1] / by_name["matmul"][0] == pytest.approx(4 / 3)


def test_llama_3_405b_is_planned_with_uneven_stages():
    """126 layers do not split over 8 stages; 15 at each end and 16 in the middle do."""
    from parabolt.instances.models import load_model
    from parabolt.planner.request import parse_cluster

    knobs = {"tp": (8,), "pp": (8,), "zero": (1,), "first_layers": (15,), "last_layers": (15,)}
    instance = plan_instance(
        load_model("llama3-405b"), parse_cluster("64x8 h100"),
        Workload(8192, 256, micro_batch_size=1, recomputation="layer"), knobs=knobs,
    )  # fmt: skip
    plan = make_plan(instance, max_risk=1.0)
    assert plan.n_candidates > 0
    for entry in plan.entries:
        assert (entry.configuration.pp, entry.configuration.first_layers) == (8, 15)
        # 6 x 405.8e9 FLOP per token with a fourth forward pass: 25 to 55 % of 512 peaks of 989e12.
        share = 8 * 405.8e9 * entry.tokens_per_s / (512 * 989e12)
        assert 0.2 < share < 0.6
    assert not any("uneven" in text for text in plan.assumptions)
