"""Every family by its parameter count; what is not understood is refused."""

import json
from pathlib import Path

import pytest

from parabolt.errors import InstanceError
from parabolt.instances.config_json import FAMILIES, parse_config
from parabolt.instances.model_shape import Experts, LatentAttention, ModelShape
from parabolt.instances.models import load_model, model_names

#: Sizes from the publishers' `config.json`, and the published number of parameters.
CONFIGS = json.loads((Path(__file__).parents[1] / "data" / "model_configs.json").read_text())
LLAMA = CONFIGS["llama3-8b"]["config"]
DEEPSEEK = CONFIGS["deepseek-v3"]["config"]


def parsed(config):
    return parse_config(json.dumps(config), origin="x")


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_are_the_published_ones_within_one_percent(name):
    shape = parsed(CONFIGS[name]["config"])
    assert shape.n_parameters == pytest.approx(CONFIGS[name]["parameters"], rel=0.01)


def test_every_family_has_a_case():
    assert {case["config"]["model_type"] for case in CONFIGS.values()} == set(FAMILIES)


@pytest.mark.parametrize("name", sorted(set(CONFIGS) & set(model_names())))
def test_a_config_gives_the_shape_of_the_catalogue(name):
    assert parsed(CONFIGS[name]["config"]).n_parameters == load_model(name).n_parameters


@pytest.mark.slow
@pytest.mark.needs("transformers", "torch")
@pytest.mark.parametrize(
    "name", sorted(set(CONFIGS) - {"kimi-k2"})
)  # its class is not in the library
def test_parameters_are_those_of_the_library_that_ships_the_models(name):
    import torch
    import transformers

    config = dict(CONFIGS[name]["config"])
    made = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(made)
    n = sum(parameter.numel() for parameter in model.parameters())
    assert parsed(CONFIGS[name]["config"]).n_parameters == pytest.approx(n, rel=0.01)


def test_deepseek_v3_by_hand():
    shape = parsed(DEEPSEEK)
    assert shape.experts == Experts(256, 8, 2048, shared_ffn_size=2048, n_dense_layers=3)
    assert shape.latent_attention == LatentAttention(512, 128, 64, 128, q_rank=1536)
    assert shape.n_mtp_layers == 1
    # Queries 1536 (7168 + 128 192); keys and values 7168 (512 + 64) and 512 128 256; output.
    attention = 48_758_784 + 4_128_768 + 16_777_216 + 117_440_512
    assert shape.attention_parameters == attention
    expert = 3 * 7168 * 2048
    layers = 61 * attention + 3 * 3 * 7168 * 18432 + 58 * (257 * expert + 7168 * 256)
    assert shape.n_parameters == layers + 2 * 129280 * 7168
    assert shape.n_parameters - shape.n_active_parameters == 58 * 248 * expert


def test_every_second_layer_with_experts():
    shape = ModelShape(9, 8, 64, 256, vocabulary=100, experts=Experts(4, 1, 32, every=2))
    assert shape.n_expert_layers == 4
    assert (
        shape.n_parameters
        == 9 * 4 * 64**2 + 5 * 3 * 64 * 256 + 4 * (4 * 3 * 64 * 32 + 64 * 4) + 2 * 100 * 64
    )


def test_windows_of_the_layers_that_have_them():
    gemma = parsed(CONFIGS["gemma3-27b"]["config"])
    assert (gemma.window, gemma.n_windowed_layers) == (1024, 52)
    oss = parsed(CONFIGS["gpt-oss-20b"]["config"])
    assert (oss.window, oss.n_windowed_layers) == (128, 12)
    assert parsed(CONFIGS["qwen2.5-7b"]["config"]).window is None


def test_gpt2_names_and_its_plain_tied_mlp():
    assert parsed(CONFIGS["gpt2-124m"]["config"]) == ModelShape(
        12, 12, 768, 3072, vocabulary=50257, is_gated=False, is_tied=True
    )


