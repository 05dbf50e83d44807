"""The shape of a decoder-only transformer, dense or with experts, and its parameter count."""

from __future__ import annotations

from dataclasses import dataclass, fields

from parabolt.errors import InstanceError
from parabolt.instances.validation import require_bools, require_positive_ints, stated


@dataclass(frozen=True)
class Experts:
    """Feed-forward blocks of which a router activates a few for each token.

    Attributes:
        n_experts: Routed experts of a layer.
        n_active: Routed experts that work on a token (top-k).
        ffn_size: Inner width of an expert.
        shared_ffn_size: Inner width of all shared experts together, which work on every token;
            None for no shared expert.
        n_dense_layers: First layers, which have a dense block of the model's own `ffn_size`.
        every: Of the layers after those, each how many-th has experts; the others are dense.
        latent_size: Width that routed experts take in and give out, after a projection that they
            share (LatentMoE, arXiv 2512.20848); None for the hidden size.

    Raises:
        InstanceError: For a size that cannot be.
    """

    n_experts: int
    n_active: int
    ffn_size: int
    shared_ffn_size: int | None = None
    n_dense_layers: int = 0
    every: int = 1
    latent_size: int | None = None

    def __post_init__(self) -> None:
        require_positive_ints(self, "n_experts", "n_active", "ffn_size", "every")
        require_positive_ints(self, *stated(self, "shared_ffn_size", "latent_size"))
        first = self.n_dense_layers
        if type(first) is not int or first < 0:
            raise InstanceError(f"n_dense_layers: expected a whole number from 0, got {first!r}")
        if self.n_active > self.n_experts:
            raise InstanceError(
                f"n_active: expected at most the {self.n_experts} experts, got {self.n_active}"
            )


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).

    Attributes:
        kv_rank: Width of the compressed keys and values.
        nope_head_size: Width of a head's query and key without position.
        rope_head_size: Width of a head's query, and of the shared key, with rotary position.
        value_head_size: Width of a head's value.
        q_rank: Width of the compressed queries; None where queries are not compressed.

    Raises:
        InstanceError: For a size that cannot be.
    """

    kv_rank: int
    nope_head_size: int
    rope_head_size: int
    value_head_size: int
    q_rank: int | None = None

    def __post_init__(self) -> None:
        names = ("kv_rank", "nope_head_size", "rope_head_size", "value_head_size")
        require_positive_ints(self, *names, *stated(self, "q_rank"))


@dataclass(frozen=True)
class StateSpace:
    """State-space layers (Mamba-2, arXiv 2405.21060, section 7) of a hybrid.

    Where each layer has one part alone, as in Nemotron-H, the three numbers of layers add up to
    those of the model; where a layer has a mixer and a feed-forward block, they add up to twice
    that.

    Attributes:
        n_layers: Layers with a state-space mixer.
        n_attention_layers: Layers with attention.
        n_ffn_layers: Layers with a feed-forward block, dense or with experts.
        n_heads: Heads of a mixer.
        head_size: Width of a head.
        state_size: Numbers that a head keeps for each of its channels.
        n_groups: Groups of heads that share their input and output projection.
        conv_width: Tokens that the convolution before the mixer looks at.

    Raises:
        InstanceError: For a size that cannot be.
    """

    n_layers: int
    n_attention_layers: int
    n_ffn_layers: int
    n_heads: int
    head_size: int
    state_size: int
    n_groups: int = 1
    conv_width: int = 4

    def __post_init__(self) -> None:
        require_positive_ints(self, *(f.name for f in fields(self)))

    def parameters(self, hidden_size: int) -> int:
        """Parameters of a mixer: projections, convolution, and four numbers per head or channel."""
        inner, states = self.n_heads * self.head_size, 2 * self.n_groups * self.state_size
        projections = hidden_size * (2 * inner + states + self.n_heads) + inner * hidden_size
        convolution = (inner + states) * (self.conv_width + 1)
        return projections + convolution + 3 * self.n_heads + inner


#: Fields of a shape that are tables of their own in a file.
MODEL_PARTS: dict[str, type] = {
    "experts": Experts, "latent_attention": LatentAttention, "state_space": StateSpace,
}  # fmt: skip


@dataclass(frozen=True)
class ModelShape:
    """Shape of a decoder-only transformer.

    The optional fields matter to the cost model only; None stands for "not stated" or, of a part
    such as experts, for "does not have it".

    Attributes:
        n_layers: Transformer layers.
        n_heads: Attention heads.
        hidden_size: Width of the residual stream.
        ffn_size: Inner width of a dense feed-forward block.
        n_kv_heads: Key-value heads; None for one per attention head.
        head_size: Width of a head; None for hidden_size / n_heads.
        vocabulary: Entries of the embedding table.
        is_gated: Whether the feed-forward block has a gate (three matrices), as in SwiGLU.
        is_tied: Whether the output projection is the embedding table.
        experts: The experts of its layers.
        latent_attention: The sizes of multi-head latent attention.
        window: Tokens that a layer with sliding-window attention looks back.
        n_windowed_layers: Layers with sliding-window attention.
        n_mtp_layers: Layers that predict further tokens (multi-token prediction).
        state_space: The state-space layers of a hybrid.

    Raises:
        InstanceError: For a size that cannot be, or heads that don't divide.
    """

    n_layers: int
    n_heads: int
    hidden_size: int
    ffn_size: int
    n_kv_heads: int | None = None
    head_size: int | None = None
    vocabulary: int | None = None
    is_gated: bool = True
    is_tied: bool = False
    experts: Experts | None = None
    latent_attention: LatentAttention | None = None
    window: int | None = None
    n_windowed_layers: int = 0
    n_mtp_layers: int = 0
    state_space: StateSpace | None = None

    def __post_init__(self) -> None:
        require_positive_ints(self, "n_layers", "n_heads", "hidden_size", "ffn_size")
        optional = ("n_kv_heads", "head_size", "vocabulary", "window")
        require_positive_ints(self, *stated(self, *optional))
        require_bools(self, "is_gated", "is_tied")
        for name in ("n_windowed_layers", "n_mtp_layers"):
            number = getattr(self, name)
            if type(number) is not int or not 0 <= number <= self.n_layers:
                raise InstanceError(
                    f"{name}: expected a whole number from 0 to {self.n_layers}, got {number!r}"
                )
        if (self.window is None) != (self.n_windowed_layers == 0):
            raise InstanceError("window: expected together with n_windowed_layers")
        if self.head_size is None and self.hidden_size % self.n_heads:
            raise InstanceError(
                f"n_heads: expected a divisor of hidden_size {self.hidden_size}, got "
                f"{self.n_heads}; try stating head_size"
            )
        if self.n_kv_heads is not None and self.n_heads % self.n_kv_heads:
            raise InstanceError(
                f"n_kv_heads: expected a divisor of the {self.n_heads} heads, got {self.n_kv_heads}"
            )
        if self.experts is not None and self.experts.n_dense_layers >= self.n_layers:
            raise InstanceError(
                f"n_dense_layers: expected fewer than the {self.n_layers} layers, got "
                f"{self.experts.n_dense_layers}"
            )
        if self.state_space is not None:
            self._check_layers_of_hybrid(self.state_space)

    def _check_layers_of_hybrid(self, hybrid: StateSpace) -> None:
        n_parts = hybrid.n_layers + hybrid.n_attention_layers + hybrid.n_ffn_layers
        if n_parts not in (self.n_layers, 2 * self.n_layers):
            raise InstanceError(
                f"state_space: expected as many state-space, attention and feed-forward layers as "
                f"the {self.n_layers} layers, or twice as many, got {n_parts}"
            )

    @property
    def n_attention_layers(self) -> int:
        """Layers with attention: all, but in a hybrid."""
        return self.n_layers if self.state_space is None else self.state_space.n_attention_layers

    @property
    def n_ffn_layers(self) -> int:
        """Layers with a feed-forward block, dense or with experts: all, but in a hybrid."""
        return self.n_layers if self.state_space is None else self.state_space.n_ffn_layers

    @property
    def query_size(self) -> int:
        """Width of all queries: heads x head size."""
        return self.n_heads * (self.head_size or self.hidden_size // self.n_heads)

    @property
    def kv_size(self) -> int:
        """Width of all keys, which is that of all values."""
        return self.query_size // self.n_heads * (self.n_kv_heads or self.n_heads)

    @property
    def n_expert_layers(self) -> int:
        """Layers with experts."""
        if self.experts is None:
            return 0
        return (self.n_ffn_layers - self.experts.n_dense_layers) // self.experts.every

    @property
    def attention_parameters(self) -> int:
        """Parameters of the attention of a layer, biases left out."""
        latent = self.latent_attention
        if latent is None:
            return 2 * self.hidden_size * (self.query_size + self.kv_size)
        head = latent.nope_head_size + latent.rope_head_size
        queries = self.n_heads * head
        if latent.q_rank is None:
            query = self.hidden_size * queries
        else:
            query = latent.q_rank * (self.hidden_size + queries)
        values = latent.nope_head_size + latent.value_head_size
        key_value = self.hidden_size * (latent.kv_rank + latent.rope_head_size)
        key_value += latent.kv_rank * self.n_heads * values
        return query + key_value + self.n_heads * latent.value_head_size * self.hidden_size

    @property
    def n_parameters(self) -> int:
        """Parameters: layers and embeddings; norms, biases and extra prediction layers left out.

        Raises:
            InstanceError: If the vocabulary is not stated.
        """
        return self._count(None if self.experts is None else self.experts.n_experts)

    @property
    def n_active_parameters(self) -> int:
        """Parameters that work on a token: as `n_parameters`, with the active experts alone.

        Raises:
            InstanceError: If the vocabulary is not stated.
        """
        return self._count(None if self.experts is None else self.experts.n_active)

    def _count(self, n_counted_experts: int | None) -> int:
        if self.vocabulary is None:
            raise InstanceError("vocabulary: expected a number of entries, got none")
        matrices = 3 if self.is_gated else 2
        dense = matrices * self.hidden_size * self.ffn_size
        total = self.n_attention_layers * self.attention_parameters
        total += (self.n_ffn_layers - self.n_expert_layers) * dense
        if (hybrid := self.state_space) is not None:
            total += hybrid.n_layers * hybrid.parameters(self.hidden_size)
        if (experts := self.experts) is not None and n_counted_experts is not None:
            width = experts.latent_size or self.hidden_size
            block = matrices * width * n_counted_experts * experts.ffn_size
            block += matrices * self.hidden_size * (experts.shared_ffn_size or 0)
            block += self.hidden_size * (experts.n_experts + 2 * (experts.latent_size or 0))
            total += self.n_expert_layers * block
        return total + (1 if self.is_tied else 2) * self.vocabulary * self.hidden_size
