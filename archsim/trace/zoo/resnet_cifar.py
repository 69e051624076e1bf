"""Residual networks for CIFAR-10: those of the paper, and what benchmarks run under the name of ResNet-56."""

from __future__ import annotations

from archsim.trace.op import Pad
from archsim.trace.trace import Trace
from archsim.trace.zoo.alexnet import DLBENCH
from archsim.trace.zoo.builder import Builder, images
from archsim.trace.zoo.resnet import SOURCE, Block, stages

DEPTHS = (20, 32, 44, 110)  # 6 n + 2 layers; the paper's 56 is left out, as that name is a benchmark's variant


def resnet_cifar(depth: int) -> Trace:
    """The paper's network of 6 n + 2 layers: n blocks in each of three stages, shortcuts padded with zeros (type A)."""
    net = images(f"resnet_{depth}", f"{SOURCE.rpartition(',')[0]}, section 4.2", 32)
    return _three_stages(net, _padded_block, (depth - 2) // 6, (f"resnet{depth}",))


def resnet_56() -> Trace:
    """For CIFAR-10: 9 blocks in each of three stages, shortcuts padded with zeros, normalised after the addition."""
    net = images("resnet_56", f"{SOURCE} and section 4.2; variant of {DLBENCH}", 32,
                 notes="batch normalisation after the addition and no ReLU after it")  # fmt: skip
    return _three_stages(net, _cifar_block, 9)


def resnet_56_cntk() -> Trace:
    """What the CNTK script calls ResNet-56: 18 blocks in each stage, normalised before the addition, a ReLU after it."""
    net = images("resnet_56@cntk", f"{DLBENCH}, tools/cntk/cnn/resnet/ResNet_56.ndl", 32,
                 notes="18 blocks in each stage, which makes 110 layers")  # fmt: skip
    return _three_stages(net, _projected_block, 18)


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


def _padded_block(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    """Two 3 x 3 convolutions, normalised before the addition, a ReLU after it."""
    y = net.conv_bn_relu(x, width, 3, stride, 1, name=f"{name}.conv1")
    y = net.conv_bn(y, width, 3, pad=1, name=f"{name}.conv2")
    return net.relu(net.sum(y, _widened(net, x, width, stride, name), name=f"{name}.add"), name=f"{name}.relu")


def _widened(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    """Every second pixel, with channels of zeros behind the others (type A)."""
    if stride > 1:
        x = net.avg_pool(x, 1, stride, name=f"{name}.downsample")
    if net.channels(x) < width:
        x = net.add(Pad(before=(0,) * 4, after=(0, width - net.channels(x), 0, 0)), x, name=f"{name}.zeros")
    return x


def _projected_block(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    """Two 3 x 3 convolutions; where the width changes, the shortcut is a bare 1 x 1 convolution."""
    y = net.conv_bn_relu(x, width, 3, stride, 1, name=f"{name}.conv1")
    y = net.conv_bn(y, width, 3, pad=1, name=f"{name}.conv2")
    if net.channels(x) != width:
        x = net.conv(x, width, 1, stride, bias=False, name=f"{name}.shortcut")
    return net.relu(net.sum(y, x, name=f"{name}.add"), name=f"{name}.relu")


def _bordered_block(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    """Two 3 x 3 convolutions with a bias, of images with a border; normalised before the addition, a ReLU after it."""
    y = net.conv_bn_relu(_bordered(net, x, f"{name}.conv1.pad"), width, 3, stride, bias=True, name=f"{name}.conv1")
    y = net.conv_bn(_bordered(net, y, f"{name}.conv2.pad"), width, 3, bias=True, name=f"{name}.conv2")
    return net.relu(net.sum(y, _widened(net, x, width, stride, name), name=f"{name}.add"), name=f"{name}.relu")


def _bordered(net: Builder, x: str, name: str) -> str:
    """A pixel of zeros on each side."""
    return net.add(Pad(before=(0, 0, 1, 1), after=(0, 0, 1, 1)), x, name=name)


def _cifar_block(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    """Two 3 x 3 convolutions, normalised after the addition."""
    y = net.conv_bn_relu(x, width, 3, stride, 1, name=f"{name}.conv1")
    y = net.conv(y, width, 3, pad=1, bias=False, name=f"{name}.conv2")
    return net.batch_norm(net.sum(y, _widened(net, x, width, stride, name), name=f"{name}.add"), name=f"{name}.bn")
