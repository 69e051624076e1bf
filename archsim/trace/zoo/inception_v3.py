"""Inception-v3, with factorised convolutions (1 x 7 and 7 x 1), and Xception, with depthwise separable ones; 299 x 299 images."""

from __future__ import annotations

from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder, Size

SZEGEDY = "C. Szegedy et al., Rethinking the Inception Architecture for Computer Vision, arXiv:1512.00567"

Step = tuple[int, Size]  # output channels and window of one convolution


def inception_v3() -> Trace:
    """Without the auxiliary classifier, which runs only in training."""
    net = Builder("inception_v3", SZEGEDY, {"data": ("N", 3, 299, 299)}, notes="without auxiliary classifier")
    x = net.conv_bn_relu("data", 32, 3, 2, name="conv1")
    x = net.conv_bn_relu(x, 32, 3, name="conv2")
    x = net.max_pool(net.conv_bn_relu(x, 64, 3, pad=1, name="conv3"), 3, 2, name="pool1")
    x = net.conv_bn_relu(x, 80, 1, name="conv4")
    x = net.max_pool(net.conv_bn_relu(x, 192, 3, name="conv5"), 3, 2, name="pool2")
    for name, projection in (("a1", 32), ("a2", 64), ("a3", 64)):
        x = _square(net, x, projection, name)
    x = _halve_square(net, x, "b")
    for name, width in (("c1", 128), ("c2", 160), ("c3", 160), ("c4", 192)):
        x = _factorised(net, x, width, name)
    x = _halve_factorised(net, x, "d")
    for name in ("e1", "e2"):
        x = _wide(net, x, name)
    x = net.dropout(net.global_avg_pool(x, name="pool3"), name="drop")
    net.softmax(net.linear(x, 1000, name="fc"))
    return net.trace()


def chain(net: Builder, x: str, steps: tuple[Step, ...], name: str, last_stride: int = 1) -> str:
    """Convolutions one after the other, size kept; with a stride of 2 the last one is not padded."""
    for number, (channels, kernel) in enumerate(steps, 1):
        stride = last_stride if number == len(steps) else 1
        x = net.conv_bn_relu(x, channels, kernel, stride, _keep(kernel) if stride == 1 else 0, name=f"{name}_{number}")
    return x


def _keep(kernel: Size) -> tuple[int, int]:
    """The padding that keeps the size."""
    height, width = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    return height // 2, width // 2


def projected_pool(net: Builder, x: str, channels: int, name: str) -> str:
    """The mean over 3 x 3 windows, projected to `channels`."""
    return net.conv_bn_relu(net.avg_pool(x, 3, 1, 1, name=f"{name}.pool"), channels, 1, name=f"{name}.projection")


def _square(net: Builder, x: str, projection: int, name: str) -> str:
    """35 x 35: 1 x 1, 5 x 5, two 3 x 3, pooling."""
    a = chain(net, x, ((64, 1),), f"{name}.1x1")
    b = chain(net, x, ((48, 1), (64, 5)), f"{name}.5x5")
    c = chain(net, x, ((64, 1), (96, 3), (96, 3)), f"{name}.3x3")
    return net.concat(a, b, c, projected_pool(net, x, projection, name), name=f"{name}.concat")


def _halve_square(net: Builder, x: str, name: str) -> str:
    """35 x 35 to 17 x 17."""
    a = chain(net, x, ((384, 3),), f"{name}.3x3", last_stride=2)
    b = chain(net, x, ((64, 1), (96, 3), (96, 3)), f"{name}.double", last_stride=2)
    return net.concat(a, b, net.max_pool(x, 3, 2, name=f"{name}.pool"), name=f"{name}.concat")


