"""VGG: 3 x 3 convolutions, doubled in width after each of five poolings."""

from __future__ import annotations

from archsim.trace.trace import Trace
from archsim.trace.zoo.alexnet import classifier
from archsim.trace.zoo.builder import Builder

SOURCE = "Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition, arXiv:1409.1556"
NORMALISED = "batch normalisation after each convolution, as in torchvision's vgg.py"
WIDTHS = (64, 128, 256, 512, 512)
VGG = "vgg_a", "vgg_13", "vgg_16", "vgg_19", "vgg_11_bn", "vgg_13_bn", "vgg_16_bn", "vgg_19_bn"

# layers -> (column of table 1, convolutions in each stage)
CONFIGURATIONS = {
    11: ("A", (1, 1, 2, 2, 2)), 13: ("B", (2, 2, 2, 2, 2)), 16: ("D", (2, 2, 3, 3, 3)), 19: ("E", (2, 2, 4, 4, 4)),
}  # fmt: skip


def vgg(name: str) -> Trace:
    """The network of one row of `VGG`; `vgg_a` is the one of 11 layers, `_bn` adds batch normalisation."""
    normalised = name.endswith("_bn")
    depth = 11 if name == "vgg_a" else int(name.split("_")[1])
    column, convolutions = CONFIGURATIONS[depth]
    source = f"{SOURCE}, table 1 column {column}"
    net = Builder(name, f"{source}; {NORMALISED}" if normalised else source, {"data": ("N", 3, 224, 224)})
    x = "data"
    for stage, (count, channels) in enumerate(zip(convolutions, WIDTHS, strict=True), 1):
        for number in range(1, count + 1):
            x = net.conv(x, channels, 3, pad=1, name=f"conv{stage}_{number}")
            x = net.relu(net.batch_norm(x) if normalised else x, name=f"relu{stage}_{number}")
        x = net.max_pool(x, 2, 2, name=f"pool{stage}")
    aliases = ("vgg_11",) if name == "vgg_a" else (f"vgg{depth}_bn" if normalised else f"vgg{depth}",)
    return classifier(net, x, drop_after=True, aliases=aliases)
