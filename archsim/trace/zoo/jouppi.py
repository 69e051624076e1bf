"""The six workloads of the first TPU (Jouppi et al. 2017), made from the facts of their tables.

The networks themselves were never published. What is: the number of layers of each kind, the weights, the multiply-adds for each
byte of weights and the batch (table 1), and some sizes in the text: products of 600 x 600 in LSTM1 (section 7), boards of 19 x 19
as 2888 multiply-adds for each weight at a batch of 8 say of CNN0. Where nothing says otherwise layers are alike and square.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isqrt

from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

SOURCE = "made from Jouppi et al., In-Datacenter Performance Analysis of a TPU (ISCA 2017), table 1: weights, layers and batch"
BATCHES = {"mlp0": 200, "mlp1": 168, "lstm0": 64, "lstm1": 96, "cnn0": 8, "cnn1": 32}  # of table 1


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
            x = net.sigmoid(x, name=f"vector{i + 1}")
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


def _deep() -> Trace:
    """72 convolutions of 128 channels, 13 poolings and four fully connected layers.

    Half of the cells hold useful weights (table 3), as with 128 channels on 256 columns; 1750 multiply-adds for each weight at a
    batch of 32 then leave 22 x 22 points, and 100 million weights the four layers behind.
    """
    width, points, wide = 128, 22, 4728
    notes = f"{_batch('jouppi_cnn1')}; depth and points follow from tables 1 and 3"
    net = Builder("jouppi_cnn1", SOURCE, {"data": ("N", width, points, points)}, notes=notes)
    x = "data"
    for i in range(72):
        x = net.relu(net.conv(x, width, 3, pad=1, bias=False, name=f"conv{i + 1}"))
        if i % 6 == 5:
            x = net.max_pool(x, 3, 1, 1, name=f"pool{i // 6 + 1}")
    x = net.flatten(net.max_pool(x, 7, 3, 0, name="pool13"))
    for i in range(4):
        x = net.relu(net.linear(x, wide, bias=False, name=f"fc{i + 1}"))
    return net.trace()


WORKLOADS: dict[str, Callable[[], Trace]] = {
    "mlp0": partial(_dense, "jouppi_mlp0", 5, 20e6),
    "mlp1": partial(_dense, "jouppi_mlp1", 4, 5e6),
    "lstm0": partial(_recurrent, "jouppi_lstm0", 24, 34, 1472, 24),
    "lstm1": partial(_recurrent, "jouppi_lstm1", 37, 19, 600, 94),
    "cnn0": _board,
    "cnn1": _deep,
}