def _factorised(net: Builder, x: str, width: int, name: str) -> str:
    """17 x 17: 1 x 1, a 7 x 7 in two steps, two 7 x 7 in four, pooling."""
    row, column = (1, 7), (7, 1)
    a = chain(net, x, ((192, 1),), f"{name}.1x1")
    b = chain(net, x, ((width, 1), (width, row), (192, column)), f"{name}.7x7")
    c = chain(net, x, ((width, 1), (width, column), (width, row), (width, column), (192, row)), f"{name}.double")
    return net.concat(a, b, c, projected_pool(net, x, 192, name), name=f"{name}.concat")


def _halve_factorised(net: Builder, x: str, name: str) -> str:
    """17 x 17 to 8 x 8."""
    a = chain(net, x, ((192, 1), (320, 3)), f"{name}.3x3", last_stride=2)
    b = chain(net, x, ((192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3)), f"{name}.7x7", last_stride=2)
    return net.concat(a, b, net.max_pool(x, 3, 2, name=f"{name}.pool"), name=f"{name}.concat")


def _wide(net: Builder, x: str, name: str) -> str:
    """8 x 8: the 3 x 3 convolutions end in a row and a column side by side."""
    a = chain(net, x, ((320, 1),), f"{name}.1x1")
    b = _fork(net, chain(net, x, ((384, 1),), f"{name}.3x3"), f"{name}.3x3")
    c = _fork(net, chain(net, x, ((448, 1), (384, 3)), f"{name}.double"), f"{name}.double")
    return net.concat(a, b, c, projected_pool(net, x, 192, name), name=f"{name}.concat")


def _fork(net: Builder, x: str, name: str) -> str:
    row = net.conv_bn_relu(x, 384, (1, 3), pad=(0, 1), name=f"{name}_row")
    column = net.conv_bn_relu(x, 384, (3, 1), pad=(1, 0), name=f"{name}_column")
    return net.concat(row, column, name=f"{name}_fork")


CHOLLET = "F. Chollet, Xception: Deep Learning with Depthwise Separable Convolutions, arXiv:1610.02357, figure 5"
MIDDLE = 8


def xception() -> Trace:
    """Entry, middle and exit flow; only the 1 x 1 half of a separable convolution is normalised."""
    net = Builder("xception", CHOLLET, {"data": ("N", 3, 299, 299)})
    x = net.conv_bn_relu(net.conv_bn_relu("data", 32, 3, 2, name="conv1"), 64, 3, name="conv2")
    for number, channels in enumerate((128, 256, 728), 1):
        x = _halve_separable(net, x, (channels, channels), f"entry{number}", rectified=number == 1)
    for number in range(1, MIDDLE + 1):
        y = x
        for step in range(1, 4):
            y = _separable(net, net.relu(y, name=f"middle{number}.relu{step}"), 728, f"middle{number}.{step}")
        x = net.sum(x, y, name=f"middle{number}.add")
    x = _halve_separable(net, x, (728, 1024), "exit1")
    for number, channels in ((2, 1536), (3, 2048)):
        x = net.relu(_separable(net, x, channels, f"exit{number}"), name=f"exit{number}.relu")
    net.softmax(net.linear(net.global_avg_pool(x, name="pool"), 1000, name="fc"))
    return net.trace()


def _halve_separable(net: Builder, x: str, widths: tuple[int, int], name: str, rectified: bool = False) -> str:
    """Two separable convolutions, each after a ReLU, and a pooling, beside a 1 x 1 convolution with a stride of 2."""
    y = x
    for step, channels in enumerate(widths, 1):
        y = y if rectified and step == 1 else net.relu(y, name=f"{name}.relu{step}")
        y = _separable(net, y, channels, f"{name}.{step}")
    y = net.max_pool(y, 3, 2, 1, name=f"{name}.pool")
    return net.sum(y, net.conv_bn(x, widths[-1], 1, 2, name=f"{name}.shortcut"), name=f"{name}.add")


def _separable(net: Builder, x: str, channels: int, name: str) -> str:
    y = net.conv(x, net.channels(x), 3, pad=1, groups=net.channels(x), bias=False, name=f"{name}.depthwise")
    return net.conv_bn(y, channels, 1, name=f"{name}.pointwise")
