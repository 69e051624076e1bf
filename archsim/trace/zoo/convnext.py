"""ConvNeXt: 7 x 7 depthwise convolutions and two linear layers in each block, normalised along the channels."""

from __future__ import annotations

from archsim.trace.kinds.activation import Gelu
from archsim.trace.kinds.dense import Linear
from archsim.trace.kinds.normalise import LayerNorm
from archsim.trace.kinds.pointwise import Scale
from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

SOURCE = "Z. Liu et al., A ConvNet for the 2020s, arXiv:2201.03545, table 9; torchvision convnext.py"
TINY = ((96, 3), (192, 3), (384, 9), (768, 3))  # (channels, blocks)


def convnext_tiny() -> Trace:
    """Channels stand last for norms and linear layers, first for convolutions; copies lead from one to the other."""
    net = Builder("convnext_tiny", SOURCE, {"data": ("N", 3, 224, 224)}, notes="no block is skipped at random in training")
    x = _channel_norm(net, net.conv("data", TINY[0][0], 4, 4, name="stem"), "stem.norm")
    for stage, (channels, count) in enumerate(TINY, 1):
        if stage > 1:
            x = net.conv(_channel_norm(net, x, f"down{stage}.norm"), channels, 2, 2, name=f"down{stage}")
        for number in range(count):
            x = _block(net, x, f"stage{stage}.{number}")
    x = net.flatten(_channel_norm(net, net.global_avg_pool(x, name="pool"), "norm"))
    net.softmax(net.linear(x, 1000, name="head"))
    return net.trace()


def _block(net: Builder, x: str, name: str) -> str:
    width = net.channels(x)
    y = net.conv(x, width, 7, pad=3, groups=width, name=f"{name}.depthwise")
    y = net.add(LayerNorm(), net.transpose(y, 0, 2, 3, 1, name=f"{name}.last"), name=f"{name}.norm")
    y = net.add(Linear(), y, name=f"{name}.mlp1", recorded=(4 * width,))
    y = net.add(Linear(), net.activate(y, Gelu(), name=f"{name}.mlp1"), name=f"{name}.mlp2", recorded=(width,))
    y = net.transpose(y, 0, 3, 1, 2, name=f"{name}.first")
    return net.sum(x, net.add(Scale(axis=1), y, name=f"{name}.scale"), name=f"{name}.add")


def _channel_norm(net: Builder, x: str, name: str) -> str:
    y = net.add(LayerNorm(), net.transpose(x, 0, 2, 3, 1, name=f"{name}.last"), name=name)
    return net.transpose(y, 0, 3, 1, 2, name=f"{name}.first")
