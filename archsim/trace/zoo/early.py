"""Early convolutional networks: LeNet-5, AlexNet and its relatives, Network in Network, VGG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archsim.trace.kinds.pointwise import Tanh
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder, Edges, images

KRIZHEVSKY = "A. Krizhevsky, I. Sutskever, G. Hinton, ImageNet Classification with Deep Convolutional Neural Networks, NIPS 2012"
DLBENCH = "S. Shi et al., Benchmarking State-of-the-Art Deep Learning Software Tools, arXiv:1608.07249; hclhkbu/dlbench"


class ConvRow(NamedTuple):
    """A convolution and its ReLU; `after` names what follows: a normalisation (n), a pooling (p)."""

    channels: int
    kernel: int
    stride: int = 1
    pad: Edges = 0
    after: str = ""
    groups: int = 1


def three(channels: Sequence[int], pad: int = 1) -> list[ConvRow]:
    """Layers of 3 x 3, a pooling behind the last."""
    return [ConvRow(width, 3, pad=pad, after="p" * (place == len(channels))) for place, width in enumerate(channels, 1)]


def features(net: Builder, layers: Sequence[ConvRow], window: int = 3, pad: Edges = 0, *, ceil: bool = False) -> str:
    """Numbered layers; poolings have stride 2 and this window and border."""
    x = "data"
    for number, layer in enumerate(layers, 1):
        x = net.conv(x, layer.channels, layer.kernel, layer.stride, layer.pad, groups=layer.groups, name=f"conv{number}")
        x = net.relu(x, name=f"relu{number}")
        x = net.lrn(x, name=f"norm{number}") if "n" in layer.after else x
        x = net.max_pool(x, window, 2, pad, ceil=ceil, name=f"pool{number}") if "p" in layer.after else x
    return x


def classifier(
    net: Builder, x: str, *, widths: Sequence[int] = (4096, 4096), drop_before: bool = False, drop_after: bool = False,
    aliases: Sequence[str] = (),
) -> Trace:  # fmt: skip
    """The three fully connected layers that end these networks; dropout stands before or after the first two."""
    for number, width in zip((6, 7), widths, strict=True):
        x = net.dropout(x, name=f"drop{number}") if drop_before else x
        x = net.relu(net.linear(x, width, name=f"fc{number}"), name=f"relu{number}")
        x = net.dropout(x, name=f"drop{number}") if drop_after else x
    return net.classified(x, name="fc8", aliases=aliases)


def _one_tower(net: Builder, channels: Sequence[int], pad: int = 2) -> str:
    """Five convolutions, the first with this border, and three poolings, down to 6 x 6."""
    first, second, *others = channels
    return features(net, [ConvRow(first, 11, 4, pad, "p"), ConvRow(second, 5, 1, 2, "p"), *three(others)])


def alexnet() -> Trace:
    """The two-tower network as Caffe writes it: 227 x 227 images, two groups, LRN before pooling."""
    net = images("alexnet", f"{KRIZHEVSKY}; sizes and order as in Caffe's bvlc_alexnet", 227)
    layers = (ConvRow(96, 11, 4, after="np"), ConvRow(256, 5, 1, 2, "np", 2), ConvRow(384, 3, 1, 1),
              ConvRow(384, 3, 1, 1, "", 2), ConvRow(256, 3, 1, 1, "p", 2))  # fmt: skip
    return classifier(net, features(net, layers, ceil=True), drop_after=True, aliases=("bvlc_alexnet",))


def alexnet_owt() -> Trace:
    """The one-tower network of "One weird trick": 224 x 224 images, neither groups nor LRN."""
    net = images("alexnet_owt", "A. Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv:1404.5997")
    return classifier(net, _one_tower(net, (64, 192, 384, 256, 256)), drop_before=True)


def alexnet_tensorflow() -> Trace:
    """The one-tower network of TensorFlow's benchmarks: VALID padding of 227 x 227 images, 384 channels in conv4."""
    net = images("alexnet@tensorflow", "tensorflow/benchmarks, scripts/tf_cnn_benchmarks/models/alexnet_model.py", 227)
    return classifier(net, _one_tower(net, (64, 192, 384, 384, 256), pad=0), drop_after=True)


def alexnet_mxnet() -> Trace:
    """The one-tower network of MXNet's image classification: LRN before pooling, no borders in conv1 and in the poolings.

    Without groups its convolutions take 1.4 times the multiply-adds of Caffe's, and fc6 reads 5 x 5 x 256 values.
    """
    source = "Apache MXNet source, example/image-classification/symbols/alexnet.py; images as in benchmark_score.py"
    net = images("alexnet@mxnet", source)
    layers = [ConvRow(96, 11, 4, after="np"), ConvRow(256, 5, 1, 2, "np"), *three((384, 384, 256))]
    return classifier(net, features(net, layers), drop_after=True)


def alexnet_s() -> Trace:
    """AlexNet on synthetic images, the Torch script: the widths of the original without groups, LRN and dropout."""
    net = images("alexnet_s", f"{DLBENCH}, synthetic/experiments/torch")
    return classifier(net, _one_tower(net, (96, 256, 384, 384, 256)))


