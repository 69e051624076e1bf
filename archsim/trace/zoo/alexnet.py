"""AlexNet and its relatives: a few large convolutions, then three fully connected layers."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

KRIZHEVSKY = (
    "A. Krizhevsky, I. Sutskever, G. Hinton, ImageNet Classification with Deep Convolutional Neural Networks, NIPS 2012"
)
DLBENCH = "S. Shi et al., Benchmarking State-of-the-Art Deep Learning Software Tools, arXiv:1608.07249; hclhkbu/dlbench"


def alexnet() -> Trace:
    """The two-tower network as Caffe writes it: 227 x 227 images, two groups, LRN before pooling."""
    net = Builder("alexnet", f"{KRIZHEVSKY}; sizes and order as in Caffe's bvlc_alexnet", {"data": ("N", 3, 227, 227)})
    x = net.relu(net.conv("data", 96, 11, 4, name="conv1"), name="relu1")
    x = net.max_pool(net.lrn(x, name="norm1"), 3, 2, ceil=True, name="pool1")
    x = net.relu(net.conv(x, 256, 5, pad=2, groups=2, name="conv2"), name="relu2")
    x = net.max_pool(net.lrn(x, name="norm2"), 3, 2, ceil=True, name="pool2")
    x = net.relu(net.conv(x, 384, 3, pad=1, name="conv3"), name="relu3")
    x = net.relu(net.conv(x, 384, 3, pad=1, groups=2, name="conv4"), name="relu4")
    x = net.relu(net.conv(x, 256, 3, pad=1, groups=2, name="conv5"), name="relu5")
    x = net.max_pool(x, 3, 2, ceil=True, name="pool5")
    classifier(net, x, drop_after=True)
    return net.trace(aliases=("bvlc_alexnet",))


def alexnet_owt() -> Trace:
    """The one-tower network of "One weird trick": 224 x 224 images, neither groups nor LRN."""
    source = "A. Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv:1404.5997"
    net = Builder("alexnet_owt", source, {"data": ("N", 3, 224, 224)})
    x = _one_tower(net, (64, 192, 384, 256, 256))
    classifier(net, x, drop_before=True)
    return net.trace()


def alexnet_tensorflow() -> Trace:
    """The one-tower network of TensorFlow's benchmarks: VALID padding of 227 x 227 images, 384 channels in conv4."""
    source = "tensorflow/benchmarks, scripts/tf_cnn_benchmarks/models/alexnet_model.py"
    net = Builder("alexnet@tensorflow", source, {"data": ("N", 3, 227, 227)})
    classifier(net, _one_tower(net, (64, 192, 384, 384, 256), pad=0), drop_after=True)
    return net.trace()


def alexnet_mxnet() -> Trace:
    """The one-tower network of MXNet's image classification: LRN before pooling, no borders in conv1 and in the poolings.

    Without groups its convolutions take 1.4 times the multiply-adds of Caffe's, and fc6 reads 5 x 5 x 256 values.
    """
    source = "Apache MXNet source, example/image-classification/symbols/alexnet.py; images as in benchmark_score.py"
    net = Builder("alexnet@mxnet", source, {"data": ("N", 3, 224, 224)})
    x = net.relu(net.conv("data", 96, 11, 4, name="conv1"), name="relu1")
    x = net.max_pool(net.lrn(x, name="norm1"), 3, 2, name="pool1")
    x = net.relu(net.conv(x, 256, 5, pad=2, name="conv2"), name="relu2")
    x = net.max_pool(net.lrn(x, name="norm2"), 3, 2, name="pool2")
    for number, channels in ((3, 384), (4, 384), (5, 256)):
        x = net.relu(net.conv(x, channels, 3, pad=1, name=f"conv{number}"), name=f"relu{number}")
    classifier(net, net.max_pool(x, 3, 2, name="pool5"), drop_after=True)
    return net.trace()


def alexnet_s() -> Trace:
    """AlexNet on synthetic images, the Torch script: the widths of the original without groups, LRN and dropout."""
    net = Builder("alexnet_s", f"{DLBENCH}, synthetic/experiments/torch", {"data": ("N", 3, 224, 224)})
    classifier(net, _one_tower(net, (96, 256, 384, 384, 256)))
    return net.trace()


