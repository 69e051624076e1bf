"""The graph of a transformer from the parts of its layers: a whole sequence at once, or a step of a serving engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from archsim.trace.dims import Dim, Extent
from archsim.trace.huggingface.model import TransformerModel
from archsim.trace.kind import Kind
from archsim.trace.kinds.dense import Experts, Linear, Matmul
from archsim.trace.kinds.normalise import LayerNorm, RmsNorm, Softmax
from archsim.trace.kinds.pointwise import Gated, Gelu, Mul, Relu, Rotary, ScaleBy, Silu, Tanh
from archsim.trace.kinds.sequence import Attention, LatentAttention
from archsim.trace.kinds.shaping import Concat, Pad, Slice, Transpose
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

ACTIVATIONS: dict[str, Kind] = {"silu": Silu(), "swish": Silu(), "relu": Relu()}  # all others are kinds of GELU
CONSTANT = 0.5  # what a part is multiplied by: any number costs the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a graph is laid out.

    engine: as a serving engine runs it: projections of one input in one product, keys and values of earlier tokens in a cache,
        scores of words for the last token only; otherwise as the published module does
    decode: few new tokens for each sequence, which matters to latent keys
    tensor: devices that share each layer; experts: devices that share the experts of a layer
    first, last: the layers of this device, from `first` up to `last`, not included; 0, 0: all
    """

    engine: bool = False
    decode: bool = False
    tensor: int = 1
    experts: int = 1
    first: int = 0
    last: int = 0


