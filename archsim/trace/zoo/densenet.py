"""DenseNet: each layer reads all that came before it in its block, joined along the channels."""

from __future__ import annotations

from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

SOURCE = "G. Huang et al., Densely Connected Convolutional Networks, arXiv:1608.06993"


def densenet_121() -> Trace:
    """Growth 32."""
    return _densenet(121, (6, 12, 24, 16), growth=32, stem=64)


def densenet_161() -> Trace:
    """Growth 48."""
    return _densenet(161, (6, 12, 36, 24), growth=48, stem=96)


def densenet_169() -> Trace:
    """Growth 32."""
    return _densenet(169, (6, 12, 32, 32), growth=32, stem=64)


def densenet_201() -> Trace:
    """Growth 32."""
    return _densenet(201, (6, 12, 48, 32), growth=32, stem=64)


def _densenet(depth: int, counts: tuple[int, ...], growth: int, stem: int) -> Trace:
    net = Builder(f"densenet_{depth}", f"{SOURCE}, table 1", {"data": ("N", 3, 224, 224)})
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
