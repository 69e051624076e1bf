"""Residual networks: for ImageNet, 18 to 200 layers, for CIFAR-10, and with bottlenecks that are wide, grouped or gated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from archsim.trace.kinds.normalise import BatchNorm
from archsim.trace.op import Pad
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import HU, Builder, images, squeeze_excite, stem_of
from archsim.trace.zoo.early import DLBENCH

SOURCE = "K. He, X. Zhang, S. Ren, J. Sun, Deep Residual Learning for Image Recognition, arXiv:1512.03385, table 1"
PREACTIVATION = "K. He, X. Zhang, S. Ren, J. Sun, Identity Mappings in Deep Residual Networks, arXiv:1603.05027"
TORCH = "blocks as in fb.resnet.torch"
SLIM = "tensorflow/models, research/slim/nets/resnet_v1.py"
MXNET = "Apache MXNet, example/image-classification/symbols/resnet.py"
EXPANSION = 4  # a bottleneck widens its output by this
BASIC = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}  # blocks of each stage
DEEP = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}  # bottleneck blocks of each stage

Block = Callable[[Builder, str, int, int, str], str]


def resnet(depth: int) -> Trace:
    """Basic blocks, or from 50 layers on bottleneck blocks with the stride on the 3 x 3 convolution."""
    block, counts = (_basic, BASIC[depth]) if depth in BASIC else (bottleneck, DEEP[depth])
    return residual(f"resnet_{depth}", f"{SOURCE}; {TORCH}", block, counts, aliases=(f"resnet{depth}",))


def deep_original(depth: int) -> Trace:
    """As the authors' Caffe models and TensorFlow's benchmarks have it: the stride on the first 1 x 1 convolution."""
    net = images(f"resnet_{depth}@caffe", f"{SOURCE}; the authors' prototxt files",
                  notes="the stride of a block is on its first convolution")  # fmt: skip
    return net.classified_mean(stages(net, stem_of(net), _bottleneck_early, DEEP[depth]))


def resnet_50_stored() -> Trace:
    """As a Caffe script has it: the authors' file, no border on the first convolution, and stored statistics in training."""
    source = f"{SOURCE}; {DLBENCH}, synthetic/experiments/caffe/cnn/resnet/resnet-b64.prototxt"
    net = images("resnet_50@dlbench", source, notes="use_global_stats in training")
    stem = net.max_pool(net.relu(net.conv_bn("data", 64, 7, 2, bias=True, name="conv1")), 3, 2, ceil=True, name="pool1")
    trace = net.classified_mean(stages(net, stem, _bottleneck_early, DEEP[50]))
    norms = [replace(op, kind=BatchNorm(stored=True)) if isinstance(op.kind, BatchNorm) else op for op in trace.ops]
    return replace(trace, ops=tuple(norms))


def deep_slim(depth: int) -> Trace:
    """As TensorFlow's slim has it: the last block of a stage halves the image, its shortcut takes every second pixel."""
    net = images(f"resnet_{depth}@slim", f"{SOURCE}; {SLIM}",
                  notes="the last block of a stage has its stride")  # fmt: skip
    x = stem_of(net)
    for stage, count in enumerate(DEEP[depth], 1):
        for number in range(count):
            stride = 2 if stage < 4 and number == count - 1 else 1
            x = bottleneck(net, x, 32 * 2**stage, stride, f"layer{stage}.{number}")
    return net.classified_mean(x)


def deep_mxnet(depth: int) -> Trace:
    """As MXNet's symbols have it: pre-activation blocks, and the image is normalised first."""
    net = images(f"resnet_{depth}@mxnet", f"{PREACTIVATION}; {MXNET}")
    x = net.conv_bn_relu(net.batch_norm("data", name="data.bn"), 64, 7, 2, 3, name="conv1")
    x = stages(net, net.max_pool(x, 3, 2, 1, name="pool1"), _preactivation_bottleneck, DEEP[depth])
    return net.classified_mean(net.bn_relu(x, name="last"))


