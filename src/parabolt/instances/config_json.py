"""Model shapes from a Hugging Face `config.json`: the families that are understood, and no other.

A family that is not listed is an error, and so is a key that hints at a part that its family does
not have (experts, an encoder, state-space layers): a model is never planned as something else. Each
family is tested by its parameter count against the published one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from parabolt.documents import parse_json, shown
from parabolt.errors import InstanceError
from parabolt.instances.model_shape import Experts, LatentAttention, ModelShape, StateSpace
from parabolt.instances.validation import LARGEST_INT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Field of a shape, and its names in `config.json`.
_NAMES: dict[str, tuple[str, ...]] = {
    "n_layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "n_heads": ("num_attention_heads", "n_head"),
    "hidden_size": ("hidden_size", "n_embd", "n_embed"),
    "ffn_size": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    "n_kv_heads": ("num_key_value_heads",),
    "head_size": ("head_dim",),
    "vocabulary": ("vocab_size",),
    "is_tied": ("tie_word_embeddings",),
    "n_mtp_layers": ("num_nextn_predict_layers",),
}
_REQUIRED = ("n_layers", "n_heads", "hidden_size", "ffn_size", "vocabulary")

#: Parts of a key that hint at what a family may not have, and what that is.
_HINTS: dict[str, str] = {
    "expert": "experts",
    "moe": "experts",
    "lora_rank": "latent attention",
    "encoder": "an encoder",
    "mamba": "state-space layers",
    "ssm": "state-space layers",
    "linear_attention": "linear attention",
    "linear_num": "linear attention",
    "hybrid": "layers of several kinds",
    "block_configs": "layers of several kinds",
    "alibi_heads": "layers of several kinds",
}
#: Further keys that hold a number of something, and those that hold true or false.
_COUNTS = (
    "conv_kernel", "decoder_sparse_step", "experts_per_token", "first_k_dense_replace",
    "kv_lora_rank", "mamba_head_dim", "mamba_num_heads", "max_window_layers",
    "moe_intermediate_size", "moe_latent_size", "moe_shared_expert_intermediate_size", "n_groups",
    "n_routed_experts", "n_shared_experts", "num_experts", "num_experts_per_tok", "num_kv_heads",
    "num_local_experts", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
    "shared_expert_intermediate_size", "sliding_window", "sliding_window_pattern",
    "ssm_state_size", "v_head_dim",
)  # fmt: skip
_FLAGS = (
    "tie_word_embeddings", "use_sliding_window", "multi_query", "new_decoder_architecture",
)  # fmt: skip
#: Values that say that a part is absent.
_ABSENT: tuple[object, ...] = (None, False, 0, [], {})


@dataclass(frozen=True)
class _Family:
    """How the files of a `model_type` are read.

    Attributes:
        is_gated: Whether the feed-forward block has a gate.
        is_tied: Whether the embeddings are tied where the file does not say.
        ffn_factor: Inner width over hidden size where the file does not say.
        n_kv_heads: Gives the key-value heads from the file, where the key is another.
        head_size: Head size where the file does not say.
        parts: Gives further fields of the shape from the file.
        known: Parts of keys in `_HINTS` that the family has.
    """

    is_gated: bool = True
    is_tied: bool = False
    ffn_factor: int | None = None
    head_size: int | None = None
    n_kv_heads: Callable[[Mapping[str, Any]], int | None] | None = None
    parts: tuple[Callable[[Mapping[str, Any]], dict[str, Any]], ...] = ()
    known: frozenset[str] = field(default_factory=frozenset)


def _experts_of(*, n: str, active: str = "num_experts_per_tok", width: str, first: str = "",
                every: str = "", shared: str = "", shared_width: str = "",
                ) -> Callable[[Mapping[str, Any]], dict[str, Any]]:  # fmt: skip
    """Reads experts by the family's keys: `shared` counts experts, `shared_width` is a width."""

    def read(document: Mapping[str, Any]) -> dict[str, Any]:
        if not document.get(n):
            return {}
        size = _whole(document, width)
        in_all = document.get(shared_width) if shared_width else None
        if shared and document.get(shared):
            in_all = _whole(document, shared) * size
        return {
            "experts": Experts(
                n_experts=_whole(document, n),
                n_active=_whole(document, active),
                ffn_size=size,
                shared_ffn_size=in_all,
                n_dense_layers=document.get(first, 0) if first else 0,
                every=(document.get(every) or 1) if every else 1,
            )
        }

    return read


def _latent_attention(document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "head_size": None,
        "n_kv_heads": None,
        "latent_attention": LatentAttention(
            kv_rank=_whole(document, "kv_lora_rank"),
            nope_head_size=_whole(document, "qk_nope_head_dim"),
            rope_head_size=_whole(document, "qk_rope_head_dim"),
            value_head_size=_whole(document, "v_head_dim"),
            q_rank=document.get("q_lora_rank"),
        ),
    }


