"""`Builder` builds a network op by op, each method adds one op and returns its tensor; and blocks that several families share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archsim.trace.dims import Dim, Extent, Shape, bind_dims
from archsim.trace.kind import Kind
from archsim.trace.kinds.convolution import AvgPool, Conv2d, GlobalAvgPool, MaxPool
from archsim.trace.kinds.dense import Embedding, Linear
from archsim.trace.kinds.normalise import BatchNorm, Lrn, Softmax
from archsim.trace.kinds.pointwise import Add, Dropout, Mul, Relu, Relu6, Sigmoid
from archsim.trace.kinds.sequence import Lstm
from archsim.trace.kinds.shaping import Concat, Reshape, Slice, Transpose
from archsim.trace.trace import Op, Trace

BATCH, TOKENS, CACHED = 1_000_003, 1_000_033, 1_000_037  # of N, T and S while shapes are computed: primes that divide no size
TABLE = "tokens.embedding"  # the op that looks up words, whose table may score them too (Press and Wolf 2017)
STANDING = {"N": BATCH, "T": TOKENS, "S": CACHED}

Size = int | tuple[int, int]
Edges = int | tuple[int, int] | tuple[int, int, int, int]


def both(size: Size) -> tuple[int, int]:
    """One number for both directions, or one for each.

    >>> both(3), both((1, 7))
    ((3, 3), (1, 7))
    """
    return size if isinstance(size, tuple) else (size, size)


def edges(pad: Edges) -> tuple[int, ...]:
    """Padding as a kind wants it: two or four numbers.

    >>> edges(1), edges((0, 0, 1, 1))
    ((1, 1), (0, 0, 1, 1))
    """
    return pad if isinstance(pad, tuple) else (pad, pad)


class Builder:
    """A network under construction, with the batch `N` as a symbol, and the tokens `T` of a sequence if `tokens` sizes them.

    An op is called `name`, or after its input: the ReLU of `conv1` is `conv1.relu`.
    """

    def __init__(
        self, name: str, source: str, inputs: Mapping[str, Sequence[Dim]], notes: str = "", tokens: Extent | None = None
    ) -> None:
        self.name, self.source, self.notes, self.tokens = name, source, notes, tokens
        self.inputs = {key: tuple(dims) for key, dims in inputs.items()}
        self._shapes: dict[str, Shape] = {key: bind_dims(dims, STANDING) for key, dims in self.inputs.items()}
        self._ops: list[Op] = []

    def trace(self, aliases: Sequence[str] = (), outputs: Sequence[str] = ()) -> Trace:
        """What was built. Its output is the last op, if none is named."""
        symbols = {"N": "samples in a batch"} | ({"T": "tokens of a sequence"} if self.tokens else {})
        return Trace(
            name=self.name, inputs=self.inputs, source=self.source, ops=tuple(self._ops), aliases=tuple(aliases),
            outputs=tuple(outputs) or (self._ops[-1].name,), symbols=symbols, notes=self.notes,
            sizes={"T": self.tokens} if self.tokens else {},
        )  # fmt: skip

    def input(self, name: str, dims: Sequence[Dim]) -> str:
        """One more input."""
        self.inputs[name] = tuple(dims)
        self._shapes[name] = bind_dims(dims, STANDING)
        return name

    def shape(self, tensor: str) -> Shape:
        """Shape of a tensor, with `BATCH` for N and `TOKENS` for T."""
        return self._shapes[tensor]

    def channels(self, tensor: str) -> int:
        """Size of axis 1."""
        return self._shapes[tensor][1]

    def add(self, kind: Kind, *inputs: str, name: str, recorded: Shape = (), tied: bool = False) -> str:
        """One op of any kind; `recorded` holds what the kind is free to choose. If `tied`, it has the table of words, if any."""
        if name in self._shapes:
            raise ValueError(f"network {self.name!r} already has a tensor {name!r}")
        try:
            shape = kind.shape([self._shapes[tensor] for tensor in inputs], recorded)
        except ValueError as error:
            said = str(error)
            for symbol, value in STANDING.items():
                said = said.replace(str(value), symbol)
            raise ValueError(f"{self.name}: {name!r} ({kind.op}) {said}") from None
        self._shapes[name] = shape
        shares = TABLE if tied and TABLE in self._shapes else ""
        self._ops.append(Op(name=name, kind=kind, inputs=inputs, shape=tuple(map(_symbolic, shape)), shares=shares))
        return name

    def conv(
        self, x: str, channels: int, kernel: Size, stride: Size = 1, pad: Edges = 0, *,
        dilation: int = 1, groups: int = 1, bias: bool = True, name: str,
    ) -> str:  # fmt: skip
        """Convolution to `channels`."""
        kind = Conv2d(kernel=both(kernel), stride=both(stride), pad=edges(pad), dilation=both(dilation), groups=groups, bias=bias)
        return self.add(kind, x, name=name, recorded=(0, channels))

    def conv_bn(
        self, x: str, channels: int, kernel: Size, stride: Size = 1, pad: Edges = 0, *, bias: bool = False, name: str, **more: int
    ) -> str:
        """Convolution and batch normalisation."""
        made = self.conv(x, channels, kernel, stride, pad, bias=bias, name=name, **more)
        return self.batch_norm(made, name=f"{name}.bn")

    def conv_bn_relu(self, x: str, channels: int, kernel: Size, *place: Any, name: str, **more: Any) -> str:
        """Convolution, batch normalisation and rectifier."""
        return self.relu(self.conv_bn(x, channels, kernel, *place, name=name, **more), name=f"{name}.relu")

    def linear(self, x: str, features: int, *, bias: bool = True, tied: bool = False, name: str) -> str:
        """Fully connected layer, with the weights of an embedding if `tied`; an image is flattened first."""
        flat = self.flatten(x) if len(self._shapes[x]) == 4 else x
        return self.add(Linear(bias=bias), flat, name=name, recorded=(features,), tied=tied)

    def classified(self, x: str, classes: int = 1000, *, name: str = "fc", aliases: Sequence[str] = ()) -> Trace:
        """The network, which ends in scores of classes and a softmax over them."""
        self.softmax(self.linear(x, classes, name=name))
        return self.trace(aliases=aliases)

    def classified_mean(self, x: str, *, aliases: Sequence[str] = ()) -> Trace:
        """The network, which ends in scores of classes from the mean of each plane."""
        return self.classified(self.global_avg_pool(x, name="pool"), aliases=aliases)

    def flatten(self, x: str) -> str:
        """[N, C, H, W] to [N, C H W]."""
        n, c, h, w = self._shapes[x]
        return self.add(Reshape(), x, name=f"{x}.flatten", recorded=(n, c * h * w))

    def max_pool(self, x: str, kernel: int, stride: int, pad: Edges = 0, *, ceil: bool = False, name: str) -> str:
        """Maximum over square windows."""
        kind = MaxPool(kernel=both(kernel), stride=both(stride), pad=edges(pad), ceil_mode=ceil)
        return self.add(kind, x, name=name)

    def avg_pool(self, x: str, kernel: int, stride: int, pad: int = 0, *, ceil: bool = False, name: str) -> str:
        """Mean over square windows."""
        return self.add(AvgPool(kernel=both(kernel), stride=both(stride), pad=both(pad), ceil_mode=ceil), x, name=name)

    def global_avg_pool(self, x: str, *, name: str) -> str:
        """Mean over each plane."""
        return self.add(GlobalAvgPool(), x, name=name)

    def batch_norm(self, x: str, *, name: str = "") -> str:
        """Batch normalisation."""
        return self.add(BatchNorm(), x, name=name or f"{x}.bn")

    def activate(self, x: str, kind: Kind, *, name: str) -> str:
        """Any activation of one input; the op's name ends in that of its kind."""
        return self.add(kind, x, name=f"{name}.{kind.op}")

    def relu(self, x: str, *, name: str = "") -> str:
        """Rectifier."""
        return self.add(Relu(), x, name=name or f"{x}.relu")

    def relu6(self, x: str, *, name: str = "") -> str:
        """Rectifier that stops at 6."""
        return self.add(Relu6(), x, name=name or f"{x}.relu6")

    def bn_relu(self, x: str, *, name: str) -> str:
        """Batch normalisation and rectifier."""
        return self.relu(self.batch_norm(x, name=f"{name}.bn"), name=f"{name}.relu")

    def lrn(self, x: str, size: int = 5, *, name: str) -> str:
        """Local response normalisation across channels."""
        return self.add(Lrn(size=size), x, name=name)

    def dropout(self, x: str, ratio: float = 0.5, *, name: str) -> str:
        """Dropout."""
        return self.add(Dropout(ratio=ratio), x, name=name)

    def softmax(self, x: str, *, name: str = "prob") -> str:
        """Softmax over the last axis."""
        return self.add(Softmax(), x, name=name)

    def sum(self, *xs: str, name: str) -> str:
        """Sum of tensors of one shape."""
        return self.add(Add(), *xs, name=name)

    def add_relu(self, *xs: str, name: str) -> str:
        """Sum of tensors of one shape, rectified."""
        return self.relu(self.sum(*xs, name=f"{name}.add"), name=f"{name}.relu")

    def product(self, *xs: str, name: str) -> str:
        """Product of tensors, element by element; dimensions of size 1 stretch."""
        return self.add(Mul(), *xs, name=name)

    def concat(self, *xs: str, name: str) -> str:
        """Tensors one after the other along the channels."""
        return self.add(Concat(axis=1), *xs, name=name)

    def part(self, x: str, start: int, stop: int, axis: int = 1, *, name: str) -> str:
        """Indices from `start` up to `stop`, of the channels unless another axis is named."""
        return self.add(Slice(axis=axis, start=start, stop=stop), x, name=name)

    def transpose(self, x: str, *order: int, name: str) -> str:
        """Dimensions in another order."""
        return self.add(Transpose(order=order), x, name=name)

    def embedding(self, tokens: str, vocabulary: int, features: int, *, name: str) -> str:
        """Lookup in a learned table."""
        return self.add(Embedding(vocabulary=vocabulary, features=features), tokens, name=name)

    def lstm(self, x: str, hidden: int, layers: int, *, name: str) -> str:
        """LSTM layers over a sequence [T, N, features]."""
        return self.add(Lstm(hidden=hidden, layers=layers), x, name=name)

    def reshape(self, x: str, shape: Sequence[Dim], *, name: str) -> str:
        """The same values under another shape."""
        return self.add(Reshape(), x, name=name, recorded=bind_dims(shape, STANDING))


