"""Transformers op by op, as the modules of Hugging Face run them without fused attention, from the numbers of a `config.json`.

What only indexes a tensor is no op, or a reshape; a transpose is a copy that the modules really make. The scores of attention go
through memory between its products: scaled, masked, normalised and, in training, dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from archsim.trace.dims import Extent
from archsim.trace.kinds.activation import Tanh
from archsim.trace.kinds.pointwise import Add, Floor, Mask, Mul, Rotary, ScaleBy
from archsim.trace.kinds.shaping import Slice
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder
from archsim.trace.zoo.eager_experts import switch
from archsim.trace.zoo.eager_net import ACTIVATIONS, Config, EagerNet

LONGEST = 4096  # tokens of a model whose positions are relative
NOTES = "ends in scores; a loss is not part of it"

# what a `config.json` may call a number -> its name in `Config`
KEYS: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "width": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "num_heads"),
    "hidden": ("intermediate_size", "ffn_dim", "n_inner", "d_ff"),
    "vocabulary": ("vocab_size",),
    "positions": ("max_position_embeddings", "n_positions", "n_ctx"),
    "kv_heads": ("num_key_value_heads",),
    "size": ("head_dim", "d_kv"),
    "segments": ("type_vocab_size",),
    "activation": ("hidden_act", "activation_function", "dense_act_fn"),
    "dropout": ("hidden_dropout_prob", "resid_pdrop", "dropout", "dropout_rate"),
    "attention_dropout": ("attention_probs_dropout_prob", "attn_pdrop", "attention_dropout", "dropout_rate"),
    "tied": ("tie_word_embeddings",),
    "experts": ("num_experts",),
    "capacity": ("expert_capacity",),
    "sparse": ("encoder_sparse_step",),
}


def config_of(numbers: Mapping[str, Any], head: str = "classifier") -> Config:
    """The numbers of a `config.json`. Raises ValueError for a family that is not built here, and for one that is missing.

    >>> config_of({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257,
    ...            "activation_function": "gelu_new"}).hidden
    3072
    """
    family = numbers.get("model_type", "")
    if family not in FAMILIES:
        raise ValueError(f"model_type {family!r} is not one of {', '.join(FAMILIES)}")
    found = {name: next((numbers[key] for key in keys if numbers.get(key) is not None), None) for name, keys in KEYS.items()}
    missing = [KEYS[name][0] for name in ("layers", "width", "heads", "vocabulary") if found[name] is None]
    if missing:
        raise ValueError(f"the configuration does not say {', '.join(missing)}")
    if found["hidden"] is None:
        found["hidden"] = 4 * int(numbers.get("n_embd") or found["width"] or 0)
    if found["tied"] is None:
        found["tied"] = family != "llama"
    config = Config(family=family, head=head, **{name: value for name, value in found.items() if value is not None})
    if config.activation not in ACTIVATIONS:
        raise ValueError(f"activation {config.activation!r} is not one of {', '.join(ACTIVATIONS)}")
    return config


def build(name: str, config: Config) -> Trace:
    """The network of these numbers."""
    usual = 128 if config.family == "bert" else 512  # as the networks of the same names have
    return FAMILIES[config.family](name, config, Extent(usual=usual, most=config.positions or LONGEST), NOTES)


def _bert(name: str, config: Config, tokens: Extent, notes: str) -> Trace:
    """Encoder; each sum is normalised after it."""
    made = EagerNet(name, config, tokens, notes, "bert", "segments", "positions")
    net, width = made.net, config.width
    net.input("mask", ("N", 1, 1, "T"))
    tables = (("tokens", config.vocabulary), ("segments", config.segments), ("positions", config.positions))
    x = net.sum(*[net.embedding(what, rows, width, name=f"{what}.embedding") for what, rows in tables], name="embeddings")
    x = made.dropped(made.norm(x, "embeddings.norm"))
    for number in range(1, config.layers + 1):
        at = f"block{number}"
        parts = {what: made.linear(x, width, f"{at}.{what}") for what in ("query", "key", "value")}
        query, value = (made.heads(parts[what], config.heads, f"{at}.{what}.heads") for what in ("query", "value"))
        key = made.heads(parts["key"], config.heads, f"{at}.key.heads", turned=True)
        mixed = made.attended(query, key, value, at, lambda s: _masked(made, _scaled(made, s)))
        mixed = made.dropped(made.linear(mixed, width, f"{at}.output"))
        x = made.norm(net.sum(mixed, x, name=f"{at}.add1"), f"{at}.norm1")
        wide = made.activated(made.linear(x, config.hidden, f"{at}.mlp1"))
        mixed = made.dropped(made.linear(wide, width, f"{at}.mlp2"))
        x = made.norm(net.sum(mixed, x, name=f"{at}.add2"), f"{at}.norm2")
    return _bert_head(made, x)


def _bert_head(made: EagerNet, x: str) -> Trace:
    """Two classes of the first token; in pretraining words for every token too."""
    net, config = made.net, made.config
    if config.head == "none":
        return net.trace(outputs=(x,))
    words: tuple[str, ...] = ()
    if config.head == "pretraining":
        mixed = made.norm(made.activated(made.linear(x, config.width, "words.transform")), "words.norm")
        words = (made.linear(mixed, config.vocabulary, "words", tied=config.tied),)
    first = net.part(x, 0, 1, axis=1, name="first")
    first = net.reshape(first, ("N", config.width), name="first.flat")
    first = net.add(Tanh(), made.linear(first, config.width, "pooler"), name="pooler.tanh")
    first = first if words else made.dropped(first)
    return net.trace(outputs=(*words, made.linear(first, 2, "classes")))


def _gpt2(name: str, config: Config, tokens: Extent, notes: str) -> Trace:
    """Decoder; one projection makes queries, keys and values; later tokens are hidden by a select."""
    made = EagerNet(name, config, tokens, notes, "gpt2", "positions")
    net, width = made.net, config.width
    tables = (("tokens", config.vocabulary), ("positions", config.positions))
    x = net.sum(*[net.embedding(what, rows, width, name=f"{what}.embedding") for what, rows in tables], name="embeddings")
    x = made.dropped(x)
    for number in range(1, config.layers + 1):
        at = f"block{number}"
        packed = made.linear(made.norm(x, f"{at}.norm1"), 3 * width, f"{at}.qkv", inner_first=True)
        thirds = {what: _third(net, packed, place, width, f"{at}.{what}") for place, what in enumerate(("query", "key", "value"))}
        query, key, value = (
            made.heads(part, config.heads, f"{at}.{what}.heads", turned=what == "key") for what, part in thirds.items()
        )
        mixed = made.attended(query, key, value, at, lambda s: _hidden(made, _scaled(made, s)))
        mixed = made.dropped(made.linear(mixed, width, f"{at}.output", inner_first=True))
        x = net.sum(mixed, x, name=f"{at}.add1")
        wide = made.linear(made.norm(x, f"{at}.norm2"), config.hidden, f"{at}.mlp1", inner_first=True)
        mixed = made.dropped(made.linear(made.activated(wide), width, f"{at}.mlp2", inner_first=True))
        x = net.sum(x, mixed, name=f"{at}.add2")
    return _scores(made, made.norm(x, "norm"))


def _third(net: Builder, packed: str, place: int, width: int, name: str) -> str:
    """One of three parts that lie side by side: a view."""
    return net.add(Slice(axis=2, start=place * width, stop=(place + 1) * width, whole=True), packed, name=name)


def _opt(name: str, config: Config, tokens: Extent, notes: str) -> Trace:
    """Decoder with three projections and ReLU; queries are scaled, and masked scores kept finite."""
    made = EagerNet(name, config, tokens, notes, "opt", "positions")
    net, width = made.net, config.width
    net.input("mask", ("N", 1, "T", "T"))
    tables = (("tokens", config.vocabulary), ("positions", config.positions + 2))
    x = net.sum(*[net.embedding(what, rows, width, name=f"{what}.embedding") for what, rows in tables], name="embeddings")
    for number in range(1, config.layers + 1):
        at = f"block{number}"
        normal = made.norm(x, f"{at}.norm1")
        parts = {what: made.linear(normal, width, f"{at}.{what}") for what in ("query", "key", "value")}
        parts["query"] = _scaled(made, parts["query"])
        query, key, value = (made.heads(parts[what], config.heads, f"{at}.{what}.heads") for what in parts)
        key = net.reshape(key, ("N", config.heads, config.head_size, "T"), name=f"{at}.key.turned")  # a view
        mixed = made.attended(query, key, value, at, lambda s: net.add(Floor(), _masked(made, s), name=f"{s}.floor"))
        x = net.sum(x, made.dropped(made.linear(mixed, width, f"{at}.output")), name=f"{at}.add1")
        wide = made.activated(made.linear(made.norm(x, f"{at}.norm2"), config.hidden, f"{at}.mlp1"))
        x = net.sum(x, made.dropped(made.linear(wide, width, f"{at}.mlp2")), name=f"{at}.add2")
    return _scores(made, made.norm(x, "norm"))


def _llama(name: str, config: Config, tokens: Extent, notes: str) -> Trace:
    """Decoder with rotary positions, gated units and no biases; heads may share keys, which are repeated."""
    made = EagerNet(name, config, tokens, notes, "llama")
    net, size = made.net, config.head_size
    net.input("mask", ("N", 1, "T", "T"))
    x = net.embedding("tokens", config.vocabulary, config.width, name="tokens.embedding")
    counts = {"query": config.heads, "key": config.shared, "value": config.shared}
    for number in range(1, config.layers + 1):
        at = f"block{number}"
        normal = made.norm(x, f"{at}.norm1")
        parts = {what: made.linear(normal, count * size, f"{at}.{what}", bias=False) for what, count in counts.items()}
        for what in ("query", "key"):
            parts[what] = net.add(Rotary(width=size), parts[what], name=f"{at}.{what}.rotary")
        query, key, value = (
            made.heads(parts[what], count, f"{at}.{what}.heads", turned=what == "key") for what, count in counts.items()
        )
        mixed = made.attended(query, key, value, at, lambda s: _masked(made, _scaled(made, s)))
        x = net.sum(x, made.linear(mixed, config.width, f"{at}.output", bias=False), name=f"{at}.add1")
        normal = made.norm(x, f"{at}.norm2")
        gate = made.activated(made.linear(normal, config.hidden, f"{at}.gate", bias=False))
        up = made.linear(normal, config.hidden, f"{at}.up", bias=False)
        gated = net.add(Mul(), gate, up, name=f"{at}.gated")
        x = net.sum(x, made.linear(gated, config.width, f"{at}.down", bias=False), name=f"{at}.add2")
    return _scores(made, made.norm(x, "norm"))


def _scaled(made: EagerNet, x: str) -> str:
    """Divided by the root of a head's features."""
    return made.net.add(ScaleBy(factor=made.config.head_size**-0.5), x, name=f"{x}.scaled")


