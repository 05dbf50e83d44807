"""What a user can say of a plan: knobs fixed and searched, any cluster, any framework's rules."""

from dataclasses import replace

import numpy as np
import pytest

from parabolt.costmodel.layout import DESCRIBED
from parabolt.errors import (
    InstanceError,
    InvalidConfigurationError,
    ParaboltError,
    UnknownNameError,
)
from parabolt.instances.catalogue import load_instance
from parabolt.instances.model_shape import Experts
from parabolt.instances.models import load_model
from parabolt.instances.specs import Workload
from parabolt.planner import plan as planning
from parabolt.planner.knob_words import parse_fixed, parse_knobs
from parabolt.planner.plan import CandidateSet, make_plan
from parabolt.planner.request import parse_cluster, plan_instance, plan_rules, replanned
from parabolt.space.knobs import KNOBS, Precision, Recompute
from parabolt.space.lattice import enumerate_lattice

WORK = Workload(4096, 96, micro_batch_size=1)
LLAMA = load_model("llama3-8b")


def instance(knobs=(), cluster="3x8 h100", model=LLAMA, work=WORK, **options):
    return plan_instance(model, parse_cluster(cluster), work, knobs=dict(knobs), **options)


def test_knobs_in_words():
    assert parse_knobs(["recompute,micro_batch=1,4,2", "tp=8"]) == {
        "recompute": (), "micro_batch": (1, 2, 4), "tp": (8,),
    }  # fmt: skip
    assert parse_knobs(["precision=bf16,nvfp4"]) == {"precision": (Precision.BF16, Precision.NVFP4)}
    assert parse_fixed(["tp=8 recompute=selective"]) == {
        "tp": (8,), "recompute": (Recompute.SELECTIVE,),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("read", "text", "error", "message"),
    [
        (parse_knobs, "tq=8", UnknownNameError, "unknown knob 'tq'"),
        (parse_knobs, "8", UnknownNameError, "unknown knob '8'"),
        (parse_knobs, "recompute,8", UnknownNameError, "unknown knob '8'"),
        (parse_knobs, "tp=x", InstanceError, "tp: expected a positive whole number, got 'x'"),
        (parse_knobs, "tp=0", InstanceError, "tp: expected a positive whole number, got 0"),
        (parse_knobs, "tp=1 tp=2", InstanceError, "expected each knob once, got tp twice"),
        (parse_knobs, "precision=fp7", InstanceError, "precision: expected one of fp16, bf16"),
        (parse_fixed, "tp=1,2", InstanceError, "tp: expected one value of a fixed knob, got 1, 2"),
        (parse_fixed, "tp", InstanceError, "tp: expected one value of a fixed knob, got none"),
    ],
)
def test_words_that_are_no_knobs(read, text, error, message):
    with pytest.raises(error, match=message):
        read([text])


@pytest.mark.parametrize("cluster", ["3x8 h100", "12x8 h100", "48x8 h100"])
def test_clusters_of_any_size(cluster):
    found = instance(cluster=cluster)
    n = found.cluster.n_gpus
    plan = make_plan(found, n_best=3)
    assert len(plan.entries) == 3
    for entry in plan.entries:
        c = entry.configuration
        assert c.dp * c.tp * c.pp * c.cp == n
    assert any(size % 3 == 0 for size in dict(found.levels)["dp"])


def test_the_largest_cluster_is_counted():
    work = Workload(8192, 2304, micro_batch_size=1)
    found = instance(cluster="288x8 h100", model=load_model("llama3-405b"), work=work)
    levels, rules = dict(found.levels), plan_rules(found)
    assert CandidateSet.of(found).n == len(enumerate_lattice(levels, rules)) > 100


def test_a_knob_is_fixed_and_another_searched():
    found = instance({"tp": (8,), "micro_batch": (), "pp": (1, 3)})
    levels = dict(found.levels)
    assert levels["tp"] == (8,)
    assert levels["pp"] == (1, 3)
    assert levels["micro_batch"] == (1, 2, 3, 4, 6, 8, 12, 16)
    assert found.workload.micro_batch_size is None
    plan = make_plan(found, n_best=50, max_risk=1.0)
    assert {entry.configuration.tp for entry in plan.entries} == {8}
    assert len({entry.configuration.micro_batch for entry in plan.entries}) > 2


def test_what_a_workload_can_say_is_said_there():
    fixed = instance({"micro_batch": (3,), "recompute": (Recompute.CHUNK,)})
    assert fixed.workload == replace(WORK, micro_batch_size=3, recomputation="chunk")
    assert dict(fixed.levels)["recompute"] == (Recompute.NONE,)
    searched = instance({"recompute": ()}, work=replace(WORK, recomputation="layer"))
    assert searched.workload.recomputation == "none"
    assert dict(searched.levels)["recompute"] == tuple(Recompute)


