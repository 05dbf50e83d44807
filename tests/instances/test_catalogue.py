import json
import pickle
from importlib import resources

import pytest

from parabolt.costmodel.predictor import CostModel
from parabolt.errors import InstanceError, UnknownNameError
from parabolt.instances.catalogue import (
    instance_document,
    instance_from_document,
    instance_names,
    instance_text,
    load_instance,
    parse_instance,
)
from parabolt.instances.model_shape import Experts, ModelShape
from parabolt.instances.specs import Cluster, Workload

TEXT = (resources.files("parabolt.instances") / "catalogue" / "pco32.toml").read_text()


def test_built_in_instances():
    names = instance_names()
    assert names[:4] == ["pco16", "pco32", "pco4-cpu", "pco64"]
    assert len(names) == 4 + 21
    assert all(name.startswith("uscale-") for name in names[4:])
    pco16 = load_instance("pco16")
    assert pco16.model == ModelShape(
        n_layers=32, n_heads=32, hidden_size=4096, ffn_size=11008, vocabulary=32000
    )
    assert pco16.cluster == Cluster(n_gpus=16, n_hosts=2, memory_gib=80, gpu="h100-80gb")
    assert pco16.workload == Workload(
        sequence_length=2048,
        batch_size=512,
        tokens_per_iteration=512 * 512,
        recomputation="chunk",
    )
    assert pco16.cluster.gpus_per_host == 8
    assert load_instance("pco64").cluster.gpus_per_host == 4


def test_an_instance_is_a_value():
    one, other = parse_instance(TEXT, origin="a"), parse_instance(TEXT, origin="b")
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(AttributeError):
        one.name = "x"


def test_an_instance_from_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.replace('"pco32"', '"mine"'), encoding="utf-8")
    assert load_instance(str(path)).name == "mine"
    with pytest.raises(InstanceError, match="cannot read instance file"):
        load_instance(str(tmp_path / "absent.toml"))


def test_unknown_name():
    with pytest.raises(UnknownNameError, match=r"unknown instance 'pco33'.*did you mean 'pco32'"):
        load_instance("pco33")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n_layers = 40", "n_layers = -40", r"\[model\] n_layers: expected a positive whole numb"),
        ("n_layers = 40", "n_layers = 4.5", "n_layers: expected a positive whole number, got 4.5"),
        ("n_layers = 40", "n_layers = true", "got True"),
        ("n_layers = 40", "", r"\[model\]: expected n_layers, got n_heads"),
        ("n_layers = 40", "n_layers = 40\nn_experts = 8", r"got n_experts"),
        ("n_hosts = 8", "n_hosts = 5", "expected a divisor of the 32 GPUs, got 5"),
        ("memory_gib = 96", "memory_gib = 0", "memory_gib: expected a positive number, got 0"),
        ("memory_gib = 96", "memory_gib = inf", "expected a positive number, got inf"),
        ("memory_gib = 96", 'memory_gib = "96"', "expected a positive number, got '96'"),
        ("tp = [1, 2, 4]", "tp = [0, 1]", "levels of tp: expected ascending .* positive whole"),
        ("tp = [1, 2, 4]", "tp = [2, 1]", r"got \[2, 1\]"),
        ("tp = [1, 2, 4]", "tp = []", r"got \[\]"),
        ("tp = [1, 2, 4]", "tp = 4", "tp: expected a list of sizes, got 4"),
        ("zero = [0, 2, 3]", "zero = [0, 4]", "levels of zero: .* each one of 0, 1, 2, 3"),
        ("bucket = [64, 128, 256, 512]", "", r"\[knobs\]: expected bucket, got dp"),
        ("[knobs]", "[knbos]", r"expected knobs, got name"),
        ('name = "pco32"', "name = 3", "name: expected a text, got 3"),
        ("[model]", "[model", "expected TOML"),
    ],
)
def test_a_bad_file_gives_one_clear_error(old, new, message):
    assert old in TEXT
    with pytest.raises(InstanceError, match=message):
        parse_instance(TEXT.replace(old, new), origin="x.toml")


MOE = """
name = "moe"
[model]
n_layers = 4
n_heads = 8
hidden_size = 512
ffn_size = 1024
[model.experts]
n_experts = 16
n_active = 2
ffn_size = 256
[cluster]
n_gpus = 8
n_hosts = 1
memory_gib = 80
[workload]
sequence_length = 4096
batch_size = 64
[knobs]
bucket = [256]
"""


def test_experts_are_a_table_of_the_model():
    instance = parse_instance(MOE, origin="x")
    assert instance.model.experts == Experts(16, 2, 256)
    with pytest.raises(InstanceError, match=r"x: \[model.experts\]: expected keys among .* got n$"):
        parse_instance(MOE.replace("n_active", "n = 1\nn_active"), origin="x")
    with pytest.raises(InstanceError, match=r"\[model.experts\] n_active: expected at most the 16"):
        parse_instance(MOE.replace("n_active = 2", "n_active = 17"), origin="x")


def test_what_the_cost_model_does_not_describe_it_refuses():
    with pytest.raises(InstanceError, match="experts: the cost model does not describe them yet"):
        CostModel(parse_instance(MOE, origin="x"))


def test_a_file_that_changed_is_read_again(tmp_path):
    path = tmp_path / "mine.toml"
    text = instance_text("pco64")
    path.write_text(text)
    first = load_instance(str(path))
    assert load_instance(str(path)) is first
    path.write_text(text.replace("n_layers = 64", "n_layers = 128"))
    assert load_instance(str(path)).model.n_layers == 128
    assert load_instance("pco64") is load_instance("pco64")


@pytest.mark.parametrize("name", instance_names())
def test_the_document_of_an_instance_is_read_back(name):
    instance = load_instance(name)
    document = json.loads(json.dumps(instance_document(instance)))
    assert instance_from_document(document, origin="x") == instance


def test_the_document_of_an_instance_with_everything():
    text = """
name = "all"
max_virtual_stages = 4
[model]
n_layers = 8
n_heads = 8
hidden_size = 512
ffn_size = 2048
n_kv_heads = 4
vocabulary = 32000
is_tied = true
[cluster]
n_gpus = 16
n_hosts = 2
memory_gib = 79.6
gpu = "h100-80gb"
inter_host_gb_per_s = 50.0
[workload]
sequence_length = 128
batch_size = 64
micro_batch_size = 2
recomputation = "layer"
[knobs]
dp = [1, 2, 4]
tp = [1, 2]
bucket = [2, 16]
zero = [0, 3]
"""
    instance = parse_instance(text, origin="x")
    document = json.loads(json.dumps(instance_document(instance)))
    assert document["knobs"] == {"dp": [1, 2, 4], "tp": [1, 2], "bucket": [2, 16], "zero": [0, 3]}
    assert "memory_gb" not in document["cluster"]
    assert instance_from_document(document, origin="x") == instance
