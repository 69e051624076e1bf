"""SqueezeNet: fire modules, which squeeze to few channels and expand with 1 x 1 and 3 x 3 side by side."""

from __future__ import annotations

from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

SOURCE = "F. Iandola et al., SqueezeNet, arXiv:1602.07360; as in the published Caffe prototxt"

# module -> (squeeze channels, channels of each expansion)
FIRES = {
    "fire2": (16, 64), "fire3": (16, 64), "fire4": (32, 128), "fire5": (32, 128),
    "fire6": (48, 192), "fire7": (48, 192), "fire8": (64, 256), "fire9": (64, 256),
}  # fmt: skip


def squeezenet_1_0() -> Trace:
    """Version 1.0: a 7 x 7 stem, late pooling; the last convolution is padded."""
    net = Builder("squeezenet_1_0", f"{SOURCE}, version 1.0", {"data": ("N", 3, 227, 227)})
    x = net.relu(net.conv("data", 96, 7, 2, name="conv1"))
    return _body(net, x, pools=("fire4", "fire8"), last_pad=1)


def squeezenet_1_1() -> Trace:
    """Version 1.1: a 3 x 3 stem of 64 channels, early pooling."""
    net = Builder("squeezenet_1_1", f"{SOURCE}, version 1.1", {"data": ("N", 3, 227, 227)})
    x = net.relu(net.conv("data", 64, 3, 2, name="conv1"))
    return _body(net, x, pools=("fire3", "fire5"), last_pad=0)


def _body(net: Builder, x: str, pools: tuple[str, ...], last_pad: int) -> Trace:
    x = net.max_pool(x, 3, 2, ceil=True, name="pool1")
    for name, (squeeze, expand) in FIRES.items():
        x = _fire(net, x, squeeze, expand, name)
        if name in pools:
            x = net.max_pool(x, 3, 2, ceil=True, name=f"pool{name[-1]}")
    x = net.dropout(x, name="drop9")
    x = net.relu(net.conv(x, 1000, 1, pad=last_pad, name="conv10"))
    net.softmax(net.flatten(net.global_avg_pool(x, name="pool10")))
    return net.trace()


def _fire(net: Builder, x: str, squeeze: int, expand: int, name: str) -> str:
    x = net.relu(net.conv(x, squeeze, 1, name=f"{name}.squeeze1x1"))
    one = net.relu(net.conv(x, expand, 1, name=f"{name}.expand1x1"))
    three = net.relu(net.conv(x, expand, 3, pad=1, name=f"{name}.expand3x3"))
    return net.concat(one, three, name=f"{name}.concat")
