"""Networks that join what their layers make: DenseNet, where each layer reads all before it in its block, and dual path networks,
which join a part of each block's output and add the rest, as ResNet does.
"""

from __future__ import annotations

from typing import NamedTuple

from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

HUANG = "G. Huang et al., Densely Connected Convolutional Networks, arXiv:1608.06993"


# depth -> (layers of each block, channels that a layer adds, channels of the stem)
DENSENETS = {
    121: ((6, 12, 24, 16), 32, 64), 161: ((6, 12, 36, 24), 48, 96), 169: ((6, 12, 32, 32), 32, 64),
    201: ((6, 12, 48, 32), 32, 64),
}  # fmt: skip


def densenet(depth: int) -> Trace:
    """The network of one row of `DENSENETS`."""
    counts, growth, stem = DENSENETS[depth]
    net = Builder(f"densenet_{depth}", f"{HUANG}, table 1", {"data": ("N", 3, 224, 224)})
    x = net.max_pool(net.conv_bn_relu("data", stem, 7, 2, 3, name="conv0"), 3, 2, 1, name="pool0")
    for block, count in enumerate(counts, 1):
        for layer in range(1, count + 1):
            x = _layer(net, x, growth, f"block{block}.{layer}")
        if block < len(counts):
            x = _transition(net, x, f"transition{block}")
    x = net.relu(net.batch_norm(x, name="last.bn"), name="last.relu")
    net.softmax(net.linear(net.global_avg_pool(x, name="pool"), 1000, name="fc"))
    return net.trace(aliases=(f"densenet{depth}",))


def _layer(net: Builder, x: str, growth: int, name: str) -> str:
    """1 x 1 to four times the growth, 3 x 3 to the growth, joined to what came before."""
    y = net.relu(net.batch_norm(x, name=f"{name}.bn"), name=f"{name}.relu")
    y = net.conv_bn_relu(y, 4 * growth, 1, name=f"{name}.conv1")
    y = net.conv(y, growth, 3, pad=1, bias=False, name=f"{name}.conv2")
    return net.concat(x, y, name=f"{name}.concat")


def _transition(net: Builder, x: str, name: str) -> str:
    """Half the channels, half the size."""
    y = net.relu(net.batch_norm(x, name=f"{name}.bn"), name=f"{name}.relu")
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
    net = Builder("dpn_92", CHEN, {"data": ("N", 3, 224, 224)})
    x = net.max_pool(net.conv_bn_relu("data", 64, 7, 2, 3, name="conv1"), 3, 2, 1, name="pool1")
    for number, stage in enumerate(DPN_92, 2):
        x = _stage(net, x, stage, 1 if number == 2 else 2, f"conv{number}")
    x = net.relu(net.batch_norm(x, name="last.bn"), name="last.relu")
    net.softmax(net.linear(net.global_avg_pool(x, name="pool"), 1000, name="fc"))
    return net.trace()


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
    y = net.relu(net.batch_norm(x, name=f"{name}.bn"), name=f"{name}.relu")
    return net.conv(y, channels, kernel, stride, kernel // 2, groups=groups, bias=False, name=name)


def _parts(net: Builder, x: str, first: int, name: str) -> tuple[str, str]:
    return net.part(x, 0, first, name=f"{name}.added"), net.part(x, first, net.channels(x), name=f"{name}.joined")
