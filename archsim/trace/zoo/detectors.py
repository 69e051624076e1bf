"""Networks that find objects (YOLO, SSD) or label every pixel (U-Net, DeepLabv3).

Networks end in maps or lists of boxes and scores. What turns them into objects (logistic functions, suppression of overlaps) is
left out.
"""

from __future__ import annotations

from archsim.trace.kinds.convolution import ConvTranspose2d
from archsim.trace.kinds.normalise import RmsNorm, Softmax
from archsim.trace.kinds.pointwise import LeakyRelu
from archsim.trace.kinds.shaping import Upsample
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder, images, stem_of
from archsim.trace.zoo.resnet import bottleneck

V2 = "J. Redmon, A. Farhadi, YOLO9000: Better, Faster, Stronger, arXiv:1612.08242, table 6"
V3 = "J. Redmon, A. Farhadi, YOLOv3: An Incremental Improvement, arXiv:1804.02767, table 1"
DARKNET = "github.com/pjreddie/darknet"
SIDE = 416
BOX = 4 + 1 + 80  # coordinates, objectness, classes
NOTES = "maps of boxes and scores; their decoding is left out"

# channels of 3 x 3 and, between them, 1 x 1 convolutions; a pooling after each row but the last
DARKNET_19: tuple[tuple[int, ...], ...] = (
    (32,), (64,), (128, 64, 128), (256, 128, 256), (512, 256, 512, 256, 512), (1024, 512, 1024, 512, 1024),
)  # fmt: skip
TINY = (16, 32, 64, 128, 256, 512)
DARKNET_53 = ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4))  # (channels, residual blocks)


def yolo_v2() -> Trace:
    """Darknet-19; the last map of 26 x 26 is folded to 13 x 13 and joined before the last convolutions."""
    net = images("yolo_v2", f"{V2}; {DARKNET}, cfg/yolov2.cfg", SIDE, notes=NOTES)
    x, fine = "data", ""
    for stage, row in enumerate(DARKNET_19, 1):
        for number, channels in enumerate(row, 1):
            x = _conv(net, x, channels, 1 if number % 2 == 0 else 3, f"conv{stage}_{number}")
        if stage < len(DARKNET_19):
            fine, x = x, net.max_pool(x, 2, 2, name=f"pool{stage}")
    x = _conv(net, _conv(net, x, 1024, 3, "head1"), 1024, 3, "head2")
    folded = _folded(net, _conv(net, fine, 64, 1, "passthrough"), "passthrough")
    x = _conv(net, net.concat(folded, x, name="concat"), 1024, 3, "head3")
    net.conv(x, 5 * BOX, 1, name="boxes")
    return net.trace(aliases=("yolov2",))


def tiny_yolo_v2() -> Trace:
    """Nine convolutions; the last pooling keeps the size."""
    net = images("tiny_yolo_v2", f"{V2}; {DARKNET}, cfg/yolov2-tiny.cfg", SIDE, notes=NOTES)
    x = "data"
    for number, channels in enumerate(TINY, 1):
        x = _conv(net, x, channels, 3, f"conv{number}")
        last = number == len(TINY)
        x = net.max_pool(x, 2, 1 if last else 2, (0, 0, 1, 1) if last else 0, name=f"pool{number}")
    x = _conv(net, _conv(net, x, 1024, 3, "conv7"), 512, 3, "conv8")
    net.conv(x, 5 * BOX, 1, name="boxes")
    return net.trace(aliases=("yolo_v2_tiny", "yolov2_tiny"))


