"""Transformers op by op, as the modules of Hugging Face run them without fused attention, from the numbers of a model.

What only indexes a tensor is no op, or a reshape; a transpose is a copy that the modules really make. The scores of attention go
through memory between its products: scaled, masked, normalised and, in training, dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from archsim.trace.dims import Dim, Extent
from archsim.trace.huggingface.model import TransformerModel
from archsim.trace.kind import Kind
from archsim.trace.kinds.dense import Embedding, Linear, Matmul
from archsim.trace.kinds.normalise import LayerNorm, RmsNorm, Softmax
from archsim.trace.kinds.pointwise import Add, Floor, Gelu, GeluTanh, Mask, Mul, Relu, Rotary, ScaleBy, Silu, Tanh
from archsim.trace.kinds.shaping import Concat, Slice
from archsim.trace.trace import Trace
from archsim.trace.zoo import transformer
from archsim.trace.zoo.builder import Builder

SOURCE = "Hugging Face transformers 4.38, models/{}/modeling_{}.py, eager attention"
HEADS_FIRST, TOKENS_FIRST = (0, 2, 1, 3), (0, 2, 1, 3)  # [N, T, heads, d] to [N, heads, T, d], and back
FEATURES_FIRST = (0, 2, 3, 1)  # [N, S, heads, d] to [N, heads, d, S]
ACTIVATIONS: dict[str, Kind] = {
    "gelu": Gelu(), "gelu_pytorch_tanh": Gelu(), "gelu_new": GeluTanh(), "gelu_fast": GeluTanh(),
    "relu": Relu(), "silu": Silu(), "swish": Silu(),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The numbers of a model, under one name each whatever the family calls them.

    family: `model_type`; head: what stands on an encoder, classifier or pretraining; size: features of a head; sparse: every so
    many layers the feed-forward part is `experts` of which each takes `capacity` rows of a sample, 0: never
    """

    family: str
    layers: int
    width: int
    heads: int
    hidden: int
    vocabulary: int
    positions: int = 0
    kv_heads: int = 0
    size: int = 0
    segments: int = 0
    activation: str = "gelu"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    head: str = "classifier"
    tied: bool = True
    experts: int = 0
    capacity: int = 0
    sparse: int = 0

    @property
    def head_size(self) -> int:
        """Features of a head."""
        return self.size or self.width // self.heads

    @property
    def shared(self) -> int:
        """Heads of keys and values."""
        return self.kv_heads or self.heads


class EagerNet:
    """A network under construction with the parts that all families share."""

    def __init__(self, name: str, config: Config, tokens: Extent, *more: str) -> None:
        inputs: dict[str, tuple[Dim, ...]] = {"tokens": ("N", "T")} | dict.fromkeys(more, (1, "T"))
        self.net = Builder(name, SOURCE.format(config.family, config.family), inputs, NOTES, tokens)
        self.config = config

    def embedded(self, **tables: int) -> str:
        """The sum of what is looked up for each token in the table of words and in these, named with their rows."""
        rows = {"tokens": self.config.vocabulary} | tables
        parts = [self.net.embedding(what, count, self.config.width, name=f"{what}.embedding") for what, count in rows.items()]
        return self.net.sum(*parts, name="embeddings")

    def linear(
        self, x: str, features: int, name: str, *, bias: bool = True, inner_first: bool = False, tied: bool = False
    ) -> str:
        """Fully connected layer."""
        kind = Linear(bias=bias, inner_first=inner_first)
        return self.net.add(kind, x, name=name, recorded=(features,), tied=tied)

    def norm(self, x: str, name: str) -> str:
        """The family's normalisation of each token."""
        return self.net.add(RmsNorm() if self.config.family in ("llama", "switch_transformers") else LayerNorm(), x, name=name)

    def dropped(self, x: str, ratio: float | None = None) -> str:
        """With dropout, if the model has any."""
        ratio = self.config.dropout if ratio is None else ratio
        return self.net.dropout(x, ratio, name=f"{x}.dropout") if ratio else x

    def heads(self, x: str, heads: int, name: str, *, turned: bool = False) -> str:
        """The copy that batched products ask for: [N, heads, T, d], or `turned` [N, heads, d, T]."""
        order = FEATURES_FIRST if turned else HEADS_FIRST
        split = self.net.reshape(x, ("N", "T", heads, self.config.head_size), name=f"{name}.split")
        return self.net.transpose(split, *order, name=name)

    def attended(self, query: str, key: str, value: str, at: str, scores: Callable[[str], str]) -> str:
        """Products around a softmax: `scores` scales and masks what the first one gives; tokens come first again in the end."""
        config = self.config
        key = self._repeated(key, f"{at}.key.repeated")
        value = self._repeated(value, f"{at}.value.repeated")
        found = scores(self.net.add(Matmul(), query, key, name=f"{at}.scores"))
        weights = self.dropped(self.net.add(Softmax(), found, name=f"{at}.softmax"), config.attention_dropout)
        mixed = self.net.add(Matmul(), weights, value, name=f"{at}.mixed")
        mixed = self.net.transpose(mixed, *TOKENS_FIRST, name=f"{at}.tokens")
        return self.net.reshape(mixed, ("N", "T", config.heads * config.head_size), name=f"{at}.attended")

    def _repeated(self, x: str, name: str) -> str:
        """Keys or values that heads share, copied for each of them."""
        times = self.config.heads // self.config.shared
        return x if times == 1 else self.net.add(Concat(axis=1), *[x] * times, name=name)

    def activated(self, x: str) -> str:
        """The model's activation."""
        kind = ACTIVATIONS[self.config.activation]
        return self.net.add(kind, x, name=f"{x}.{kind.op}")


