"""Xception: depthwise separable convolutions with residual connections, 299 x 299."""

from __future__ import annotations

from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

SOURCE = "F. Chollet, Xception: Deep Learning with Depthwise Separable Convolutions, arXiv:1610.02357, figure 5"
MIDDLE = 8


def xception() -> Trace:
    """Entry, middle and exit flow; only the 1 x 1 half of a separable convolution is normalised."""
    net = Builder("xception", SOURCE, {"data": ("N", 3, 299, 299)})
    x = net.conv_bn_relu(net.conv_bn_relu("data", 32, 3, 2, name="conv1"), 64, 3, name="conv2")
    for number, channels in enumerate((128, 256, 728), 1):
        x = _halve(net, x, (channels, channels), f"entry{number}", rectified=number == 1)
    for number in range(1, MIDDLE + 1):
        y = x
        for step in range(1, 4):
            y = _separable(net, net.relu(y, name=f"middle{number}.relu{step}"), 728, f"middle{number}.{step}")
        x = net.sum(x, y, name=f"middle{number}.add")
    x = _halve(net, x, (728, 1024), "exit1")
    for number, channels in ((2, 1536), (3, 2048)):
        x = net.relu(_separable(net, x, channels, f"exit{number}"), name=f"exit{number}.relu")
    net.softmax(net.linear(net.global_avg_pool(x, name="pool"), 1000, name="fc"))
    return net.trace()


def _halve(net: Builder, x: str, widths: tuple[int, int], name: str, rectified: bool = False) -> str:
    """Two separable convolutions, each after a ReLU, and a pooling, beside a 1 x 1 convolution with a stride of 2."""
    y = x
    for step, channels in enumerate(widths, 1):
        y = y if rectified and step == 1 else net.relu(y, name=f"{name}.relu{step}")
        y = _separable(net, y, channels, f"{name}.{step}")
    y = net.max_pool(y, 3, 2, 1, name=f"{name}.pool")
    return net.sum(y, net.conv_bn(x, widths[-1], 1, 2, name=f"{name}.shortcut"), name=f"{name}.add")


def _separable(net: Builder, x: str, channels: int, name: str) -> str:
    y = net.conv(x, net.channels(x), 3, pad=1, groups=net.channels(x), bias=False, name=f"{name}.depthwise")
    return net.conv_bn(y, channels, 1, name=f"{name}.pointwise")