def images(name: str, source: str, side: int = 224, notes: str = "") -> Builder:
    """A network of colour images, `side` pixels wide and high."""
    return Builder(name, source, {"data": ("N", 3, side, side)}, notes)


def _symbolic(size: int) -> Dim:
    """A size with the symbols back in place.

    >>> _symbolic(224), _symbolic(BATCH), _symbolic(32 * BATCH), _symbolic(BATCH * TOKENS)
    (224, 'N', '32*N', 'N*T')
    """
    found = []
    for symbol, value in STANDING.items():
        if size % value == 0:
            found.append(symbol)
            size //= value
    return "*".join([str(size)] * (size > 1) + found) if found else size


# --------------------------------------------------------------------------------------------------------------- blocks


def stem_of(net: Builder, channels: int = 64, *, number: int = 1) -> str:
    """7 x 7 and a pooling, each of which halves the image (He et al. 2015)."""
    return net.max_pool(net.conv_bn_relu("data", channels, 7, 2, 3, name=f"conv{number}"), 3, 2, 1, name=f"pool{number}")


HU = "J. Hu et al., Squeeze-and-Excitation Networks, arXiv:1709.01507"


def squeeze_excite(
    net: Builder, x: str, squeezed: int, *, active: Kind | None = None, gate: Kind | None = None, name: str
) -> str:
    """Each channel times a gate from the means of all: two layers with `squeezed` values between (Hu et al., figure 3)."""
    y = net.global_avg_pool(x, name=f"{name}.squeeze")
    y = net.activate(net.conv(y, squeezed, 1, name=f"{name}.reduce"), active or Relu(), name=f"{name}.reduce")
    y = net.activate(net.conv(y, net.channels(x), 1, name=f"{name}.excite"), gate or Sigmoid(), name=f"{name}.excite")
    return net.product(x, y, name=f"{name}.scale")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inverted:
    """One inverted residual: `wide` channels inside, `squeezed` ones in its gate (0: no gate)."""

    kernel: int
    wide: int
    channels: int
    stride: int
    active: Kind
    squeezed: int = 0
    squeeze_active: Kind | None = None
    gate: Kind | None = None


