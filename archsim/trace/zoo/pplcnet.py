"""PP-LCNet: depthwise separable convolutions with hard swish, gates in the last two of them."""

from __future__ import annotations

from typing import NamedTuple

from archsim.trace.kinds.activation import HardSigmoid, HardSwish
from archsim.trace.trace import Trace
from archsim.trace.zoo.blocks import divisible, squeeze_excite
from archsim.trace.zoo.builder import Builder

SOURCE = "C. Cui et al., PP-LCNet: A Lightweight CPU Convolutional Neural Network, arXiv:2109.15099; PaddleClas pp_lcnet.py"
LAST = 1280  # features before the classifier
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
    net = Builder(name, SOURCE, {"data": ("N", 3, 224, 224)})
    x = net.activate(net.conv_bn("data", divisible(16 * width), 3, 2, 1, name="conv1"), HardSwish(), name="conv1")
    for number, row in enumerate(BLOCKS, 2):
        at, channels = f"block{number}", net.channels(x)
        x = net.conv_bn(x, channels, row.kernel, row.stride, row.kernel // 2, groups=channels, name=f"{at}.depthwise")
        x = net.activate(x, HardSwish(), name=f"{at}.depthwise")
        if row.gated:
            x = squeeze_excite(net, x, channels // SQUEEZE, gate=HardSigmoid(), name=f"{at}.se")
        x = net.activate(net.conv_bn(x, divisible(row.channels * width), 1, name=f"{at}.pointwise"), HardSwish(),
                         name=f"{at}.pointwise")  # fmt: skip
    x = net.conv(net.global_avg_pool(x, name="pool"), LAST, 1, bias=False, name="last")
    x = net.dropout(net.activate(x, HardSwish(), name="last"), 0.2, name="drop")
    net.softmax(net.linear(x, 1000, name="fc"))
    return net.trace()
