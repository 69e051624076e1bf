"""ShuffleNetV2: half of the channels pass each block untouched and are shuffled with the others."""

from __future__ import annotations

from archsim.trace.trace import Trace
from archsim.trace.zoo.blocks import shuffled
from archsim.trace.zoo.builder import Builder

SOURCE = "N. Ma et al., ShuffleNet V2: Practical Guidelines for Efficient CNN Architecture Design, arXiv:1807.11164, table 5"

STAGES = ((116, 4), (232, 8), (464, 4))  # (output channels, blocks) of width 1.0


def shufflenet_v2_x1_0() -> Trace:
    """Width 1.0."""
    net = Builder("shufflenet_v2_x1_0", SOURCE, {"data": ("N", 3, 224, 224)})
    x = net.max_pool(net.conv_bn_relu("data", 24, 3, 2, 1, name="conv1"), 3, 2, 1, name="pool1")
    for stage, (channels, count) in enumerate(STAGES, 2):
        for number in range(count):
            block = _block if number else _halve
            x = block(net, x, channels // 2, f"stage{stage}.{number}")
    x = net.conv_bn_relu(x, 1024, 1, name="conv5")
    net.softmax(net.linear(net.global_avg_pool(x, name="pool"), 1000, name="fc"))
    return net.trace(aliases=("shufflenet_v2",))


def _block(net: Builder, x: str, half: int, name: str) -> str:
    """Figure 3c: one half of the channels as it is, the other through the branch."""
    kept, taken = net.part(x, 0, half, name=f"{name}.kept"), net.part(x, half, 2 * half, name=f"{name}.taken")
    return shuffled(net, net.concat(kept, _branch(net, taken, half, 1, name), name=f"{name}.concat"), 2, name)


def _halve(net: Builder, x: str, half: int, name: str) -> str:
    """Figure 3d: both halves from the whole input, at half its size."""
    other = net.conv_bn(x, net.channels(x), 3, 2, 1, groups=net.channels(x), name=f"{name}.side.depthwise")
    other = net.conv_bn_relu(other, half, 1, name=f"{name}.side.pointwise")
    return shuffled(net, net.concat(other, _branch(net, x, half, 2, name), name=f"{name}.concat"), 2, name)


def _branch(net: Builder, x: str, channels: int, stride: int, name: str) -> str:
    y = net.conv_bn_relu(x, channels, 1, name=f"{name}.conv1")
    y = net.conv_bn(y, channels, 3, stride, 1, groups=channels, name=f"{name}.depthwise")
    return net.conv_bn_relu(y, channels, 1, name=f"{name}.conv2")