LONGEST = 4096  # tokens of a model whose positions are relative
NOTES = "ends in scores; a loss is not part of it"


def config_of(model: TransformerModel) -> Config:
    """The numbers of a model.

    >>> from archsim.trace.huggingface.catalog import find
    >>> config_of(find("gpt2_small")).hidden
    3072
    """
    return Config(
        family=model.model_type, layers=model.layers, width=model.width, heads=model.heads, hidden=model.hidden,
        vocabulary=model.vocabulary, positions=model.context, kv_heads=model.kv_heads, size=model.head_size,
        segments=model.segments, activation=model.activation, dropout=model.dropout, attention_dropout=model.attention_dropout,
        tied=model.tied,
    )  # fmt: skip


def build(name: str, config: Config) -> Trace:
    """The network of these numbers."""
    usual = 128 if config.family == "bert" else 512  # as the networks of the same names have
    return FAMILIES[config.family](name, config, Extent(usual=usual, most=config.positions or LONGEST))


def _bert(name: str, config: Config, tokens: Extent) -> Trace:
    """Encoder; each sum is normalised after it."""
    made = EagerNet(name, config, tokens, "segments", "positions")
    net, width = made.net, config.width
    net.input("mask", ("N", 1, 1, "T"))
    x = made.embedded(segments=config.segments, positions=config.positions)
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
    words: tuple[str, ...] = ()
    if config.head == "pretraining":
        mixed = made.norm(made.activated(made.linear(x, config.width, "words.transform")), "words.norm")
        words = (made.linear(mixed, config.vocabulary, "words", tied=config.tied),)
    first = net.part(x, 0, 1, axis=1, name="first")
    first = net.reshape(first, ("N", config.width), name="first.flat")
    first = net.add(Tanh(), made.linear(first, config.width, "pooler"), name="pooler.tanh")
    first = first if words else made.dropped(first)
    return net.trace(outputs=(*words, made.linear(first, 2, "classes")))


def _gpt2(name: str, config: Config, tokens: Extent) -> Trace:
    """Decoder; one projection makes queries, keys and values; later tokens are hidden by a select."""
    made = EagerNet(name, config, tokens, "positions")
    net, width = made.net, config.width
    x = made.dropped(made.embedded(positions=config.positions))
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


def _opt(name: str, config: Config, tokens: Extent) -> Trace:
    """Decoder with three projections and ReLU; queries are scaled, and masked scores kept finite."""
    made = EagerNet(name, config, tokens, "positions")
    net, width = made.net, config.width
    net.input("mask", ("N", 1, "T", "T"))
    x = made.embedded(positions=config.positions + 2)
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


def _llama(name: str, config: Config, tokens: Extent) -> Trace:
    """Decoder with rotary positions, gated units and no biases; heads may share keys, which are repeated."""
    made = EagerNet(name, config, tokens)
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