def _windows(document: Mapping[str, Any]) -> dict[str, Any]:
    """Sliding windows: of the layers that the file or its pattern names, or of all."""
    window, n_layers = document.get("sliding_window"), document.get("num_hidden_layers", 0)
    if window is None or document.get("use_sliding_window") is False:
        return {}
    if (types := document.get("layer_types")) is not None:
        if not isinstance(types, list) or len(types) != n_layers:
            raise InstanceError(f"layer_types: expected one for each of {n_layers} layers")
        kinds = ("sliding_attention", "full_attention")
        if unknown := [kind for kind in types if kind not in kinds]:
            raise InstanceError(
                f"layer_types: expected {' or '.join(kinds)}, got {shown(unknown[0])}"
            )
        n_windowed = types.count("sliding_attention")
    elif (pattern := document.get("sliding_window_pattern")) is not None:
        n_windowed = n_layers - n_layers // pattern
    else:
        n_windowed = n_layers - document.get("max_window_layers", 0)
    return {"window": window, "n_windowed_layers": n_windowed} if n_windowed else {}


def _falcon_kv_heads(document: Mapping[str, Any]) -> int | None:
    if document.get("new_decoder_architecture"):
        return int(document.get("num_kv_heads") or 0) or None
    return 1 if document.get("multi_query", True) else None


def _qwen_experts(document: Mapping[str, Any]) -> dict[str, Any]:
    if document.get("mlp_only_layers"):
        raise InstanceError("mlp_only_layers: expected none, got some; not described")
    return _experts_of(
        n="num_experts", width="moe_intermediate_size", every="decoder_sparse_step",
        shared_width="shared_expert_intermediate_size",
    )(document)  # fmt: skip


#: What a letter of `hybrid_override_pattern`, or a word of `layers_block_type`, stands for.
_MIXER, _ATTENTION = ("M", "mamba", "linear_attention"), ("*", "attention", "full_attention")
_MLP, _MOE = ("-", "mlp"), ("E", "moe")


def _nemotron_hybrid(document: Mapping[str, Any]) -> dict[str, Any]:
    """Layers of one part each: a state-space mixer, attention, or a feed-forward block."""
    key = "hybrid_override_pattern"
    layers = document.get(key) or document.get(key := "layers_block_type")
    if not isinstance(layers, (str, list)) or not layers:
        raise InstanceError(f"{key}: expected the kind of each layer, got {layers!r}")
    kinds = (_MIXER, _ATTENTION, _MLP, _MOE)
    if unknown := {str(layer) for layer in layers} - {word for kind in kinds for word in kind}:
        raise InstanceError(f"{key}: expected mamba, attention, mlp or moe, got {min(unknown)!r}")
    n_mixers, n_attention, n_dense, n_moe = (
        sum(layer in kind for layer in layers) for kind in kinds
    )
    found: dict[str, Any] = {
        "n_layers": len(layers),
        "state_space": StateSpace(
            n_mixers, n_attention, n_dense + n_moe,
            n_heads=_whole(document, "mamba_num_heads"),
            head_size=_whole(document, "mamba_head_dim"),
            state_size=_whole(document, "ssm_state_size"),
            n_groups=_whole(document, "n_groups"),
            conv_width=document.get("conv_kernel", 4),
        ),
    }  # fmt: skip
    if n_moe:
        found["experts"] = Experts(
            n_experts=_whole(document, "n_routed_experts"),
            n_active=_whole(document, "num_experts_per_tok"),
            ffn_size=_whole(document, "moe_intermediate_size"),
            shared_ffn_size=document.get("moe_shared_expert_intermediate_size"),
            n_dense_layers=n_dense,
            latent_size=document.get("moe_latent_size"),
        )
    return found


_EXPERT_KEYS = frozenset({"expert", "moe"})
_MIXTRAL = _experts_of(n="num_local_experts", width="intermediate_size")
_DEEPSEEK = _experts_of(
    n="n_routed_experts", width="moe_intermediate_size", first="first_k_dense_replace",
    every="moe_layer_freq", shared="n_shared_experts",
)  # fmt: skip
_LATENT = _Family(parts=(_latent_attention, _DEEPSEEK), known=_EXPERT_KEYS | {"lora_rank"})

