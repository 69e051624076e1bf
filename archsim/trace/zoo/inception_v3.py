"""Inception-v3 and v4, with Xception and Inception-ResNet-v2; 299 x 299 images."""

from __future__ import annotations

from archsim.trace.kinds.pointwise import ScaleBy
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder, Size, images

SZEGEDY = "C. Szegedy et al., Rethinking the Inception Architecture for Computer Vision, arXiv:1512.00567"

Step = tuple[int, Size]  # output channels and window of one convolution
Branches = dict[str, tuple[Step, ...]]  # name of a branch -> its convolutions
ROW, COLUMN = (1, 7), (7, 1)

SQUARE: Branches = {"1x1": ((64, 1),), "5x5": ((48, 1), (64, 5)), "3x3": ((64, 1), (96, 3), (96, 3))}  # at 35 x 35
HALVE_SQUARE: Branches = {"3x3": ((384, 3),), "double": ((64, 1), (96, 3), (96, 3))}
HALVE_FACTORISED: Branches = {"3x3": ((192, 1), (320, 3)), "7x7": ((192, 1), (192, ROW), (192, COLUMN), (192, 3))}


def _factorised(width: int) -> Branches:
    """17 x 17: 1 x 1, a 7 x 7 in two steps, two 7 x 7 in four."""
    inner = (width, 1), (width, COLUMN), (width, ROW), (width, COLUMN), (192, ROW)
    return {"1x1": ((192, 1),), "7x7": ((width, 1), (width, ROW), (192, COLUMN)), "double": inner}


def inception_v3() -> Trace:
    """Without the auxiliary classifier, which runs only in training."""
    net = images("inception_v3", SZEGEDY, 299, notes="without auxiliary classifier")
    x = net.conv_bn_relu("data", 32, 3, 2, name="conv1")
    x = net.conv_bn_relu(x, 32, 3, name="conv2")
    x = net.max_pool(net.conv_bn_relu(x, 64, 3, pad=1, name="conv3"), 3, 2, name="pool1")
    x = net.conv_bn_relu(x, 80, 1, name="conv4")
    x = net.max_pool(net.conv_bn_relu(x, 192, 3, name="conv5"), 3, 2, name="pool2")
    for name, projection in (("a1", 32), ("a2", 64), ("a3", 64)):
        x = _module(net, x, SQUARE, projection, name)
    x = _module(net, x, HALVE_SQUARE, 0, "b")
    for name, width in (("c1", 128), ("c2", 160), ("c3", 160), ("c4", 192)):
        x = _module(net, x, _factorised(width), 192, name)
    x = _module(net, x, HALVE_FACTORISED, 0, "d")
    for name in ("e1", "e2"):
        x = _wide(net, x, name)
    x = net.dropout(net.global_avg_pool(x, name="pool3"), name="drop")
    return net.classified(x)


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


def _wide(net: Builder, x: str, name: str) -> str:
    """8 x 8: the 3 x 3 convolutions end in a row and a column side by side."""
    a = chain(net, x, ((320, 1),), f"{name}.1x1")
    b = _fork(net, chain(net, x, ((384, 1),), f"{name}.3x3"), f"{name}.3x3")
    c = _fork(net, chain(net, x, ((448, 1), (384, 3)), f"{name}.double"), f"{name}.double")
    return net.concat(a, b, c, projected_pool(net, x, 192, name), name=f"{name}.concat")


def _fork(net: Builder, x: str, name: str) -> str:
    return net.concat(*_row_and_column(net, x, 384, name), name=f"{name}_fork")


def _row_and_column(net: Builder, x: str, channels: int, name: str) -> tuple[str, str]:
    """1 x 3 and 3 x 1 side by side."""
    row = net.conv_bn_relu(x, channels, (1, 3), pad=(0, 1), name=f"{name}_row")
    return row, net.conv_bn_relu(x, channels, (3, 1), pad=(1, 0), name=f"{name}_column")


CHOLLET = "F. Chollet, Xception: Deep Learning with Depthwise Separable Convolutions, arXiv:1610.02357, figure 5"
MIDDLE = 8


def xception() -> Trace:
    """Entry, middle and exit flow; only the 1 x 1 half of a separable convolution is normalised."""
    net = images("xception", CHOLLET, 299)
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
    return net.classified_mean(x)


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


# --------------------------------------------------------------------------------- Inception-v4 and Inception-ResNet-v2

SOURCE = "C. Szegedy et al., Inception-v4, Inception-ResNet and the Impact of Residual Connections on Learning, arXiv:1602.07261"


def numbered(*branches: tuple[Step, ...]) -> Branches:
    """Branches that are named by their place."""
    return {str(number): steps for number, steps in enumerate(branches, 1)}


# Inception-v4: figures 4 to 8; the pooling's projection stands apart
A = numbered(((96, 1),), ((64, 1), (96, 3)), ((64, 1), (96, 3), (96, 3)))
B = numbered(
    ((384, 1),), ((192, 1), (224, ROW), (256, COLUMN)), ((192, 1), (192, COLUMN), (224, ROW), (224, COLUMN), (256, ROW)),
)  # fmt: skip
HALVE_A = numbered(((384, 3),), ((192, 1), (224, 3), (256, 3)))
HALVE_B = numbered(((192, 1), (192, 3)), ((256, 1), (256, ROW), (320, COLUMN), (320, 3)))

