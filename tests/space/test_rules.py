import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabolt.errors import InvalidConfigurationError
from parabolt.instances.catalogue import load_instance
from parabolt.space.configuration import Configuration
from parabolt.space.configurations import Configurations

#: (instance, configuration, the rule it breaks and nothing else, words of the reason)
BROKEN = [
    ("pco32", "dp=16 bucket=64", "gpu_count", "16 x 1 x 1 x 1 = 16, expected the 32 GPUs"),
    ("pco32", "dp=16 tp=2 sp=4 bucket=64", "sequence_parallel", "sp 4 does not divide tp 2"),
    ("pco32", "dp=16 pp=2 zero=2 bucket=64", "zero_without_pipeline", "ZeRO stage 2 .* pp is 2"),
    ("pco32", "dp=32 chunks=2 bucket=64", "chunks_with_pipeline", "chunks 2 needs pipeline stages"),
    ("pco32", "dp=8 pp=4 chunks=2 bucket=64", "interleaving_cap", "4 x 2 is more than the 4"),
    ("pco64", "dp=4 pp=16 chunks=8 bucket=64", "layers_divisible allowed_chunks", "64 layers"),
    ("pco32", "dp=4 tp=8 bucket=64", "tensor_parallel_in_host allowed_tp", "more than the 4 GPUs"),
    ("pco64", "tp=2 pp=8 cp=4 bucket=64", "allowed_dp", "dp 1 is not among 2, 4"),
    ("pco32", "dp=32 bucket=1024", "allowed_bucket", "bucket 1024 is not among 64, 128, 256, 512"),
    ("pco32", "dp=4 cp=8 bucket=64", "allowed_cp", "cp 8 is not among 1, 2, 4"),
    ("pco16", "dp=8 cp=2 bucket=64", "allowed_cp", "cp 2 is not among 1"),
    ("pco16", "dp=2 pp=8 chunks=4 bucket=64", "interleaving_cap", "8 x 4 is more than the 16"),
    ("pco32", "dp=32 bucket=64 grad_accum=2", "allowed_grad_accum", "grad_accum 2 is not among 1"),
]

NAMES = ("dp", "tp", "pp", "cp", "sp", "bucket", "zero", "chunks", "grad_accum")


@pytest.mark.parametrize(("instance", "text", "names", "reason"), BROKEN)
def test_each_rule_rejects_in_words(instance, text, names, reason):
    instance, configuration = load_instance(instance), Configuration.parse(text)
    broken = [rule.name for rule in instance.rules if not rule.holds(configuration)]
    assert broken == names.split()
    with pytest.raises(InvalidConfigurationError, match=reason):
        instance.check(configuration)


def test_heads_must_divide():
    from parabolt.space.rules import tensor_parallel_heads

    rule = tensor_parallel_heads(20)
    assert rule.holds(Configuration(tp=4, bucket=64))
    assert not rule.holds(Configuration(tp=8, bucket=64))
    assert "tp 8 does not divide the 20" in rule.reason(Configuration(tp=8, bucket=64))


def test_all_reasons_are_given_at_once():
    with pytest.raises(InvalidConfigurationError, match=r"ZeRO stage 2.*; .*chunks 8 is not among"):
        load_instance("pco32").check(Configuration(dp=16, pp=2, zero=2, bucket=64, chunks=8))


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 9), min_size=1, max_size=20))
def test_columns_and_single_configurations_agree(levels):
    sizes = [
        [(0, 2, 3)[level % 3] if name == "zero" else 1 << level for name, level in
         zip(NAMES, row, strict=True)]
        for row in levels
    ]  # fmt: skip
    columns = Configurations({name: np.array(sizes)[:, i] for i, name in enumerate(NAMES)})
    for rule in load_instance("pco64").rules:
        whole = np.broadcast_to(rule.holds(columns), len(sizes))
        single = [
            bool(rule.holds(Configuration(**dict(zip(NAMES, row, strict=True))))) for row in sizes
        ]
        assert whole.tolist() == single
