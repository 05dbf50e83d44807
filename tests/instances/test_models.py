import json

import pytest

from parabolt.errors import InstanceError, UnknownNameError
from parabolt.instances.models import load_model, model_names, model_source

#: Billions of parameters as published.
PUBLISHED = {
    "bloom-176b": 176.25, "deepseek-v2": 236, "deepseek-v3": 671, "gemma3-1b": 1.0,
    "gemma3-12b": 11.77, "glm-4.5": 355, "gpt-oss-120b": 116.8, "gpt3-175b": 175,
    "llama-7b": 6.7, "llama3-8b": 8.0, "mistral-7b": 7.24,
    "llama2-13b": 13.02, "llama2-70b": 68.98, "llama3-405b": 405.8, "llama3-70b": 70.55,
    "llama3.2-1b": 1.236, "megatron-145b": 145.6, "megatron-1t": 1008, "megatron-530b": 529.6,
    "mixtral-8x22b": 141, "mpt-30b": 29.96, "mpt-7b": 6.65,
    "nemotron3-nano": 31.6, "nemotron3-super": 120.6, "nemotron4-15b": 15.6,
    "nemotron4-340b": 341, "olmo2-32b": 32.2, "phi-4": 14.66, "qwen2.5-72b": 72.7,
    "qwen3-0.6b": 0.6, "qwen3-235b-a22b": 235, "qwen3-30b-a3b": 30.5, "qwen3-4b": 4.02,
    "qwen3-8b": 8.2,
    "qwen3-14b": 14.8, "qwen3-32b": 32.8,
}  # fmt: skip
#: Billions that work on a token, as published.
ACTIVE = {
    "deepseek-v2": 21.4, "deepseek-v3": 37.6, "mixtral-8x7b": 12.9, "nemotron3-super": 12.7,
    "qwen3-235b-a22b": 22.2,
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_the_published_ones(name):
    assert load_model(name).n_parameters / 1e9 == pytest.approx(PUBLISHED[name], rel=0.01)


@pytest.mark.parametrize("name", ACTIVE)
def test_active_parameters_are_the_published_ones(name):
    assert load_model(name).n_active_parameters / 1e9 == pytest.approx(ACTIVE[name], rel=0.01)


def test_the_cards_shapes_are_there():
    shapes = {
        (m.n_layers, m.hidden_size, m.ffn_size) for m in (load_model(n) for n in model_names())
    }
    assert {(32, 4096, 11008), (40, 5120, 17408), (64, 5120, 25600)} <= shapes
    assert all(len(model_source(name)) > 10 for name in model_names())


def test_a_file(tmp_path):
    path = tmp_path / "config.json"
    config = {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 9,
        "num_attention_heads": 32, "num_hidden_layers": 32,
    }  # fmt: skip
    path.write_text(json.dumps(config), encoding="utf-8")
    assert load_model(str(path)).n_layers == 32
    with pytest.raises(InstanceError, match="cannot read model file"):
        load_model(str(tmp_path / "none.json"))
    with pytest.raises(UnknownNameError, match="did you mean 'qwen3-32b'"):
        load_model("qwen3-32")
