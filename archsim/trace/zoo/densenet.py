"""Networks that join what their layers make: DenseNet, where each layer reads all before it in its block, and dual path networks,
which join a part of each block's output and add the rest, as ResNet does.
"""

from __future__ import annotations

from typing import NamedTuple

from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder, images, stem_of

HUANG = "G. Huang et al., Densely Connected Convolutional Networks, arXiv:1608.06993"


# depth -> (layers of each block, channels that a layer adds, channels of the stem)
DENSENETS = {
    121: ((6, 12, 24, 16), 32, 64), 161: ((6, 12, 36, 24), 48, 96), 169: ((6, 12, 32, 32), 32, 64),
    201: ((6, 12, 48, 32), 32, 64),
}  # fmt: skip


def densenet(depth: int) -> Trace:
    """The network of one row of `DENSENETS`."""
    counts, growth, stem = DENSENETS[depth]
    net = images(f"densenet_{depth}", f"{HUANG}, table 1")
    x = stem_of(net, stem, number=0)
    for block, count in enumerate(counts, 1):
        for layer in range(1, count + 1):
            x = _layer(net, x, growth, f"block{block}.{layer}")
        if block < len(counts):
            x = _transition(net, x, f"transition{block}")
    return net.classified_mean(net.bn_relu(x, name="last"), aliases=(f"densenet{depth}",))


def _layer(net: Builder, x: str, growth: int, name: str) -> str:
    """1 x 1 to four times the growth, 3 x 3 to the growth, joined to what came before."""
    y = net.bn_relu(x, name=name)
    y = net.conv_bn_relu(y, 4 * growth, 1, name=f"{name}.conv1")
    y = net.conv(y, growth, 3, pad=1, bias=False, name=f"{name}.conv2")
    return net.concat(x, y, name=f"{name}.concat")


def _transition(net: Builder, x: str, name: str) -> str:
    """Half the channels, half the size."""
    y = net.bn_relu(x, name=name)
    y = net.conv(y, net.channels(x) // 2, 1, bias=False, name=f"{name}.conv")
    return net.avg_pool(y, 2, 2, name=f"{name}.pool")


CHEN = "Y. Chen et al., Dual Path Networks, arXiv:1707.01629, table 1"
GROUPS = 32


class DpnStage(NamedTuple):
    """Blocks of one size: added channels, joined channels for each block, channels inside."""

    blocks: int
    added: int
    joined: int
    inside: int


DPN_92 = (DpnStage(3, 256, 16, 96), DpnStage(4, 512, 32, 192), DpnStage(20, 1024, 24, 384), DpnStage(3, 2048, 128, 768))


def dpn_92() -> Trace:
    """32 groups of 3 channels in the first stage."""
    net = images("dpn_92", CHEN)
    x = stem_of(net)
    for number, stage in enumerate(DPN_92, 2):
        x = _stage(net, x, stage, 1 if number == 2 else 2, f"conv{number}")
    return net.classified_mean(net.bn_relu(x, name="last"))


def _stage(net: Builder, x: str, stage: DpnStage, stride: int, name: str) -> str:
    """The first block projects its input to both paths; each block adds to one and widens the other."""
    joined = _normalised(net, x, stage.added + 2 * stage.joined, 1, stride, f"{name}.1.projection")
    total, dense = _parts(net, joined, stage.added, f"{name}.1.projection")
    for number in range(1, stage.blocks + 1):
        at = f"{name}.{number}"
        y = _normalised(net, x, stage.inside, 1, 1, f"{at}.conv1")
        y = _normalised(net, y, stage.inside, 3, stride if number == 1 else 1, f"{at}.conv2", groups=GROUPS)
        y = _normalised(net, y, stage.added + stage.joined, 1, 1, f"{at}.conv3")
        added, more = _parts(net, y, stage.added, at)
        total, dense = net.sum(total, added, name=f"{at}.add"), net.concat(dense, more, name=f"{at}.dense")
        x = net.concat(total, dense, name=f"{at}.concat")
    return x


def _normalised(net: Builder, x: str, channels: int, kernel: int, stride: int, name: str, groups: int = 1) -> str:
    """Normalise and rectify, then convolve."""
    y = net.bn_relu(x, name=name)
    return net.conv(y, channels, kernel, stride, kernel // 2, groups=groups, bias=False, name=name)


def _parts(net: Builder, x: str, first: int, name: str) -> tuple[str, str]:
    return net.part(x, 0, first, name=f"{name}.added"), net.part(x, first, net.channels(x), name=f"{name}.joined")
