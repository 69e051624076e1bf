"""The six workloads of the first TPU (Jouppi et al. 2017), made from the facts of their tables.

The networks themselves were never published. What is: the number of layers of each kind, the weights, the multiply-adds for each
byte of weights and the batch (table 1), that CNN1 is an Inception and CNN0 AlphaGo (its caption), and some sizes in the text:
products of 600 x 600 in LSTM1 (section 7), boards of 19 x 19 as 2888 multiply-adds for each weight at a batch of 8 say of CNN0.
Where nothing says otherwise layers are alike and square.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isqrt

from archsim.trace.kinds.activation import Sigmoid
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder
from archsim.trace.zoo.inception import INCEPTION_BN, halving_module

SOURCE = "made from Jouppi et al., In-Datacenter Performance Analysis of a TPU (ISCA 2017), table 1: weights, layers and batch"
BATCHES = {"mlp0": 200, "mlp1": 168, "lstm0": 64, "lstm1": 96, "cnn0": 8, "cnn1": 32}  # of table 1

# CNN1: (channels, side of the filter, stride, padding) of the stem; side of the image; width of the four last layers
STEM = (32, 3, 2, 0), (32, 3, 1, 0), (64, 3, 1, 1), (64, 1, 1, 0), (80, 3, 1, 1), (192, 3, 1, 1)
SIDE, LAST = 337, 5299


def _batch(name: str) -> str:
    return f"batch {BATCHES[name.removeprefix('jouppi_')]}"


def _dense(name: str, layers: int, weights: float) -> Trace:
    """Fully connected layers with ReLU, alike and square."""
    size = isqrt(round(weights / layers))
    net = Builder(name, SOURCE, {"data": ("N", size)}, notes=f"{_batch(name)}; layers alike and square")
    x = "data"
    for i in range(layers):
        x = net.relu(net.linear(x, size, bias=False, name=f"fc{i + 1}"))
    return net.trace()


def _recurrent(name: str, layers: int, vectors: int, size: int, products: int) -> Trace:
    """Products of [N, size] with weights [size, size], `layers` of them, or of `products` that are dealt to the layers.

    The element-wise layers are sigmoids behind products, and products of gates where there are more.
    """
    net = Builder(name, SOURCE, {"data": ("N", size)}, notes=f"{_batch(name)}; one step of the recurrence")
    x = "data"
    for i in range(layers):
        gates = products * (i + 1) // layers - products * i // layers
        results = [net.linear(x, size, bias=False, name=f"fc{i + 1}.{gate + 1}") for gate in range(gates)]
        x = results[0] if gates == 1 else net.sum(*results, name=f"fc{i + 1}")
        if i < vectors:
            x = net.add(Sigmoid(), x, name=f"vector{i + 1}")
        if i < vectors - layers:
            x = net.product(x, x, name=f"vector{layers + i + 1}")
    return net.trace()


def _board() -> Trace:
    """Sixteen convolutions of 3 x 3 over 19 x 19 points with ReLU: 8 million weights, alike."""
    width = isqrt(round(8e6 / 16 / 9))
    notes = f"{_batch('jouppi_cnn0')}; boards of 19 x 19 are inferred from 2888 = 8 x 361"
    net = Builder("jouppi_cnn0", SOURCE, {"data": ("N", width, 19, 19)}, notes=notes)
    x = "data"
    for i in range(16):
        x = net.relu(net.conv(x, width, 3, pad=1, bias=False, name=f"conv{i + 1}"))
    return net.trace()


def _inception() -> Trace:
    """72 convolutions, 13 poolings and four fully connected layers: an Inception, which is what the paper calls it.

    The ten modules of Inception-BN have 66 of the convolutions and ten of the poolings, with their published widths. A stem of
    six convolutions and two poolings, as the versions after it have, and the pooling of the whole image make up the numbers of
    table 1. 1750 multiply-adds for each weight at a batch of 32 then say the side of the image, and 100 million weights the four
    layers, which are alike but for the inputs of the first. Widths are the published ones;
    what other widths and stems would do to the time was looked at (manual, page tpu).
    """
    notes = f"{_batch('jouppi_cnn1')}; modules of Inception-BN; side and the last layers follow from table 1"
    net = Builder(
        "jouppi_cnn1", f"{SOURCE}; the caption of table 1: one CNN is Inception", {"data": ("N", 3, SIDE, SIDE)}, notes=notes
    )
    x = "data"
    for number, (channels, kernel, stride, pad) in enumerate(STEM, 1):
        x = _conv(net, x, channels, kernel, stride, pad, name=f"conv{number}")
        if number in (3, 6):
            x = net.max_pool(x, 3, 2, name=f"pool{number // 3}")
    for name, widths in INCEPTION_BN.items():
        x = halving_module(net, x, widths, f"inception_{name}", _conv)
    x = net.flatten(net.global_avg_pool(x, name="pool13"))
    for i in range(4):
        x = net.relu(net.linear(x, LAST, bias=False, name=f"fc{i + 1}"))
    return net.trace()


def _conv(
    net: Builder, x: str, channels: int, kernel: int, stride: int = 1, pad: int | None = None, *, name: str
) -> str:
    pad = kernel // 2 if pad is None else pad
    return net.relu(net.conv(x, channels, kernel, stride, pad, bias=False, name=name))


WORKLOADS: dict[str, Callable[[], Trace]] = {
    "mlp0": partial(_dense, "jouppi_mlp0", 5, 20e6),
    "mlp1": partial(_dense, "jouppi_mlp1", 4, 5e6),
    "lstm0": partial(_recurrent, "jouppi_lstm0", 24, 34, 1472, 24),
    "lstm1": partial(_recurrent, "jouppi_lstm1", 37, 19, 600, 94),
    "cnn0": _board,
    "cnn1": _inception,
}
