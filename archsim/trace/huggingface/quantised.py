"""How a `config.json` says that weights are stored: its `quantization_config`, as the libraries that quantise write it."""

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
