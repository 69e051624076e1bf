"""Plain convolutional networks: LeNet-5, Network in Network, and VGG, doubled in width after each of five poolings."""

from __future__ import annotations

from archsim.trace.kinds.activation import Tanh
from archsim.trace.trace import Trace
from archsim.trace.zoo.alexnet import classifier
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


SIMONYAN = "Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition, arXiv:1409.1556"
NORMALISED = "batch normalisation after each convolution, as in torchvision's vgg.py"
WIDTHS = (64, 128, 256, 512, 512)
VGG = "vgg_a", "vgg_13", "vgg_16", "vgg_19", "vgg_11_bn", "vgg_13_bn", "vgg_16_bn", "vgg_19_bn"

# layers -> (column of table 1, convolutions in each stage)
CONFIGURATIONS = {
    11: ("A", (1, 1, 2, 2, 2)), 13: ("B", (2, 2, 2, 2, 2)), 16: ("D", (2, 2, 3, 3, 3)), 19: ("E", (2, 2, 4, 4, 4)),
}  # fmt: skip


def vgg(name: str) -> Trace:
    """The network of one row of `VGG`; `vgg_a` is the one of 11 layers, `_bn` adds batch normalisation."""
    normalised = name.endswith("_bn")
    depth = 11 if name == "vgg_a" else int(name.split("_")[1])
    column, convolutions = CONFIGURATIONS[depth]
    source = f"{SIMONYAN}, table 1 column {column}"
    net = Builder(name, f"{source}; {NORMALISED}" if normalised else source, {"data": ("N", 3, 224, 224)})
    x = "data"
    for stage, (count, channels) in enumerate(zip(convolutions, WIDTHS, strict=True), 1):
        for number in range(1, count + 1):
            x = net.conv(x, channels, 3, pad=1, name=f"conv{stage}_{number}")
            x = net.relu(net.batch_norm(x) if normalised else x, name=f"relu{stage}_{number}")
        x = net.max_pool(x, 2, 2, name=f"pool{stage}")
    aliases = ("vgg_11",) if name == "vgg_a" else (f"vgg{depth}_bn" if normalised else f"vgg{depth}",)
    return classifier(net, x, drop_after=True, aliases=aliases)