def test_the_text_part_of_a_multimodal_model():
    text = {"model_type": "vlm", "vision_config": {}, "text_config": LLAMA}
    assert parsed(text) == load_model("llama3-8b")
    assert parsed({**LLAMA, "text_config": None}) == load_model("llama3-8b")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": None}, "x: expected num_hidden_layers or n_layer"),
        ({"num_hidden_layers": 0}, "x: n_layers: expected a positive whole number, got 0"),
        (
            {"hidden_size": -4096},
            "hidden_size: expected a whole number from 0 .*, got -4096",
        ),
        ({"num_attention_heads": 30}, "n_heads: expected a divisor of hidden_size 4096, got 30"),
        ({"num_key_value_heads": 5}, "n_kv_heads: expected a divisor of the 32 heads, got 5"),
        ({"num_local_experts": 8}, "num_local_experts: expected a llama without experts, got '8'"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings: expected true or false, got 'no'"),
        ({"vocab_size": 1.5}, "vocab_size: expected a whole number .*, got 1.5"),
        ({"vocab_size": None}, "x: expected vocab_size, got none of them"),
        ({"kv_lora_rank": 512}, "kv_lora_rank: expected a llama without latent attention"),
        ({"is_encoder_decoder": True}, "expected a llama without an encoder"),
        ({"model_type": "ernie4_5_moe"}, "model_type: expected one of bloom, .*got 'ernie4_5_moe'"),
        ({"model_type": "bert"}, "got 'bert'"),
        ({"model_type": "gpt_bigcode"}, "got 'gpt_bigcode'"),
        ({"model_type": "persimmon"}, "got 'persimmon'"),
        ({"model_type": "cohere"}, "got 'cohere'"),
        ({"model_type": "nemotron_h"}, "layers_block_type: expected the kind of each layer"),
        (
            {"model_type": "nemotron_h", "hybrid_override_pattern": "M*X"},
            "hybrid_override_pattern: expected mamba, attention, mlp or moe, got 'X'",
        ),
        ({"head_dim": True}, "head_dim: expected a whole number from 0 to .*, got True"),
        ({"n_shared_experts": "x"}, "n_shared_experts: expected a whole number"),
        ({"model_type": None}, "got None"),
        ({"model_type": ["llama"]}, r"got \['llama'\]"),
    ],
)
def test_what_is_not_understood_is_refused(change, message):
    with pytest.raises(InstanceError, match=message):
        parsed({**LLAMA, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kv_lora_rank": None}, "kv_lora_rank: expected a whole number, got None"),
        ({"num_experts_per_tok": 300}, "n_active: expected at most the 256 experts, got 300"),
        (
            {"first_k_dense_replace": 61},
            "n_dense_layers: expected fewer than the 61 layers, got 61",
        ),
        (
            {"moe_intermediate_size": "2k"},
            "moe_intermediate_size: expected a whole number .*, got '2k'",
        ),
    ],
)
def test_bad_parts_are_refused(change, message):
    with pytest.raises(InstanceError, match=message):
        parsed({**DEEPSEEK, **change})


def test_layers_of_a_kind_that_is_not_known_are_refused():
    """Else a model with chunked or linear attention would be planned as one with full attention."""
    mistral = {**LLAMA, "model_type": "mistral", "sliding_window": 4096}
    kinds = ["sliding_attention"] * 8 + ["full_attention"] * 24
    assert parsed({**mistral, "layer_types": kinds}).n_windowed_layers == 8
    with pytest.raises(InstanceError, match="got 'chunked_attention'"):
        parsed({**mistral, "layer_types": [*kinds[1:], "chunked_attention"]})


@pytest.mark.parametrize("text", ["{", "[]", "3", "[" * 100_000])
def test_no_json_object(text):
    with pytest.raises(InstanceError, match="x: expected"):
        parse_config(text, origin="x")