def yolo_v3() -> Trace:
    """Darknet-53 and three maps of 13, 26 and 52 pixels, each of the finer ones joined with the coarser one enlarged."""
    net = images("yolo_v3", f"{V3}; {DARKNET}, cfg/yolov3.cfg", SIDE, notes=NOTES)
    x, levels = _conv(net, "data", 32, 3, "conv1"), []
    for stage, (channels, count) in enumerate(DARKNET_53, 1):
        x = _conv(net, x, channels, 3, f"stage{stage}.down", stride=2)
        for number in range(1, count + 1):
            at = f"stage{stage}.{number}"
            y = _conv(net, _conv(net, x, channels // 2, 1, f"{at}.conv1"), channels, 3, f"{at}.conv2")
            x = net.sum(x, y, name=f"{at}.add")
        levels.append(x)
    maps = []
    for level, (channels, lateral) in enumerate(((512, ""), (256, levels[3]), (128, levels[2])), 1):
        at = f"head{level}"
        if lateral:
            x = _conv(net, x, channels, 1, f"{at}.lateral")
            *_, height, width = net.shape(lateral)
            x = net.add(Upsample(), x, name=f"{at}.upsample", recorded=(0, 0, height, width))
            x = net.concat(x, lateral, name=f"{at}.concat")
        for number in range(1, 6):
            x = _conv(net, x, channels if number % 2 else 2 * channels, 1 if number % 2 else 3, f"{at}.conv{number}")
        maps.append(net.conv(_conv(net, x, 2 * channels, 3, f"{at}.conv6"), 3 * BOX, 1, name=f"{at}.boxes"))
    return net.trace(aliases=("yolov3",), outputs=maps)


def _conv(net: Builder, x: str, channels: int, kernel: int, name: str, stride: int = 1) -> str:
    return net.activate(net.conv_bn(x, channels, kernel, stride, kernel // 2, name=name), LeakyRelu(), name=name)


def _folded(net: Builder, x: str, name: str) -> str:
    """Blocks of 2 x 2 pixels as four times the channels."""
    _, channels, height, width = net.shape(x)
    y = net.reshape(x, ("N", channels, height // 2, 2, width // 2, 2), name=f"{name}.blocks")
    y = net.transpose(y, 0, 3, 5, 1, 2, 4, name=f"{name}.fold")
    return net.reshape(y, ("N", 4 * channels, height // 2, width // 2), name=f"{name}.folded")


LIU = "W. Liu et al., SSD: Single Shot MultiBox Detector, arXiv:1512.02325, figure 2; github.com/weiliu89/caffe, ssd branch"
CLASSES = 21  # Pascal VOC and the background
VGG_16 = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))  # (channels, convolutions) of VGG-16
EXTRAS = ((256, 512, 2, 1), (128, 256, 2, 1), (128, 256, 1, 0), (128, 256, 1, 0))  # (1 x 1, 3 x 3, stride, padding)
BOXES = (4, 6, 6, 6, 4, 4)  # default boxes at each pixel of a map


def ssd_300() -> Trace:
    """8732 boxes with their offsets and the softmax of their classes; suppression of overlaps is left out."""
    net = images("ssd_300", LIU, 300, notes="Pascal VOC; the choice among the boxes is left out")
    maps = _maps(net)
    offsets = [_predictions(net, x, boxes, 4, f"offsets{i}") for i, (x, boxes) in enumerate(zip(maps, BOXES, strict=True), 1)]
    scores = [_predictions(net, x, boxes, CLASSES, f"scores{i}") for i, (x, boxes) in enumerate(zip(maps, BOXES, strict=True), 1)]
    found = net.concat(*offsets, name="offsets")
    return net.trace(aliases=("ssd_300_vgg_16",), outputs=(found, net.softmax(net.concat(*scores, name="scores"))))


def _maps(net: Builder) -> list[str]:
    """The six maps: 38, 19, 10, 5, 3 and 1 pixels wide."""
    x, maps = "data", []
    for stage, (channels, count) in enumerate(VGG_16, 1):
        for number in range(1, count + 1):
            x = net.relu(net.conv(x, channels, 3, pad=1, name=f"conv{stage}_{number}"))
        if stage == 4:
            maps.append(net.add(RmsNorm(axis=1), x, name="conv4_3.norm"))
        x = net.max_pool(x, 3, 1, 1, name="pool5") if stage == 5 else net.max_pool(x, 2, 2, ceil=True, name=f"pool{stage}")
    x = net.relu(net.conv(x, 1024, 3, pad=6, dilation=6, name="fc6"))
    maps.append(net.relu(net.conv(x, 1024, 1, name="fc7")))
    for number, (narrow, wide, stride, pad) in enumerate(EXTRAS, 6):
        x = net.relu(net.conv(maps[-1], narrow, 1, name=f"conv{number}_1"))
        maps.append(net.relu(net.conv(x, wide, 3, stride, pad, name=f"conv{number}_2")))
    return maps


def _predictions(net: Builder, x: str, boxes: int, values: int, name: str) -> str:
    """[N, boxes of the map, values]."""
    _, _, height, width = net.shape(x)
    y = net.transpose(net.conv(x, boxes * values, 3, pad=1, name=name), 0, 2, 3, 1, name=f"{name}.last")
    return net.reshape(y, ("N", boxes * height * width, values), name=f"{name}.boxes")


# -------------------------------------------------------------------------------------- networks that label every pixel

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
    net = images("deeplab_v3_resnet_50", CHEN, side, notes="without auxiliary classifier")
    x = stem_of(net)
    for stage, (width, count, stride, first, others) in enumerate(STAGES, 1):
        for number in range(count):
            dilation = others if number else first
            x = bottleneck(net, x, width, 1 if number else stride, f"layer{stage}.{number}", dilation=dilation)
    x = net.dropout(net.conv_bn_relu(_pyramid(net, x), 256, 1, name="pyramid.project"), name="pyramid.drop")
    x = net.conv(net.conv_bn_relu(x, 256, 3, pad=1, name="head"), 21, 1, name="classes")
    return _pixel_softmax(net, _enlarged(net, x, side, side, "classes"))


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
