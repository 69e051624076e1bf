"""Residual networks for ImageNet, 18 to 200 layers; their wide, grouped and gated forms are in resnext.py."""

from __future__ import annotations

from collections.abc import Callable

from archsim.trace.trace import Trace
from archsim.trace.zoo.blocks import squeeze_excite
from archsim.trace.zoo.builder import Builder

SOURCE = "K. He, X. Zhang, S. Ren, J. Sun, Deep Residual Learning for Image Recognition, arXiv:1512.03385, table 1"
PREACTIVATION = "K. He, X. Zhang, S. Ren, J. Sun, Identity Mappings in Deep Residual Networks, arXiv:1603.05027"
TORCH = "blocks as in fb.resnet.torch"
EXPANSION = 4  # a bottleneck widens its output by this

Block = Callable[[Builder, str, int, int, str], str]


def resnet_18() -> Trace:
    """Basic blocks."""
    return _resnet(18, _basic, (2, 2, 2, 2))


def resnet_34() -> Trace:
    """Basic blocks."""
    return _resnet(34, _basic, (3, 4, 6, 3))


def resnet_50() -> Trace:
    """Bottleneck blocks with the stride on the 3 x 3 convolution."""
    return _resnet(50, bottleneck, (3, 4, 6, 3))


def resnet_101() -> Trace:
    """Bottleneck blocks with the stride on the 3 x 3 convolution."""
    return _resnet(101, bottleneck, (3, 4, 23, 3))


def resnet_152() -> Trace:
    """Bottleneck blocks with the stride on the 3 x 3 convolution."""
    return _resnet(152, bottleneck, (3, 8, 36, 3))


def resnet_200() -> Trace:
    """Pre-activation bottleneck blocks: normalise and rectify before each convolution, and once more at the end."""
    net = Builder("resnet_200", f"{PREACTIVATION}; {TORCH} (preresnet)", {"data": ("N", 3, 224, 224)})
    x = _stages(net, _stem(net), _preactivation_bottleneck, (3, 24, 36, 3))
    x = net.relu(net.batch_norm(x, name="last.bn"), name="last.relu")
    return _head(net, x, aliases=("resnet200",))


def _resnet(depth: int, block: Block, counts: tuple[int, ...]) -> Trace:
    return residual(f"resnet_{depth}", f"{SOURCE}; {TORCH}", block, counts, aliases=(f"resnet{depth}",))


def residual(name: str, source: str, block: Block, counts: tuple[int, ...], aliases: tuple[str, ...] = ()) -> Trace:
    """Stem, four stages of blocks, classifier."""
    net = Builder(name, source, {"data": ("N", 3, 224, 224)})
    return _head(net, _stages(net, _stem(net), block, counts), aliases)


def _stem(net: Builder) -> str:
    """From 224 x 224 to 56 x 56."""
    return net.max_pool(net.conv_bn_relu("data", 64, 7, 2, 3, name="conv1"), 3, 2, 1, name="pool1")


def _stages(net: Builder, x: str, block: Block, counts: tuple[int, ...]) -> str:
    """Four stages; each after the first begins with a stride of 2 and doubles the width."""
    for stage, count in enumerate(counts, 1):
        for number in range(count):
            stride = 2 if stage > 1 and number == 0 else 1
            x = block(net, x, 32 * 2**stage, stride, f"layer{stage}.{number}")
    return x


def _head(net: Builder, x: str, aliases: tuple[str, ...]) -> Trace:
    net.softmax(net.linear(net.global_avg_pool(x, name="pool"), 1000, name="fc"))
    return net.trace(aliases=aliases)


def _basic(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    """Two 3 x 3 convolutions."""
    y = net.conv_bn_relu(x, width, 3, stride, 1, name=f"{name}.conv1")
    y = net.conv_bn(y, width, 3, pad=1, name=f"{name}.conv2")
    return net.relu(net.sum(y, _shortcut(net, x, width, stride, name), name=f"{name}.add"), name=f"{name}.relu")


def bottleneck(
    net: Builder, x: str, width: int, stride: int, name: str, *, inner: int = 1, groups: int = 1, reduction: int = 0
) -> str:
    """1 x 1 down, 3 x 3, 1 x 1 up; `inner` times as wide inside, in `groups`, its output gated where there is a `reduction`."""
    y = net.conv_bn_relu(x, inner * width, 1, name=f"{name}.conv1")
    y = net.conv_bn_relu(y, inner * width, 3, stride, 1, groups=groups, name=f"{name}.conv2")
    y = net.conv_bn(y, EXPANSION * width, 1, name=f"{name}.conv3")
    if reduction:
        y = squeeze_excite(net, y, EXPANSION * width // reduction, name=f"{name}.se")
    shortcut = _shortcut(net, x, EXPANSION * width, stride, name)
    return net.relu(net.sum(y, shortcut, name=f"{name}.add"), name=f"{name}.relu")


def _shortcut(net: Builder, x: str, channels: int, stride: int, name: str) -> str:
    """The identity, or a normalised 1 x 1 convolution where the width changes (type B)."""
    if net.channels(x) == channels:
        return x
    return net.conv_bn(x, channels, 1, stride, name=f"{name}.shortcut")


def _preactivation_bottleneck(net: Builder, x: str, width: int, stride: int, name: str) -> str:
    """Normalise and rectify, then 1 x 1 down, 3 x 3, 1 x 1 up.

    The very first block finds its input rectified already; where the width changes, the shortcut too reads the
    rectified input, through a bare 1 x 1 convolution.
    """
    widens = net.channels(x) != EXPANSION * width
    y = x if name == "layer1.0" else net.relu(net.batch_norm(x, name=f"{name}.bn"), name=f"{name}.relu")
    shortcut = net.conv(y, EXPANSION * width, 1, stride, bias=False, name=f"{name}.shortcut") if widens else x
    y = net.conv_bn_relu(y, width, 1, name=f"{name}.conv1")
    y = net.conv_bn_relu(y, width, 3, stride, 1, name=f"{name}.conv2")
    y = net.conv(y, EXPANSION * width, 1, bias=False, name=f"{name}.conv3")
    return net.sum(y, shortcut, name=f"{name}.add")