#: `model_type` of a file to how it is read.
FAMILIES: dict[str, _Family] = {
    "llama": _Family(),
    "mistral": _Family(parts=(_windows,)),
    "mixtral": _Family(parts=(_windows, _MIXTRAL), known=_EXPERT_KEYS),
    "qwen2": _Family(parts=(_windows,)),
    "qwen2_moe": _Family(parts=(_windows, _qwen_experts), known=_EXPERT_KEYS),
    "qwen3": _Family(head_size=128, parts=(_windows,)),
    "qwen3_moe": _Family(head_size=128, parts=(_windows, _qwen_experts), known=_EXPERT_KEYS),
    "deepseek_v2": _LATENT,
    "deepseek_v3": _LATENT,
    "kimi_k2": _LATENT,
    "gpt_oss": _Family(parts=(_windows, _MIXTRAL), known=_EXPERT_KEYS),
    "glm4_moe": _Family(parts=(_DEEPSEEK,), known=_EXPERT_KEYS),
    "gemma": _Family(is_tied=True, head_size=256),
    "gemma2": _Family(is_tied=True, head_size=256, parts=(_windows,)),
    "gemma3_text": _Family(is_tied=True, head_size=256, parts=(_windows,)),
    "olmo2": _Family(),
    "phi": _Family(is_gated=False),
    "phi3": _Family(parts=(_windows,)),
    "nemotron": _Family(is_gated=False),
    "nemotron_h": _Family(
        is_gated=False, parts=(_nemotron_hybrid,),
        known=_EXPERT_KEYS | {"mamba", "ssm", "hybrid"},
    ),
    "starcoder2": _Family(is_gated=False, is_tied=True, parts=(_windows,)),
    "falcon": _Family(is_gated=False, is_tied=True, ffn_factor=4, n_kv_heads=_falcon_kv_heads),
    "bloom": _Family(is_gated=False, is_tied=True, ffn_factor=4),
    "gpt_neox": _Family(is_gated=False),
    "gptj": _Family(is_gated=False, ffn_factor=4),
    "gpt2": _Family(is_gated=False, is_tied=True, ffn_factor=4),
    "opt": _Family(is_gated=False, is_tied=True),
}  # fmt: skip


def parse_config(text: str, *, origin: str) -> ModelShape:
    """The shape that a Hugging Face `config.json` describes.

    Args:
        text: The file. Of a multimodal model, the `text_config` inside counts.
        origin: Where it comes from, for error messages.

    Raises:
        InstanceError: If the family is not one of `FAMILIES`, a key hints at a part that the family
            does not have, or a size is missing.
    """
    try:
        document = parse_json(text, InstanceError)
    except InstanceError as error:
        raise InstanceError(f"{origin}: {error}") from error
    if isinstance(document, dict) and document.get("text_config") is not None:
        document = document["text_config"]
    if not isinstance(document, dict):
        raise InstanceError(f"{origin}: expected a JSON object, got {type(document).__name__}")
    try:
        return _shape(document)
    except InstanceError as error:
        raise InstanceError(f"{origin}: {error}") from error
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        # Families combine some keys before the shape checks what comes out.
        raise InstanceError(
            f"{origin}: expected whole numbers for sizes and lists for layers, got {error}"
        ) from error


def _shape(document: dict[str, Any]) -> ModelShape:
    name = document.get("model_type")
    if not isinstance(name, str) or name not in FAMILIES:
        raise InstanceError(
            f"model_type: expected one of {', '.join(sorted(FAMILIES))}, got {name!r}"
        )
    family = FAMILIES[name]
    _check_types(document)
    _refuse_unknown_parts(document, family, name)
    figures: dict[str, Any] = {
        field: document[key]
        for field, keys in _NAMES.items()
        for key in reversed(keys)
        if document.get(key) is not None
    }
    figures |= {"is_gated": family.is_gated}
    figures.setdefault("is_tied", family.is_tied)
    if family.head_size is not None:
        figures.setdefault("head_size", family.head_size)
    if family.ffn_factor is not None and type(figures.get("hidden_size")) is int:
        figures.setdefault("ffn_size", family.ffn_factor * figures["hidden_size"])
    if family.n_kv_heads is not None:
        figures["n_kv_heads"] = family.n_kv_heads(document)
    for part in family.parts:
        figures |= part(document)
    for required in _REQUIRED:
        if required not in figures:
            raise InstanceError(f"expected {' or '.join(_NAMES[required])}, got none of them")
    return ModelShape(**figures)


def _check_types(document: dict[str, Any]) -> None:
    """What is stated is of its type, also where the family at hand has no use for it."""
    counts = {key for keys in _NAMES.values() for key in keys} | {*_COUNTS}
    for key, value in document.items():
        if value is None:
            continue
        if key in _FLAGS and type(value) is not bool:
            raise InstanceError(f"{key}: expected true or false, got {shown(value)}")
        is_count = type(value) is int and 0 <= value <= LARGEST_INT
        if key in counts and key not in _FLAGS and not is_count:
            raise InstanceError(
                f"{key}: expected a whole number from 0 to {LARGEST_INT:,}, got {shown(value)}"
            )


def _refuse_unknown_parts(document: dict[str, Any], family: _Family, name: str) -> None:
    for key, value in document.items():
        if value in _ABSENT:
            continue
        for hint, part in _HINTS.items():
            if hint in key.lower() and hint not in family.known:
                raise InstanceError(
                    f"{key}: expected a {name} without {part}, got {str(value)[:40]!r}"
                )


def _whole(document: Mapping[str, Any], key: str) -> int:
    value = document.get(key)
    if type(value) is not int:
        raise InstanceError(f"{key}: expected a whole number, got {value!r}")
    return value
