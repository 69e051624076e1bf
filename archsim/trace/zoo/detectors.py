"""Single-shot detectors: YOLO, for the 80 classes of COCO on 416 x 416 images, and SSD, for those of Pascal VOC on 300 x 300.

Networks end in maps or lists of boxes and scores. What turns them into objects (logistic functions, suppression of overlaps) is
left out.
"""

from __future__ import annotations

from archsim.trace.kinds.activation import LeakyRelu
from archsim.trace.kinds.normalise import RmsNorm
from archsim.trace.kinds.shaping import Upsample
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

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
    net = Builder("yolo_v2", f"{V2}; {DARKNET}, cfg/yolov2.cfg", {"data": ("N", 3, SIDE, SIDE)}, notes=NOTES)
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
    net = Builder("tiny_yolo_v2", f"{V2}; {DARKNET}, cfg/yolov2-tiny.cfg", {"data": ("N", 3, SIDE, SIDE)}, notes=NOTES)
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
    net = Builder("yolo_v3", f"{V3}; {DARKNET}, cfg/yolov3.cfg", {"data": ("N", 3, SIDE, SIDE)}, notes=NOTES)
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
    net = Builder("ssd_300", LIU, {"data": ("N", 3, 300, 300)}, notes="Pascal VOC; the choice among the boxes is left out")
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
