"""The closed forms of the traffic beside simulated caches, for every kernel of some runs, by role and level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from archsim.cost.moved import MovedBytes
from archsim.device.device import Gpu
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.estimation.traffic import closed_bytes, moved_by

NEGLIGIBLE = 0.05  # of a kernel's tensors: traffic below that counts as this much on both sides
WORST = 3  # kernels of each role that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficCase:
    """A run whose kernels are compared."""

    hardware: str
    network: str
    task: str = "inference"
    batch: int = 16
    stack: str | None = None


CASES = tuple([
    TrafficCase(hardware=hw, network=net, task=task, stack=stack)
    for hw, net, task, stack in (
        *[(hw, net, "inference", None) for hw in ("gtx_1080", "titan_x_maxwell")
          for net in ("alexnet", "vgg_16", "resnet_50", "mobilenet_v2", "lstm_ptb")],
        ("gtx_1080", "alexnet", "training_step", None), ("gtx_1080", "resnet_18", "training_step", None),
        ("gtx_1080", "bert_base", "inference", None),
        *[("i7_6700k", net, "inference", None) for net in ("alexnet", "vgg_16", "resnet_50", "lstm_ptb", "bert_base")],
        ("i7_6700k", "mobilenet_v2", "inference", "onnxruntime-cpu"), ("i7_6700k", "alexnet", "training_step", "caffe-openblas"),
        ("i7_6700k", "resnet_18", "training_step", "caffe-openblas"),
        *[("xeon_e5_2630_v3_2s", net, "inference", None) for net in ("alexnet", "resnet_50")],
    )
])  # fmt: skip


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


LEVELS: Mapping[str, Mapping[str, Callable[[MovedBytes], np.ndarray]]] = {
    "gpu": {"L2": lambda moved: moved.shared, "memory": lambda moved: moved.dram_read + moved.dram_written},
    "cpu": {"L1": lambda moved: moved.core, "last level": lambda moved: moved.shared,
            "memory": lambda moved: moved.dram_read + moved.dram_written},
}  # fmt: skip


def kernel_distances(
    cases: Sequence[TrafficCase] = CASES, tell: Callable[[str], None] | None = None
) -> list[KernelDistance]:
    """Every different kernel of these runs at every level of its device."""
    found: list[KernelDistance] = []
    for case in cases:
        if tell is not None:
            tell(f"{case.hardware} {case.network} {case.task}")
        found += _of(case)
    return found


def _of(case: TrafficCase) -> list[KernelDistance]:
    request = make_request(case.network, case.hardware, batch=case.batch, task=case.task, stack=case.stack)
    result, device = run(request), request.device
    kernels, cost, choice = result.lowered.kernels, result.cost.variants, result.cost.choice
    assert cost is not None
    assert choice is not None
    closed = closed_bytes(cost, kernels, device, 1)
    moved = moved_by(cost, choice, kernels, device, request.precision)
    kind = "gpu" if isinstance(device, Gpu) else "cpu"
    rows = []
    for column in choice.ran[0].tolist():
        kernel, op = kernels.kernels[int(kernels.kernel_of[column])], kernels.ops[int(kernels.nest.plan_of[column])]
        for level, of in LEVELS[kind].items():
            rows.append(KernelDistance(
                device_kind=kind, hardware=case.hardware, network=case.network, task=case.task, layer=op.name, phase=op.phase,
                kernel=kernel.name, role=kernel.role.value, level=level,
                tensors=kernel.a_bytes + kernel.b_bytes + kernel.c_bytes, closed=float(of(closed)[0, column]),
                simulated=float(of(moved)[0, column]),
            ))  # fmt: skip
    return rows


def by_role(found: Sequence[KernelDistance]) -> list[RoleDistance]:
    """The distances by kind of device, role and level; the roles with the largest distance to memory first.

    A role whose kernels touch no tensor has none.
    """
    groups: dict[tuple[str, str, str], list[KernelDistance]] = {}
    for row in found:
        if row.tensors > 0:
            groups.setdefault((row.device_kind, row.role, row.level), []).append(row)
    rows = []
    for (kind, role, level), own in groups.items():
        distances = np.array([row.distance for row in own])
        worst = sorted(own, key=lambda row: (-row.distance, row.hardware, row.network, row.layer))[:WORST]
        rows.append(RoleDistance(device_kind=kind, role=role, level=level, kernels=len(own), median=float(np.median(distances)),
                                 p90=float(np.quantile(distances, 0.9)), worst=tuple(worst)))  # fmt: skip
    return sorted(rows, key=lambda row: (row.device_kind != "gpu", row.role, list(LEVELS[row.device_kind]).index(row.level)))


FIELDS = tuple(field.name for field in fields(KernelDistance))
