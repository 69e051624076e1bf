"""Early convolutional networks: LeNet-5 and Network in Network."""

from __future__ import annotations

from archsim.trace.kinds.activation import Tanh
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

LECUN = "Y. LeCun et al., Gradient-Based Learning Applied to Document Recognition, Proceedings of the IEEE 86(11), 1998, figure 2"
LIN = "M. Lin, Q. Chen, S. Yan, Network In Network, arXiv:1312.4400; the ImageNet model of the Caffe model zoo"


def lenet_5() -> Trace:
    """32 x 32 digits; as usually rebuilt: full connections in C3, means without weights, a softmax."""
    net = Builder("lenet_5", LECUN, {"data": ("N", 1, 32, 32)}, notes="C3 fully connected, poolings without weights, softmax")
    x = net.activate(net.conv("data", 6, 5, name="c1"), Tanh(), name="c1")
    x = net.activate(net.conv(net.avg_pool(x, 2, 2, name="s2"), 16, 5, name="c3"), Tanh(), name="c3")
    x = net.activate(net.conv(net.avg_pool(x, 2, 2, name="s4"), 120, 5, name="c5"), Tanh(), name="c5")
    x = net.activate(net.linear(x, 84, name="f6"), Tanh(), name="f6")
    net.softmax(net.linear(x, 10, name="output"))
    return net.trace(aliases=("lenet5", "lenet"))


def nin() -> Trace:
    """Four convolutions, each with two 1 x 1 convolutions behind it; the last has a channel for each class."""
    net = Builder("nin", LIN, {"data": ("N", 3, 224, 224)})
    x = _convolutions(net, "data", (96, 96, 96), 11, 4, 0, 1)
    x = _convolutions(net, net.max_pool(x, 3, 2, ceil=True, name="pool1"), (256, 256, 256), 5, 1, 2, 2)
    x = _convolutions(net, net.max_pool(x, 3, 2, ceil=True, name="pool2"), (384, 384, 384), 3, 1, 1, 3)
    x = net.dropout(net.max_pool(x, 3, 2, ceil=True, name="pool3"), name="drop")
    x = _convolutions(net, x, (1024, 1024, 1000), 3, 1, 1, 4)
    net.softmax(net.flatten(net.global_avg_pool(x, name="pool4")))
    return net.trace(aliases=("network_in_network",))


def _convolutions(net: Builder, x: str, widths: tuple[int, int, int], kernel: int, stride: int, pad: int, number: int) -> str:
    x = net.relu(net.conv(x, widths[0], kernel, stride, pad, name=f"conv{number}"))
    for step, channels in enumerate(widths[1:], 1):
        x = net.relu(net.conv(x, channels, 1, name=f"cccp{number}_{step}"))
    return x
