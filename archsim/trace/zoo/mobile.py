"""Small networks: MobileNets, EfficientNet and MnasNet, SqueezeNet and ShuffleNet.

PP-LCNet: depthwise separable convolutions with hard swish, gates in the last two of them.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from archsim.trace.kind import Kind
from archsim.trace.kinds.pointwise import HardSigmoid, HardSwish, Relu, Relu6, Silu
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder, Inverted, divisible, images, inverted_residual, shuffled, squeeze_excite

HOWARD = "A. Howard et al., MobileNets: Efficient CNNs for Mobile Vision Applications, arXiv:1704.04861, table 1"
SANDLER = "M. Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, arXiv:1801.04381, table 2"
V3 = "A. Howard et al., Searching for MobileNetV3, arXiv:1905.02244"

# (output channels, stride)
SEPARABLE = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1),
)  # fmt: skip

# (expansion, output channels, blocks, stride of the first)
V2_STAGES = (
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
    net = images("mobilenet_v1", HOWARD)
    x = net.conv_bn_relu("data", 32, 3, 2, 1, name="conv1")
    for number, (channels, stride) in enumerate(SEPARABLE, 2):
        x = net.conv_bn_relu(x, net.channels(x), 3, stride, 1, groups=net.channels(x), name=f"conv{number}.depthwise")
        x = net.conv_bn_relu(x, channels, 1, name=f"conv{number}.pointwise")
    return net.classified_mean(x, aliases=("mobilenet",))


def mobilenet_v2() -> Trace:
    """Width multiplier 1.0."""
    net = images("mobilenet_v2", SANDLER)
    x = net.relu6(net.conv_bn("data", 32, 3, 2, 1, name="conv1"), name="conv1.relu6")
    for stage, (expansion, channels, count, first) in enumerate(V2_STAGES, 1):
        for number in range(count):
            block = Inverted(kernel=3, wide=expansion * net.channels(x), channels=channels,
                             stride=1 if number else first, active=Relu6())  # fmt: skip
            x = inverted_residual(net, x, block, f"stage{stage}.{number}")
    x = net.relu6(net.conv_bn(x, 1280, 1, name="conv2"), name="conv2.relu6")
    x = net.dropout(net.global_avg_pool(x, name="pool"), 0.2, name="drop")
    return net.classified(x)


def mobilenet_v3(name: str) -> Trace:
    """The network of one row of `NETWORKS_V3`, width multiplier 1.0.

    Gates squeeze to a quarter of the wide channels; the classifier's first layer stands after the pooling.
    """
    table, rows, last = NETWORKS_V3[name]
    net = images(name, f"{V3}, {table}; torchvision mobilenetv3.py")
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
    return net.classified(x, name="fc2")


CUI = "C. Cui et al., PP-LCNet: A Lightweight CPU Convolutional Neural Network, arXiv:2109.15099; PaddleClas pp_lcnet.py"
LAST = 1280  # channels before the classifier
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
    net = images(name, CUI)
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
    return net.classified(x)


# --------------------------------------------------------------------------------------------- EfficientNet and MnasNet

SOURCE = "M. Tan, Q. Le, EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks, arXiv:1905.11946, table 1"
MNASNET = "M. Tan et al., MnasNet: Platform-Aware Neural Architecture Search for Mobile, arXiv:1807.11626; torchvision (B1)"


class MbStage(NamedTuple):
    """Blocks of one kind; the first of them has the stride."""

    expansion: int
    kernel: int
    stride: int
    channels: int
    blocks: int


B0 = (
    MbStage(1, 3, 1, 16, 1), MbStage(6, 3, 2, 24, 2), MbStage(6, 5, 2, 40, 2), MbStage(6, 3, 2, 80, 3), MbStage(6, 5, 1, 112, 3),
    MbStage(6, 5, 2, 192, 4), MbStage(6, 3, 1, 320, 1),
)  # fmt: skip
A1 = (
    MbStage(1, 3, 1, 16, 1), MbStage(3, 3, 2, 24, 3), MbStage(3, 5, 2, 40, 3), MbStage(6, 5, 2, 80, 3), MbStage(6, 3, 1, 96, 2),
    MbStage(6, 5, 2, 192, 4), MbStage(6, 3, 1, 320, 1),
)  # fmt: skip

# name -> (factor of widths, factor of depths, side of the image, dropout), tensorflow/tpu efficientnet_builder.py
SCALES = {
    "efficientnet_b0": (1.0, 1.0, 224, 0.2), "efficientnet_b1": (1.0, 1.1, 240, 0.2), "efficientnet_b2": (1.1, 1.2, 260, 0.3),
    "efficientnet_b3": (1.2, 1.4, 300, 0.3), "efficientnet_b4": (1.4, 1.8, 380, 0.4), "efficientnet_b5": (1.6, 2.2, 456, 0.4),
    "efficientnet_b6": (1.8, 2.6, 528, 0.5), "efficientnet_b7": (2.0, 3.1, 600, 0.5),
}  # fmt: skip


# tensorflow/tpu efficientnet/lite/efficientnet_lite_builder.py
LITE = {
    "efficientnet_lite0": (1.0, 1.0, 224, 0.2), "efficientnet_lite1": (1.0, 1.1, 240, 0.2),
    "efficientnet_lite2": (1.1, 1.2, 260, 0.3), "efficientnet_lite3": (1.2, 1.4, 280, 0.3),
    "efficientnet_lite4": (1.4, 1.8, 300, 0.3),
}  # fmt: skip


def efficientnet_lite(name: str) -> Trace:
    """The network of one row of `LITE`: no gates, ReLU6; stem, head, first and last stage are not scaled in width and depth."""
    width, depth, side, dropout = LITE[name]
    net = images(name, "tensorflow/tpu, efficientnet/lite: README and efficientnet_lite_builder.py", side,
                 notes="padded evenly; no layer is skipped at random in training")  # fmt: skip
    stages = [stage._replace(channels=divisible(stage.channels * width),
                             blocks=stage.blocks if at in (0, len(B0) - 1) else ceil(stage.blocks * depth))
              for at, stage in enumerate(B0)]  # fmt: skip
    x = net.activate(net.conv_bn("data", 32, 3, 2, 1, name="conv1"), Relu6(), name="conv1")
    return _inverted_residuals(net, x, stages, Relu6(), squeeze=0, last=LAST, dropout=dropout)


def efficientnet(name: str) -> Trace:
    """The network of one row of `SCALES`, without the random depth of its training."""
    width, depth, side, dropout = SCALES[name]
    net = images(name, f"{SOURCE}; scaled as in tensorflow/tpu efficientnet_builder.py", side,
                 notes="padded evenly, as in torchvision; no layer is skipped at random in training")  # fmt: skip
    stages = [stage._replace(channels=divisible(stage.channels * width), blocks=ceil(stage.blocks * depth)) for stage in B0]
    x = net.activate(net.conv_bn("data", divisible(32 * width), 3, 2, 1, name="conv1"), Silu(), name="conv1")
    return _inverted_residuals(net, x, stages, Silu(), squeeze=SQUEEZE, last=4 * stages[-1].channels, dropout=dropout)


def mnasnet_1_0() -> Trace:
    """Depth multiplier 1.0, without gates; the first block expands nothing."""
    net = images("mnasnet_1_0", MNASNET)
    x = net.conv_bn_relu("data", 32, 3, 2, 1, name="conv1")
    return _inverted_residuals(net, x, A1, Relu(), squeeze=0, last=1280, dropout=0.2)


def _inverted_residuals(
    net: Builder, x: str, stages: list[MbStage] | tuple[MbStage, ...], active: Kind, *, squeeze: int, last: int, dropout: float
) -> Trace:
    """The stages, a 1 x 1 convolution to `last` channels and the classifier."""
    for stage, row in enumerate(stages, 1):
        for number in range(row.blocks):
            channels = net.channels(x)
            block = Inverted(
                kernel=row.kernel, wide=row.expansion * channels, channels=row.channels, stride=1 if number else row.stride,
                active=active, squeezed=channels // squeeze if squeeze else 0, squeeze_active=active,
            )  # fmt: skip
            x = inverted_residual(net, x, block, f"stage{stage}.{number}")
    x = net.activate(net.conv_bn(x, last, 1, name="conv2"), active, name="conv2")
    x = net.dropout(net.global_avg_pool(x, name="pool"), dropout, name="drop")
    return net.classified(x)


# -------------------------------------------------------------------------------------------- SqueezeNet and ShuffleNet

IANDOLA = "F. Iandola et al., SqueezeNet, arXiv:1602.07360; as in the published Caffe prototxt"

# module -> (squeeze channels, channels of each expansion)
FIRES = {
    "fire2": (16, 64), "fire3": (16, 64), "fire4": (32, 128), "fire5": (32, 128),
    "fire6": (48, 192), "fire7": (48, 192), "fire8": (64, 256), "fire9": (64, 256),
}  # fmt: skip


def squeezenet_1_0() -> Trace:
    """Version 1.0: a 7 x 7 stem, late pooling; the last convolution is padded."""
    net = images("squeezenet_1_0", f"{IANDOLA}, version 1.0", 227)
    x = net.relu(net.conv("data", 96, 7, 2, name="conv1"))
    return _squeezenet(net, x, pools=("fire4", "fire8"), last_pad=1)


def squeezenet_1_1() -> Trace:
    """Version 1.1: a 3 x 3 stem of 64 channels, early pooling."""
    net = images("squeezenet_1_1", f"{IANDOLA}, version 1.1", 227)
    x = net.relu(net.conv("data", 64, 3, 2, name="conv1"))
    return _squeezenet(net, x, pools=("fire3", "fire5"), last_pad=0)


def _squeezenet(net: Builder, x: str, pools: tuple[str, ...], last_pad: int) -> Trace:
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

SHUFFLE_STAGES = ((116, 4), (232, 8), (464, 4))  # (output channels, blocks) of width 1.0


def shufflenet_v1_g3() -> Trace:
    """Width 1, three groups."""
    net = images("shufflenet_v1_g3", ZHANG)
    x = net.max_pool(net.conv_bn_relu("data", 24, 3, 2, 1, name="conv1"), 3, 2, 1, name="pool1")
    for stage, (channels, count) in enumerate(V1, 2):
        for number in range(count):
            x = _grouped(net, x, channels, number == 0, f"stage{stage}.{number}")
    return net.classified_mean(x, aliases=("shufflenet", "shufflenet_v1"))


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
    return net.add_relu(x, y, name=name)


def shufflenet_v2_x1_0() -> Trace:
    """Width 1.0."""
    net = images("shufflenet_v2_x1_0", MA)
    x = net.max_pool(net.conv_bn_relu("data", 24, 3, 2, 1, name="conv1"), 3, 2, 1, name="pool1")
    for stage, (channels, count) in enumerate(SHUFFLE_STAGES, 2):
        for number in range(count):
            block = _block if number else _halve
            x = block(net, x, channels // 2, f"stage{stage}.{number}")
    x = net.conv_bn_relu(x, 1024, 1, name="conv5")
    return net.classified_mean(x, aliases=("shufflenet_v2",))


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
