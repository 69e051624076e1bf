"""The shipped networks: multiply-accumulates and parameters as counted by hand.

The hand counts are tables of layers with their sizes written out as numbers; nothing here uses the shape rules.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from archsim.trace import task_trace
from archsim.trace.zoo.networks import NETWORKS

from ..each import each
from ..shipped import load

Count = tuple[int, int]  # multiply-accumulates of one sample, learned values


def conv(area: int, k: int, c: int, taps: int, times: int = 1, *, bias: int = 1, norm: int = 0) -> Count:
    """`times` convolutions from c to k channels on `area` output pixels; `norm` adds scale and shift."""
    return times * area * k * c * taps, times * k * (c * taps + bias + 2 * norm)


def conv_bn(area: int, k: int, c: int, taps: int, times: int = 1, *, bias: int = 0) -> Count:
    return conv(area, k, c, taps, times, bias=bias, norm=1)


def bare(area: int, k: int, c: int, taps: int, times: int = 1) -> Count:
    return conv(area, k, c, taps, times, bias=0)


def norm(channels: int, times: int = 1) -> Count:
    return 0, 2 * channels * times


def fc(inputs: int, outputs: int, times: int = 1) -> Count:
    return times * inputs * outputs, times * outputs * (inputs + 1)


def total(layers: Iterable[Count]) -> Count:
    listed = list(layers)
    return sum(macs for macs, _ in listed), sum(values for _, values in listed)


THREE_FC = [fc(9216, 4096), fc(4096, 4096), fc(4096, 1000)]

ALEXNET = [
    conv(55 * 55, 96, 3, 121), conv(27 * 27, 256, 48, 25), conv(13 * 13, 384, 256, 9), conv(13 * 13, 384, 192, 9),
    conv(13 * 13, 256, 192, 9), *THREE_FC,
]  # fmt: skip
ALEXNET_OWT = [
    conv(55 * 55, 64, 3, 121), conv(27 * 27, 192, 64, 25), conv(13 * 13, 384, 192, 9), conv(13 * 13, 256, 384, 9),
    conv(13 * 13, 256, 256, 9), *THREE_FC,
]  # fmt: skip
ALEXNET_TENSORFLOW = [
    conv(55 * 55, 64, 3, 121), conv(27 * 27, 192, 64, 25), conv(13 * 13, 384, 192, 9), conv(13 * 13, 384, 384, 9),
    conv(13 * 13, 256, 384, 9), *THREE_FC,
]  # fmt: skip
# MXNet's script: images of 224, no border in conv1, poolings round down, no groups
ALEXNET_MXNET = [
    conv(54 * 54, 96, 3, 121), conv(26 * 26, 256, 96, 25), conv(12 * 12, 384, 256, 9), conv(12 * 12, 384, 384, 9),
    conv(12 * 12, 256, 384, 9), fc(5 * 5 * 256, 4096), fc(4096, 4096), fc(4096, 1000),
]  # fmt: skip
ALEXNET_S = [
    conv(55 * 55, 96, 3, 121), conv(27 * 27, 256, 96, 25), conv(13 * 13, 384, 256, 9), conv(13 * 13, 384, 384, 9),
    conv(13 * 13, 256, 384, 9), *THREE_FC,
]  # fmt: skip
ALEXNET_S_TENSORFLOW = [
    conv(56 * 56, 96, 3, 121), conv(28 * 28, 256, 96, 25), conv(14 * 14, 384, 256, 9), conv(14 * 14, 384, 384, 9),
    conv(14 * 14, 256, 384, 9), fc(7 * 7 * 256, 4096), fc(4096, 4096), fc(4096, 1000),
]  # fmt: skip
ALEXNET_S_CAFFE = [
    conv(54 * 54, 96, 3, 121), conv(23 * 23, 256, 96, 25), conv(9 * 9, 384, 256, 9), conv(7 * 7, 384, 384, 9),
    conv(5 * 5, 256, 384, 9), fc(2 * 2 * 256, 4096), fc(4096, 4096), fc(4096, 1000),
]  # fmt: skip
# the layers that run: conv4, conv5, fc6 and fc7 feed nothing
ALEXNET_S_MXNET = [
    conv(54 * 54, 96, 3, 121), conv(24 * 24, 256, 96, 25), conv(11 * 11, 384, 256, 9), fc(5 * 5 * 384, 1000),
]  # fmt: skip
# Caffe's poolings round up: 32, 16, 8 and 4 pixels a side
ALEXNET_R_CAFFE = [conv(32 * 32, 32, 3, 25), conv(16 * 16, 32, 32, 25), conv(8 * 8, 64, 32, 25), fc(4 * 4 * 64, 10)]
ALEXNET_R = [conv(32 * 32, 32, 3, 25), conv(15 * 15, 32, 32, 25), conv(7 * 7, 64, 32, 25), fc(3 * 3 * 64, 10)]
OVERFEAT = [
    conv(56 * 56, 96, 3, 121), conv(24 * 24, 256, 96, 25), conv(12 * 12, 512, 256, 9), conv(12 * 12, 1024, 512, 9),
    conv(12 * 12, 1024, 1024, 9), fc(6 * 6 * 1024, 3072), fc(3072, 4096), fc(4096, 1000),
]  # fmt: skip


def language_model(steps: int) -> list[Count]:
    gates = 4 * 256
    layer = (steps * gates * (256 + 256), gates * (256 + 256 + 1))
    return [(0, 10000 * 256), layer, layer, (steps * 256 * 10000, 10000 * 257)]


LENET_5 = [conv(28 * 28, 6, 1, 25), conv(10 * 10, 16, 6, 25), conv(1, 120, 16, 25), fc(120, 84), fc(84, 10)]
NIN = [
    conv(54 * 54, 96, 3, 121), conv(54 * 54, 96, 96, 1, 2), conv(27 * 27, 256, 96, 25), conv(27 * 27, 256, 256, 1, 2),
    conv(13 * 13, 384, 256, 9), conv(13 * 13, 384, 384, 1, 2), conv(6 * 6, 1024, 384, 9), conv(6 * 6, 1024, 1024, 1),
    conv(6 * 6, 1000, 1024, 1),
]  # fmt: skip


def resnet_cifar(blocks: int, bias: int = 0) -> list[Count]:
    """Two convolutions a block, `blocks` in each stage; padded shortcuts multiply nothing."""
    return [
        conv_bn(32 * 32, 16, 3, 9, bias=bias), conv_bn(32 * 32, 16, 16, 9, 2 * blocks, bias=bias),
        conv_bn(16 * 16, 32, 16, 9, bias=bias), conv_bn(16 * 16, 32, 32, 9, 2 * blocks - 1, bias=bias),
        conv_bn(8 * 8, 64, 32, 9, bias=bias), conv_bn(8 * 8, 64, 64, 9, 2 * blocks - 1, bias=bias), fc(64, 10),
    ]  # fmt: skip


# 3 x 3 and 1 x 1 convolutions by image, as the .cfg files of Darknet list them
YOLO_V2 = [
    conv_bn(416 * 416, 32, 3, 9), conv_bn(208 * 208, 64, 32, 9),
    conv_bn(104 * 104, 128, 64, 9, 2), conv_bn(104 * 104, 64, 128, 1),
    conv_bn(52 * 52, 256, 128, 9, 2), conv_bn(52 * 52, 128, 256, 1),
    conv_bn(26 * 26, 512, 256, 9, 3), conv_bn(26 * 26, 256, 512, 1, 2),
    conv_bn(13 * 13, 1024, 512, 9, 3), conv_bn(13 * 13, 512, 1024, 1, 2),
    conv_bn(13 * 13, 1024, 1024, 9, 2), conv_bn(26 * 26, 64, 512, 1), conv_bn(13 * 13, 1024, 1280, 9),
    conv(13 * 13, 425, 1024, 1),
]  # fmt: skip
TINY_YOLO_V2 = [
    conv_bn(416 * 416, 16, 3, 9), conv_bn(208 * 208, 32, 16, 9), conv_bn(104 * 104, 64, 32, 9), conv_bn(52 * 52, 128, 64, 9),
    conv_bn(26 * 26, 256, 128, 9), conv_bn(13 * 13, 512, 256, 9), conv_bn(13 * 13, 1024, 512, 9), conv_bn(13 * 13, 512, 1024, 9),
    conv(13 * 13, 425, 512, 1),
]  # fmt: skip


def yolo_v3_stage(side: int, channels: int, blocks: int) -> Count:
    """A convolution that halves the image, and residual blocks through half the channels."""
    half, area = channels // 2, side * side
    return total([conv_bn(area, channels, half, 9), conv_bn(area, half, channels, 1, blocks),
                  conv_bn(area, channels, half, 9, blocks)])  # fmt: skip


def yolo_v3_head(side: int, channels: int, entering: int) -> Count:
    """Six convolutions to and fro between `channels` and twice as many, and the 3 x 85 maps."""
    area = side * side
    return total([conv_bn(area, channels, entering, 1), conv_bn(area, channels, 2 * channels, 1, 2),
                  conv_bn(area, 2 * channels, channels, 9, 3), conv(area, 255, 2 * channels, 1)])  # fmt: skip


YOLO_V3 = [
    conv_bn(416 * 416, 32, 3, 9), yolo_v3_stage(208, 64, 1), yolo_v3_stage(104, 128, 2), yolo_v3_stage(52, 256, 8),
    yolo_v3_stage(26, 512, 8), yolo_v3_stage(13, 1024, 4), yolo_v3_head(13, 512, 1024),
    conv_bn(13 * 13, 256, 512, 1), yolo_v3_head(26, 256, 768), conv_bn(26 * 26, 128, 256, 1), yolo_v3_head(52, 128, 384),
]  # fmt: skip

# pixels of each convolution as figure 1 of the paper prints them; an up-convolution multiplies once for each larger pixel
UNET = [
    conv(570**2, 64, 1, 9), conv(568**2, 64, 64, 9), conv(282**2, 128, 64, 9), conv(280**2, 128, 128, 9),
    conv(138**2, 256, 128, 9), conv(136**2, 256, 256, 9), conv(66**2, 512, 256, 9), conv(64**2, 512, 512, 9),
    conv(30**2, 1024, 512, 9), conv(28**2, 1024, 1024, 9),
    (56**2 * 512 * 1024, 512 * (1024 * 4 + 1)), conv(54**2, 512, 1024, 9), conv(52**2, 512, 512, 9),
    (104**2 * 256 * 512, 256 * (512 * 4 + 1)), conv(102**2, 256, 512, 9), conv(100**2, 256, 256, 9),
    (200**2 * 128 * 256, 128 * (256 * 4 + 1)), conv(198**2, 128, 256, 9), conv(196**2, 128, 128, 9),
    (392**2 * 64 * 128, 64 * (128 * 4 + 1)), conv(390**2, 64, 128, 9), conv(388**2, 64, 64, 9), conv(388**2, 2, 64, 1),
]  # fmt: skip


def both_ways(entering: int) -> Count:
    """Gated units of 800 in both directions over 500 steps, with two biases for each of three gates."""
    return 2 * 500 * 3 * 800 * (entering + 800), 2 * 3 * 800 * (entering + 800 + 2)


# 161 bands x 1000 frames: 81 x 500 after the first convolution, 41 x 500 with 32 channels after the second
DEEPSPEECH_2 = [
    conv_bn(81 * 500, 32, 1, 41 * 11, bias=1), conv_bn(41 * 500, 32, 32, 21 * 11, bias=1), both_ways(41 * 32),
    *[both_ways(800), norm(800)] * 4, norm(800), (500 * 800 * 29, 800 * 29),
]  # fmt: skip


def vgg(a: int, b: int, c: int, d: int, e: int) -> list[Count]:
    """Convolutions in each of the five stages."""
    return [
        conv(224 * 224, 64, 3, 9), conv(224 * 224, 64, 64, 9, a - 1),
        conv(112 * 112, 128, 64, 9), conv(112 * 112, 128, 128, 9, b - 1),
        conv(56 * 56, 256, 128, 9), conv(56 * 56, 256, 256, 9, c - 1),
        conv(28 * 28, 512, 256, 9), conv(28 * 28, 512, 512, 9, d - 1),
        conv(14 * 14, 512, 512, 9, e),
        fc(25088, 4096), fc(4096, 4096), fc(4096, 1000),
    ]  # fmt: skip


STEM = conv_bn(112 * 112, 64, 3, 49)


DEEP = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def resnet_basic(a: int, b: int, c: int, d: int) -> list[Count]:
    """Blocks in each of the four stages; two convolutions a block."""
    return [
        STEM, conv_bn(56 * 56, 64, 64, 9, 2 * a),
        conv_bn(28 * 28, 128, 64, 9), conv_bn(28 * 28, 128, 128, 9, 2 * b - 1), conv_bn(28 * 28, 128, 64, 1),
        conv_bn(14 * 14, 256, 128, 9), conv_bn(14 * 14, 256, 256, 9, 2 * c - 1), conv_bn(14 * 14, 256, 128, 1),
        conv_bn(7 * 7, 512, 256, 9), conv_bn(7 * 7, 512, 512, 9, 2 * d - 1), conv_bn(7 * 7, 512, 256, 1),
        fc(512, 1000),
    ]  # fmt: skip


STAGES = ((64, 64), (128, 256), (256, 512), (512, 1024))  # width of a block's inner layers, channels before the stage
AREAS, LARGER = (56, 28, 14, 7), (56, 56, 28, 14)  # sides of the images of the stages, and of those that enter them


def resnet_bottleneck(
    *counts: int, stem: Count = STEM, areas: tuple[int, ...] = AREAS, entering: tuple[int, ...] = LARGER
) -> list[Count]:
    """Three convolutions a block; the first 1 x 1 of a stage still sees the larger image of the stage before."""
    layers = [stem, fc(2048, 1000)]
    for count, (width, before), larger, area in zip(counts, STAGES, entering, areas, strict=True):
        layers += [
            conv_bn(larger**2, width, before, 1), conv_bn(area**2, width, 4 * width, 1, count - 1),
            conv_bn(area**2, width, width, 9, count), conv_bn(area**2, 4 * width, width, 1, count),
            conv_bn(area**2, 4 * width, before, 1),
        ]  # fmt: skip
    return layers


def resnet_original(*counts: int, stem: Count = STEM, areas: tuple[int, ...] = AREAS) -> list[Count]:
    """As above, but the first 1 x 1 of a stage sees the smaller image already."""
    return resnet_bottleneck(*counts, stem=stem, areas=areas, entering=areas)


def resnet_slim(*counts: int) -> list[Count]:
    """The 3 x 3 of a stage's last block, but the last stage's, halves the image; all shortcuts see the image of the stage."""
    layers = [STEM, fc(2048, 1000)]
    for count, (width, before), area, after in zip(counts, STAGES, AREAS, (28, 14, 7, 7), strict=True):
        layers += [
            conv_bn(area**2, width, before, 1), conv_bn(area**2, width, 4 * width, 1, count - 1),
            conv_bn(area**2, width, width, 9, count - 1), conv_bn(after**2, width, width, 9),
            conv_bn(area**2, 4 * width, width, 1, count - 1), conv_bn(after**2, 4 * width, width, 1),
            conv_bn(area**2, 4 * width, before, 1),
        ]  # fmt: skip
    return layers


def resnet_mxnet(*counts: int) -> list[Count]:
    """As the next, and the image and the input of the very first block are normalised too."""
    return [norm(3), norm(64), *resnet_preactivation(*counts)]


def resnet_preactivation(*counts: int) -> list[Count]:
    """As the first, but normalised before each convolution: bare shortcuts, one last norm."""
    layers = [STEM, norm(2048), fc(2048, 1000)]
    for count, (width, before), larger, area in zip(counts, STAGES, LARGER, AREAS, strict=True):
        layers += [
            bare(larger**2, width, before, 1), bare(area**2, width, 4 * width, 1, count - 1),
            bare(area**2, width, width, 9, count), bare(area**2, 4 * width, width, 1, count),
            bare(area**2, 4 * width, before, 1), norm(width, 2 * count), norm(4 * width, count - 1),
        ]  # fmt: skip
        layers += [norm(before)] if before > 64 else []  # the very first block reads the normalised stem
    return layers


def googlenet_module(area: int, c: int, a: int, b1: int, b3: int, c1: int, c5: int, d: int) -> Count:
    return total([
        conv(area, a, c, 1), conv(area, b1, c, 1), conv(area, b3, b1, 9), conv(area, c1, c, 1), conv(area, c5, c1, 25),
        conv(area, d, c, 1),
    ])  # fmt: skip


GOOGLENET_MODULES = (
    (28 * 28, 192, 64, 96, 128, 16, 32, 32),
    (28 * 28, 256, 128, 128, 192, 32, 96, 64),
    (14 * 14, 480, 192, 96, 208, 16, 48, 64),
    (14 * 14, 512, 160, 112, 224, 24, 64, 64),
    (14 * 14, 512, 128, 128, 256, 24, 64, 64),
    (14 * 14, 512, 112, 144, 288, 32, 64, 64),
    (14 * 14, 528, 256, 160, 320, 32, 128, 128),
    (7 * 7, 832, 256, 160, 320, 32, 128, 128),
    (7 * 7, 832, 384, 192, 384, 48, 128, 128),
)  # fmt: skip
GOOGLENET = [
    conv(112 * 112, 64, 3, 49), conv(56 * 56, 64, 64, 1), conv(56 * 56, 192, 64, 9),
    *[googlenet_module(*row) for row in GOOGLENET_MODULES], fc(1024, 1000),
]  # fmt: skip


def inception_bn_module(area: int, c: int, a: int, b1: int, b3: int, c1: int, c3: int, d: int) -> Count:
    return total([
        conv_bn(area, a, c, 1, bias=1), inception_bn_halving(area, area, c, b1, b3, c1, c3), conv_bn(area, d, c, 1, bias=1),
    ])  # fmt: skip


def inception_bn_halving(larger: int, area: int, c: int, b1: int, b3: int, c1: int, c3: int) -> Count:
    return total([
        conv_bn(larger, b1, c, 1, bias=1), conv_bn(area, b3, b1, 9, bias=1),
        conv_bn(larger, c1, c, 1, bias=1), conv_bn(larger, c3, c1, 9, bias=1), conv_bn(area, c3, c3, 9, bias=1),
    ])  # fmt: skip


INCEPTION_BN = [
    conv_bn(112 * 112, 64, 3, 49, bias=1), conv_bn(55 * 55, 64, 64, 1, bias=1), conv_bn(55 * 55, 192, 64, 9, bias=1),
    inception_bn_module(27 * 27, 192, 64, 64, 64, 64, 96, 32),
    inception_bn_module(27 * 27, 256, 64, 64, 96, 64, 96, 64),
    inception_bn_halving(27 * 27, 14 * 14, 320, 128, 160, 64, 96),
    inception_bn_module(14 * 14, 576, 224, 64, 96, 96, 128, 128),
    inception_bn_module(14 * 14, 576, 192, 96, 128, 96, 128, 128),
    inception_bn_module(14 * 14, 576, 160, 128, 160, 128, 160, 128),
    inception_bn_module(14 * 14, 608, 96, 128, 192, 160, 192, 128),
    inception_bn_halving(14 * 14, 7 * 7, 608, 128, 192, 192, 256),
    inception_bn_module(7 * 7, 1056, 352, 192, 320, 160, 224, 128),
    inception_bn_module(7 * 7, 1024, 352, 192, 320, 192, 224, 128),
    fc(1024, 1000),
]  # fmt: skip


INCEPTION_BN_CAFFE = [
    conv_bn(112 * 112, 96, 3, 49, bias=1), conv_bn(56 * 56, 128, 96, 1, bias=1), conv_bn(56 * 56, 288, 128, 9, bias=1),
    inception_bn_module(28 * 28, 288, 96, 96, 96, 96, 144, 48),
    inception_bn_module(28 * 28, 384, 96, 96, 144, 96, 144, 96),
    inception_bn_halving(28 * 28, 14 * 14, 480, 192, 240, 96, 144),
    inception_bn_module(14 * 14, 864, 224, 64, 96, 96, 128, 128),
    *INCEPTION_BN[7:9],
    inception_bn_module(14 * 14, 608, 96, 128, 192, 160, 96, 128),
    inception_bn_halving(14 * 14, 7 * 7, 512, 128, 192, 192, 256),
    inception_bn_module(7 * 7, 960, 352, 192, 320, 160, 224, 128),
    inception_bn_module(7 * 7, 1024, 352, 192, 320, 192, 224, 128),
    fc(1024, 1000),
]  # fmt: skip


def fire(area: int, c: int, squeeze: int, expand: int) -> Count:
    return total([conv(area, squeeze, c, 1), conv(area, expand, squeeze, 1), conv(area, expand, squeeze, 9)])


SQUEEZENET_1_0 = [
    conv(111 * 111, 96, 3, 49), fire(55 * 55, 96, 16, 64), fire(55 * 55, 128, 16, 64), fire(55 * 55, 128, 32, 128),
    fire(27 * 27, 256, 32, 128), fire(27 * 27, 256, 48, 192), fire(27 * 27, 384, 48, 192),
    fire(27 * 27, 384, 64, 256), fire(13 * 13, 512, 64, 256), conv(15 * 15, 1000, 512, 1),
]  # fmt: skip
SQUEEZENET_1_1 = [
    conv(113 * 113, 64, 3, 9), fire(56 * 56, 64, 16, 64), fire(56 * 56, 128, 16, 64), fire(28 * 28, 128, 32, 128),
    fire(28 * 28, 256, 32, 128), fire(14 * 14, 256, 48, 192), fire(14 * 14, 384, 48, 192),
    fire(14 * 14, 384, 64, 256), fire(14 * 14, 512, 64, 256), conv(14 * 14, 1000, 512, 1),
]  # fmt: skip


def densenet(growth: int, stem: int, *counts: int) -> list[Count]:
    """Layer i of a block reads all that came before; a transition halves the channels before it halves the image."""
    layers = [conv_bn(112 * 112, stem, 3, 49)]
    channels = stem
    for block, (count, area) in enumerate(zip(counts, (56 * 56, 28 * 28, 14 * 14, 7 * 7), strict=True)):
        for _ in range(count):
            layers += [norm(channels), conv_bn(area, 4 * growth, channels, 1), bare(area, growth, 4 * growth, 9)]
            channels += growth
        layers.append(norm(channels))
        if block < 3:
            layers.append(bare(area, channels // 2, channels, 1))
            channels //= 2
    return [*layers, fc(channels, 1000)]


WIDE_FC = fc(26752, 2048), fc(2048, 26752)

BY_HAND: dict[str, list[Count]] = {
    "alexnet": ALEXNET,
    "alexnet_owt": ALEXNET_OWT,
    "alexnet@tensorflow": ALEXNET_TENSORFLOW,
    "alexnet@mxnet": ALEXNET_MXNET,
    "alexnet_s": ALEXNET_S,
    "alexnet_s@caffe": ALEXNET_S_CAFFE,
    "alexnet_s@mxnet": ALEXNET_S_MXNET,
    "alexnet_s@tensorflow": ALEXNET_S_TENSORFLOW,
    "alexnet_r": ALEXNET_R,
    "alexnet_r@caffe": ALEXNET_R_CAFFE,
    "alexnet_r@torch7-cpu": ALEXNET_R,
    "overfeat": OVERFEAT,
    "deepspeech_2": DEEPSPEECH_2,
    "lenet_5": LENET_5,
    "nin": NIN,
    "resnet_20": resnet_cifar(3),
    "resnet_32": resnet_cifar(5),
    "resnet_44": resnet_cifar(7),
    "resnet_56": resnet_cifar(9),
    "resnet_56@cntk": [*resnet_cifar(18), bare(16 * 16, 32, 16, 1), bare(8 * 8, 64, 32, 1)],
    "resnet_56@tensorflow": resnet_cifar(9, bias=1),
    "resnet_110": resnet_cifar(18),
    "yolo_v2": YOLO_V2,
    "tiny_yolo_v2": TINY_YOLO_V2,
    "yolo_v3": YOLO_V3,
    "unet": UNET,
    "fcn_s": [*WIDE_FC, fc(2048, 2048, 2)],
    "fcn_s@tensorflow": [*WIDE_FC, fc(2048, 2048, 2)],
    "fcn_5": [fc(512, 2048), fc(2048, 2048, 2), fc(2048, 1000)],
    "fcn_8": [fc(512, 2048), fc(2048, 2048, 5), fc(2048, 1000)],
    "fcn_r": [fc(784, 2048), fc(2048, 4096), fc(4096, 1024), fc(1024, 10)],
    "fcn_r@cntk": [fc(784, 4096), fc(4096, 2048), fc(2048, 1024), fc(1024, 10)],
    "lstm_ptb": language_model(32),
    "lstm_32": language_model(32),
    "lstm_64": language_model(64),
    "vgg_a": vgg(1, 1, 2, 2, 2),
    "vgg_16": vgg(2, 2, 3, 3, 3),
    "vgg_19": vgg(2, 2, 4, 4, 4),
    "resnet_18": resnet_basic(2, 2, 2, 2),
    "resnet_34": resnet_basic(3, 4, 6, 3),
    **{f"resnet_{depth}": resnet_bottleneck(*counts) for depth, counts in DEEP.items()},
    **{f"resnet_{depth}@caffe": resnet_original(*counts) for depth, counts in DEEP.items()},
    "resnet_50@dlbench": resnet_original(*DEEP[50], stem=conv_bn(109 * 109, 64, 3, 49, bias=1), areas=(54, 27, 14, 7)),
    **{f"resnet_{depth}@slim": resnet_slim(*counts) for depth, counts in DEEP.items()},
    **{f"resnet_{depth}@mxnet": resnet_mxnet(*counts) for depth, counts in DEEP.items()},
    "resnet_200": resnet_preactivation(3, 24, 36, 3),
    "googlenet": GOOGLENET,
    "googlenet@convnet": GOOGLENET,  # what it leaves out neither multiplies nor learns
    "inception_bn": INCEPTION_BN,
    "inception_bn@caffe": INCEPTION_BN_CAFFE,
    "squeezenet_1_0": SQUEEZENET_1_0,
    "squeezenet_1_1": SQUEEZENET_1_1,
    "densenet_121": densenet(32, 64, 6, 12, 24, 16),
    "densenet_161": densenet(48, 96, 6, 12, 36, 24),
    "densenet_169": densenet(32, 64, 6, 12, 32, 32),
    "densenet_201": densenet(32, 64, 6, 12, 48, 32),
}


def rows(tokens: int, inputs: int, outputs: int, times: int = 1, *, bias: int = 1) -> Count:
    """`times` linear layers on each of the tokens."""
    return times * tokens * inputs * outputs, times * outputs * (inputs + bias)


def table(entries: int, width: int) -> Count:
    return 0, entries * width


def attend(pairs: int, width: int, times: int) -> Count:
    """Scores and their product with the values: `width` multiply-accumulates for each pair of tokens, twice."""
    return times * 2 * pairs * width, 0


def blocks(tokens: int, pairs: int, width: int, layers: int) -> list[Count]:
    """Four projections, two norms, and two linear layers through four times the width."""
    return [
        rows(tokens, width, width, 4 * layers), attend(pairs, width, layers), rows(tokens, width, 4 * width, layers),
        rows(tokens, 4 * width, width, layers), norm(width, 2 * layers),
    ]  # fmt: skip


def vit(width: int, layers: int) -> list[Count]:
    """14 x 14 patches and the class token."""
    return [
        conv(14 * 14, width, 3, 256), table(1, width), table(197, width), *blocks(197, 197 * 197, width, layers), norm(width),
        fc(width, 1000),
    ]  # fmt: skip


def encoder(rows: int, width: int, layers: int) -> list[Count]:
    """Tables of so many rows and the blocks, on 128 tokens."""
    return [table(rows, width), norm(width), *blocks(128, 128 * 128, width, layers)]


def bert(width: int, layers: int) -> list[Count]:
    """Words, positions and segments; the pooler sees one token."""
    return [*encoder(30522 + 512 + 2, width, layers), fc(width, width)]


CAUSAL = 512 * 513 // 2  # pairs of a token and one not after it


def gpt(words: int, positions: int, width: int, layers: int, pairs: int = CAUSAL) -> list[Count]:
    """The weights of the words are those of the logits too."""
    return [
        table(words + positions, width), *blocks(512, pairs, width, layers), norm(width), (512 * width * words, 0),
    ]  # fmt: skip


def llama(words: int, width: int, hidden: int, layers: int, keys: int, pairs: int = CAUSAL) -> list[Count]:
    """No biases; one scale per norm; keys and values of `keys` features; three layers in each gated unit."""
    return [
        table(words, width), rows(512, width, width, 2 * layers, bias=0), rows(512, width, keys, 2 * layers, bias=0),
        attend(pairs, width, layers), rows(512, width, hidden, 2 * layers, bias=0), rows(512, hidden, width, layers, bias=0),
        (0, width * (2 * layers + 1)), rows(512, width, words, bias=0),
    ]  # fmt: skip


BY_HAND |= {
    "vit_base_16": vit(768, 12),
    "vit_large_16": vit(1024, 24),
    "vit_tiny_16": vit(192, 12),
    "vit_small_16": vit(384, 12),
    "qwen2_1_5b": [(0, 28 * (1536 + 2 * 256)), *llama(151936, 1536, 8960, 28, 256)[:-1], (512 * 1536 * 151936, 0)],
    "bert_base": bert(768, 12),
    "bert_large": bert(1024, 24),
    "distilbert": encoder(30522 + 512, 768, 6),
    "roberta_base": [*encoder(50265 + 514 + 1, 768, 12), fc(768, 768)],
    "gpt2_small": gpt(50257, 1024, 768, 12),
    "gpt2_large": gpt(50257, 1024, 1280, 36),
    "gpt3_xl": gpt(50257, 2048, 2048, 24),
    "gpt3_2_7b": gpt(50257, 2048, 2560, 32),
    "gpt3_xl_3072": gpt(50257, 2048, 3072, 24),
    "opt_1_3b": gpt(50272, 2050, 2048, 24),
    "opt_13b": gpt(50272, 2050, 5120, 40),
    "llama_2_7b": llama(32000, 4096, 11008, 32, 4096),
    "llama_2_13b": llama(32000, 5120, 13824, 40, 5120),
    "llama_3_8b": llama(128256, 4096, 14336, 32, 1024),
}

# without what scores every word, the last line of each
DECODERS = ("gpt2_small", "gpt2_large", "gpt3_xl", "gpt3_2_7b", "gpt3_xl_3072", "opt_1_3b", "opt_13b", "llama_2_7b",
            "llama_2_13b", "llama_3_8b", "qwen2_1_5b")  # fmt: skip
BY_HAND |= {f"{name}_body": BY_HAND[name][:-1] for name in DECODERS}

ALL = 512 * 512  # pairs, where those that a mask hides are computed too
BY_HAND |= {
    "bert_base@hf": [*bert(768, 12), fc(768, 2)],
    "bert_large@hf": [*bert(1024, 24), fc(1024, 2)],
    "bert_large@hf_pretraining": [
        *bert(1024, 24), fc(1024, 2), rows(128, 1024, 1024), norm(1024), (128 * 1024 * 30522, 30522)
    ],
    "gpt2_small@hf": gpt(50257, 1024, 768, 12, ALL),
    "gpt2_large@hf": gpt(50257, 1024, 1280, 36, ALL),
    "gpt3_xl@hf": gpt(50257, 2048, 2048, 24, ALL),
    "gpt3_xl_3072@hf": gpt(50257, 2048, 3072, 24, ALL),
    "gpt3_2_7b@hf": gpt(50257, 2048, 2560, 32, ALL),
    "opt_1_3b@hf": gpt(50272, 2050, 2048, 24, ALL),
    "opt_13b@hf": gpt(50272, 2050, 5120, 40, ALL),
    "llama_2_7b@hf": llama(32000, 4096, 11008, 32, 4096, ALL),
    "llama_2_13b@hf": llama(32000, 5120, 13824, 40, 5120, ALL),
    "switch_xl4": [
        table(32128, 1024), rows(512, 1024, 4096, 3 * 72, bias=0), rows(512, 4096, 1024, 72, bias=0), attend(ALL, 4096, 72),
        rows(512, 1024, 16384, 24, bias=0), rows(512, 16384, 1024, 24, bias=0), rows(512, 1024, 4, 24, bias=0),
        rows(64, 1024, 16384, 24 * 4, bias=0), rows(64, 16384, 1024, 24 * 4, bias=0), (0, 1024 * (2 * 24 + 3 * 24 + 2)),
        (512 * 1024 * 32128, 0),
    ],
    "llama_3_8b@hf": llama(128256, 4096, 14336, 32, 1024, ALL),
}  # fmt: skip

# parameters of the published weights: torchvision's table of models, and the checkpoints of the authors
PUBLISHED = {
    "vit_tiny_16": 5_717_416, "vit_small_16": 22_050_664, "vit_base_16": 86_567_656, "vit_large_16": 304_326_632,
    "bert_base": 109_482_240, "bert_large": 335_141_888,
    "distilbert": 66_362_880, "roberta_base": 124_645_632,
    "gpt2_small": 124_439_808, "gpt2_large": 774_030_080, "opt_1_3b": 1_315_758_080, "opt_13b": 12_853_473_280,
    "llama_2_7b": 6_738_415_616, "llama_2_13b": 13_015_864_320, "llama_3_8b": 8_030_261_248, "qwen2_1_5b": 1_543_714_304,
}  # fmt: skip

# exact figures that several independent counters print for these networks
EXACT = {
    "alexnet": (724_406_816, 60_965_224),
    "alexnet_owt": (714_188_480, 61_100_840),
    "vgg_16": (15_470_264_320, 138_357_544),
    "googlenet": (1_582_671_872, 6_998_552),
    "resnet_50": (4_089_184_256, 25_557_032),
    "resnet_50@caffe": (3_857_973_248, 25_557_032),
    "resnet_152": (11_513_626_624, 60_192_808),
}

# parameters in millions as their authors print them: guolinke/deep-learning-benchmarks README (first five),
# dlbench NetworksConfigsDoc (next two), Sandler et al. table 4, He et al. table 6, Brown et al. table 2.1
AUTHORS = {
    "alexnet_s": (62, 0.5), "lstm_32": (6, 0.5), "lstm_64": (6, 0.5),
    "alexnet_r": (0.085, 0.0005), "resnet_56": (0.85, 0.005), "mobilenet_v2": (3.4, 0.11),
    "resnet_20": (0.27, 0.005), "resnet_32": (0.46, 0.005), "resnet_44": (0.66, 0.005), "resnet_110": (1.7, 0.05),
    "gpt3_xl": (1300, 50), "gpt3_2_7b": (2700, 50),
}  # fmt: skip


# multiply-accumulates of all convolutions and linear layers, and parameters, of the definitions in torchvision 0.29 (VGG, Wide
# ResNet, ResNeXt, RegNet, MobileNetV2 and V3, ShuffleNetV2, MnasNet, EfficientNet, ConvNeXt; GoogLeNet, Inception-v3 and
# DeepLabv3 without their auxiliary classifiers, SSD with 21 classes) and timm 1.0 (the others), counted as they run; the
# parameters are those of the published weights


def jouppi_module(area: int, c: int, a: int, b1: int, b3: int, c1: int, c3: int, d: int, halved: int = 0) -> tuple[int, int]:
    """(multiply-adds, weights) of a module of Inception-BN without biases; `halved` points where its 3 x 3 have stride 2."""
    first, last = c * (a + b1 + c1 + d) + 9 * c1 * c3, 9 * (b1 * b3 + c3 * c3)
    return area * first + (halved or area) * last, first + last


JOUPPI_STEM = (
    168**2 * 27 * 32 + 166**2 * 9 * (32 * 32 + 32 * 64) + 82**2 * (64 * 64 + 9 * 64 * 80 + 9 * 80 * 192),
    27 * 32 + 9 * (32 * 32 + 32 * 64) + 64 * 64 + 9 * 64 * 80 + 9 * 80 * 192,
)
JOUPPI_MODULES = tuple(map(sum, zip(
    jouppi_module(1600, 192, 64, 64, 64, 64, 96, 32), jouppi_module(1600, 256, 64, 64, 96, 64, 96, 64),
    jouppi_module(1600, 320, 0, 128, 160, 64, 96, 0, halved=400),
    jouppi_module(400, 576, 224, 64, 96, 96, 128, 128), jouppi_module(400, 576, 192, 96, 128, 96, 128, 128),
    jouppi_module(400, 576, 160, 128, 160, 128, 160, 128), jouppi_module(400, 608, 96, 128, 192, 160, 192, 128),
    jouppi_module(400, 608, 0, 128, 192, 192, 256, 0, halved=100),
    jouppi_module(100, 1056, 352, 192, 320, 160, 224, 128), jouppi_module(100, 1024, 352, 192, 320, 192, 224, 128),
    strict=True,
)))  # fmt: skip
JOUPPI_LAST = 1024 * 5299 + 3 * 5299**2

DEFINED: dict[str, Count] = {
    "convnext_base": (15_354_729_472, 88_591_464),
    "convnext_tiny": (4_455_531_264, 28_589_128),
    "deeplab_v3_resnet_50": (168_652_962_240, 39_638_869),
    "dpn_92": (6_501_684_224, 37_668_392),
    "efficientnet_b0": (385_814_752, 5_288_548),
    "efficientnet_b1": (686_802_832, 7_794_184),
    "efficientnet_b2": (993_561_872, 9_109_994),
    "efficientnet_b3": (1_827_141_392, 12_233_232),
    "efficientnet_b4": (4_393_771_024, 19_341_616),
    "efficientnet_b5": (10_266_384_752, 30_389_784),
    "efficientnet_b6": (19_067_593_536, 43_040_704),
    "efficientnet_b7": (37_745_884_192, 66_347_960),
    "googlenet@torchvision": (1_498_376_192, 6_624_904),
    "inception_resnet_v2": (13_155_794_016, 55_843_464),
    "inception_v3": (5_713_216_096, 23_834_568),
    "inception_v4": (12_253_974_624, 42_679_816),
    "mnasnet_1_0": (314_415_872, 4_383_312),
    "mobilenet_v1": (568_740_352, 4_231_976),
    "mobilenet_v2": (300_774_272, 3_504_872),
    "mobilenet_v3_large": (216_589_760, 5_483_032),
    "mobilenet_v3_small": (56_510_400, 2_542_856),
    "mobilevit_s": (2_000_831_488, 5_578_632),  # the parameters of the published weights
    "regnet_y_400mf": (401_842_848, 4_344_144),
    "regnet_y_8gf": (8_473_070_592, 39_381_472),
    "resnext_101_32x4d": (7_969_996_800, 44_177_704),
    "resnext_101_32x8d": (16_414_015_488, 88_791_336),
    "resnext_101_64x4d": (15_460_270_080, 83_455_272),
    "resnext_50_32x4d": (4_230_479_872, 25_028_904),
    "se_resnet_50": (4_091_699_200, 28_088_024),
    "se_resnext_101_32x4d": (7_974_739_968, 48_955_416),
    "se_resnext_50_32x4d": (4_232_994_816, 27_559_896),
    "senet_154": (20_688_363_520, 115_088_984),
    "shufflenet_v2_x1_0": (144_907_992, 2_278_604),
    "ssd_300": (31_373_537_792, 26_285_486),
    # layers, weights and points of Jouppi et al. 2017: 5 x 2000^2, 4 x 1118^2, 24 x 1472^2, 94 x 600^2, 16 x 9 x 235^2 over
    # 19 x 19, and an Inception with 1024 x 5299 + 3 x 5299^2 behind it
    "jouppi_mlp0": (20_000_000, 20_000_000),
    "jouppi_mlp1": (4_999_696, 4_999_696),
    "jouppi_lstm0": (52_002_816, 52_002_816),
    "jouppi_lstm1": (33_840_000, 33_840_000),
    "jouppi_cnn0": (16 * 9 * 235**2 * 361, 16 * 9 * 235**2),
    "jouppi_cnn1": (JOUPPI_STEM[0] + JOUPPI_MODULES[0] + JOUPPI_LAST, JOUPPI_STEM[1] + JOUPPI_MODULES[1] + JOUPPI_LAST),
    "vit_base_32": (4_409_186_304, 88_224_232),
    "vgg_11_bn": (7_609_090_048, 132_868_840),
    "vgg_13": (11_308_466_176, 133_047_848),
    "vgg_13_bn": (11_308_466_176, 133_053_736),
    "vgg_16_bn": (15_470_264_320, 138_365_992),
    "vgg_19_bn": (19_632_062_464, 143_678_248),
    "wide_resnet_101_2": (22_753_050_624, 126_886_696),
    "wide_resnet_50_2": (11_398_021_120, 68_883_240),
    "xception": (8_357_403_496, 22_855_952),
}

# counted as the builders have them: the parameters of vit_base_32_384 are those of the published weights; PaddleClas prints the
# multiply-accumulates of PP-LCNet with two for each value of a normalisation, 160.81 million of pplcnet_x1_0
DEFINED |= {
    "efficientnet_lite0": (385_187_552, 4_652_008),
    "efficientnet_lite1": (600_185_232, 5_416_680),
    "efficientnet_lite2": (859_736_272, 6_092_072),
    "efficientnet_lite3": (1_383_321_872, 8_197_096),
    "efficientnet_lite4": (2_553_034_336, 13_006_568),
    "pplcnet_x0_25": (16_773_440, 1_521_184),
    "pplcnet_x0_35": (27_357_832, 1_643_090),
    "pplcnet_x0_5": (44_731_008, 1_879_576),
    "pplcnet_x0_75": (94_786_496, 2_357_008),
    "pplcnet_x1_0": (155_700_480, 2_952_520),
    "pplcnet_x1_5": (334_188_416, 4_499_832),
    "pplcnet_x2_0": (580_194_816, 6_521_512),
    "pplcnet_x2_5": (893_719_680, 9_017_560),
    "shufflenet_v1_g3": (137_460_672, 1_865_728),
    "vit_base_32_384": (13_043_564_544, 88_297_192),
}

# what Darknet prints for COCO [1e9 FLOP], YOLOv2's 62.94 at 608 x 608 scaled to the pixels of 416 x 416; and the values in its
# files of weights, running statistics included: yolov2.weights has 203,934,260 bytes with a header of 16, yolov2-tiny.weights
# and yolov3.weights have 44,948,600 and 248,007,048 with one of 20
DARKNET = {"yolo_v2": (29.46, 50_983_561), "tiny_yolo_v2": (5.41, 11_237_145), "yolo_v3": (65.86, 62_001_757)}


def counted(name: str) -> Count:
    bound = task_trace(load(name), "inference").bind(N=1)
    return bound.macs, bound.parameters


def test_every_network_is_counted_by_hand_or_by_an_independent_definition():
    assert set(BY_HAND) | set(DEFINED) == set(NETWORKS)


@each("name", BY_HAND)
def test_work_and_parameters_are_those_counted_by_hand(name):
    assert counted(name) == total(BY_HAND[name])


@each("name", DEFINED)
def test_work_and_parameters_are_those_of_an_independent_definition(name):
    assert counted(name) == DEFINED[name]


@pytest.mark.parametrize("name", DARKNET)
def test_work_and_stored_values_are_those_that_darknet_prints(name):
    macs, _ = counted(name)
    billions, stored = DARKNET[name]
    ops = load(name).bind(N=1).ops
    running = sum(2 * op.shape[1] for op in ops if op.kind.op == "batch_norm")
    assert abs(2 * macs / 1e9 - billions) < 0.01 * billions
    assert sum(op.parameters for op in ops) + running == stored


@pytest.mark.parametrize("name", EXACT)
def test_work_and_parameters_are_the_known_exact_figures(name):
    assert counted(name) == EXACT[name]


@each("name", AUTHORS)
def test_parameters_agree_with_what_the_authors_print(name):
    millions, tolerance = AUTHORS[name]
    assert abs(counted(name)[1] / 1e6 - millions) <= tolerance


@each("name", PUBLISHED)
def test_parameters_are_exactly_those_of_the_published_weights(name):
    assert counted(name)[1] == PUBLISHED[name]
