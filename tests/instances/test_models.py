import json

import pytest

from parabolt.errors import InstanceError, UnknownNameError
from parabolt.instances.models import load_model, model_names, model_source, parse_config
from parabolt.instances.specs import ModelShape

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "vocab_size": 128256,
}


def test_a_config_gives_the_shape_of_the_catalogue():
    assert parse_config(json.dumps(LLAMA), origin="x") == load_model("llama3-8b")


def test_the_cards_shapes_are_there():
    shapes = {
        (m.n_layers, m.hidden_size, m.ffn_size) for m in (load_model(n) for n in model_names())
    }
    assert {(32, 4096, 11008), (40, 5120, 17408), (64, 5120, 25600)} <= shapes
    assert all(len(model_source(name)) > 10 for name in model_names())


def test_gpt2_names_and_its_plain_tied_mlp():
    text = json.dumps(
        {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}
    )
    assert parse_config(text, origin="x") == ModelShape(
        n_layers=12,
        n_heads=12,
        hidden_size=768,
        ffn_size=3072,
        vocabulary=50257,
        is_gated=False,
        is_tied=True,
    )


def test_the_text_part_of_a_multimodal_model():
    text = json.dumps({"model_type": "vlm", "vision_config": {}, "text_config": LLAMA})
    assert parse_config(text, origin="x") == load_model("llama3-8b")


def test_a_file(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert load_model(str(path)).n_layers == 32
    with pytest.raises(InstanceError, match="cannot read model file"):
        load_model(str(tmp_path / "none.json"))
    with pytest.raises(UnknownNameError, match="did you mean 'qwen3-32b'"):
        load_model("qwen3-32")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": None}, "x: expected num_hidden_layers or n_layer"),
        ({"num_hidden_layers": 0}, "x: n_layers: expected a positive whole number, got 0"),
        ({"hidden_size": -4096}, "hidden_size: expected a positive whole number, got -4096"),
        ({"num_attention_heads": 30}, "n_heads: expected a divisor of hidden_size 4096, got 30"),
        ({"num_key_value_heads": 5}, "n_kv_heads: expected a divisor of the 32 heads, got 5"),
        ({"num_local_experts": 8}, "expected a dense transformer, got a mixture of experts"),
        ({"tie_word_embeddings": "no"}, "is_tied: expected true or false, got 'no'"),
        ({"vocab_size": 1.5}, "vocabulary: expected a positive whole number, got 1.5"),
    ],
)
def test_a_bad_config_gives_one_clear_error(change, message):
    with pytest.raises(InstanceError, match=message):
        parse_config(json.dumps({**LLAMA, **change}), origin="x")


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_no_json_object(text):
    with pytest.raises(InstanceError, match="x: expected"):
        parse_config(text, origin="x")