def _masked(made: EagerNet, x: str) -> str:
    """A mask of numbers added."""
    return made.net.add(Add(), x, "mask", name=f"{x}.masked")


def _hidden(made: EagerNet, x: str) -> str:
    """The least number in the place of later tokens."""
    return made.net.add(Mask(), x, name=f"{x}.masked")


def _scores(made: EagerNet, x: str) -> Trace:
    """A score of every word for every token."""
    made.linear(x, made.config.vocabulary, "head", bias=False, tied=made.config.tied)
    return made.net.trace()


FAMILIES: dict[str, Callable[[str, Config, Extent, str], Trace]] = {
    "bert": _bert, "gpt2": _gpt2, "opt": _opt, "llama": _llama, "switch_transformers": switch,
}  # fmt: skip

BERT = Config(family="bert", layers=24, width=1024, heads=16, hidden=4096, vocabulary=30522, positions=512, segments=2,
              dropout=0.1, attention_dropout=0.1)  # fmt: skip
GPT2 = Config(family="gpt2", layers=36, width=1280, heads=20, hidden=5120, vocabulary=50257, positions=1024,
              activation="gelu_new", dropout=0.1, attention_dropout=0.1)  # fmt: skip
OPT = Config(family="opt", layers=24, width=2048, heads=32, hidden=8192, vocabulary=50272, positions=2048, activation="relu",
             dropout=0.1)  # fmt: skip
