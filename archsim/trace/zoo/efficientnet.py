"""EfficientNet B0 to B7 and Lite0 to Lite4, MnasNet: inverted residuals found by search, scaled in width, depth and image."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from archsim.trace.kind import Kind
from archsim.trace.kinds.activation import Relu, Relu6, Silu
from archsim.trace.trace import Trace
from archsim.trace.zoo.blocks import Inverted, divisible, inverted_residual
from archsim.trace.zoo.builder import Builder, images

SOURCE = "M. Tan, Q. Le, EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks, arXiv:1905.11946, table 1"
MNASNET = "M. Tan et al., MnasNet: Platform-Aware Neural Architecture Search for Mobile, arXiv:1807.11626; torchvision (B1)"
SQUEEZE = 4  # a gate squeezes to this part of a block's input channels


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
LAST = 1280  # channels before the classifier of the lite networks


def efficientnet_lite(name: str) -> Trace:
    """The network of one row of `LITE`: no gates, ReLU6; stem, head, first and last stage are not scaled in width and depth."""
    width, depth, side, dropout = LITE[name]
    net = images(name, "tensorflow/tpu, efficientnet/lite: README and efficientnet_lite_builder.py", side,
                 notes="padded evenly; no layer is skipped at random in training")  # fmt: skip
    stages = [stage._replace(channels=divisible(stage.channels * width),
                             blocks=stage.blocks if at in (0, len(B0) - 1) else ceil(stage.blocks * depth))
              for at, stage in enumerate(B0)]  # fmt: skip
    x = net.activate(net.conv_bn("data", 32, 3, 2, 1, name="conv1"), Relu6(), name="conv1")
    return _body(net, x, stages, Relu6(), squeeze=0, last=LAST, dropout=dropout)


def efficientnet(name: str) -> Trace:
    """The network of one row of `SCALES`, without the random depth of its training."""
    width, depth, side, dropout = SCALES[name]
    net = images(name, f"{SOURCE}; scaled as in tensorflow/tpu efficientnet_builder.py", side,
                 notes="padded evenly, as in torchvision; no layer is skipped at random in training")  # fmt: skip
    stages = [stage._replace(channels=divisible(stage.channels * width), blocks=ceil(stage.blocks * depth)) for stage in B0]
    x = net.activate(net.conv_bn("data", divisible(32 * width), 3, 2, 1, name="conv1"), Silu(), name="conv1")
    return _body(net, x, stages, Silu(), squeeze=SQUEEZE, last=4 * stages[-1].channels, dropout=dropout)


def mnasnet_1_0() -> Trace:
    """Depth multiplier 1.0, without gates; the first block expands nothing."""
    net = images("mnasnet_1_0", MNASNET)
    x = net.conv_bn_relu("data", 32, 3, 2, 1, name="conv1")
    return _body(net, x, A1, Relu(), squeeze=0, last=1280, dropout=0.2)


def _body(
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
