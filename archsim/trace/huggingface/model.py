"""`TransformerModel`: the numbers of a transformer under one name each, whatever its family says; and how weights are stored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# What a file says of its weights, in small letters -> their format; a type and its bits are one word; float4_32: in groups of 32
# (Open Compute Project, Microscaling Formats 1.0).
FORMATS = {
    "int4": "int4", "int8": "int8", "float8": "fp8", "float4": "nvfp4", "float4_32": "mxfp4", "nf4": "nf4", "nf4_dq": "nf4_dq",
    "fp8": "fp8", "fbgemm_fp8": "fp8", "fp8_pb_wo": "fp8", "fp8_pb_real": "fp8", "fp8_per_channel_per_token": "fp8",
    "nvfp4": "nvfp4", "w4a16_nvfp4": "nvfp4", "mxfp4": "mxfp4", "eetq": "int8", "int8_sq": "int8", "w4a16_awq": "int4",
    "w4a8_awq": "int4", "w4a16": "int4", "w8a16": "int8",
}  # fmt: skip
BITS = ("bits", "num_bits", "w_bit", "nbits")
KEPT = ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "llm_int8_skip_modules")
# Part of a layer -> a module of it, as families call it.
MODULES: dict[str, tuple[str, ...]] = {
    "self_attn": ("self_attn.o_proj",),
    "mlp": ("mlp.down_proj", "feed_forward.down_proj"),
    "experts": ("mlp.experts.0.down_proj", "block_sparse_moe.experts.0.w2", "feed_forward.experts.down_proj"),
    "shared": ("mlp.shared_expert.down_proj", "mlp.shared_experts.down_proj", "feed_forward.shared_expert.down_proj"),
    "router": ("mlp.gate", "mlp.router", "block_sparse_moe.gate", "feed_forward.router"),
}  # fmt: skip
OF_MLP = ("gate", "up", "gate_up", "down", "mlp1", "mlp2")
PLAIN = re.compile(r"[\w.|()\\^$*-]{1,200}")  # patterns that are searched: without repeated groups, which may take forever
MOST_STARS, MOST_NAMES = 4, 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWeights:
    """The weights of a checkpoint.

    format: of projections and experts, a name that an engine knows; "": what the file says is not known; said: what it says
    kept: parts of layers that stay in the precision of activations, as `part_of` calls them
    """

    format: str
    said: str
    kept: frozenset[str] = frozenset()

    def keeps(self, op: str) -> bool:
        """Whether the weights of an op stay as they were."""
        return part_of(op) in self.kept


def part_of(op: str) -> str:
    """The part of a layer that an op of the graph belongs to.

    >>> [part_of(op) for op in ("block2.query", "block2.gate_up", "block2.shared.up", "block2.experts", "head")]
    ['block2.self_attn', 'block2.mlp', 'block2.shared', 'block2.experts', 'head']
    """
    block, _, rest = op.partition(".")
    first = rest.partition(".")[0]
    if not rest or first in MODULES:
        return f"{block}.{first}" if rest else op
    return f"{block}.mlp" if first in OF_MLP else f"{block}.self_attn"


def stored_weights(words: Mapping[str, Any], layers: int) -> StoredWeights | None:
    """What the `quantization_config` among the words of a file says; None where it has none.

    >>> stored_weights({"quantization_config": {"quant_method": "awq", "bits": 4}}, 2)
    StoredWeights(format='int4', said='awq int4', kept=frozenset())
    """
    stated = words.get("quantization_config") or words.get("compression_config")
    if not isinstance(stated, dict):
        return None
    method = str(stated.get("quant_method") or "modelopt" * ("quant_algo" in stated))
    kind = _kind(method.lower(), stated)
    said = " ".join(dict.fromkeys(word for word in (method, kind) if word)) or "no quant_method"
    return StoredWeights(format=FORMATS.get(kind, ""), said=said[:100], kept=frozenset(_kept(stated, layers)))


def _kind(method: str, stated: Mapping[str, Any]) -> str:
    """The weights' format in a word of `FORMATS`, where the file says one of them."""
    if method == "bitsandbytes":
        narrow = "nf4_dq" if stated.get("bnb_4bit_use_double_quant") else "nf4"  # fp4 takes as much
        return narrow if stated.get("load_in_4bit") else "int8" if stated.get("load_in_8bit") else ""
    algorithm = stated.get("quant_algo")
    if isinstance(algorithm, str):
        return algorithm.lower()
    groups = stated.get("config_groups")
    listed = [group.get("weights") for group in groups.values() if isinstance(group, dict)] if isinstance(groups, dict) else []
    found = sorted({_bits(weights) for weights in listed if isinstance(weights, dict)})
    return " and ".join(found) or _bits(stated) or method


def _bits(stated: Mapping[str, Any]) -> str:
    bits = next((stated[key] for key in BITS if stated.get(key) is not None), None)
    kind = stated.get("type") or "int"
    return "" if bits is None else f"{kind}{bits}" + "_32" * (kind == "float" and bits == 4 and stated.get("group_size") == 32)


def _kept(stated: Mapping[str, Any], layers: int) -> Iterable[str]:
    """The parts of layers that the file names: by a module or what it is in, `*` in the name, or by `re:` and an expression."""
    listed = [each for key in KEPT if isinstance(stated.get(key), list) for each in stated[key] if isinstance(each, str)]
    names = {each.replace("language_model.", "") for each in listed}
    patterns = [pattern for pattern in map(_pattern, sorted(names)[:MOST_NAMES]) if pattern]
    anywhere = re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None
    for layer in range(layers if names else 0):
        for part, modules in MODULES.items():
            for module in (f"model.layers.{layer}.{module}" for module in modules):
                words = module.split(".")
                within = (".".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1))
                if not names.isdisjoint(within) or (anywhere and anywhere.search(module)):
                    yield f"block{layer + 1}.{part}"


def _pattern(name: str) -> str:
    """The expression of a name that has one; empty where it has none, or none that ends in time."""
    pattern = name.removeprefix("re:") if name.startswith("re:") else re.escape(name).replace(r"\*", ".*") if "*" in name else ""
    if not PLAIN.fullmatch(pattern) or ")*" in pattern or pattern.count("*") > MOST_STARS:
        return ""
    try:
        re.compile(pattern)
    except re.error:
        return ""
    return f"^{pattern.removeprefix('^')}"


# ------------------------------------------------------------------------------------------------------------ the model


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
