"""Small networks: SqueezeNet, whose fire modules squeeze to few channels and expand with 1 x 1 and 3 x 3 side by side; and
ShuffleNet, with grouped 1 x 1 convolutions (v1) or half of the channels untouched in each block (v2), and shuffled channels.
"""

from __future__ import annotations

from archsim.trace.trace import Trace
from archsim.trace.zoo.blocks import shuffled
from archsim.trace.zoo.builder import Builder

IANDOLA = "F. Iandola et al., SqueezeNet, arXiv:1602.07360; as in the published Caffe prototxt"

# module -> (squeeze channels, channels of each expansion)
FIRES = {
    "fire2": (16, 64), "fire3": (16, 64), "fire4": (32, 128), "fire5": (32, 128),
    "fire6": (48, 192), "fire7": (48, 192), "fire8": (64, 256), "fire9": (64, 256),
}  # fmt: skip


def squeezenet_1_0() -> Trace:
    """Version 1.0: a 7 x 7 stem, late pooling; the last convolution is padded."""
    net = Builder("squeezenet_1_0", f"{IANDOLA}, version 1.0", {"data": ("N", 3, 227, 227)})
    x = net.relu(net.conv("data", 96, 7, 2, name="conv1"))
    return _body(net, x, pools=("fire4", "fire8"), last_pad=1)


def squeezenet_1_1() -> Trace:
    """Version 1.1: a 3 x 3 stem of 64 channels, early pooling."""
    net = Builder("squeezenet_1_1", f"{IANDOLA}, version 1.1", {"data": ("N", 3, 227, 227)})
    x = net.relu(net.conv("data", 64, 3, 2, name="conv1"))
    return _body(net, x, pools=("fire3", "fire5"), last_pad=0)


def _body(net: Builder, x: str, pools: tuple[str, ...], last_pad: int) -> Trace:
    x = net.max_pool(x, 3, 2, ceil=True, name="pool1")
    for name, (squeeze, expand) in FIRES.items():
        x = _fire(net, x, squeeze, expand, name)
        if name in pools:
            x = net.max_pool(x, 3, 2, ceil=True, name=f"pool{name[-1]}")
    x = net.dropout(x, name="drop9")
    x = net.relu(net.conv(x, 1000, 1, pad=last_pad, name="conv10"))
    net.softmax(net.flatten(net.global_avg_pool(x, name="pool10")))
    return net.trace()


def _fire(net: Builder, x: str, squeeze: int, expand: int, name: str) -> str:
    x = net.relu(net.conv(x, squeeze, 1, name=f"{name}.squeeze1x1"))
    one = net.relu(net.conv(x, expand, 1, name=f"{name}.expand1x1"))
    three = net.relu(net.conv(x, expand, 3, pad=1, name=f"{name}.expand3x3"))
    return net.concat(one, three, name=f"{name}.concat")


MA = "N. Ma et al., ShuffleNet V2: Practical Guidelines for Efficient CNN Architecture Design, arXiv:1807.11164, table 5"

ZHANG = "X. Zhang et al., ShuffleNet: An Extremely Efficient CNN for Mobile Devices, arXiv:1707.01083, table 1"
V1, GROUPS, STEM = ((240, 4), (480, 8), (960, 4)), 3, 24  # (output channels, blocks) of three groups; channels before stage 2

STAGES = ((116, 4), (232, 8), (464, 4))  # (output channels, blocks) of width 1.0


def shufflenet_v1_g3() -> Trace:
    """Width 1, three groups."""
    net = Builder("shufflenet_v1_g3", ZHANG, {"data": ("N", 3, 224, 224)})
    x = net.max_pool(net.conv_bn_relu("data", 24, 3, 2, 1, name="conv1"), 3, 2, 1, name="pool1")
    for stage, (channels, count) in enumerate(V1, 2):
        for number in range(count):
            x = _grouped(net, x, channels, number == 0, f"stage{stage}.{number}")
    net.softmax(net.linear(net.global_avg_pool(x, name="pool"), 1000, name="fc"))
    return net.trace(aliases=("shufflenet", "shufflenet_v1"))


def _grouped(net: Builder, x: str, channels: int, halves: bool, name: str) -> str:
    """Figures 2b and 2c: the first block of a stage is joined with a mean of its input, the others are added to theirs.

    The first 1 x 1 convolution of stage 2 has no groups, since its input has few channels.
    """
    wide, inner = channels - net.channels(x) if halves else channels, channels // 4
    groups = GROUPS if net.channels(x) > STEM else 1
    y = net.conv_bn_relu(x, inner, 1, groups=groups, name=f"{name}.conv1")
    y = shuffled(net, y, GROUPS, name)
    y = net.conv_bn(y, inner, 3, 2 if halves else 1, 1, groups=inner, name=f"{name}.depthwise")
    y = net.conv_bn(y, wide, 1, groups=GROUPS, name=f"{name}.conv2")
    if halves:
        return net.relu(net.concat(net.avg_pool(x, 3, 2, 1, name=f"{name}.mean"), y, name=f"{name}.concat"), name=f"{name}.relu")
    return net.relu(net.sum(x, y, name=f"{name}.add"), name=f"{name}.relu")


def shufflenet_v2_x1_0() -> Trace:
    """Width 1.0."""
    net = Builder("shufflenet_v2_x1_0", MA, {"data": ("N", 3, 224, 224)})
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
