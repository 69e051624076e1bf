"""`TransformerModel`: the numbers of a transformer, under one name each whatever its family calls them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from archsim.trace.huggingface.quantised import StoredWeights


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertLayers:
    """Which layers have experts in place of their feed-forward part, and how large these are.

    experts: routed experts of a layer; top: of these each token goes through; hidden: width inside one
    shared: width inside the expert that all tokens go through, 0: there is none; gate: whether its result is weighted
    first, step: layers before `first` are dense, and from then on all but every `step`-th one; dense: others that are, by number
    bias: whether the router has a bias for each expert, as DeepSeek-V3 balances them; biased: whether experts have some
    """

    experts: int
    top: int
    hidden: int
    shared: int = 0
    gate: bool = False
    first: int = 0
    step: int = 1
    dense: tuple[int, ...] = ()
    bias: bool = False
    biased: bool = False

    def has(self, layer: int) -> bool:
        """Whether a layer, counted from 0, has experts.

        >>> [ExpertLayers(experts=8, top=2, hidden=64, first=1, step=2).has(layer) for layer in range(4)]
        [False, True, False, True]
        """
        return layer >= self.first and (layer + 1) % self.step == 0 and layer not in self.dense


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentKeys:
    """Keys and values as projections of one latent vector for each token, which is what a cache keeps (DeepSeek-V2, section 2.1).

    query_rank: width of the latent vector of queries, 0: they are projected directly; rank: that of keys and values
    plain, turned: features of a head's key without and with rotary positions, the latter shared by all heads; value: of its value
    """

    query_rank: int
    rank: int
    plain: int
    turned: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchInput:
    """An image in patches. `classes`: of the classifier on the class token, 0: none; `pooler`: a layer on it instead."""

    size: int
    patch: int
    channels: int
    classes: int
    pooler: bool

    @property
    def tokens(self) -> int:
        """Patches of an image."""
        return (self.size // self.patch) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioInput:
    """A spectrogram of `frames` times `bins`, and the encoder that reads it (Radford et al. 2022)."""

    bins: int
    frames: int
    layers: int
    heads: int
    hidden: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerModel:
    """A transformer as its `config.json` describes it.

    model_type: the family, as the file calls it; style: the graph that is built, a row of `STYLES` of `graph`
    layers, width, heads, kv_heads, head_size, hidden, vocabulary: of the decoder, or of the encoder where there is only one
    context: most tokens of a sequence; positions: rows of a learned table of positions, 0: there is none
    projected: width of the table of words where it differs from `width`, 0: it does not
    norm: "layer" (scale and shift), "scale" (the same without a shift) or "rms"
    order: of norms and sums in a layer: "pre", "post" (after each sum), "after" (after each part, before its sum), "both" (before
        and after each part), "parallel" (attention and feed-forward part read one norm), "parallel2" (each reads its own)
    scaled: what is multiplied by a constant: embedding, residual (what is added to it), scores
    rotary: whether queries and keys are turned by position; unturned: layers in which they are not (NoPE), counted from 0
    gated: whether the feed-forward part multiplies two projections
    packed: whether queries, keys and values are one projection in the published module
    bias: the projections with biases, among query, key, value, output, mlp, head
    qk_norm: how queries and keys are normalised: "head" (each head by itself), "whole" (all heads together), "" (not at all)
    sinks: whether each head has a learned score that takes a share of every softmax (Xiao et al. 2024, attention sinks)
    tied: whether the scores of words are the products with the table of words
    windows: tokens to which the attention of each layer looks back, 0: all; empty where no layer has a window
    kv_heads_of: heads of keys and values of each layer, where they differ
    dropout, embedding_dropout, attention_dropout: of training
    stored: how its file says that the weights are stored, None: as they are multiplied
    """

    model_type: str
    style: str
    name: str = ""
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_size: int
    hidden: int
    vocabulary: int = 0
    context: int
    positions: int = 0
    segments: int = 0
    pooler: bool = False
    projected: int = 0
    embedding_norm: bool = False
    scaled: frozenset[str] = frozenset()
    norm: str = "rms"
    final_norm: bool = True
    order: str = "pre"
    rotary: bool = True
    unturned: tuple[int, ...] = ()
    gated: bool = True
    activation: str = "silu"
    packed: bool = False
    bias: frozenset[str] = frozenset()
    qk_norm: str = ""
    sinks: bool = False
    tied: bool = False
    windows: tuple[int, ...] = ()
    kv_heads_of: tuple[int, ...] = ()
    experts: ExpertLayers | None = None
    latent: LatentKeys | None = None
    image: PatchInput | None = None
    audio: AudioInput | None = None
    dropout: float = 0.0
    embedding_dropout: float = 0.0
    attention_dropout: float = 0.0
    stored: StoredWeights | None = None
    source: str = ""
    notes: tuple[str, ...] = ()

    @property
    def repository(self) -> str:
        """The id of its repository on the Hugging Face hub, where the configuration states it; else its name."""
        stated = re.match(r"Hugging Face ([\w.-]+/[\w.-]*\w)", self.source)
        return stated[1] if stated else self.name

    @property
    def generates(self) -> bool:
        """Whether it makes text token by token from what came before, without an encoder."""
        return self.style == "decoder"

    def heads_of_keys(self, layer: int) -> int:
        """Heads of keys and values of a layer, counted from 0."""
        return self.kv_heads_of[layer] if self.kv_heads_of else self.kv_heads

    def window_of(self, layer: int) -> int:
        """Tokens to which a layer's attention looks back, 0: all."""
        return self.windows[layer] if self.windows else 0

    def keeps(self, op: str) -> bool:
        """Whether the weights of an op stay in the precision of activations where those of others are quantised."""
        return self.stored is not None and self.stored.keeps(op)

    def cached_values(self, layer: int) -> int:
        """Values that a cache keeps for each token of a layer: keys and values, or the latent vector that makes them."""
        if self.latent is not None:
            return self.latent.rank + self.latent.turned
        return 2 * self.heads_of_keys(layer) * self.head_size
