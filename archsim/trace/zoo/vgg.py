"""VGG: 3 x 3 convolutions, doubled in width after each of five poolings."""

from __future__ import annotations

from archsim.trace.trace import Trace
from archsim.trace.zoo.alexnet import classifier
from archsim.trace.zoo.builder import Builder

SOURCE = "Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition, arXiv:1409.1556"
WIDTHS = (64, 128, 256, 512, 512)


def vgg_a() -> Trace:
    """Configuration A, 11 layers."""
    return _vgg("vgg_a", "A", (1, 1, 2, 2, 2), aliases=("vgg_11",))


def vgg_16() -> Trace:
    """Configuration D, 16 layers."""
    return _vgg("vgg_16", "D", (2, 2, 3, 3, 3), aliases=("vgg16",))


def vgg_19() -> Trace:
    """Configuration E, 19 layers."""
    return _vgg("vgg_19", "E", (2, 2, 4, 4, 4), aliases=("vgg19",))


def _vgg(name: str, configuration: str, convolutions: tuple[int, ...], aliases: tuple[str, ...]) -> Trace:
    net = Builder(name, f"{SOURCE}, table 1 column {configuration}", {"data": ("N", 3, 224, 224)})
    x = "data"
    for stage, (count, channels) in enumerate(zip(convolutions, WIDTHS, strict=True), 1):
        for number in range(1, count + 1):
            x = net.relu(net.conv(x, channels, 3, pad=1, name=f"conv{stage}_{number}"), name=f"relu{stage}_{number}")
        x = net.max_pool(x, 2, 2, name=f"pool{stage}")
    classifier(net, x, drop_after=True)
    return net.trace(aliases=aliases)
