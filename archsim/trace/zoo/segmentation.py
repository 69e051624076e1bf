"""Networks that label every pixel: U-Net and DeepLabv3."""

from __future__ import annotations

from archsim.trace.kinds.convolution import ConvTranspose2d
from archsim.trace.kinds.normalise import Softmax
from archsim.trace.kinds.shaping import Upsample
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

RONNEBERGER = "O. Ronneberger et al., U-Net: Convolutional Networks for Biomedical Image Segmentation, arXiv:1505.04597, figure 1"
CHEN = "L.-C. Chen et al., Rethinking Atrous Convolution for Semantic Image Segmentation, arXiv:1706.05587; torchvision"
WIDTHS = (64, 128, 256, 512, 1024)

# (width, blocks, stride, dilation of the first block, of the others): output stride 8
STAGES = ((64, 3, 1, 1, 1), (128, 4, 2, 1, 1), (256, 6, 1, 1, 2), (512, 3, 1, 2, 4))
RATES = (12, 24, 36)


def unet() -> Trace:
    """572 x 572 pixels in, 388 x 388 out: no convolution is padded, what is joined on the way up is cropped."""
    net = Builder("unet", RONNEBERGER, {"data": ("N", 1, 572, 572)})
    x, kept = "data", []
    for level, channels in enumerate(WIDTHS, 1):
        x = _two(net, x, channels, f"down{level}")
        if level == len(WIDTHS):
            x = net.dropout(x, name="drop5")
            break
        x = net.dropout(x, name="drop4") if level == len(WIDTHS) - 1 else x
        kept.append(x)
        x = net.max_pool(x, 2, 2, name=f"pool{level}")
    for level, channels in reversed(list(enumerate(WIDTHS[:-1], 1))):
        up = net.add(ConvTranspose2d(kernel=(2, 2), stride=(2, 2)), x, name=f"up{level}.larger", recorded=(0, channels))
        x = _two(net, net.concat(_cropped(net, kept[level - 1], up, f"up{level}"), up, name=f"up{level}.concat"), channels,
                 f"up{level}")  # fmt: skip
    return _pixel_softmax(net, net.conv(x, 2, 1, name="classes"))


def _two(net: Builder, x: str, channels: int, name: str) -> str:
    for number in (1, 2):
        x = net.relu(net.conv(x, channels, 3, name=f"{name}.conv{number}"))
    return x


def _cropped(net: Builder, x: str, like: str, name: str) -> str:
    """The middle of `x`, as large as `like`."""
    for axis, label in ((2, "rows"), (3, "columns")):
        size = net.shape(like)[axis]
        before = (net.shape(x)[axis] - size) // 2
        x = net.part(x, before, before + size, axis, name=f"{name}.{label}")
    return x


def deeplab_v3_resnet_50() -> Trace:
    """ResNet-50 that keeps an eighth of 513 x 513 by dilation, pyramid pooling, 21 classes enlarged to every pixel."""
    side = 513
    net = Builder("deeplab_v3_resnet_50", CHEN, {"data": ("N", 3, side, side)}, notes="without auxiliary classifier")
    x = net.max_pool(net.conv_bn_relu("data", 64, 7, 2, 3, name="conv1"), 3, 2, 1, name="pool1")
    for stage, (width, count, stride, first, others) in enumerate(STAGES, 1):
        for number in range(count):
            x = _dilated(net, x, width, 1 if number else stride, others if number else first, f"layer{stage}.{number}")
    x = net.dropout(net.conv_bn_relu(_pyramid(net, x), 256, 1, name="pyramid.project"), name="pyramid.drop")
    x = net.conv(net.conv_bn_relu(x, 256, 3, pad=1, name="head"), 21, 1, name="classes")
    return _pixel_softmax(net, _enlarged(net, x, side, side, "classes"))


def _dilated(net: Builder, x: str, width: int, stride: int, dilation: int, name: str) -> str:
    """A bottleneck whose 3 x 3 convolution may be dilated."""
    y = net.conv_bn_relu(x, width, 1, name=f"{name}.conv1")
    y = net.conv_bn_relu(y, width, 3, stride, dilation, dilation=dilation, name=f"{name}.conv2")
    y = net.conv_bn(y, 4 * width, 1, name=f"{name}.conv3")
    x = x if net.channels(x) == 4 * width else net.conv_bn(x, 4 * width, 1, stride, name=f"{name}.shortcut")
    return net.relu(net.sum(y, x, name=f"{name}.add"), name=f"{name}.relu")


def _pyramid(net: Builder, x: str) -> str:
    """1 x 1, three dilated 3 x 3 and the mean of the whole image, side by side (section 3.3)."""
    _, _, height, width = net.shape(x)
    parts = [net.conv_bn_relu(x, 256, 1, name="pyramid.1x1")]
    parts += [net.conv_bn_relu(x, 256, 3, pad=rate, dilation=rate, name=f"pyramid.rate{rate}") for rate in RATES]
    mean = net.conv_bn_relu(net.global_avg_pool(x, name="pyramid.pool"), 256, 1, name="pyramid.image")
    return net.concat(*parts, _enlarged(net, mean, height, width, "pyramid.image"), name="pyramid.concat")


def _enlarged(net: Builder, x: str, height: int, width: int, name: str) -> str:
    return net.add(Upsample(mode="bilinear"), x, name=f"{name}.upsample", recorded=(0, 0, height, width))


def _pixel_softmax(net: Builder, x: str) -> Trace:
    """The classes of each pixel."""
    net.add(Softmax(axis=1), x, name="prob")
    return net.trace()
