"""MobileNets: depthwise separable convolutions (v1), inverted residuals (v2), with gates and hard swish (v3).

PP-LCNet: depthwise separable convolutions with hard swish, gates in the last two of them.
"""

from __future__ import annotations

from typing import NamedTuple

from archsim.trace.kinds.activation import HardSigmoid, HardSwish, Relu, Relu6
from archsim.trace.trace import Trace
from archsim.trace.zoo.blocks import Inverted, divisible, inverted_residual, squeeze_excite
from archsim.trace.zoo.builder import Builder

HOWARD = "A. Howard et al., MobileNets: Efficient CNNs for Mobile Vision Applications, arXiv:1704.04861, table 1"
SANDLER = "M. Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, arXiv:1801.04381, table 2"
V3 = "A. Howard et al., Searching for MobileNetV3, arXiv:1905.02244"

# (output channels, stride)
SEPARABLE = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1),
)  # fmt: skip

# (expansion, output channels, blocks, stride of the first)
STAGES = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


class Bneck(NamedTuple):
    """One row of the tables of MobileNetV3."""

    kernel: int
    wide: int
    channels: int
    gated: bool
    swish: bool
    stride: int


LARGE = (
    Bneck(3, 16, 16, False, False, 1), Bneck(3, 64, 24, False, False, 2), Bneck(3, 72, 24, False, False, 1),
    Bneck(5, 72, 40, True, False, 2), Bneck(5, 120, 40, True, False, 1), Bneck(5, 120, 40, True, False, 1),
    Bneck(3, 240, 80, False, True, 2), Bneck(3, 200, 80, False, True, 1), Bneck(3, 184, 80, False, True, 1),
    Bneck(3, 184, 80, False, True, 1), Bneck(3, 480, 112, True, True, 1), Bneck(3, 672, 112, True, True, 1),
    Bneck(5, 672, 160, True, True, 2), Bneck(5, 960, 160, True, True, 1), Bneck(5, 960, 160, True, True, 1),
)  # fmt: skip
SMALL = (
    Bneck(3, 16, 16, True, False, 2), Bneck(3, 72, 24, False, False, 2), Bneck(3, 88, 24, False, False, 1),
    Bneck(5, 96, 40, True, True, 2), Bneck(5, 240, 40, True, True, 1), Bneck(5, 240, 40, True, True, 1),
    Bneck(5, 120, 48, True, True, 1), Bneck(5, 144, 48, True, True, 1), Bneck(5, 288, 96, True, True, 2),
    Bneck(5, 576, 96, True, True, 1), Bneck(5, 576, 96, True, True, 1),
)  # fmt: skip


# name -> (its table, rows of it, features before the classifier)
NETWORKS_V3 = {"mobilenet_v3_large": ("table 1", LARGE, 1280), "mobilenet_v3_small": ("table 2", SMALL, 1024)}


def mobilenet_v1() -> Trace:
    """Width multiplier 1.0: a 3 x 3 depthwise and a 1 x 1 convolution in each layer, both normalised and rectified."""
    net = Builder("mobilenet_v1", HOWARD, {"data": ("N", 3, 224, 224)})
    x = net.conv_bn_relu("data", 32, 3, 2, 1, name="conv1")
    for number, (channels, stride) in enumerate(SEPARABLE, 2):
        x = net.conv_bn_relu(x, net.channels(x), 3, stride, 1, groups=net.channels(x), name=f"conv{number}.depthwise")
        x = net.conv_bn_relu(x, channels, 1, name=f"conv{number}.pointwise")
    net.softmax(net.linear(net.global_avg_pool(x, name="pool"), 1000, name="fc"))
    return net.trace(aliases=("mobilenet",))


def mobilenet_v2() -> Trace:
    """Width multiplier 1.0."""
    net = Builder("mobilenet_v2", SANDLER, {"data": ("N", 3, 224, 224)})
    x = net.relu6(net.conv_bn("data", 32, 3, 2, 1, name="conv1"), name="conv1.relu6")
    for stage, (expansion, channels, count, first) in enumerate(STAGES, 1):
        for number in range(count):
            block = Inverted(kernel=3, wide=expansion * net.channels(x), channels=channels,
                             stride=1 if number else first, active=Relu6())  # fmt: skip
            x = inverted_residual(net, x, block, f"stage{stage}.{number}")
    x = net.relu6(net.conv_bn(x, 1280, 1, name="conv2"), name="conv2.relu6")
    x = net.dropout(net.global_avg_pool(x, name="pool"), 0.2, name="drop")
    net.softmax(net.linear(x, 1000, name="fc"))
    return net.trace()


