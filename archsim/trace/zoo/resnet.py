"""Residual networks for ImageNet, 18 to 200 layers; their wide, grouped and gated forms are in resnext.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from archsim.trace.kinds.normalise import BatchNorm
from archsim.trace.trace import Trace
from archsim.trace.zoo.alexnet import DLBENCH
from archsim.trace.zoo.blocks import squeeze_excite
from archsim.trace.zoo.builder import Builder, images

SOURCE = "K. He, X. Zhang, S. Ren, J. Sun, Deep Residual Learning for Image Recognition, arXiv:1512.03385, table 1"
PREACTIVATION = "K. He, X. Zhang, S. Ren, J. Sun, Identity Mappings in Deep Residual Networks, arXiv:1603.05027"
TORCH = "blocks as in fb.resnet.torch"
SLIM = "tensorflow/models, research/slim/nets/resnet_v1.py"
MXNET = "Apache MXNet, example/image-classification/symbols/resnet.py"
EXPANSION = 4  # a bottleneck widens its output by this
DEEP = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}  # bottleneck blocks of each stage

Block = Callable[[Builder, str, int, int, str], str]


def resnet_18() -> Trace:
    """Basic blocks."""
    return _resnet(18, _basic, (2, 2, 2, 2))


def resnet_34() -> Trace:
    """Basic blocks."""
    return _resnet(34, _basic, (3, 4, 6, 3))


def deep(depth: int) -> Trace:
    """50, 101 or 152 layers: bottleneck blocks with the stride on the 3 x 3 convolution."""
    return _resnet(depth, bottleneck, DEEP[depth])


def deep_original(depth: int) -> Trace:
    """As the authors' Caffe models and TensorFlow's benchmarks have it: the stride on the first 1 x 1 convolution."""
    net = images(f"resnet_{depth}@caffe", f"{SOURCE}; the authors' prototxt files",
                  notes="the stride of a block is on its first convolution")  # fmt: skip
    return _head(net, stages(net, _stem(net), _bottleneck_early, DEEP[depth]))


def resnet_50_stored() -> Trace:
    """As a Caffe script has it: the authors' file, no border on the first convolution, and stored statistics in training."""
    source = f"{SOURCE}; {DLBENCH}, synthetic/experiments/caffe/cnn/resnet/resnet-b64.prototxt"
    net = images("resnet_50@dlbench", source, notes="use_global_stats in training")
    stem = net.max_pool(net.relu(net.conv_bn("data", 64, 7, 2, bias=True, name="conv1")), 3, 2, ceil=True, name="pool1")
    trace = _head(net, stages(net, stem, _bottleneck_early, DEEP[50]))
    norms = [replace(op, kind=BatchNorm(stored=True)) if isinstance(op.kind, BatchNorm) else op for op in trace.ops]
    return replace(trace, ops=tuple(norms))


def deep_slim(depth: int) -> Trace:
    """As TensorFlow's slim has it: the last block of a stage halves the image, its shortcut takes every second pixel."""
    net = images(f"resnet_{depth}@slim", f"{SOURCE}; {SLIM}",
                  notes="the last block of a stage has its stride")  # fmt: skip
    x = _stem(net)
    for stage, count in enumerate(DEEP[depth], 1):
        for number in range(count):
            stride = 2 if stage < 4 and number == count - 1 else 1
            x = bottleneck(net, x, 32 * 2**stage, stride, f"layer{stage}.{number}")
    return _head(net, x)


def deep_mxnet(depth: int) -> Trace:
    """As MXNet's symbols have it: pre-activation blocks, and the image is normalised first."""
    net = images(f"resnet_{depth}@mxnet", f"{PREACTIVATION}; {MXNET}")
    x = net.conv_bn_relu(net.batch_norm("data", name="data.bn"), 64, 7, 2, 3, name="conv1")
    x = stages(net, net.max_pool(x, 3, 2, 1, name="pool1"), _preactivation_bottleneck, DEEP[depth])
    return _head(net, net.relu(net.batch_norm(x, name="last.bn"), name="last.relu"))