def resnet_200() -> Trace:
    """Pre-activation bottleneck blocks: normalise and rectify before each convolution, and once more at the end."""
    net = images("resnet_200", f"{PREACTIVATION}; {TORCH} (preresnet)")
    x = stages(net, stem_of(net), _preactivation_bottleneck_of_torch, (3, 24, 36, 3))
    x = net.bn_relu(x, name="last")
    return net.classified_mean(x, aliases=("resnet200",))


def residual(name: str, source: str, block: Block, counts: tuple[int, ...], aliases: tuple[str, ...] = ()) -> Trace:
    """Stem, four stages of blocks, classifier."""
    net = images(name, source)
    return net.classified_mean(stages(net, stem_of(net), block, counts), aliases=aliases)


def stages(net: Builder, x: str, block: Block, counts: Sequence[int], width: int = 32) -> str:
    """Stages of blocks; each after the first begins with a stride of 2 and doubles the width, half of that of the first."""
    for stage, count in enumerate(counts, 1):
        for number in range(count):
            stride = 2 if stage > 1 and number == 0 else 1
            x = block(net, x, width * 2**stage, stride, f"layer{stage}.{number}")
    return x


def _basic(net: Builder, x: str, width: int, stride: int, name: str, *, beside: Block | None = None) -> str:
    """Two 3 x 3 convolutions, and `beside` them a shortcut, usually that of type B."""
    y = net.conv_bn_relu(x, width, 3, stride, 1, name=f"{name}.conv1")
    y = net.conv_bn(y, width, 3, pad=1, name=f"{name}.conv2")
    return net.add_relu(y, (beside or _shortcut)(net, x, width, stride, name), name=name)