def inverted_residual(net: Builder, x: str, block: Inverted, name: str) -> str:
    """1 x 1 up, depthwise, gate, 1 x 1 down without activation; added to the input where the shapes agree (Sandler et al.)."""
    y = x
    if block.wide != net.channels(x):
        y = net.activate(net.conv_bn(y, block.wide, 1, name=f"{name}.expand"), block.active, name=f"{name}.expand")
    y = net.conv_bn(y, block.wide, block.kernel, block.stride, block.kernel // 2, groups=block.wide, name=f"{name}.depthwise")
    y = net.activate(y, block.active, name=f"{name}.depthwise")
    if block.squeezed:
        y = squeeze_excite(net, y, block.squeezed, active=block.squeeze_active, gate=block.gate, name=f"{name}.se")
    y = net.conv_bn(y, block.channels, 1, name=f"{name}.project")
    return net.sum(x, y, name=f"{name}.add") if block.stride == 1 and net.channels(x) == block.channels else y


def shuffled(net: Builder, x: str, groups: int, name: str) -> str:
    """Channel shuffle: the i-th channels of all groups side by side (Zhang et al. 2018, ShuffleNet, figure 1)."""
    _, channels, height, width = net.shape(x)
    y = net.reshape(x, ("N", groups, channels // groups, height, width), name=f"{name}.grouped")
    y = net.transpose(y, 0, 2, 1, 3, 4, name=f"{name}.shuffle")
    return net.reshape(y, ("N", channels, height, width), name=f"{name}.shuffled")


def divisible(channels: float, by: int = 8) -> int:
    """The nearest multiple of `by`, not below nine tenths of the value, as published code of mobile networks rounds widths.

    >>> divisible(12), divisible(35.2), divisible(19)
    (16, 32, 24)
    """
    nearest = max(by, int(channels + by / 2) // by * by)
    return nearest + by if nearest < 0.9 * channels else nearest