def alexnet_s_tensorflow() -> Trace:
    """The TensorFlow script: SAME padding keeps 7 x 7 x 256 values for fc6, and the logits pass a ReLU too."""
    net = Builder(
        "alexnet_s@tensorflow", f"{DLBENCH}, synthetic/experiments/tensorflow", {"data": ("N", 3, 224, 224)},
        notes="SAME padding; fc6 reads 7 x 7 x 256 values; a ReLU follows fc8",
    )  # fmt: skip
    x = net.relu(net.conv("data", 96, 11, 4, (3, 3, 4, 4), name="conv1"), name="relu1")
    x = _same_pool(net, x, "pool1")
    x = _same_pool(net, net.relu(net.conv(x, 256, 5, pad=2, name="conv2"), name="relu2"), "pool2")
    for number, channels in ((3, 384), (4, 384), (5, 256)):
        x = net.relu(net.conv(x, channels, 3, pad=1, name=f"conv{number}"), name=f"relu{number}")
    x = _same_pool(net, x, "pool5")
    for number, features in ((6, 4096), (7, 4096), (8, 1000)):
        x = net.relu(net.linear(x, features, name=f"fc{number}"), name=f"relu{number}")
    net.softmax(x)
    return net.trace()


def alexnet_s_caffe() -> Trace:
    """The Caffe script for batches of 16: no convolution has a border, so fc6 reads 2 x 2 x 256 values; no groups, no dropout."""
    net = Builder(
        "alexnet_s@caffe", f"{DLBENCH}, synthetic/experiments/caffe/cnn/alexnet/alexnet-train.prototxt",
        {"data": ("N", 3, 224, 224)}, notes="no convolution has a border, so fc6 reads 2 x 2 x 256 values",
    )  # fmt: skip
    x = net.relu(net.conv("data", 96, 11, 4, name="conv1"), name="relu1")
    x = net.relu(net.conv(net.max_pool(x, 3, 2, ceil=True, name="pool1"), 256, 5, name="conv2"), name="relu2")
    x = net.max_pool(x, 3, 2, ceil=True, name="pool2")
    for number, channels in ((3, 384), (4, 384), (5, 256)):
        x = net.relu(net.conv(x, channels, 3, name=f"conv{number}"), name=f"relu{number}")
    x = net.flatten(net.max_pool(x, 3, 2, ceil=True, name="pool5"))
    for number in (6, 7):
        x = net.relu(net.linear(x, 4096, name=f"fc{number}"), name=f"relu{number}")
    net.softmax(net.linear(x, 1000, name="fc8"))
    return net.trace()


def alexnet_s_mxnet() -> Trace:
    """The MXNet script: conv5 and pool5 read relu3, fc8 reads pool5, so conv4, conv5, fc6 and fc7 feed nothing."""
    net = Builder(
        "alexnet_s@mxnet", f"{DLBENCH}, synthetic/experiments/mxnet", {"data": ("N", 3, 224, 224)},
        notes="conv4, conv5, fc6 and fc7 are dead: the published script feeds pool5 from relu3 and fc8 from pool5",
    )  # fmt: skip
    x = net.relu(net.conv("data", 96, 11, 4, 1, name="conv1"), name="relu1")
    x = net.relu(net.conv(net.max_pool(x, 3, 2, name="pool1"), 256, 5, pad=1, name="conv2"), name="relu2")
    x = net.relu(net.conv(net.max_pool(x, 3, 2, name="pool2"), 384, 3, pad=1, name="conv3"), name="relu3")
    net.relu(net.conv(x, 384, 3, pad=1, name="conv4"), name="relu4")
    net.relu(net.conv(x, 256, 3, pad=1, name="conv5"), name="relu5")
    x = net.flatten(net.max_pool(x, 3, 2, name="pool5"))
    dead = net.relu(net.linear(x, 4096, name="fc6"), name="relu6")
    net.relu(net.linear(dead, 4096, name="fc7"), name="relu7")
    net.softmax(net.linear(x, 1000, name="fc8"))
    return net.trace()


def alexnet_r() -> Trace:
    """The small convolutional network for CIFAR-10 that the same study calls AlexNet, the Torch script."""
    net = Builder("alexnet_r", f"{DLBENCH}, tools/torch", {"data": ("N", 3, 32, 32)})
    x = net.relu(net.max_pool(net.conv("data", 32, 5, pad=2, name="conv1"), 3, 2, name="pool1"), name="relu1")
    x = net.max_pool(net.relu(net.conv(x, 32, 5, pad=2, name="conv2"), name="relu2"), 3, 2, name="pool2")
    x = net.avg_pool(net.relu(net.conv(x, 64, 5, pad=2, name="conv3"), name="relu3"), 3, 2, name="pool3")
    net.softmax(net.linear(x, 10, name="fc4"))
    return net.trace()