def mobilenet_v3(name: str) -> Trace:
    """The network of one row of `NETWORKS_V3`, width multiplier 1.0.

    Gates squeeze to a quarter of the wide channels; the classifier's first layer stands after the pooling.
    """
    table, rows, last = NETWORKS_V3[name]
    net = Builder(name, f"{V3}, {table}; torchvision mobilenetv3.py", {"data": ("N", 3, 224, 224)})
    x = net.activate(net.conv_bn("data", 16, 3, 2, 1, name="conv1"), HardSwish(), name="conv1")
    for number, row in enumerate(rows):
        block = Inverted(
            kernel=row.kernel, wide=row.wide, channels=row.channels, stride=row.stride,
            active=HardSwish() if row.swish else Relu(), gate=HardSigmoid(),
            squeezed=divisible(row.wide // 4) if row.gated else 0,
        )  # fmt: skip
        x = inverted_residual(net, x, block, f"block{number}")
    x = net.activate(net.conv_bn(x, 6 * net.channels(x), 1, name="conv2"), HardSwish(), name="conv2")
    x = net.linear(net.global_avg_pool(x, name="pool"), last, name="fc1")
    x = net.dropout(net.activate(x, HardSwish(), name="fc1"), 0.2, name="drop")
    net.softmax(net.linear(x, 1000, name="fc2"))
    return net.trace()


CUI = "C. Cui et al., PP-LCNet: A Lightweight CPU Convolutional Neural Network, arXiv:2109.15099; PaddleClas pp_lcnet.py"
LAST_FEATURES = 1280  # features before the classifier
SQUEEZE = 4  # a gate squeezes to this part of its channels


class Separable(NamedTuple):
    """A depthwise convolution and a 1 x 1 convolution to `channels`."""

    kernel: int
    channels: int
    stride: int
    gated: bool = False


BLOCKS = (
    Separable(3, 32, 1), Separable(3, 64, 2), Separable(3, 64, 1), Separable(3, 128, 2), Separable(3, 128, 1),
    Separable(3, 256, 2), *[Separable(5, 256, 1)] * 5, Separable(5, 512, 2, True), Separable(5, 512, 1, True),
)  # fmt: skip

WIDTHS = {
    "pplcnet_x0_25": 0.25, "pplcnet_x0_35": 0.35, "pplcnet_x0_5": 0.5, "pplcnet_x0_75": 0.75, "pplcnet_x1_0": 1.0,
    "pplcnet_x1_5": 1.5, "pplcnet_x2_0": 2.0, "pplcnet_x2_5": 2.5,
}  # fmt: skip


def pplcnet(name: str) -> Trace:
    """The network of one row of `WIDTHS`; a convolution stands for the first layer of the classifier."""
    width = WIDTHS[name]
    net = Builder(name, CUI, {"data": ("N", 3, 224, 224)})
    x = net.activate(net.conv_bn("data", divisible(16 * width), 3, 2, 1, name="conv1"), HardSwish(), name="conv1")
    for number, row in enumerate(BLOCKS, 2):
        at, channels = f"block{number}", net.channels(x)
        x = net.conv_bn(x, channels, row.kernel, row.stride, row.kernel // 2, groups=channels, name=f"{at}.depthwise")
        x = net.activate(x, HardSwish(), name=f"{at}.depthwise")
        if row.gated:
            x = squeeze_excite(net, x, channels // SQUEEZE, gate=HardSigmoid(), name=f"{at}.se")
        x = net.activate(net.conv_bn(x, divisible(row.channels * width), 1, name=f"{at}.pointwise"), HardSwish(),
                         name=f"{at}.pointwise")  # fmt: skip
    x = net.conv(net.global_avg_pool(x, name="pool"), LAST_FEATURES, 1, bias=False, name="last")
    x = net.dropout(net.activate(x, HardSwish(), name="last"), 0.2, name="drop")
    net.softmax(net.linear(x, 1000, name="fc"))
    return net.trace()
