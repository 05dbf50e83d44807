"""tp = pp = cp = dp = 1 is the hand-worked single GPU."""

import numpy as np
import pytest

from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.costmodel.predictor import CostModel
from parabolt.costmodel.step_time import TIME_TERMS
from parabolt.costmodel.terms.memory import MEMORY_TERMS
from parabolt.instances.model_shape import ModelShape
from parabolt.instances.specs import Cluster, Workload
from parabolt.planner.request import plan_instance
from parabolt.space.configuration import Configuration

MODEL = ModelShape(
    n_layers=10, n_heads=8, hidden_size=1000, ffn_size=4000, vocabulary=50_000, is_gated=False
)
CLUSTER = Cluster(1, 1, 80, peak_bf16_tflops=100, hbm_gb_per_s=1000)
WORK = Workload(sequence_length=500, batch_size=8, micro_batch_size=2)
ONE = Configuration(bucket=256)
COMMUNICATION = (
    "tensor_bandwidth",
    "tensor_sync",
    "context_bandwidth",
    "context_sync",
    "context_contention",
    "pipeline_bandwidth",
    "pipeline_sync",
    "data_bandwidth",
    "data_skew",
    "zero2_bandwidth",
    "zero2_span",
    "zero2_buckets",
    "zero3_bandwidth",
    "zero3_layers",
)


def terms(instance, which):
    model = CostModel(instance)
    layout = model.layout([ONE])
    return {term.name: float(term.of(layout)[0]) for term in which}


def test_time_by_hand():
    time = terms(plan_instance(MODEL, CLUSTER, WORK), TIME_TERMS)
    # A layer has 4 h^2 + 8 h^2 = 12e6 parameters; an iteration 4000 tokens; 3 forward-equivalents.
    assert time["matmul"] == pytest.approx(3 * 2 * 12e6 * 10 * 4000 / 100e12)
    # Causal: half of 4 S h per token and layer; the backward pass is 2.5 forward passes.
    assert time["attention"] == pytest.approx(3.5 * 2 * 500 * 1000 * 10 * 4000 / 100e12)
    assert time["logits"] == pytest.approx(6 * 50_000 * 1000 * 4000 / 100e12)
    # 4 micro-batches read 12e6 weights; widths 2 h, 2 h, 2 x 4 h, written and read once, 2 bytes.
    assert time["kernel_io"] == pytest.approx(3 * 10 * 2 * (4 * 12e6 + 4000 * 2 * 12_000) / 1e12)
    # 120e6 in layers and two tables of 50e6: 2 x 12 + 4 + 2 bytes each.
    assert time["optimizer"] == pytest.approx(220e6 * 30 / 1e12)
    communication = {
        name for name in time if name.startswith(("tensor", "context", "pipeline", "data", "zero"))
    }
    assert communication == {"tensor_shards", *COMMUNICATION}
    assert all(time[name] == 0.0 for name in communication)
    assert time["bubble"] == 0.0


def test_memory_by_hand():
    memory = terms(plan_instance(MODEL, CLUSTER, WORK), MEMORY_TERMS)
    assert memory["weights"] == 2 * 220e6
    assert memory["gradients"] == 4 * 220e6
    assert memory["optimizer_states"] == 12 * 220e6
    # 1000 tokens per micro-batch; 2 h + 3 h + 3 h + 4 h in + 4 h out, 2 bytes each, 10 layers.
    assert memory["activations"] == 10 * 1000 * 2 * 16_000
    assert memory["residuals"] == 10 * 1000 * 4 * 1000
    assert memory["logits"] == 1000 * 50_000 * 10
    assert memory["checkpoints"] == memory["gathered_weights"] == memory["bucket_buffers"] == 0.0


def test_predictions_are_the_sums_of_the_terms():
    instance = plan_instance(MODEL, CLUSTER, WORK)
    model = CostModel(instance)
    explanation = model.explain(ONE)
    prediction = model.predict([ONE])
    assert explanation.step_time_s == pytest.approx(prediction.step_time_s[0])
    assert explanation.peak_memory_gib == pytest.approx(prediction.peak_memory_gib[0])
    time_s, memory_gib = model.point([ONE])
    assert time_s == pytest.approx(prediction.step_time_s)
    assert memory_gib == pytest.approx(prediction.peak_memory_gib)
    coefficients = np.exp(Calibration.prior().time.mean)
    raw = terms(instance, TIME_TERMS)
    assert explanation.time_s["matmul"] == pytest.approx(coefficients[0] * raw["matmul"])


def test_the_bucket_unit_is_a_million_parameters():
    instance = plan_instance(MODEL, CLUSTER, WORK)
    assert CostModel(instance).layout([ONE]).bucket[0] == 256e6
