"""The graph of a transformer: a whole sequence at once, as its module runs it, or a step of a serving engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from archsim.trace.dims import Dim, Extent
from archsim.trace.huggingface.model import TransformerModel
from archsim.trace.huggingface.parts import Layout, TransformerNet
from archsim.trace.kinds.activation import Tanh
from archsim.trace.kinds.attention import Attention
from archsim.trace.kinds.shaping import Concat, Slice, Transpose
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

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
    for number in range(first, last):
        x = made.layer(x, number, f"block{number + 1}")
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
    for number in range(model.layers):
        x = made.layer(x, number, f"block{number + 1}")
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
    for number in range(model.layers):
        x = made.layer(x, number, f"block{number + 1}")
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
    for number in range(model.layers):
        x = made.layer(x, number, f"block{number + 1}")
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