class TransformerNet:
    """A network under construction."""

    def __init__(self, model: TransformerModel, net: Builder, layout: Layout) -> None:
        self.model, self.net, self.layout = model, net, layout
        self.heads = max(1, model.heads // layout.tensor)

    def linear(self, x: str, features: int, name: str, part: str = "", *, bias: bool | None = None, tied: bool = False) -> str:
        """A projection, with a bias if the model's `part` has one."""
        kind = Linear(bias=part in self.model.bias if bias is None else bias)
        return self.net.add(kind, x, name=name, recorded=(features,), tied=tied)

    def norm(self, x: str, name: str) -> str:
        """The model's normalisation."""
        kind = RmsNorm() if self.model.norm == "rms" else LayerNorm(shift=self.model.norm == "layer")
        return self.net.add(kind, x, name=name)

    def active(self, x: str) -> str:
        """The model's activation."""
        return self.net.activate(x, ACTIVATIONS.get(self.model.activation, Gelu()), name=x)

    def scaled(self, x: str, part: str) -> str:
        """Multiplied by a constant, if the model's `part` is."""
        return self.net.add(ScaleBy(factor=CONSTANT), x, name=f"{x}.scaled") if part in self.model.scaled else x

    def dropped(self, x: str) -> str:
        """With dropout, if the model has any; an engine has none."""
        ratio = self.model.dropout
        return self.net.dropout(x, ratio, name=f"{x}.dropout") if ratio and not self.layout.engine else x

    def attention(self, x: str, layer: int, at: str) -> str:
        """Projections, attention, and the projection of its result."""
        model = self.model
        if model.latent is not None:
            return self._latent(x, at)
        size, shared = model.head_size, max(1, model.heads_of_keys(layer) // self.layout.tensor)
        causal = model.style in ("decoder", "speech")
        kind = Attention(heads=self.heads, kv_heads=0 if shared == self.heads else shared, causal=causal,
                         window=model.window_of(layer), sinks=model.sinks, cached=self.layout.engine)  # fmt: skip
        if self.layout.engine:
            mixed = self._over_cache(x, kind, shared, layer, at)
        elif model.packed and not model.rotary:
            packed = self.linear(x, (self.heads + 2 * shared) * size, f"{at}.qkv", "query")
            mixed = self.net.add(kind, packed, name=f"{at}.attention")
        else:
            parts = {"query": self.heads, "key": shared, "value": shared}
            made = {part: self.linear(x, heads * size, f"{at}.{part}", part) for part, heads in parts.items()}
            for part in ("query", "key"):
                made[part] = self._placed(made[part], parts[part], layer)
            mixed = self.net.add(kind, *made.values(), name=f"{at}.attention")
        return self.linear(mixed, model.width, f"{at}.output", "output")

    def _placed(self, x: str, heads: int, layer: int) -> str:
        """Queries or keys, normalised and turned by position, where the model does so."""
        model, size = self.model, self.model.head_size
        if model.qk_norm == "whole":
            x = self.norm(x, f"{x}.norm")
        elif model.qk_norm:
            split = self.net.reshape(x, ("N", "T", heads, size), name=f"{x}.split")
            x = self.net.reshape(self.norm(split, f"{x}.norm"), ("N", "T", heads * size), name=f"{x}.normal")
        return self.net.add(Rotary(width=size), x, name=f"{x}.rotary") if model.rotary and layer not in model.unturned else x

    def _over_cache(self, x: str, kind: Attention, shared: int, layer: int, at: str) -> str:
        """One projection for queries, keys and values of new tokens; attention to a cache of all."""
        size, heads = self.model.head_size, self.heads + 2 * shared
        packed = self.linear(x, heads * size, f"{at}.qkv", "query")
        packed = self._placed(packed, heads, layer)
        cache: tuple[Dim, ...] = ("N", "S", shared * size)
        keys, values = (self.net.input(f"{at}.{part}", cache) for part in ("keys", "values"))
        return self.net.add(kind, packed, keys, values, name=f"{at}.attention")

    def _latent(self, x: str, at: str) -> str:
        """Attention whose keys and values are made from a latent vector for each token."""
        model, latent, heads = self.model, self.model.latent, self.heads
        assert latent is not None
        size = latent.plain + latent.turned
        query = x
        if latent.query_rank:
            query = self.norm(self.linear(x, latent.query_rank, f"{at}.query.down", bias=False), f"{at}.query.norm")
        query = self.linear(query, heads * size, f"{at}.query", bias=False)
        vector = self.linear(x, latent.rank + latent.turned, f"{at}.latent", bias=False)
        query = self.net.add(Rotary(width=size), query, name=f"{at}.query.rotary")
        kept = self.net.add(Slice(axis=2, stop=latent.rank, whole=True), vector, name=f"{at}.latent.kept")
        normal = self.norm(kept, f"{at}.latent.norm")
        mixed = (self._absorbed if self.layout.engine and self.layout.decode else self._expanded)(query, normal, at)
        return self.linear(mixed, model.width, f"{at}.output", bias=False)

    def _expanded(self, query: str, vector: str, at: str) -> str:
        """Keys and values written out for every head; values are padded to the size of keys, which one kernel needs."""
        latent, heads, net = self.model.latent, self.heads, self.net
        assert latent is not None
        size = latent.plain + latent.turned
        both = self.linear(vector, heads * (latent.plain + latent.value), f"{at}.expanded", bias=False)
        both = net.reshape(both, ("N", "T", heads, latent.plain + latent.value), name=f"{at}.expanded.heads")
        made = []
        for part, start, stop in (("key", 0, latent.plain), ("value", latent.plain, latent.plain + latent.value)):
            own = net.add(Slice(axis=3, start=start, stop=stop, whole=True), both, name=f"{at}.{part}")
            if stop - start < size:
                own = net.add(Pad(before=(0, 0, 0, 0), after=(0, 0, 0, size - stop + start)), own, name=f"{at}.{part}.padded")
            made.append(net.reshape(own, ("N", "T", heads * size), name=f"{at}.{part}.flat"))
        mixed = net.add(Attention(heads=heads, causal=True), query, *made, name=f"{at}.attention")
        mixed = net.reshape(mixed, ("N", "T", heads, size), name=f"{at}.mixed.heads")
        mixed = net.add(Slice(axis=3, stop=latent.value), mixed, name=f"{at}.mixed.values")
        return net.reshape(mixed, ("N", "T", heads * latent.value), name=f"{at}.mixed")

    def _absorbed(self, query: str, vector: str, at: str) -> str:
        """The projections of keys and values taken into those of queries and results: attention to the latent vectors."""
        latent, heads, net = self.model.latent, self.heads, self.net
        assert latent is not None
        size = latent.rank + latent.turned
        plain = net.add(Slice(axis=2, stop=heads * latent.plain, whole=True), query, name=f"{at}.query.plain")
        plain = net.reshape(plain, (heads, "N*T", latent.plain), name=f"{at}.query.heads")
        up = net.input(f"{at}.keys.up", (heads, latent.plain, latent.rank))
        down = net.input(f"{at}.values.up", (heads, latent.rank, latent.value))
        taken = net.add(Matmul(), plain, up, name=f"{at}.query.taken")
        taken = net.add(Pad(before=(0, 0, 0), after=(0, 0, latent.turned)), taken, name=f"{at}.query.turned")
        taken = net.reshape(taken, ("N", "T", heads * size), name=f"{at}.query.latent")
        cache = net.input(f"{at}.vectors", ("N", "S", size))
        mixed = net.add(LatentAttention(heads=heads, rank=latent.rank), taken, cache, name=f"{at}.attention")
        mixed = net.reshape(mixed, (heads, "N*T", latent.rank), name=f"{at}.mixed.heads")
        mixed = net.add(Matmul(), mixed, down, name=f"{at}.mixed.values")
        return net.reshape(mixed, ("N", "T", heads * latent.value), name=f"{at}.mixed")

    def feed_forward(self, x: str, layer: int, at: str) -> str:
        """The dense part, or the experts of this layer."""
        experts = self.model.experts
        if experts is not None and experts.has(layer):
            return self._experts(x, at)
        return self.dense(x, self.model.hidden // self.layout.tensor, at)

    def dense(self, x: str, hidden: int, at: str) -> str:
        """A feed-forward part, gated if the model's are."""
        net, width = self.net, self.model.width
        if not self.model.gated:
            wide = self.linear(x, hidden, f"{at}.mlp1", "mlp")
            return self.linear(self.active(wide), width, f"{at}.mlp2", "mlp")
        if self.layout.engine:
            gated = net.add(Gated(), self.linear(x, 2 * hidden, f"{at}.gate_up", "mlp"), name=f"{at}.gated")
        else:
            gate, up = (self.linear(x, hidden, f"{at}.{part}", "mlp") for part in ("gate", "up"))
            gated = net.add(Mul(), self.active(gate), up, name=f"{at}.gated")
        return self.linear(gated, width, f"{at}.down", "mlp")

    def _experts(self, x: str, at: str) -> str:
        """A router, the experts that it chooses, and one that all tokens go through."""
        experts, net = self.model.experts, self.net
        assert experts is not None
        scores = self.linear(x, experts.experts, f"{at}.router", bias=experts.bias)
        scores = net.add(Softmax(), scores, name=f"{at}.router.softmax")
        present = experts.experts // self.layout.experts
        kind = Experts(total=experts.experts, top=experts.top, gated=self.model.gated,
                       hidden=experts.hidden * self.layout.experts // self.layout.tensor if self.layout.experts > 1
                       else max(1, experts.hidden // self.layout.tensor),
                       experts=0 if present == experts.experts else present, bias=experts.biased)  # fmt: skip
        mixed = net.add(kind, x, scores, name=f"{at}.experts")
        if not experts.shared:
            return mixed
        own = self.dense(x, max(1, experts.shared // self.layout.tensor), f"{at}.shared")
        if experts.gate:
            own = net.add(Mul(), own, self.linear(x, 1, f"{at}.shared.share", bias=False), name=f"{at}.shared.weighted")
        return net.sum(mixed, own, name=f"{at}.experts.all")

    def layers(self, x: str, first: int = 0, last: int = 0) -> str:
        """The layers from `first` up to `last`, all if none is named."""
        for number in range(first, last or self.model.layers):
            x = self.layer(x, number, f"block{number + 1}")
        return x

    def layer(self, x: str, number: int, at: str) -> str:
        """One layer, counted from 0."""
        order, net = self.model.order, self.net
        if order == "post":
            x = self.norm(net.sum(x, self.dropped(self.attention(x, number, at)), name=f"{at}.add1"), f"{at}.norm1")
            mixed = self.dropped(self.feed_forward(x, number, at))
            return self.norm(net.sum(x, mixed, name=f"{at}.add2"), f"{at}.norm2")
        normal = x if order == "after" else self.norm(x, f"{at}.norm1")
        attended = self.attention(normal, number, at)
        if order.startswith("parallel"):
            other = normal if order == "parallel" else self.norm(x, f"{at}.norm2")
            return net.sum(x, attended, self.feed_forward(other, number, at), name=f"{at}.add")
        attended = self.norm(attended, f"{at}.norm1.after") if order in ("after", "both") else attended
        x = net.sum(x, self.scaled(self.dropped(attended), "residual"), name=f"{at}.add1")
        mixed = self.feed_forward(x if order == "after" else self.norm(x, f"{at}.norm2"), number, at)
        mixed = self.norm(mixed, f"{at}.norm2.after") if order in ("after", "both") else mixed
        return net.sum(x, self.scaled(self.dropped(mixed), "residual"), name=f"{at}.add2")


# ------------------------------------------------------------------------------------------------------------ the graph

USUAL_ENCODED, USUAL = 128, 512  # tokens of a sequence where nobody says, as the networks of the zoo have
WHOLE = Layout()


@lru_cache(maxsize=64)
def graph_of(model: TransformerModel) -> Trace:
    """The network of a model, symbols N (sequences) and T (tokens), with a score of every word for every token of a decoder."""
    return STYLES[model.style](model)


@lru_cache(maxsize=256)
def step_of(model: TransformerModel, layout: Layout) -> Trace:
    """A step of a serving engine on one device: N sequences of T new tokens, which attend to S tokens, the new ones among them.

    A device that holds the last layers also scores the words for the last token of each sequence.
    """
    tokens = Extent(usual=1, most=model.context)
    inputs: dict[str, tuple[Dim, ...]] = {"tokens": ("N", "T")} | ({"positions": (1, "T")} if model.positions else {})
    net = Builder(model.name or model.model_type, model.source, inputs, tokens=tokens)
    made = TransformerNet(model, net, layout)
    first, last = layout.first, layout.last or model.layers
    x = _embedded(made) if first == 0 else net.input("hidden", ("N", "T", model.width))
    x = made.layers(x, first, last)
    if last == model.layers:
        x = net.add(Slice(axis=1, stop=1), x, name="last")
        scores = _scores(made, x, -(-model.vocabulary // layout.tensor))
        net.softmax(scores, name="sampled")  # the passes over scores in which a word is chosen, as the engine counts them
    return net.trace()


def _embedded(made: TransformerNet) -> str:
    """Words, and what is added to them."""
    model, net = made.model, made.net
    rows = -(-model.vocabulary // made.layout.tensor)
    x = net.embedding("tokens", rows, model.projected or model.width, name="tokens.embedding")
    x = made.linear(x, model.width, "wide", bias=False) if model.projected else x
    x = made.scaled(x, "embedding")
    tables = (("segments", model.segments), ("positions", model.positions))
    more = [net.embedding(what, rows, model.width, name=f"{what}.embedding") for what, rows in tables if rows]
    x = net.sum(x, *more, name="embeddings") if more else x
    x = made.norm(x, "embeddings.norm") if model.embedding_norm else x
    ratio = 0.0 if made.layout.engine else model.embedding_dropout
    return net.dropout(x, ratio, name="embeddings.dropout") if ratio else x


def _started(model: TransformerModel, usual: int) -> TransformerNet:
    """A network with the inputs of text."""
    inputs: dict[str, tuple[Dim, ...]] = {"tokens": ("N", "T")}
    inputs |= {"segments": ("N", "T")} if model.segments else {}
    inputs |= {"positions": (1, "T")} if model.positions else {}
    extent = Extent(usual=min(usual, model.context), most=model.context)
    return TransformerNet(model, Builder(model.name, model.source, inputs, "; ".join(model.notes), extent), WHOLE)


def _decoder(model: TransformerModel) -> Trace:
    """A model of language: a score of every word for every token, and a softmax over them."""
    made = _started(model, USUAL)
    x = _embedded(made)
    x = made.layers(x)
    made.net.softmax(_scores(made, x, model.vocabulary))
    return made.net.trace()


def _scores(made: TransformerNet, x: str, words: int) -> str:
    """A score of each of so many words for every token."""
    model = made.model
    x = made.norm(x, "norm") if model.final_norm else x
    x = made.linear(x, model.projected, "narrow", bias=False) if model.projected else x
    return made.scaled(made.linear(x, words, "head", "head", tied=model.tied), "scores")


def _encoder(model: TransformerModel) -> Trace:
    """An encoder of text, and a pooler if the family has one; no task's head."""
    made = _started(model, USUAL_ENCODED)
    x = _embedded(made)
    x = made.layers(x)
    if model.pooler:
        _pooled(made, x)
    return made.net.trace()


def _pooled(made: TransformerNet, x: str) -> str:
    """A layer on the first token of each sequence."""
    return made.net.add(Tanh(), made.linear(_first(made, x), made.model.width, "pooler", bias=True), name="pooler.tanh")


def _first(made: TransformerNet, x: str) -> str:
    """The first token of each sequence."""
    first = made.net.add(Slice(axis=1, stop=1), x, name=f"{x}.first")
    return made.net.reshape(first, ("N", made.model.width), name=f"{x}.first.flat")


def _image(model: TransformerModel) -> Trace:
    """An encoder of images in patches; the class token goes to the classifier."""
    image = model.image
    assert image is not None
    count = image.tokens
    inputs: dict[str, tuple[Dim, ...]] = {
        "data": ("N", image.channels, image.size, image.size), "class": ("N", 1), "positions": (1, count + 1)
    }  # fmt: skip
    net = Builder(model.name, model.source, inputs, "; ".join(model.notes))
    made = TransformerNet(model, net, WHOLE)
    x = net.conv("data", model.width, image.patch, image.patch, name="patches")
    x = net.reshape(x, ("N", model.width, count), name="patches.flat")
    x = net.add(Transpose(order=(0, 2, 1)), x, name="patches.tokens")
    x = net.add(Concat(axis=1), net.embedding("class", 1, model.width, name="class.token"), x, name="tokens")
    x = net.sum(x, net.embedding("positions", count + 1, model.width, name="positions.embedding"), name="embeddings")
    x = made.layers(x)
    x = made.norm(x, "norm")
    if image.pooler:
        _pooled(made, x)
        return net.trace()
    net.softmax(made.linear(_first(made, x), image.classes, "head", bias=True))
    return net.trace()


def _speech(model: TransformerModel) -> Trace:
    """An encoder of spectrograms, and a decoder that reads T tokens of text and the encoder's result (Radford et al. 2022)."""
    audio = model.audio
    assert audio is not None
    inputs: dict[str, tuple[Dim, ...]] = {
        "data": ("N", audio.bins, 2 * audio.frames, 1), "frames": (1, audio.frames), "tokens": ("N", "T"), "positions": (1, "T")
    }  # fmt: skip
    net = Builder(model.name, model.source, inputs, "; ".join(model.notes), Extent(usual=model.context, most=model.context))
    made = TransformerNet(model, net, WHOLE)
    x = made.active(net.conv("data", model.width, (3, 1), (1, 1), (1, 0), name="conv1"))
    x = made.active(net.conv(x, model.width, (3, 1), (2, 1), (1, 0), name="conv2"))
    x = net.reshape(x, ("N", model.width, audio.frames), name="conv2.flat")
    x = net.add(Transpose(order=(0, 2, 1)), x, name="conv2.frames")
    x = net.sum(x, net.embedding("frames", audio.frames, model.width, name="frames.embedding"), name="frames.placed")
    for number in range(audio.layers):
        at = f"encoder{number + 1}"
        x = net.sum(x, _crossed(made, made.norm(x, f"{at}.norm1"), "", f"{at}.self", audio.heads, False), name=f"{at}.add1")
        x = net.sum(x, made.dense(made.norm(x, f"{at}.norm2"), audio.hidden, at), name=f"{at}.add2")
    memory = made.norm(x, "encoder.norm")
    x = _embedded(made)
    for number in range(model.layers):
        at = f"decoder{number + 1}"
        x = net.sum(x, _crossed(made, made.norm(x, f"{at}.norm1"), "", f"{at}.self", model.heads, True), name=f"{at}.add1")
        x = net.sum(x, _crossed(made, made.norm(x, f"{at}.norm2"), memory, f"{at}.cross", model.heads, False), name=f"{at}.add2")
        x = net.sum(x, made.dense(made.norm(x, f"{at}.norm3"), model.hidden, at), name=f"{at}.add3")
    net.softmax(made.linear(made.norm(x, "norm"), model.vocabulary, "head", bias=False, tied=True))
    return net.trace()


def _crossed(made: TransformerNet, x: str, memory: str, at: str, heads: int, causal: bool) -> str:
    """Attention to the tokens themselves, or to the encoder's `memory`."""
    width, source = made.model.width, memory or x
    query = made.linear(x, width, f"{at}.query", "query")
    key, value = (made.linear(source, width, f"{at}.{part}", part) for part in ("key", "value"))
    mixed = made.net.add(Attention(heads=heads, causal=causal), query, key, value, name=f"{at}.attention")
    return made.linear(mixed, width, f"{at}.output", "output")


STYLES: dict[str, Callable[[TransformerModel], Trace]] = {
    "decoder": _decoder, "encoder": _encoder, "image": _image, "speech": _speech
}  # fmt: skip