def resnet_200() -> Trace:
    """Pre-activation bottleneck blocks: normalise and rectify before each convolution, and once more at the end."""
    net = images("resnet_200", f"{PREACTIVATION}; {TORCH} (preresnet)")
    x = stages(net, _stem(net), _preactivation_bottleneck_of_torch, (3, 24, 36, 3))
    x = net.relu(net.batch_norm(x, name="last.bn"), name="last.relu")
    return _head(net, x, aliases=("resnet200",))


def _resnet(depth: int, block: Block, counts: tuple[int, ...]) -> Trace:
    return residual(f"resnet_{depth}", f"{SOURCE}; {TORCH}", block, counts, aliases=(f"resnet{depth}",))


def residual(name: str, source: str, block: Block, counts: tuple[int, ...], aliases: tuple[str, ...] = ()) -> Trace:
    """Stem, four stages of blocks, classifier."""
    net = images(name, source)
    return _head(net, stages(net, _stem(net), block, counts), aliases)


def _stem(net: Builder) -> str:
    """From 224 x 224 to 56 x 56."""
    return net.max_pool(net.conv_bn_relu("data", 64, 7, 2, 3, name="conv1"), 3, 2, 1, name="pool1")


def stages(net: Builder, x: str, block: Block, counts: Sequence[int], width: int = 32) -> str:
    """Stages of blocks; each after the first begins with a stride of 2 and doubles the width, half of that of the first."""
    for stage, count in enumerate(counts, 1):
        for number in range(count):
            stride = 2 if stage > 1 and number == 0 else 1
            x = block(net, x, width * 2**stage, stride, f"layer{stage}.{number}")
    return x


def _head(net: Builder, x: str, aliases: tuple[str, ...] = ()) -> Trace:
    return net.classified(net.global_avg_pool(x, name="pool"), aliases=aliases)


def _basic(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    """Two 3 x 3 convolutions."""
    y = net.conv_bn_relu(x, width, 3, stride, 1, name=f"{name}.conv1")
    y = net.conv_bn(y, width, 3, pad=1, name=f"{name}.conv2")
    return net.relu(net.sum(y, _shortcut(net, x, width, stride, name), name=f"{name}.add"), name=f"{name}.relu")


def bottleneck(
    net: Builder, x: str, width: int, stride: int, name: str, *, early: bool = False, inner: int = 1, groups: int = 1,
    reduction: int = 0,
) -> str:  # fmt: skip
    """1 x 1 down, 3 x 3, 1 x 1 up; the stride on the first of them if `early`, else on the second.

    `inner` times as wide inside, in `groups`, its output gated where there is a `reduction`.
    """
    first, second = (stride, 1) if early else (1, stride)
    y = net.conv_bn_relu(x, inner * width, 1, first, name=f"{name}.conv1")
    y = net.conv_bn_relu(y, inner * width, 3, second, 1, groups=groups, name=f"{name}.conv2")
    y = net.conv_bn(y, EXPANSION * width, 1, name=f"{name}.conv3")
    if reduction:
        y = squeeze_excite(net, y, EXPANSION * width // reduction, name=f"{name}.se")
    shortcut = _shortcut(net, x, EXPANSION * width, stride, name)
    return net.relu(net.sum(y, shortcut, name=f"{name}.add"), name=f"{name}.relu")


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
    y = x if name == rectified else net.relu(net.batch_norm(x, name=f"{name}.bn"), name=f"{name}.relu")
    shortcut = net.conv(y, EXPANSION * width, 1, stride, bias=False, name=f"{name}.shortcut") if widens else x
    y = net.conv_bn_relu(y, width, 1, name=f"{name}.conv1")
    y = net.conv_bn_relu(y, width, 3, stride, 1, name=f"{name}.conv2")
    y = net.conv(y, EXPANSION * width, 1, bias=False, name=f"{name}.conv3")
    return net.sum(y, shortcut, name=f"{name}.add")


_preactivation_bottleneck_of_torch = partial(_preactivation_bottleneck, rectified="layer1.0")
