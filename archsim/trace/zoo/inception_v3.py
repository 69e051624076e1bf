"""Inception-v3: factorised convolutions (1 x 7 and 7 x 1) on 299 x 299 images."""

from __future__ import annotations

from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder, Size

SOURCE = "C. Szegedy et al., Rethinking the Inception Architecture for Computer Vision, arXiv:1512.00567"

Step = tuple[int, Size]  # output channels and window of one convolution


def inception_v3() -> Trace:
    """Without the auxiliary classifier, which runs only in training."""
    net = Builder("inception_v3", SOURCE, {"data": ("N", 3, 299, 299)}, notes="without auxiliary classifier")
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
