"""MobileNetV2: inverted residuals around depthwise convolutions."""

from __future__ import annotations

from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

SOURCE = "M. Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, arXiv:1801.04381, table 2"

# (expansion, output channels, blocks, stride of the first)
STAGES = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def mobilenet_v2() -> Trace:
    """Width multiplier 1.0."""
    net = Builder("mobilenet_v2", SOURCE, {"data": ("N", 3, 224, 224)})
    x = net.relu6(net.conv_bn("data", 32, 3, 2, 1, name="conv1"), name="conv1.relu6")
    for stage, (expansion, channels, count, first) in enumerate(STAGES, 1):
        for number in range(count):
            x = _block(net, x, expansion, channels, first if number == 0 else 1, f"stage{stage}.{number}")
    x = net.relu6(net.conv_bn(x, 1280, 1, name="conv2"), name="conv2.relu6")
    x = net.dropout(net.global_avg_pool(x, name="pool"), 0.2, name="drop")
    net.softmax(net.linear(x, 1000, name="fc"))
    return net.trace()


def _block(net: Builder, x: str, expansion: int, channels: int, stride: int, name: str) -> str:
    """1 x 1 up, 3 x 3 depthwise, 1 x 1 down without activation; added to the input where the shapes agree."""
    width = expansion * net.channels(x)
    y = x
    if expansion > 1:
        y = net.relu6(net.conv_bn(y, width, 1, name=f"{name}.expand"), name=f"{name}.expand.relu6")
    y = net.conv_bn(y, width, 3, stride, 1, groups=width, name=f"{name}.depthwise")
    y = net.conv_bn(net.relu6(y, name=f"{name}.depthwise.relu6"), channels, 1, name=f"{name}.project")
    return net.sum(x, y, name=f"{name}.add") if stride == 1 and net.channels(x) == channels else y