def test_a_zero_that_is_listed_shards_nothing_at_0():
    assert instance().is_optimizer_sharded
    assert not instance({"zero": (0,)}).is_optimizer_sharded
    assert instance({"zero": (1,)}).zero_stage(1) == 1
    work = replace(WORK, is_optimizer_sharded=True)
    assert instance({"zero": (0,)}, work=work).is_optimizer_sharded


@pytest.mark.parametrize(
    ("knobs", "cluster", "expected"),
    [
        ({"precision": ()}, "1x8 h100", (Precision.BF16, Precision.FP8)),
        ({"precision": ()}, "1x8 b200", tuple(Precision)[1:]),
        ({"ep": ()}, "1x8 h100", (1,)),
        ({"shard": ()}, "1x8 h100", (1, 2, 4, 8)),
        ({"first_layers": ()}, "1x4 h100", (0, 6, 7, 8, 14, 15, 16, 30, 31, 32)),
    ],
)
def test_values_that_are_searched_where_nobody_lists_them(knobs, cluster, expected):
    found = dict(instance(knobs, cluster=cluster).levels)
    assert found[next(iter(knobs))] == expected


def test_experts_are_spread_over_divisors_of_their_number():
    found = instance({"ep": ()}, model=load_model("qwen3-30b-a3b"))
    assert dict(found.levels)["ep"] == (1, 2, 4, 8, 16)


@pytest.mark.parametrize(
    ("knobs", "knob"),
    [
        ({"precision": (Precision.FP8,)}, "precision=fp8"),
        ({"recompute": (Recompute.SELECTIVE,)}, "recompute=selective"),
        ({"zero": (3,), "shard": (8,)}, "shard8"),
        ({"pp": (3,), "first_layers": (10,), "last_layers": (11,)}, "first_layers10"),
    ],
)
def test_what_the_cost_model_does_not_describe_is_one_line_and_no_figure(knobs, knob):
    """Stated and counted it is all the same."""
    found = instance(knobs)
    assert CandidateSet.of(found).n > 0
    if knobs.keys() <= set(DESCRIBED):
        assert make_plan(found).n_fitting >= 0
        return
    with pytest.raises(InvalidConfigurationError, match=f"^{knob}: expected a knob that the cost"):
        make_plan(found)


def test_the_rules_of_a_framework():
    by_bolt, by_torchtitan = (
        {
            (c.pp, c.zero, c.sp == c.tp)
            for c in enumerate_lattice(dict(i.levels), plan_rules(i))
        }
        for i in (instance(), instance(dialect="torchtitan"))
    )  # fmt: skip
    assert (2, 3, True) in by_torchtitan - by_bolt
    assert not any(not is_full for _, _, is_full in by_torchtitan)
    assert any(not is_full for _, _, is_full in by_bolt)


def test_tensor_parallelism_above_the_key_value_heads():
    """Llama 3 has 8: 16 ranks share them from core 0.16 on."""
    knobs = {"tp": (16,), "sp": (16,)}
    n_by_version = {
        version: CandidateSet.of(
            instance(knobs, cluster="6x8 h100", dialect=f"megatron-lm@{version}")
        ).n
        for version in ("0.14", "0.15", "0.16")
    }
    assert n_by_version["0.14"] == n_by_version["0.15"] == 0
    assert n_by_version["0.16"] > 0
    refused = instance(knobs, cluster="6x8 h100", dialect="megatron-lm@0.15")
    with pytest.raises(InstanceError, match="got none: tp 16 does not divide the 8 key-value head"):
        make_plan(refused)


def test_layers_that_do_not_split_are_counted_in_words():
    found = instance(
        {"zero": (1,), "chunks": (1,), "cp": (1,), "tp": (1,), "sp": (1,), "bucket": (256,)},
        cluster="4x8 h100", model=load_model("llama3-405b"), work=replace(WORK, batch_size=32),
    )  # fmt: skip
    # 32 GPUs as dp x pp: 126 layers split over 1 and 2 stages, and not over 4, 8, 16 and 32.
    candidates = CandidateSet.of(found)
    assert candidates.n == 2
    (removal,) = candidates.removals
    assert removal.n == 4
    assert ("126 layers do not split over 4 stages", 1) in removal.reasons


def test_an_instance_is_planned_with_other_values():
    pco32 = load_instance("pco32")
    found = replanned(pco32, {"tp": (2,), "micro_batch": (1,)})
    assert dict(found.levels)["tp"] == (2,)
    assert found.max_virtual_stages == pco32.max_virtual_stages
    assert found.workload.micro_batch_size == 1
    assert found.model == pco32.model
    assert replanned(pco32, {}) == pco32
    assert CandidateSet.of(found).n < CandidateSet.of(pco32).n