def alexnet_r_caffe() -> Trace:
    """The same network in the Caffe script: a local normalisation, there within the channel, follows the first two poolings.

    Caffe's pooling rounds up: 32, 16, 8 and 4 pixels a side, of which 4 x 4 x 64 values reach fc1.
    """
    net = Builder("alexnet_r@caffe", f"{DLBENCH}, tools/caffe/cnn/alexnet/alexnet.prototxt", {"data": ("N", 3, 32, 32)})
    x = net.conv("data", 32, 5, pad=2, name="conv1")
    x = net.relu(net.max_pool(x, 3, 2, ceil=True, name="pool1"), name="relu1")
    x = net.relu(net.conv(net.lrn(x, 3, name="norm1"), 32, 5, pad=2, name="conv2"), name="relu2")
    x = net.lrn(net.max_pool(x, 3, 2, ceil=True, name="pool2"), 3, name="norm2")
    x = net.relu(net.conv(x, 64, 5, pad=2, name="conv3"), name="relu3")
    net.softmax(net.linear(net.avg_pool(x, 3, 2, ceil=True, name="pool3"), 10, name="fc1"))
    return net.trace()


def alexnet_r_normalised() -> Trace:
    """The same network in the Torch script for CPUs: every pooling takes the maximum and a local normalisation follows it."""
    net = Builder("alexnet_r@torch7-cpu", f"{DLBENCH}, tools/torch/Models/alexnet_cpu.lua", {"data": ("N", 3, 32, 32)})
    x = net.relu(net.max_pool(net.conv("data", 32, 5, pad=2, name="conv1"), 3, 2, name="pool1"), name="relu1")
    x = net.lrn(x, 3, name="norm1")
    for number, channels in ((2, 32), (3, 64)):
        x = net.relu(net.conv(x, channels, 5, pad=2, name=f"conv{number}"), name=f"relu{number}")
        x = net.lrn(net.max_pool(x, 3, 2, name=f"pool{number}"), 3, name=f"norm{number}")
    net.softmax(net.linear(x, 10, name="fc4"))
    return net.trace()


def overfeat() -> Trace:
    """OverFeat's fast model: 231 x 231 images, wide layers of 1024 channels at 12 x 12."""
    source = (
        "P. Sermanet et al., OverFeat: Integrated Recognition, Localization and Detection using "
        "Convolutional Networks, arXiv:1312.6229, table 1"
    )
    net = Builder("overfeat", source, {"data": ("N", 3, 231, 231)})
    x = net.max_pool(net.relu(net.conv("data", 96, 11, 4, name="conv1"), name="relu1"), 2, 2, name="pool1")
    x = net.max_pool(net.relu(net.conv(x, 256, 5, name="conv2"), name="relu2"), 2, 2, name="pool2")
    for number, channels in ((3, 512), (4, 1024), (5, 1024)):
        x = net.relu(net.conv(x, channels, 3, pad=1, name=f"conv{number}"), name=f"relu{number}")
    x = net.max_pool(x, 2, 2, name="pool5")
    classifier(net, x, widths=(3072, 4096), drop_before=True)
    return net.trace()


def classifier(
    net: Builder, x: str, *, widths: Sequence[int] = (4096, 4096),
    drop_before: bool = False, drop_after: bool = False,
) -> None:  # fmt: skip
    """The three fully connected layers that end these networks; dropout stands before or after the first two."""
    for number, features in zip((6, 7), widths, strict=True):
        if drop_before:
            x = net.dropout(x, name=f"drop{number}")
        x = net.relu(net.linear(x, features, name=f"fc{number}"), name=f"relu{number}")
        if drop_after:
            x = net.dropout(x, name=f"drop{number}")
    net.softmax(net.linear(x, 1000, name="fc8"))


def _one_tower(net: Builder, channels: tuple[int, int, int, int, int], pad: int = 2) -> str:
    """Five convolutions, the first with this border, and three poolings, down to 6 x 6."""
    x = net.relu(net.conv("data", channels[0], 11, 4, pad, name="conv1"), name="relu1")
    x = net.max_pool(x, 3, 2, name="pool1")
    x = net.relu(net.conv(x, channels[1], 5, pad=2, name="conv2"), name="relu2")
    x = net.max_pool(x, 3, 2, name="pool2")
    for number in (3, 4, 5):
        x = net.relu(net.conv(x, channels[number - 1], 3, pad=1, name=f"conv{number}"), name=f"relu{number}")
    return net.max_pool(x, 3, 2, name="pool5")


def _same_pool(net: Builder, x: str, name: str) -> str:
    """TensorFlow's SAME for a 3 x 3 window, stride 2 and an even size: one row and column at the far edge."""
    return net.max_pool(x, 3, 2, (0, 0, 1, 1), name=name)
