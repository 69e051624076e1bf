"""The traffic model held to account: its closed forms beside simulated caches, product by product, and of all kernels by role."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from archsim.base.record import by_key
from archsim.cache.hierarchy import hierarchy_of
from archsim.cache.layers import launch_traffic, product_of
from archsim.cost.moved import MovedBytes
from archsim.device.device import PRECISION_BYTES, Gpu
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request, make_request
from archsim.estimation.traffic import closed_bytes, moved_by
from archsim.lower.kernel import GpuKernels

Tell = Callable[[str], None]

# --------------------------------------------------------------------------------------------- products of convolutions

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
    fast: bool | None = None, tell: Tell = lambda text: None, devices: Sequence[str] = DEVICES,
    networks: Sequence[str] = NETWORKS, layers: Sequence[str] = (),
) -> list[TrafficRow]:  # fmt: skip
    """The products of every convolution of these networks on these GPUs, or of some `layers`, forward, in fp32."""
    return [row for hardware, network in product(devices, networks) for row in _products(hardware, network, layers, fast, tell)]


def _products(hardware: str, network: str, layers: Sequence[str], fast: bool | None, tell: Tell) -> Iterator[TrafficRow]:
    request = make_request(network, hardware, batch=BATCH)
    result, device = run(request), request.device
    kernels, cost, choice = result.lowered.kernels, result.cost.variants, result.cost.choice
    assert isinstance(device, Gpu)
    assert isinstance(kernels, GpuKernels)
    assert cost is not None
    assert choice is not None
    hierarchy, element = hierarchy_of(device, int(device.sm.count)), PRECISION_BYTES[request.precision]
    dram, l2, resident = (np.broadcast_to(array, (1, len(kernels.m)))[0]
                          for array in (cost.dram_bytes, cost.cache_bytes, cost.terms.resident))  # fmt: skip
    for i, op in enumerate(request.trace.ops):
        if op.kind.op != "conv2d" or (layers and op.name not in layers):
            continue
        tell(f"{hardware} {network} {op.name}")
        for position in kernels.places(int(result.cost.option[0, int(result.lowered.plan_of[i])])):
            v, kernel = int(choice.variant[0, position]), kernels.kernels[position]
            if not kernels.matrix[v]:
                continue
            tile = int(kernels.tile_m[v]), int(kernels.tile_n[v])
            tiled, slots = product_of(op, kernel, tile, element), int(resident[v] * device.sm.count)
            seen = launch_traffic(tiled, slots, hierarchy, kernel.b_bytes, fast)
            yield TrafficRow(
                hardware=hardware, network=network, layer=op.name, kernel=kernel.name, tile=f"{tile[0]}x{tile[1]}",
                ctas=tiled.ctas, waves=tiled.ctas / slots, share=seen.share, accesses=seen.accesses, a_bytes=kernel.a_bytes,
                b_bytes=kernel.b_bytes, c_bytes=kernel.c_bytes, dram_model=float(dram[v]), dram_simulated=seen.dram_bytes,
                l2_model=float(l2[v]), l2_simulated=seen.l2_bytes,
            )  # fmt: skip


# -------------------------------------------------------------------------------------------------- all kernels by role

NEGLIGIBLE = 0.05  # of a kernel's tensors: traffic below that counts as this much on both sides
WORST = 3  # kernels of each role that are named
# the runs whose kernels are compared: task, stack or none for the usual one, device, networks
RUNS = (
    ("inference", None, "gtx_1080", "alexnet vgg_16 resnet_50 mobilenet_v2 lstm_ptb"),
    ("inference", None, "titan_x_maxwell", "alexnet vgg_16 resnet_50 mobilenet_v2 lstm_ptb"),
    ("training_step", None, "gtx_1080", "alexnet resnet_18"), ("inference", None, "gtx_1080", "bert_base"),
    ("inference", None, "i7_6700k", "alexnet vgg_16 resnet_50 lstm_ptb bert_base"),
    ("inference", "onnxruntime-cpu", "i7_6700k", "mobilenet_v2"),
    ("training_step", "caffe-openblas", "i7_6700k", "alexnet resnet_18"),
    ("inference", None, "xeon_e5_2630_v3_2s", "alexnet resnet_50"),
)  # fmt: skip
LEVELS: Mapping[str, Mapping[str, Callable[[MovedBytes], np.ndarray]]] = {
    "gpu": {"L2": lambda moved: moved.shared, "memory": lambda moved: moved.dram_read + moved.dram_written},
    "cpu": {"L1": lambda moved: moved.core, "last level": lambda moved: moved.shared,
            "memory": lambda moved: moved.dram_read + moved.dram_written},
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelDistance:
    """One kernel at one level: bytes of one launch by the closed form and by simulation; `tensors` are its tensors, once [B]."""

    device_kind: str
    hardware: str
    network: str
    task: str
    layer: str
    phase: str
    kernel: str
    role: str
    level: str
    tensors: float
    closed: float
    simulated: float

    @property
    def distance(self) -> float:
        """|closed / simulated - 1|, where neither counts as less than a share of the tensors."""
        least = max(NEGLIGIBLE * self.tensors, 1.0)
        return abs(max(self.closed, least) / max(self.simulated, least) - 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleDistance:
    """The distances of all kernels of a role at a level."""

    device_kind: str
    role: str
    level: str
    kernels: int
    median: float
    p90: float
    worst: tuple[KernelDistance, ...]


def runs() -> Iterator[Request]:
    """The runs whose kernels are compared."""
    for task, stack, hardware, networks in RUNS:
        for network in networks.split():
            yield make_request(network, hardware, batch=BATCH, task=task, stack=stack)


def kernel_distances(requests: Iterable[Request], tell: Tell = lambda text: None) -> Iterator[KernelDistance]:
    """Every different kernel of some runs at every level of its device."""
    for request in requests:
        hardware, device = request.spec.identity.id, request.device
        tell(f"{hardware} {request.network} {request.task}")
        result = run(request)
        kernels, cost, choice = result.lowered.kernels, result.cost.variants, result.cost.choice
        assert cost is not None
        assert choice is not None
        closed = closed_bytes(cost, kernels, device, 1)
        moved = moved_by(cost, choice, kernels, device, request.precision)
        for column, (level, of) in product(choice.ran[0].tolist(), LEVELS[device.kind].items()):
            kernel, op = kernels.kernels[int(kernels.kernel_of[column])], kernels.ops[int(kernels.nest.plan_of[column])]
            yield KernelDistance(
                device_kind=device.kind, hardware=hardware, network=request.network, task=request.task, layer=op.name,
                phase=op.phase, kernel=kernel.name, role=kernel.role.value, level=level,
                tensors=kernel.a_bytes + kernel.b_bytes + kernel.c_bytes, closed=float(of(closed)[0, column]),
                simulated=float(of(moved)[0, column]),
            )  # fmt: skip


def by_role(found: Iterable[KernelDistance]) -> list[RoleDistance]:
    """The distances by kind of device, role and level. A role whose kernels touch no tensor has none."""
    groups = by_key(((row.device_kind, row.role, row.level), row) for row in found if row.tensors > 0)
    rows = []
    for (kind, role, level), own in groups.items():
        median, p90 = np.quantile([row.distance for row in own], (0.5, 0.9)).tolist()
        worst = sorted(own, key=lambda row: (-row.distance, row.hardware, row.network, row.layer))[:WORST]
        rows.append(RoleDistance(device_kind=kind, role=role, level=level, kernels=len(own), median=median, p90=p90,
                                 worst=tuple(worst)))  # fmt: skip
    return sorted(rows, key=lambda row: (row.device_kind != "gpu", row.role, list(LEVELS[row.device_kind]).index(row.level)))