def alexnet_s_tensorflow() -> Trace:
    """The TensorFlow script: SAME padding keeps 7 x 7 x 256 values for fc6, and the logits pass a ReLU too.

    SAME of a 3 x 3 window, stride 2 and an even size: one row and column at the far edge.
    """
    net = images("alexnet_s@tensorflow", f"{DLBENCH}, synthetic/experiments/tensorflow",
                 notes="SAME padding; fc6 reads 7 x 7 x 256 values; a ReLU follows fc8")  # fmt: skip
    layers = [ConvRow(96, 11, 4, (3, 3, 4, 4), "p"), ConvRow(256, 5, 1, 2, "p"), *three((384, 384, 256))]
    x = features(net, layers, pad=(0, 0, 1, 1))
    for number, width in ((6, 4096), (7, 4096), (8, 1000)):
        x = net.relu(net.linear(x, width, name=f"fc{number}"), name=f"relu{number}")
    net.softmax(x)
    return net.trace()


def alexnet_s_caffe() -> Trace:
    """The Caffe script for batches of 16: no convolution has a border, so fc6 reads 2 x 2 x 256 values; no groups, no dropout."""
    net = images("alexnet_s@caffe", f"{DLBENCH}, synthetic/experiments/caffe/cnn/alexnet/alexnet-train.prototxt",
                 notes="no convolution has a border, so fc6 reads 2 x 2 x 256 values")  # fmt: skip
    layers = [ConvRow(96, 11, 4, after="p"), ConvRow(256, 5, after="p"), *three((384, 384, 256), pad=0)]
    return classifier(net, features(net, layers, ceil=True))


def alexnet_s_mxnet() -> Trace:
    """The MXNet script: conv5 and pool5 read relu3, fc8 reads pool5, so conv4, conv5, fc6 and fc7 feed nothing."""
    notes = "conv4, conv5, fc6 and fc7 are dead: the published script feeds pool5 from relu3 and fc8 from pool5"
    net = images("alexnet_s@mxnet", f"{DLBENCH}, synthetic/experiments/mxnet", notes=notes)
    x = features(net, (ConvRow(96, 11, 4, 1, "p"), ConvRow(256, 5, 1, 1, "p"), ConvRow(384, 3, 1, 1)))
    for number, channels in ((4, 384), (5, 256)):
        net.relu(net.conv(x, channels, 3, pad=1, name=f"conv{number}"), name=f"relu{number}")
    dead = x = net.flatten(net.max_pool(x, 3, 2, name="pool5"))
    for number in (6, 7):
        dead = net.relu(net.linear(dead, 4096, name=f"fc{number}"), name=f"relu{number}")
    return net.classified(x, name="fc8")


def alexnet_r() -> Trace:
    """The small convolutional network for CIFAR-10 that the same study calls AlexNet, the Torch script."""
    net = images("alexnet_r", f"{DLBENCH}, tools/torch", 32)
    x = net.relu(net.max_pool(net.conv("data", 32, 5, pad=2, name="conv1"), 3, 2, name="pool1"), name="relu1")
    x = net.max_pool(net.relu(net.conv(x, 32, 5, pad=2, name="conv2"), name="relu2"), 3, 2, name="pool2")
    x = net.avg_pool(net.relu(net.conv(x, 64, 5, pad=2, name="conv3"), name="relu3"), 3, 2, name="pool3")
    return net.classified(x, 10, name="fc4")


def alexnet_r_caffe() -> Trace:
    """The same network in the Caffe script: a local normalisation, there within the channel, follows the first two poolings.

    Caffe's pooling rounds up: 32, 16, 8 and 4 pixels a side, of which 4 x 4 x 64 values reach fc1.
    """
    net = images("alexnet_r@caffe", f"{DLBENCH}, tools/caffe/cnn/alexnet/alexnet.prototxt", 32)
    x = net.conv("data", 32, 5, pad=2, name="conv1")
    x = net.relu(net.max_pool(x, 3, 2, ceil=True, name="pool1"), name="relu1")
    x = net.relu(net.conv(net.lrn(x, 3, name="norm1"), 32, 5, pad=2, name="conv2"), name="relu2")
    x = net.lrn(net.max_pool(x, 3, 2, ceil=True, name="pool2"), 3, name="norm2")
    x = net.relu(net.conv(x, 64, 5, pad=2, name="conv3"), name="relu3")
    return net.classified(net.avg_pool(x, 3, 2, ceil=True, name="pool3"), 10, name="fc1")


def alexnet_r_normalised() -> Trace:
    """The same network in the Torch script for CPUs: every pooling takes the maximum and a local normalisation follows it."""
    net = images("alexnet_r@torch7-cpu", f"{DLBENCH}, tools/torch/Models/alexnet_cpu.lua", 32)
    x = net.relu(net.max_pool(net.conv("data", 32, 5, pad=2, name="conv1"), 3, 2, name="pool1"), name="relu1")
    x = net.lrn(x, 3, name="norm1")
    for number, channels in ((2, 32), (3, 64)):
        x = net.relu(net.conv(x, channels, 5, pad=2, name=f"conv{number}"), name=f"relu{number}")
        x = net.lrn(net.max_pool(x, 3, 2, name=f"pool{number}"), 3, name=f"norm{number}")
    return net.classified(x, 10, name="fc4")