def _switch(name: str, config: Config, tokens: Extent) -> Trace:
    """An encoder and a decoder in which every other layer has experts; both read sequences of one length; logits of the decoder.

    Positions enter as a bias of the scores. Each expert takes as many rows of a sample as its capacity, empty ones too, as
    NeuSight (ASPLOS 2025) rewrote the module; what it makes is put back among the tokens.
    """
    made = EagerNet(name, config, tokens, "answer")
    net = made.net
    for kind in ("encoder", "decoder", "cross"):
        net.input(f"{kind}.bias", ("N", config.heads, "T", "T"))
    net.input("answer", ("N", "T"))
    x = made.dropped(net.embedding("tokens", config.vocabulary, config.width, name="tokens.embedding"))
    for number in range(1, config.layers + 1):
        at = f"encoder{number}"
        x = _attended(made, x, "", f"{at}.self", "encoder.bias")
        x = _mixed(made, x, at, config.sparse > 0 and number % config.sparse == 0)
    memory = made.dropped(made.norm(x, "encoder.norm"))
    table = Embedding(vocabulary=config.vocabulary, features=config.width)
    x = made.dropped(net.add(table, "answer", name="answer.embedding", tied=True))
    for number in range(1, config.layers + 1):
        at = f"decoder{number}"
        x = _attended(made, x, "", f"{at}.self", "decoder.bias")
        x = _attended(made, x, memory, f"{at}.cross", "cross.bias")
        x = _mixed(made, x, at, config.sparse > 0 and number % config.sparse == 0)
    x = made.dropped(made.norm(x, "decoder.norm"))
    x = net.add(ScaleBy(factor=config.width**-0.5), x, name="decoder.scaled")
    made.linear(x, config.vocabulary, "head", bias=False, tied=True)
    return net.trace()


def _attended(made: EagerNet, x: str, memory: str, at: str, bias: str) -> str:
    """Attention to the tokens themselves, or to the encoder's `memory`, added to what came in."""
    net, config = made.net, made.config
    normal = made.norm(x, f"{at}.norm")
    inner, source = config.heads * config.head_size, memory or normal
    query = made.linear(normal, inner, f"{at}.query", bias=False)
    key, value = (made.linear(source, inner, f"{at}.{what}", bias=False) for what in ("key", "value"))
    query, value = (made.heads(part, config.heads, f"{part}.heads") for part in (query, value))
    key = made.heads(key, config.heads, f"{key}.heads", turned=True)
    mixed = made.attended(query, key, value, at, lambda scores: net.add(Add(), scores, bias, name=f"{scores}.biased"))
    return net.sum(x, made.dropped(made.linear(mixed, config.width, f"{at}.output", bias=False)), name=f"{at}.add")


def _mixed(made: EagerNet, x: str, at: str, sparse: bool) -> str:
    """The feed-forward part of a layer, added to what came in."""
    normal = made.norm(x, f"{at}.norm")
    mixed = _experts(made, normal, at) if sparse else _dense(made, normal, f"{at}.mlp")
    return made.net.sum(x, made.dropped(mixed), name=f"{at}.add")


def _dense(made: EagerNet, x: str, at: str) -> str:
    wide = made.dropped(made.activated(made.linear(x, made.config.hidden, f"{at}1", bias=False)))
    return made.linear(wide, made.config.width, f"{at}2", bias=False)


def _experts(made: EagerNet, x: str, at: str) -> str:
    """A router's scores; each expert on its rows; the rows back among a copy of the tokens, scaled by the scores."""
    net, config = made.net, made.config
    scores = net.add(Softmax(), made.linear(x, config.experts, f"{at}.router", bias=False), name=f"{at}.router.softmax")
    copy = net.add(Concat(axis=1), x, name=f"{at}.copy")
    backs = []
    for number in range(1, config.experts + 1):
        rows = net.part(x, 0, config.capacity, axis=1, name=f"{at}.expert{number}.rows")
        made_of = _dense(made, rows, f"{at}.expert{number}.mlp")
        backs.append(net.part(made_of, 0, 1, axis=1, name=f"{at}.expert{number}.back"))
    together = net.sum(copy, *backs, name=f"{at}.experts")
    return net.add(Mul(), together, net.part(scores, 0, 1, axis=2, name=f"{at}.router.best"), name=f"{at}.weighted")


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


FAMILIES: dict[str, Callable[[str, Config, Extent], Trace]] = {
    "bert": _bert, "gpt2": _gpt2, "opt": _opt, "llama": _llama, "switch_transformers": _switch,
}  # fmt: skip

NUMBERS = ("bert_base", "bert_large", "gpt2_small", "gpt2_large", "gpt3_xl", "gpt3_xl_3072", "gpt3_2_7b", "opt_1_3b", "opt_13b",
           "llama_2_7b", "llama_2_13b", "llama_3_8b")  # fmt: skip
MODELS: dict[str, Config] = {f"{name}@hf": config_of(transformer.MODELS[name]) for name in NUMBERS}
MODELS |= {
    "bert_large@hf_pretraining": replace(MODELS["bert_large@hf"], head="pretraining"),
    "switch_xl4": Config(family="switch_transformers", layers=24, width=1024, heads=32, size=128, hidden=16384, vocabulary=32128,
                         activation="relu", dropout=0.1, attention_dropout=0.1, experts=4, capacity=64, sparse=2),
}  # fmt: skip
