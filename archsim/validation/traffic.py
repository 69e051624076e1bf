"""The traffic model held to account: its closed forms beside simulated caches, product by product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from archsim.cache.hierarchy import hierarchy_of
from archsim.cache.layers import launch_traffic, product_of
from archsim.device.device import PRECISION_BYTES, Gpu
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.lower.kernel import GpuKernels

DEVICES = ("gtx_1080", "titan_x_maxwell")
NETWORKS = ("alexnet", "vgg_16")
BATCH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRow:
    """One product of one layer: bytes of one launch by the model and by simulation. `share` of its CTAs were simulated."""

    hardware: str
    network: str
    layer: str
    kernel: str
    tile: str
    ctas: int
    waves: float
    share: float
    accesses: int
    a_bytes: float
    b_bytes: float
    c_bytes: float
    dram_model: float
    dram_simulated: float
    l2_model: float
    l2_simulated: float

    @property
    def dram_error(self) -> float:
        """Model over simulation, less one."""
        return self.dram_model / self.dram_simulated - 1.0

    @property
    def l2_error(self) -> float:
        """The same of the traffic between processors and L2."""
        return self.l2_model / self.l2_simulated - 1.0


def compare(
    fast: bool | None = None, tell: Callable[[str], None] | None = None, devices: Sequence[str] = DEVICES,
    networks: Sequence[str] = NETWORKS, layers: Sequence[str] = (), batch: int = BATCH,
) -> list[TrafficRow]:  # fmt: skip
    """The products of every convolution of these networks on these GPUs, or of some `layers`, forward, in fp32."""
    rows = []
    for hardware in devices:
        for network in networks:
            rows += _network(hardware, network, layers, batch, fast, tell)
    return rows


def _network(
    hardware: str, network: str, layers: Sequence[str], batch: int, fast: bool | None, tell: Callable[[str], None] | None
) -> list[TrafficRow]:
    request = make_request(network, hardware, batch=batch)
    result, device = run(request), request.device
    assert isinstance(device, Gpu)
    kernels, cost, choice = result.lowered.kernels, result.cost.variants, result.cost.choice
    assert cost is not None
    assert choice is not None
    assert isinstance(kernels, GpuKernels)
    hierarchy, element = hierarchy_of(device, int(device.sm.count)), PRECISION_BYTES[request.precision]
    columns = {"dram": cost.dram_bytes, "l2": cost.cache_bytes, "resident": cost.terms.resident}
    model = {name: np.broadcast_to(array, (1, len(kernels.m)))[0] for name, array in columns.items()}
    rows = []
    for i, op in enumerate(request.trace.ops):
        if op.kind.op != "conv2d" or (layers and op.name not in layers):
            continue
        if tell is not None:
            tell(f"{hardware} {network} {op.name}")
        option = int(result.cost.option[0, int(result.lowered.plan_of[i])])
        first = int(kernels.option_start[option])
        for position in range(first, first + len(kernels.options[option].kernels)):
            v, kernel = int(choice.variant[0, position]), kernels.kernels[position]
            if not kernels.matrix[v]:
                continue
            tile = int(kernels.tile_m[v]), int(kernels.tile_n[v])
            product, slots = product_of(op, kernel, tile, element), int(model["resident"][v] * device.sm.count)
            seen = launch_traffic(product, slots, hierarchy, kernel.b_bytes, fast)
            rows.append(TrafficRow(
                hardware=hardware, network=network, layer=op.name, kernel=kernel.name, tile=f"{tile[0]}x{tile[1]}",
                ctas=product.ctas, waves=product.ctas / slots, share=seen.share, accesses=seen.accesses, a_bytes=kernel.a_bytes,
                b_bytes=kernel.b_bytes, c_bytes=kernel.c_bytes, dram_model=float(model["dram"][v]),
                dram_simulated=seen.dram_bytes, l2_model=float(model["l2"][v]), l2_simulated=seen.l2_bytes,
            ))  # fmt: skip
    return rows


def median_error(errors: Sequence[float]) -> float:
    """Median of the absolute errors."""
    return float(np.median(np.abs(errors)))