def overfeat() -> Trace:
    """OverFeat's fast model: 231 x 231 images, wide layers of 1024 channels at 12 x 12."""
    source = (
        "P. Sermanet et al., OverFeat: Integrated Recognition, Localization and Detection using "
        "Convolutional Networks, arXiv:1312.6229, table 1"
    )
    net = images("overfeat", source, 231)
    x = features(net, [ConvRow(96, 11, 4, after="p"), ConvRow(256, 5, after="p"), *three((512, 1024, 1024))], window=2)
    return classifier(net, x, widths=(3072, 4096), drop_before=True)


# --------------------------------------------------------------------------------------------- before and after AlexNet

LECUN = "Y. LeCun et al., Gradient-Based Learning Applied to Document Recognition, Proceedings of the IEEE 86(11), 1998, figure 2"
LIN = "M. Lin, Q. Chen, S. Yan, Network In Network, arXiv:1312.4400; the ImageNet model of the Caffe model zoo"


def lenet_5() -> Trace:
    """32 x 32 digits; as usually rebuilt: full connections in C3, means without weights, a softmax."""
    net = Builder("lenet_5", LECUN, {"data": ("N", 1, 32, 32)}, notes="C3 fully connected, poolings without weights, softmax")
    x = net.activate(net.conv("data", 6, 5, name="c1"), Tanh(), name="c1")
    x = net.activate(net.conv(net.avg_pool(x, 2, 2, name="s2"), 16, 5, name="c3"), Tanh(), name="c3")
    x = net.activate(net.conv(net.avg_pool(x, 2, 2, name="s4"), 120, 5, name="c5"), Tanh(), name="c5")
    x = net.activate(net.linear(x, 84, name="f6"), Tanh(), name="f6")
    return net.classified(x, 10, name="output", aliases=("lenet5", "lenet"))


def nin() -> Trace:
    """Four convolutions, each with two 1 x 1 convolutions behind it; the last has a channel for each class."""
    net = images("nin", LIN)
    x = _convolutions(net, "data", (96, 96, 96), 11, 4, 0, 1)
    x = _convolutions(net, net.max_pool(x, 3, 2, ceil=True, name="pool1"), (256, 256, 256), 5, 1, 2, 2)
    x = _convolutions(net, net.max_pool(x, 3, 2, ceil=True, name="pool2"), (384, 384, 384), 3, 1, 1, 3)
    x = net.dropout(net.max_pool(x, 3, 2, ceil=True, name="pool3"), name="drop")
    x = _convolutions(net, x, (1024, 1024, 1000), 3, 1, 1, 4)
    net.softmax(net.flatten(net.global_avg_pool(x, name="pool4")))
    return net.trace(aliases=("network_in_network",))


def _convolutions(net: Builder, x: str, widths: tuple[int, int, int], kernel: int, stride: int, pad: int, number: int) -> str:
    x = net.relu(net.conv(x, widths[0], kernel, stride, pad, name=f"conv{number}"))
    for step, channels in enumerate(widths[1:], 1):
        x = net.relu(net.conv(x, channels, 1, name=f"cccp{number}_{step}"))
    return x


SIMONYAN = "Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition, arXiv:1409.1556"
NORMALISED = "batch normalisation after each convolution, as in torchvision's vgg.py"
WIDTHS = (64, 128, 256, 512, 512)
VGG = "vgg_a", "vgg_13", "vgg_16", "vgg_19", "vgg_11_bn", "vgg_13_bn", "vgg_16_bn", "vgg_19_bn"

# layers -> (column of table 1, convolutions in each stage)
CONFIGURATIONS = {
    11: ("A", (1, 1, 2, 2, 2)), 13: ("B", (2, 2, 2, 2, 2)), 16: ("D", (2, 2, 3, 3, 3)), 19: ("E", (2, 2, 4, 4, 4)),
}  # fmt: skip


def vgg(name: str) -> Trace:
    """The network of one row of `VGG`; `vgg_a` is the one of 11 layers, `_bn` adds batch normalisation."""
    normalised = name.endswith("_bn")
    depth = 11 if name == "vgg_a" else int(name.split("_")[1])
    column, convolutions = CONFIGURATIONS[depth]
    source = f"{SIMONYAN}, table 1 column {column}"
    net = images(name, f"{source}; {NORMALISED}" if normalised else source)
    x = "data"
    for stage, (count, channels) in enumerate(zip(convolutions, WIDTHS, strict=True), 1):
        for number in range(1, count + 1):
            x = net.conv(x, channels, 3, pad=1, name=f"conv{stage}_{number}")
            x = net.relu(net.batch_norm(x) if normalised else x, name=f"relu{stage}_{number}")
        x = net.max_pool(x, 2, 2, name=f"pool{stage}")
    aliases = ("vgg_11",) if name == "vgg_a" else (f"vgg{depth}_bn" if normalised else f"vgg{depth}",)
    return classifier(net, x, drop_after=True, aliases=aliases)
