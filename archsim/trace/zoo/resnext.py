"""Residual networks whose bottlenecks are wide, grouped or gated: Wide ResNet, ResNeXt, SE-ResNet, SENet, RegNetY."""

from __future__ import annotations

from functools import partial

from archsim.trace.trace import Trace
from archsim.trace.zoo.blocks import HU, squeeze_excite
from archsim.trace.zoo.builder import Builder, images
from archsim.trace.zoo.resnet import bottleneck, residual, stages

ZAGORUYKO = "S. Zagoruyko, N. Komodakis, Wide Residual Networks, arXiv:1605.07146, table 8; torchvision resnet.py"
XIE = "S. Xie et al., Aggregated Residual Transformations for Deep Neural Networks, arXiv:1611.05431, table 1"
RADOSAVOVIC = "I. Radosavovic et al., Designing Network Design Spaces, arXiv:2003.13678, table 2; torchvision regnet.py"
FIFTY, HUNDRED, SENET = (3, 4, 6, 3), (3, 4, 23, 3), (3, 8, 36, 3)
REDUCTION = 16  # a gate squeezes its channels by this (Hu et al., section 3.3)

# name -> (source, blocks in each stage, channels inside over those of ResNet, groups, reduction of the gates)
NETWORKS: dict[str, tuple[str, tuple[int, ...], int, int, int]] = {
    "wide_resnet_50_2": (ZAGORUYKO, FIFTY, 2, 1, 0),
    "wide_resnet_101_2": (ZAGORUYKO, HUNDRED, 2, 1, 0),
    "resnext_50_32x4d": (XIE, FIFTY, 2, 32, 0),
    "resnext_101_32x8d": (f"{XIE}; widened by D. Mahajan et al., arXiv:1805.00932", HUNDRED, 4, 32, 0),
    "resnext_101_64x4d": (XIE, HUNDRED, 4, 64, 0),
    "se_resnet_50": (f"{HU}, table 1; the stride on the 3 x 3 convolution, as in timm", FIFTY, 1, 1, REDUCTION),
    "se_resnext_50_32x4d": (f"{HU}, table 1", FIFTY, 2, 32, REDUCTION),
}

# name -> (channels, blocks) of each stage, and the channels in one group of its 3 x 3 convolutions
REGNETS = {
    "regnet_y_400mf": (((48, 1), (104, 3), (208, 6), (440, 6)), 8),
    "regnet_y_8gf": (((224, 2), (448, 4), (896, 10), (2016, 1)), 56),
}


def resnext(name: str) -> Trace:
    """The network of one row of `NETWORKS`."""
    source, counts, inner, groups, reduction = NETWORKS[name]
    return residual(name, source, partial(bottleneck, inner=inner, groups=groups, reduction=reduction), counts)


def senet_154() -> Trace:
    """A deep stem, bottlenecks that narrow by halves, 3 x 3 shortcuts (Hu et al., section 6.4 of the journal's version)."""
    net = images("senet_154", f"{HU}, appendix; github.com/hujie-frank/SENet")
    x = net.conv_bn_relu("data", 64, 3, 2, 1, name="conv1")
    x = net.conv_bn_relu(net.conv_bn_relu(x, 64, 3, pad=1, name="conv2"), 128, 3, pad=1, name="conv3")
    x = net.max_pool(x, 3, 2, ceil=True, name="pool1")
    x = stages(net, x, _senet_block, SENET)
    x = net.dropout(net.global_avg_pool(x, name="pool"), 0.2, name="drop")
    return net.classified(x)


def _senet_block(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    y = net.conv_bn_relu(x, 2 * width, 1, name=f"{name}.conv1")
    y = net.conv_bn_relu(y, 4 * width, 3, stride, 1, groups=64, name=f"{name}.conv2")
    y = net.conv_bn(y, 4 * width, 1, name=f"{name}.conv3")
    y = squeeze_excite(net, y, 4 * width // REDUCTION, name=f"{name}.se")
    if net.channels(x) != 4 * width:
        kernel, pad = (3, 1) if stride > 1 else (1, 0)
        x = net.conv_bn(x, 4 * width, kernel, stride, pad, name=f"{name}.shortcut")
    return net.relu(net.sum(y, x, name=f"{name}.add"), name=f"{name}.relu")


def regnet_y(name: str) -> Trace:
    """The network of one row of `REGNETS`: bottlenecks that narrow nothing, gated after the 3 x 3 convolution."""
    stages, size = REGNETS[name]
    net = images(name, RADOSAVOVIC)
    x = net.conv_bn_relu("data", 32, 3, 2, 1, name="conv1")
    for stage, (channels, count) in enumerate(stages, 1):
        for number in range(count):
            x = _regnet_block(net, x, channels, size, 1 if number else 2, f"stage{stage}.{number}")
    return net.classified(net.global_avg_pool(x, name="pool"))


def _regnet_block(net: Builder, x: str, channels: int, size: int, stride: int, name: str) -> str:
    """The gate squeezes to a quarter of the channels that enter the block."""
    y = net.conv_bn_relu(x, channels, 1, name=f"{name}.conv1")
    y = net.conv_bn_relu(y, channels, 3, stride, 1, groups=channels // size, name=f"{name}.conv2")
    y = squeeze_excite(net, y, round(net.channels(x) / 4), name=f"{name}.se")
    y = net.conv_bn(y, channels, 1, name=f"{name}.conv3")
    if stride > 1 or net.channels(x) != channels:
        x = net.conv_bn(x, channels, 1, stride, name=f"{name}.shortcut")
    return net.relu(net.sum(y, x, name=f"{name}.add"), name=f"{name}.relu")