def bottleneck(
    net: Builder, x: str, width: int, stride: int, name: str, *, early: bool = False, inner: int = 1, groups: int = 1,
    reduction: int = 0, dilation: int = 1,
) -> str:  # fmt: skip
    """1 x 1 down, 3 x 3, 1 x 1 up; the stride on the first of them if `early`, else on the second.

    `inner` times as wide inside, in `groups`, with windows spread by `dilation`, its output gated where there is a `reduction`.
    """
    first, second = (stride, 1) if early else (1, stride)
    y = net.conv_bn_relu(x, inner * width, 1, first, name=f"{name}.conv1")
    y = net.conv_bn_relu(y, inner * width, 3, second, dilation, groups=groups, dilation=dilation, name=f"{name}.conv2")
    y = net.conv_bn(y, EXPANSION * width, 1, name=f"{name}.conv3")
    if reduction:
        y = squeeze_excite(net, y, EXPANSION * width // reduction, name=f"{name}.se")
    shortcut = _shortcut(net, x, EXPANSION * width, stride, name)
    return net.add_relu(y, shortcut, name=name)


_bottleneck_early = partial(bottleneck, early=True)


def _shortcut(net: Builder, x: str, channels: int, stride: int, name: str) -> str:
    """The identity or every second pixel of it, or a normalised 1 x 1 convolution where the width changes (type B)."""
    if net.channels(x) == channels:
        return x if stride == 1 else net.max_pool(x, 1, stride, name=f"{name}.shortcut")
    return net.conv_bn(x, channels, 1, stride, name=f"{name}.shortcut")


def _preactivation_bottleneck(net: Builder, x: str, width: int, stride: int, name: str, *, rectified: str = "") -> str:
    """Normalise and rectify, then 1 x 1 down, 3 x 3, 1 x 1 up.

    The block named `rectified` finds its input rectified already; where the width changes, the shortcut too reads the
    rectified input, through a bare 1 x 1 convolution.
    """
    widens = net.channels(x) != EXPANSION * width
    y = x if name == rectified else net.bn_relu(x, name=name)
    shortcut = net.conv(y, EXPANSION * width, 1, stride, bias=False, name=f"{name}.shortcut") if widens else x
    y = net.conv_bn_relu(y, width, 1, name=f"{name}.conv1")
    y = net.conv_bn_relu(y, width, 3, stride, 1, name=f"{name}.conv2")
    y = net.conv(y, EXPANSION * width, 1, bias=False, name=f"{name}.conv3")
    return net.sum(y, shortcut, name=f"{name}.add")


_preactivation_bottleneck_of_torch = partial(_preactivation_bottleneck, rectified="layer1.0")


# --------------------------------------------------------------------------------------------------------- for CIFAR-10

DEPTHS = (20, 32, 44, 110)  # 6 n + 2 layers; the paper's 56 is left out, as that name is a benchmark's variant


def resnet_cifar(depth: int) -> Trace:
    """The paper's network of 6 n + 2 layers: n blocks in each of three stages, shortcuts padded with zeros (type A)."""
    net = images(f"resnet_{depth}", f"{SOURCE.rpartition(',')[0]}, section 4.2", 32)
    return _three_stages(net, partial(_basic, beside=_widened), (depth - 2) // 6, (f"resnet{depth}",))


def resnet_56() -> Trace:
    """For CIFAR-10: 9 blocks in each of three stages, shortcuts padded with zeros, normalised after the addition."""
    net = images("resnet_56", f"{SOURCE} and section 4.2; variant of {DLBENCH}", 32,
                 notes="batch normalisation after the addition and no ReLU after it")  # fmt: skip
    return _three_stages(net, _cifar_block, 9)


def resnet_56_cntk() -> Trace:
    """What the CNTK script calls ResNet-56: 18 blocks in each stage, normalised before the addition, a ReLU after it."""
    net = images("resnet_56@cntk", f"{DLBENCH}, tools/cntk/cnn/resnet/ResNet_56.ndl", 32,
                 notes="18 blocks in each stage, which makes 110 layers")  # fmt: skip
    return _three_stages(net, partial(_basic, beside=_projected), 18)


def _three_stages(net: Builder, block: Block, count: int, aliases: tuple[str, ...] = ()) -> Trace:
    x = stages(net, net.conv_bn_relu("data", 16, 3, pad=1, name="conv1"), block, [count] * 3, 8)
    return net.classified(net.avg_pool(x, 8, 1, name="pool"), 10, aliases=aliases)


def resnet_56_tensorflow() -> Trace:
    """The TensorFlow script: images are padded by an op of their own before each convolution, which has a bias."""
    net = images("resnet_56@tensorflow", f"{DLBENCH}, tools/tensorflow/cnn/resnet/resnet.py (inference_small)", 32,
        notes="a border of zeros before each convolution and a bias in it; normalised before the addition, a ReLU after it",
    )  # fmt: skip
    x = net.conv_bn_relu(_bordered(net, "data", "conv1.pad"), 16, 3, bias=True, name="conv1")
    x = net.global_avg_pool(stages(net, x, _bordered_block, [9] * 3, 8), name="pool")
    return net.classified(x, 10)


def _widened(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    """Every second pixel, with channels of zeros behind the others (type A)."""
    if stride > 1:
        x = net.avg_pool(x, 1, stride, name=f"{name}.downsample")
    if net.channels(x) < width:
        x = net.add(Pad(before=(0,) * 4, after=(0, width - net.channels(x), 0, 0)), x, name=f"{name}.zeros")
    return x


def _projected(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    """The identity, or a bare 1 x 1 convolution where the width changes."""
    return x if net.channels(x) == width else net.conv(x, width, 1, stride, bias=False, name=f"{name}.shortcut")


def _bordered_block(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    """Two 3 x 3 convolutions with a bias, of images with a border; normalised before the addition, a ReLU after it."""
    y = net.conv_bn_relu(_bordered(net, x, f"{name}.conv1.pad"), width, 3, stride, bias=True, name=f"{name}.conv1")
    y = net.conv_bn(_bordered(net, y, f"{name}.conv2.pad"), width, 3, bias=True, name=f"{name}.conv2")
    return net.add_relu(y, _widened(net, x, width, stride, name), name=name)


def _bordered(net: Builder, x: str, name: str) -> str:
    """A pixel of zeros on each side."""
    return net.add(Pad(before=(0, 0, 1, 1), after=(0, 0, 1, 1)), x, name=name)


def _cifar_block(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    """Two 3 x 3 convolutions, normalised after the addition."""
    y = net.conv_bn_relu(x, width, 3, stride, 1, name=f"{name}.conv1")
    y = net.conv(y, width, 3, pad=1, bias=False, name=f"{name}.conv2")
    return net.batch_norm(net.sum(y, _widened(net, x, width, stride, name), name=f"{name}.add"), name=f"{name}.bn")


# ---------------------------------------------------------------------------------------------- wide, grouped and gated

ZAGORUYKO = "S. Zagoruyko, N. Komodakis, Wide Residual Networks, arXiv:1605.07146, table 8; torchvision resnet.py"
XIE = "S. Xie et al., Aggregated Residual Transformations for Deep Neural Networks, arXiv:1611.05431, table 1"
RADOSAVOVIC = "I. Radosavovic et al., Designing Network Design Spaces, arXiv:2003.13678, table 2; torchvision regnet.py"
REDUCTION = 16  # a gate squeezes its channels by this (Hu et al., section 3.3)

# name -> (source, blocks in each stage, channels inside over those of ResNet, groups, reduction of the gates)
NETWORKS: dict[str, tuple[str, tuple[int, ...], int, int, int]] = {
    "wide_resnet_50_2": (ZAGORUYKO, DEEP[50], 2, 1, 0),
    "wide_resnet_101_2": (ZAGORUYKO, DEEP[101], 2, 1, 0),
    "resnext_50_32x4d": (XIE, DEEP[50], 2, 32, 0),
    "resnext_101_32x4d": (XIE, DEEP[101], 2, 32, 0),
    "resnext_101_32x8d": (f"{XIE}; widened by D. Mahajan et al., arXiv:1805.00932", DEEP[101], 4, 32, 0),
    "resnext_101_64x4d": (XIE, DEEP[101], 4, 64, 0),
    "se_resnet_50": (f"{HU}, table 1; the stride on the 3 x 3 convolution, as in timm", DEEP[50], 1, 1, REDUCTION),
    "se_resnext_50_32x4d": (f"{HU}, table 1", DEEP[50], 2, 32, REDUCTION),
    "se_resnext_101_32x4d": (f"{HU}, table 2", DEEP[101], 2, 32, REDUCTION),
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
    x = stages(net, x, _senet_block, DEEP[152])
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
    return net.add_relu(y, x, name=name)


def regnet_y(name: str) -> Trace:
    """The network of one row of `REGNETS`: bottlenecks that narrow nothing, gated after the 3 x 3 convolution."""
    stages, size = REGNETS[name]
    net = images(name, RADOSAVOVIC)
    x = net.conv_bn_relu("data", 32, 3, 2, 1, name="conv1")
    for stage, (channels, count) in enumerate(stages, 1):
        for number in range(count):
            x = _regnet_block(net, x, channels, size, 1 if number else 2, f"stage{stage}.{number}")
    return net.classified_mean(x)


def _regnet_block(net: Builder, x: str, channels: int, size: int, stride: int, name: str) -> str:
    """The gate squeezes to a quarter of the channels that enter the block."""
    y = net.conv_bn_relu(x, channels, 1, name=f"{name}.conv1")
    y = net.conv_bn_relu(y, channels, 3, stride, 1, groups=channels // size, name=f"{name}.conv2")
    y = squeeze_excite(net, y, round(net.channels(x) / 4), name=f"{name}.se")
    y = net.conv_bn(y, channels, 1, name=f"{name}.conv3")
    if stride > 1 or net.channels(x) != channels:
        x = net.conv_bn(x, channels, 1, stride, name=f"{name}.shortcut")
    return net.add_relu(y, x, name=name)
