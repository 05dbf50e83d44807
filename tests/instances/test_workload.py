"""What a workload states, and a document that states parts of an instance in words."""

from dataclasses import replace

import pytest

from parabolt.costmodel.predictor import CostModel
from parabolt.costmodel.resolved_instance import ResolvedInstance
from parabolt.errors import InstanceError, InvalidConfigurationError, UnknownNameError
from parabolt.instances.catalogue import instance_document, instance_from_document, load_instance
from parabolt.instances.cluster_words import parse_cluster
from parabolt.instances.models import load_model
from parabolt.instances.specs import Workload
from parabolt.space.configuration import Configuration

WORDS = {
    "name": "x",
    "model": "llama3-8b",
    "cluster": "3x8 h100",
    "workload": {"sequence_length": 4096, "tokens_per_iteration": 96 * 4096},
    "knobs": {"dp": [24], "bucket": [64]},
}


def test_an_instance_in_words():
    found = instance_from_document(WORDS, origin="x")
    assert found.model == load_model("llama3-8b")
    assert found.cluster == parse_cluster("3x8 h100")
    assert found.cluster.n_gpus == 24
    assert found.workload == Workload(4096, 96, tokens_per_iteration=96 * 4096)
    assert instance_from_document(instance_document(found), origin="x") == found


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": "llama4"}, UnknownNameError, "unknown model 'llama4'"),
        ({"cluster": "3 h100"}, InstanceError, "cluster: expected HOSTSxGPUS"),
        ({"cluster": "3x8 h101"}, UnknownNameError, "unknown GPU 'h101'"),
        (
            {"workload": {"sequence_length": 4096, "tokens_per_iteration": 4097}},
            InstanceError,
            "tokens_per_iteration: expected whole sequences of 4096 tokens, got 4097",
        ),
        ({"workload": {"sequence_length": 4096}}, InstanceError, "batch_size"),
    ],
)
def test_words_that_name_nothing(change, error, message):
    with pytest.raises(error, match=message):
        instance_from_document({**WORDS, **change}, origin="x")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sequences": "short"}, "sequences: expected one of full, packed, padded, got 'short'"),
        ({"document_tokens": 100}, "expected packed or padded sequences .* got 100 of full"),
        ({"sequences": "packed", "document_tokens": 5000}, "at most their 4096 tokens, got 5000"),
        ({"adapter_rank": 16}, "adapter_rank: expected is_frozen = true beside it, got 16 alone"),
        ({"is_frozen": 1}, "is_frozen: expected true or false, got 1"),
        ({"vocabulary_multiple": 0}, "vocabulary_multiple: expected a positive whole number"),
    ],
)
def test_a_workload_that_cannot_be(fields, message):
    with pytest.raises(InstanceError, match=message):
        Workload(4096, 96, **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"is_frozen": True, "adapter_rank": 16}, "is_frozen: the cost model does not describe"),
        ({"sequences": "packed", "document_tokens": 500}, "describes full ones only yet, got pack"),
    ],
)
def test_the_cost_model_refuses_what_it_does_not_describe(fields, message):
    pco32 = load_instance("pco32")
    with pytest.raises(InstanceError, match=message):
        CostModel(replace(pco32, workload=replace(pco32.workload, **fields)))
    hybrid = replace(pco32, model=load_model("nemotron3-nano"))
    with pytest.raises(InstanceError, match="state_space: the cost model does not describe them"):
        CostModel(hybrid)


def test_the_vocabulary_is_padded_to_a_multiple():
    found = instance_from_document(WORDS, origin="x")
    work = replace(found.workload, vocabulary_multiple=1024)
    # 128,256 entries are 125.25 times 1,024.
    assert ResolvedInstance.of(replace(found, workload=work)).vocabulary == 126 * 1024
    assert ResolvedInstance.of(found).vocabulary == 128_256


@pytest.mark.parametrize(
    ("cluster", "allowed"),
    [
        ("1x8 a100-80gb", {"fp16", "bf16"}),
        ("1x8 h100", {"fp16", "bf16", "fp8"}),
        ("1x8 b200", {"fp16", "bf16", "fp8", "mxfp8", "nvfp4"}),
    ],
)
def test_a_number_format_needs_its_units(cluster, allowed):
    knobs = {"dp": [8], "bucket": [64], "precision": ["fp16", "bf16", "fp8", "mxfp8", "nvfp4"]}
    instance = instance_from_document({**WORDS, "cluster": cluster, "knobs": knobs}, origin="x")
    for word in knobs["precision"]:
        c = Configuration(dp=8, bucket=64, precision=word)
        if word in allowed:
            instance.check(c)
        else:
            with pytest.raises(InvalidConfigurationError, match=f"has no units for {word}"):
                instance.check(c)


def test_an_end_of_the_pipeline_may_have_a_chunk_with_fewer_layers():
    """Llama 3 405B: embedding and output count as a layer each, so 128 over 8 stages x 8 chunks."""
    knobs = {
        "pp": [8], "tp": [8], "dp": [1], "bucket": [64], "chunks": [8],
        "first_layers": [14, 15], "last_layers": [13, 15],
    }  # fmt: skip
    document = {**WORDS, "model": "llama3-405b", "cluster": "8x8 h100", "knobs": knobs}
    instance = instance_from_document(document, origin="x")
    both = Configuration(
        tp=8, pp=8, bucket=64, chunks=8, first_layers=15, last_layers=15, micro_batch=0
    )
    instance.check(both)  # 15 + 6 x 16 + 15 layers; a chunk has two, the outermost two have one
    # 14 + 6 x 16.5 + 13 do not split; 14 layers are no 7 x 2 and a rest that is less than nothing.
    with pytest.raises(InvalidConfigurationError, match="126 layers do not split"):
        instance.check(replace(both, first_layers=14, last_layers=13))