def test_of_very_many_configurations_some_are_drawn(monkeypatch):
    monkeypatch.setattr(planning, "MOST_COMPARED", 20)
    found = instance()
    plan = make_plan(found, max_risk=1.0)
    assert plan.n_compared == 20
    assert plan.n_candidates == CandidateSet.of(found).n > 20
    drawn = CandidateSet.of(found).lattice.sample(20, np.random.default_rng(0))
    assert {entry.configuration for entry in plan.entries} <= set(drawn)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("llama4 n_layers=3", "unknown model 'llama4'"),
        ("llama3-8b n_layer=3", "unknown figure of a model 'n_layer'"),
        ("llama3-8b n_layers=three", "n_layers: expected a whole number, got 'three'"),
        ("llama3-8b is_tied=1", "is_tied: expected true or false, got '1'"),
        ("llama3-8b expert.n_active=2", "unknown part of a model 'expert'"),
        ("llama3-8b experts.n_active=2", "experts: expected n_experts, ffn_size as well"),
        ("mixtral-8x7b experts.n_active=x", "n_active: expected a whole number, got 'x'"),
        ("n_layers=3 n_heads=8", "model: expected a name, or hidden_size, ffn_size; got"),
    ],
)
def test_a_model_in_words_that_is_none(text, message):
    with pytest.raises(ParaboltError, match=message):
        load_model(text)


def test_a_model_in_words():
    assert load_model("llama3-405b n_layers=7") == replace(load_model("llama3-405b"), n_layers=7)
    own = load_model("n_layers=78 n_heads=64 hidden_size=13824 ffn_size=55296 is_tied=true")
    assert (own.n_layers, own.hidden_size, own.is_tied) == (78, 13824, True)
    mixtral = load_model("mixtral-8x7b")
    four = load_model("mixtral-8x7b experts.n_active=4 vocabulary=9")
    assert four == replace(mixtral, vocabulary=9, experts=replace(mixtral.experts, n_active=4))
    moe = "experts.n_experts=8 experts.n_active=2 experts.ffn_size=512"
    assert load_model(f"llama3-8b {moe}").experts == Experts(8, 2, 512)


def test_what_no_framework_can_do_without():
    """ZeRO-3 with stages that do not divide 32 layers, tensor parallelism over two hosts."""
    knobs = {"tp": (16,), "pp": (3,), "zero": (3,)}
    found = instance(knobs, cluster="12x8 h100", dialect="any")
    lattice = enumerate_lattice(dict(found.levels), plan_rules(found))
    assert {(c.dp, c.tp, c.pp, c.cp, c.zero) for c in lattice} >= {(2, 16, 3, 1, 3)}
    assert CandidateSet.of(instance(knobs, cluster="12x8 h100")).n == 0


def test_stages_that_are_not_equal_are_said_to_count_as_equal():
    knobs = {"pp": (5,), "cp": (1,), "chunks": (1,), "zero": (3,)}
    uneven = instance(knobs, cluster="5x8 h100", dialect="torchtitan")
    assert make_plan(uneven, max_risk=1.0).assumptions[-1] == (
        "uneven stages counted as equal ones, such as 6.4 layers in each of 5 x 1"
    )
    even = instance({**knobs, "pp": (4,)}, cluster="4x8 h100", dialect="torchtitan")
    assert not any("uneven" in text for text in make_plan(even, max_risk=1.0).assumptions)


def test_what_is_recomputed_is_searched_as_so_many_workloads():
    """Each configuration has the figures of a plan whose workload recomputes as much."""
    knobs = {"recompute": (), "micro_batch": (1, 2), "zero": (3,), "cp": (1,), "pp": (1,)}
    found = make_plan(instance(knobs), n_best=500, max_risk=1.0)
    assert found.not_compared == ("recompute selective, which the cost model does not describe",)
    by_word = {}
    for word in ("none", "layer", "chunk"):
        of_word = {**knobs, "recompute": (KNOBS["recompute"].parse(word),)}
        by_word[word] = make_plan(instance(of_word), n_best=500, max_risk=1.0)
    assert found.n_compared == sum(plan.n_candidates for plan in by_word.values())
    assert found.n_compared == found.n_candidates * 3 // 4
    assert found.n_fitting == sum(plan.n_fitting for plan in by_word.values())
    expected = {
        (word, replace(entry.configuration, recompute=0)): entry.throughput
        for word, plan in by_word.items()
        for entry in plan.entries
    }
    told = {
        (
            KNOBS["recompute"].scale.word(entry.configuration.recompute),
            replace(entry.configuration, recompute=0),
        ): entry.throughput
        for entry in found.entries
    }
    assert told == expected
    throughput = [entry.throughput for entry in found.entries]
    assert throughput == sorted(throughput, reverse=True)
    best = found.entries[0]
    assert best.explanation.configuration == best.configuration
    assert best.as_dict()["explanation"]["configuration"] == best.as_dict()["configuration"]
    assert found.as_dict()["not_compared"] == list(found.not_compared)


def test_described_values_of_a_searched_knob_are_compared():
    found = make_plan(instance({"precision": ()}), n_best=50, max_risk=1.0)
    assert found.not_compared == ("precision fp8, which the cost model does not describe",)
    assert found.n_candidates == 2 * found.n_compared
    assert {entry.configuration.precision for entry in found.entries} == {Precision.BF16}
