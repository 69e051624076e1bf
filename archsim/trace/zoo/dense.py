"""Fully connected networks, with sigmoids between the layers."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.trace.kinds.activation import Sigmoid
from archsim.trace.kinds.dense import Linear
from archsim.trace.kinds.normalise import ArgMax, Softmax
from archsim.trace.kinds.pointwise import ScaleBy
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


def fcn_s_tensorflow() -> Trace:
    """The same as TensorFlow's script has it: labels with a value for each class, a loss of single ops, predictions counted.

    The script draws weights between -0.5 and 0.5 and features with a variance of 1, so that the sums of the first layer have a
    standard deviation of 47 and their sigmoids end at 0 or 1. Computed in fp32 with these distributions, 3.3 % of the values of
    that layer's gradient are subnormal.
    """
    source = f"{DLBENCH}, synthetic/experiments/tensorflow/fc/ffn26752.py"
    net = Builder("fcn_s@tensorflow", source, {"data": ("N", WIDE), "labels": ("N", WIDE)})
    logits = _hidden(net, [2048, 2048, 2048, WIDE], subnormal=0.033)
    net.add(Softmax(apart=True), logits, name="prob")
    outputs = ["prob", *[net.add(ArgMax(), x, name=f"{x}.argmax") for x in (logits, "labels")]]
    return net.trace(outputs=outputs)


def fcn_r() -> Trace:
    """Three hidden layers for MNIST."""
    return _layers("fcn_r", f"{DLBENCH}, tools/torch/Models/ffn5", [784, 2048, 4096, 1024, 10])


def fcn_r_cntk() -> Trace:
    """The same as CNTK's script has it: the widest layer first, and features divided by 256."""
    net = Builder("fcn_r@cntk", f"{DLBENCH}, tools/cntk/fc/fcn5.cntk", {"data": ("N", 784)})
    net.softmax(_hidden(net, [4096, 2048, 1024, 10], net.add(ScaleBy(factor=1 / 256), "data", name="scaled")))
    return net.trace()


def fcn_5() -> Trace:
    """Five layers of values: input, three hidden layers of 2048, output."""
    return _layers("fcn_5", GUOLINKE, [NARROW_IN, 2048, 2048, 2048, NARROW_OUT])


def fcn_8() -> Trace:
    """Eight layers of values: input, six hidden layers of 2048, output."""
    return _layers("fcn_8", GUOLINKE, [NARROW_IN, *[2048] * 6, NARROW_OUT])


def _layers(name: str, source: str, features: Sequence[int]) -> Trace:
    net = Builder(name, source, {"data": ("N", features[0])})
    net.softmax(_hidden(net, features[1:]))
    return net.trace()


def _hidden(net: Builder, features: Sequence[int], x: str = "data", subnormal: float = 0.0) -> str:
    """The layers from `x` to the logits; `subnormal`: of the gradient of the first one."""
    for number, size in enumerate(features, 1):
        kind = Linear(subnormal=subnormal if number == 1 else 0.0)
        x = net.add(kind, x, name=f"fc{number}", recorded=(size,))
        x = net.add(Sigmoid(), x, name=f"sigmoid{number}") if number < len(features) else x
    return x