LLAMA = Config(family="llama", layers=32, width=4096, heads=32, hidden=11008, vocabulary=32000, positions=4096,
               activation="silu", tied=False)  # fmt: skip
SWITCH = Config(family="switch_transformers", layers=24, width=1024, heads=32, size=128, hidden=16384, vocabulary=32128,
                activation="relu", dropout=0.1, attention_dropout=0.1, experts=4, capacity=64, sparse=2)  # fmt: skip
MODELS: dict[str, Config] = {
    "bert_base@hf": replace(BERT, layers=12, width=768, heads=12, hidden=3072),
    "bert_large@hf": BERT,
    "bert_large@hf_pretraining": replace(BERT, head="pretraining"),
    "gpt2_small@hf": replace(GPT2, layers=12, width=768, heads=12, hidden=3072),
    "gpt2_large@hf": GPT2,
    "gpt3_xl@hf": replace(GPT2, layers=24, width=2048, heads=16, hidden=8192, positions=2048),
    "gpt3_xl_3072@hf": replace(GPT2, layers=24, width=3072, heads=24, hidden=12288, positions=2048),
    "gpt3_2_7b@hf": replace(GPT2, layers=32, width=2560, heads=32, hidden=10240, positions=2048),
    "opt_1_3b@hf": OPT,
    "opt_13b@hf": replace(OPT, layers=40, width=5120, heads=40, hidden=20480),
    "llama_2_7b@hf": LLAMA,
    "llama_2_13b@hf": replace(LLAMA, layers=40, width=5120, heads=40, hidden=13824),
    "switch_xl4": SWITCH,
    "llama_3_8b@hf": replace(LLAMA, kv_heads=8, hidden=14336, vocabulary=128256, positions=8192),
}
