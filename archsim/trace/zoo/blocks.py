"""Blocks that several families of networks share: squeeze and excitation, inverted residuals, the shuffling of channels."""

from __future__ import annotations

from dataclasses import dataclass

from archsim.trace.kind import Kind
from archsim.trace.kinds.activation import Relu, Sigmoid
from archsim.trace.zoo.builder import Builder

HU = "J. Hu et al., Squeeze-and-Excitation Networks, arXiv:1709.01507"


def squeeze_excite(
    net: Builder, x: str, squeezed: int, *, active: Kind | None = None, gate: Kind | None = None, name: str
) -> str:
    """Each channel times a gate from the means of all: two layers with `squeezed` values between (Hu et al., figure 3)."""
    y = net.global_avg_pool(x, name=f"{name}.squeeze")
    y = net.activate(net.conv(y, squeezed, 1, name=f"{name}.reduce"), active or Relu(), name=f"{name}.reduce")
    y = net.activate(net.conv(y, net.channels(x), 1, name=f"{name}.excite"), gate or Sigmoid(), name=f"{name}.excite")
    return net.product(x, y, name=f"{name}.scale")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inverted:
    """One inverted residual: `wide` channels inside, `squeezed` ones in its gate (0: no gate)."""

    kernel: int
    wide: int
    channels: int
    stride: int
    active: Kind
    squeezed: int = 0
    squeeze_active: Kind | None = None
    gate: Kind | None = None


def inverted_residual(net: Builder, x: str, block: Inverted, name: str) -> str:
    """1 x 1 up, depthwise, gate, 1 x 1 down without activation; added to the input where the shapes agree (Sandler et al.)."""
    y = x
    if block.wide != net.channels(x):
        y = net.activate(net.conv_bn(y, block.wide, 1, name=f"{name}.expand"), block.active, name=f"{name}.expand")
    y = net.conv_bn(y, block.wide, block.kernel, block.stride, block.kernel // 2, groups=block.wide, name=f"{name}.depthwise")
    y = net.activate(y, block.active, name=f"{name}.depthwise")
    if block.squeezed:
        y = squeeze_excite(net, y, block.squeezed, active=block.squeeze_active, gate=block.gate, name=f"{name}.se")
    y = net.conv_bn(y, block.channels, 1, name=f"{name}.project")
    return net.sum(x, y, name=f"{name}.add") if block.stride == 1 and net.channels(x) == block.channels else y


def shuffled(net: Builder, x: str, groups: int, name: str) -> str:
    """Channel shuffle: the i-th channels of all groups side by side (Zhang et al. 2018, ShuffleNet, figure 1)."""
    _, channels, height, width = net.shape(x)
    y = net.reshape(x, ("N", groups, channels // groups, height, width), name=f"{name}.grouped")
    y = net.transpose(y, 0, 2, 1, 3, 4, name=f"{name}.shuffle")
    return net.reshape(y, ("N", channels, height, width), name=f"{name}.shuffled")


def divisible(channels: float, by: int = 8) -> int:
    """The nearest multiple of `by`, not below nine tenths of the value, as published code of mobile networks rounds widths.

    >>> divisible(12), divisible(35.2), divisible(19)
    (16, 32, 24)
    """
    nearest = max(by, int(channels + by / 2) // by * by)
    return nearest + by if nearest < 0.9 * channels else nearest
