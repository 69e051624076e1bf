"""Convolutional networks with parts of transformers: ConvNeXt, whose blocks are made like theirs, and MobileViT, inverted
residuals and transformers over the pixels that stand at the same place of patches.
"""

from __future__ import annotations

from archsim.trace.kinds.activation import Gelu, Silu
from archsim.trace.kinds.attention import Attention
from archsim.trace.kinds.dense import Linear
from archsim.trace.kinds.normalise import LayerNorm
from archsim.trace.kinds.pointwise import Scale
from archsim.trace.trace import Trace
from archsim.trace.zoo.blocks import Inverted, inverted_residual
from archsim.trace.zoo.builder import Builder

LIU = "Z. Liu et al., A ConvNet for the 2020s, arXiv:2201.03545, table 9; torchvision convnext.py"
TINY = ((96, 3), (192, 3), (384, 9), (768, 3))  # (channels, blocks)


def convnext_tiny() -> Trace:
    """Channels stand last for norms and linear layers, first for convolutions; copies lead from one to the other."""
    net = Builder("convnext_tiny", LIU, {"data": ("N", 3, 224, 224)}, notes="no block is skipped at random in training")
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


MEHTA = "S. Mehta and M. Rastegari, MobileViT, arXiv:2110.02178, table 4 (S); apple/ml-cvnets, mobilevit.py"
EXPANSION, HEADS, PATCH = 4, 4, 2

# (channels of the halving block, width, hidden units and number of transformers behind it)
MOBILEVIT_S = (96, 144, 288, 2), (128, 192, 384, 4), (160, 240, 480, 3)


def mobilevit_s() -> Trace:
    """Images of 256 x 256 as the paper has them; three stages of convolutions, three with transformers."""
    net = Builder("mobilevit_s", MEHTA, {"data": ("N", 3, 256, 256)})
    x = _conv(net, "data", 16, 3, 2, 1, name="stem")
    for number, (channels, stride) in enumerate(((32, 1), (64, 2), (64, 1), (64, 1)), 1):
        x = _inverted(net, x, channels, stride, f"block{number}")
    for stage, (channels, width, hidden, count) in enumerate(MOBILEVIT_S, 3):
        x = _inverted(net, x, channels, 2, f"stage{stage}.half")
        x = _transformers(net, x, width, hidden, count, f"stage{stage}")
    x = net.global_avg_pool(_conv(net, x, 4 * net.channels(x), 1, name="last"), name="pool")
    net.softmax(net.linear(net.dropout(x, 0.1, name="drop"), 1000, name="fc"))
    return net.trace(aliases=("mobilevit_small",))


def _conv(net: Builder, x: str, channels: int, kernel: int, stride: int = 1, pad: int = 0, *, name: str) -> str:
    return net.activate(net.conv_bn(x, channels, kernel, stride, pad, name=name), Silu(), name=name)


def _inverted(net: Builder, x: str, channels: int, stride: int, name: str) -> str:
    block = Inverted(kernel=3, wide=EXPANSION * net.channels(x), channels=channels, stride=stride, active=Silu())
    return inverted_residual(net, x, block, name)


def _transformers(net: Builder, x: str, width: int, hidden: int, count: int, name: str) -> str:
    """Figure 1b: a convolution, transformers over patches, and a convolution over what came in and what comes out."""
    _, channels, height, side = net.shape(x)
    rows, columns = height // PATCH, side // PATCH
    y = net.conv(_conv(net, x, channels, 3, 1, 1, name=f"{name}.local"), width, 1, bias=False, name=f"{name}.widen")
    y = net.reshape(y, ("N", width, rows, PATCH, columns, PATCH), name=f"{name}.patches")
    y = net.transpose(y, 0, 3, 5, 2, 4, 1, name=f"{name}.unfold")
    y = net.reshape(y, (f"{PATCH**2}*N", rows * columns, width), name=f"{name}.tokens")
    for number in range(1, count + 1):
        y = _transformer(net, y, width, hidden, f"{name}.{number}")
    y = net.reshape(
        net.add(LayerNorm(), y, name=f"{name}.norm"), ("N", PATCH, PATCH, rows, columns, width), name=f"{name}.places"
    )
    y = net.reshape(net.transpose(y, 0, 5, 3, 1, 4, 2, name=f"{name}.fold"), ("N", width, height, side), name=f"{name}.image")
    y = net.concat(x, _conv(net, y, channels, 1, name=f"{name}.narrow"), name=f"{name}.concat")
    return _conv(net, y, channels, 3, 1, 1, name=f"{name}.fuse")


def _transformer(net: Builder, x: str, width: int, hidden: int, at: str) -> str:
    """Attention and two linear layers, each on the normalised input and added to it."""
    packed = net.linear(net.add(LayerNorm(), x, name=f"{at}.norm1"), 3 * width, name=f"{at}.qkv")
    attended = net.linear(net.add(Attention(heads=HEADS), packed, name=f"{at}.attention"), width, name=f"{at}.output")
    x = net.sum(x, attended, name=f"{at}.add1")
    wide = net.linear(net.add(LayerNorm(), x, name=f"{at}.norm2"), hidden, name=f"{at}.mlp1")
    return net.sum(x, net.linear(net.activate(wide, Silu(), name=wide), width, name=f"{at}.mlp2"), name=f"{at}.add2")
