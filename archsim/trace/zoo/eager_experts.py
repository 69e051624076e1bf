"""Switch Transformers op by op, with eager attention: an encoder and a decoder in which every other layer has experts.

Positions enter as a bias of the scores. Each expert takes as many rows of a sample as its capacity, empty ones too, as NeuSight
(ASPLOS 2025) rewrote the module; what it makes is put back among the tokens.
"""

from __future__ import annotations

from archsim.trace.dims import Extent
from archsim.trace.kinds.dense import Embedding
from archsim.trace.kinds.normalise import Softmax
from archsim.trace.kinds.pointwise import Add, Mul, ScaleBy
from archsim.trace.kinds.shaping import Concat
from archsim.trace.trace import Trace
from archsim.trace.zoo.eager_net import Config, EagerNet


def switch(name: str, config: Config, tokens: Extent, notes: str) -> Trace:
    """Both stacks read sequences of one length; logits of the decoder."""
    made = EagerNet(name, config, tokens, notes, "switch_transformers", "answer")
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
