"""SSD: a detector whose boxes and scores come from six maps of a VGG-16 made longer, 300 x 300."""

from __future__ import annotations

from archsim.trace.kinds.normalise import RmsNorm
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

SOURCE = "W. Liu et al., SSD: Single Shot MultiBox Detector, arXiv:1512.02325, figure 2; github.com/weiliu89/caffe, ssd branch"
CLASSES = 21  # Pascal VOC and the background
STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))  # (channels, convolutions) of VGG-16
EXTRAS = ((256, 512, 2, 1), (128, 256, 2, 1), (128, 256, 1, 0), (128, 256, 1, 0))  # (1 x 1, 3 x 3, stride, padding)
BOXES = (4, 6, 6, 6, 4, 4)  # default boxes at each pixel of a map


def ssd_300() -> Trace:
    """8732 boxes with their offsets and the softmax of their classes; suppression of overlaps is left out."""
    net = Builder("ssd_300", SOURCE, {"data": ("N", 3, 300, 300)}, notes="Pascal VOC; the choice among the boxes is left out")
    maps = _maps(net)
    offsets = [_predictions(net, x, boxes, 4, f"offsets{i}") for i, (x, boxes) in enumerate(zip(maps, BOXES, strict=True), 1)]
    scores = [_predictions(net, x, boxes, CLASSES, f"scores{i}") for i, (x, boxes) in enumerate(zip(maps, BOXES, strict=True), 1)]
    found = net.concat(*offsets, name="offsets")
    return net.trace(aliases=("ssd_300_vgg_16",), outputs=(found, net.softmax(net.concat(*scores, name="scores"))))


def _maps(net: Builder) -> list[str]:
    """The six maps: 38, 19, 10, 5, 3 and 1 pixels wide."""
    x, maps = "data", []
    for stage, (channels, count) in enumerate(STAGES, 1):
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
