"""Fully connected networks, with sigmoids between the layers."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.trace.trace import Trace
from archsim.trace.zoo.alexnet import DLBENCH
from archsim.trace.zoo.builder import Builder

GUOLINKE = "G. Ke, deep-learning-benchmarks, github.com/guolinke/deep-learning-benchmarks"
WIDE = 26752  # features in and out of the synthetic networks
# Inferred, not read: with the 26752 features of its scripts the published K40 times would take six times the card's peak.
NARROW_IN, NARROW_OUT = 512, 1000


def fcn_s() -> Trace:
    """Three hidden layers of 2048 on synthetic features."""
    return _layers("fcn_s", f"{DLBENCH}, synthetic/experiments/torch/fc", [WIDE, 2048, 2048, 2048, WIDE])


def fcn_r() -> Trace:
    """Three hidden layers for MNIST."""
    return _layers("fcn_r", f"{DLBENCH}, tools/torch/Models/ffn5", [784, 2048, 4096, 1024, 10])


def fcn_5() -> Trace:
    """Five layers of values: input, three hidden layers of 2048, output."""
    return _layers("fcn_5", GUOLINKE, [NARROW_IN, 2048, 2048, 2048, NARROW_OUT])


def fcn_8() -> Trace:
    """Eight layers of values: input, six hidden layers of 2048, output."""
    return _layers("fcn_8", GUOLINKE, [NARROW_IN, *[2048] * 6, NARROW_OUT])


def _layers(name: str, source: str, features: Sequence[int]) -> Trace:
    net = Builder(name, source, {"data": ("N", features[0])})
    x = "data"
    for number, size in enumerate(features[1:-1], 1):
        x = net.sigmoid(net.linear(x, size, name=f"fc{number}"), name=f"sigmoid{number}")
    net.softmax(net.linear(x, features[-1], name=f"fc{len(features) - 1}"))
    return net.trace()