# Inception-ResNet-v2: figures 16 to 20, with the widths of the published code
BLOCK_35 = numbered(((32, 1),), ((32, 1), (32, 3)), ((32, 1), (48, 3), (64, 3)))
BLOCK_17 = numbered(((192, 1),), ((128, 1), (160, ROW), (192, COLUMN)))
BLOCK_8 = numbered(((192, 1),), ((192, 1), (224, (1, 3)), (256, (3, 1))))
STEM_35 = numbered(((96, 1),), ((48, 1), (64, 5)), ((64, 1), (96, 3), (96, 3)))
HALVE_35 = numbered(((384, 3),), ((256, 1), (256, 3), (384, 3)))
HALVE_17 = numbered(((256, 1), (384, 3)), ((256, 1), (288, 3)), ((256, 1), (288, 3), (320, 3)))


def inception_v4() -> Trace:
    """Stem, 4 modules A, 7 modules B, 3 modules C."""
    net = images("inception_v4", f"{SOURCE}, figure 9", 299)
    x = _stem(net)
    for number in range(1, 5):
        x = _module(net, x, A, 96, f"a{number}")
    x = _module(net, x, HALVE_A, 0, "halve_a")
    for number in range(1, 8):
        x = _module(net, x, B, 128, f"b{number}")
    x = _module(net, x, HALVE_B, 0, "halve_b")
    for number in range(1, 4):
        x = _forked(net, x, f"c{number}")
    return _classified(net, x)


def _stem(net: Builder) -> str:
    """Figure 3: three places where two branches go side by side."""
    x = net.conv_bn_relu("data", 32, 3, 2, name="conv1")
    x = net.conv_bn_relu(net.conv_bn_relu(x, 32, 3, name="conv2"), 64, 3, pad=1, name="conv3")
    x = net.concat(net.max_pool(x, 3, 2, name="pool3"), net.conv_bn_relu(x, 96, 3, 2, name="conv4"), name="stem1")
    a = net.conv_bn_relu(chain(net, x, ((64, 1),), "stem2.a"), 96, 3, name="stem2.a_2")
    b = net.conv_bn_relu(chain(net, x, ((64, 1), (64, ROW), (64, COLUMN)), "stem2.b"), 96, 3, name="stem2.b_4")
    x = net.concat(a, b, name="stem2")
    return net.concat(net.conv_bn_relu(x, 192, 3, 2, name="conv5"), net.max_pool(x, 3, 2, name="pool5"), name="stem3")


def _classified(net: Builder, x: str) -> Trace:
    return net.classified(net.dropout(net.global_avg_pool(x, name="pool"), 0.2, name="drop"))


def _module(net: Builder, x: str, branches: Branches, projection: int, name: str) -> str:
    """Branches and a projected pooling side by side; without a projection all of them halve the image."""
    stride = 1 if projection else 2
    made = [chain(net, x, steps, f"{name}.{number}", last_stride=stride) for number, steps in branches.items()]
    pooled = projected_pool(net, x, projection, name) if projection else net.max_pool(x, 3, 2, name=f"{name}.pool")
    return net.concat(*made, pooled, name=f"{name}.concat")


def _forked(net: Builder, x: str, name: str) -> str:
    """Figure 6: two branches end in a row and a column side by side."""
    parts = [chain(net, x, ((256, 1),), f"{name}.1")]
    for number, steps in ((2, ((384, 1),)), (3, ((384, 1), (448, (3, 1)), (512, (1, 3))))):
        parts += _row_and_column(net, chain(net, x, steps, f"{name}.{number}"), 256, f"{name}.{number}")
    return net.concat(*parts, projected_pool(net, x, 256, name), name=f"{name}.concat")


def inception_resnet_v2() -> Trace:
    """10, 20 and 10 residual modules, each scaled down before it is added; the very last one is not."""
    source = f"{SOURCE}, figure 15; tensorflow/models inception_resnet_v2.py"
    net = images("inception_resnet_v2", source, 299, notes="without auxiliary classifier")
    x = net.conv_bn_relu("data", 32, 3, 2, name="conv1")
    x = net.conv_bn_relu(net.conv_bn_relu(x, 32, 3, name="conv2"), 64, 3, pad=1, name="conv3")
    x = net.conv_bn_relu(net.max_pool(x, 3, 2, name="pool3"), 80, 1, name="conv4")
    x = net.max_pool(net.conv_bn_relu(x, 192, 3, name="conv5"), 3, 2, name="pool5")
    x = _module(net, x, STEM_35, 64, "stem")
    x = _residuals(net, x, BLOCK_35, 10, 0.17, "block35")
    x = _residuals(net, _module(net, x, HALVE_35, 0, "halve35"), BLOCK_17, 20, 0.1, "block17")
    x = _residuals(net, _module(net, x, HALVE_17, 0, "halve17"), BLOCK_8, 9, 0.2, "block8")
    x = _residual(net, x, BLOCK_8, 1.0, "block8.10")
    return _classified(net, net.conv_bn_relu(x, 1536, 1, name="conv6"))


def _residuals(net: Builder, x: str, branches: Branches, count: int, factor: float, name: str) -> str:
    for number in range(1, count + 1):
        x = net.relu(_residual(net, x, branches, factor, f"{name}.{number}"), name=f"{name}.{number}.relu")
    return x


def _residual(net: Builder, x: str, branches: Branches, factor: float, name: str) -> str:
    """The branches joined and brought back to the width of their input by a 1 x 1 convolution with a bias."""
    made = [chain(net, x, steps, f"{name}.{number}") for number, steps in branches.items()]
    y = net.conv(net.concat(*made, name=f"{name}.concat"), net.channels(x), 1, name=f"{name}.up")
    if factor != 1:
        y = net.add(ScaleBy(factor=factor), y, name=f"{name}.scaled")
    return net.sum(x, y, name=f"{name}.add")
