"""Die area and cost of a what-if, scaled so that the base device has its published area, where there is one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from archsim.base.errors import Unsupported
from archsim.cost.area import LARGEST_DIE, die_area, die_cost, die_parts, die_yield
from archsim.cost.cost import Array
from archsim.detect.catalog import find
from archsim.device.device import Gpu
from archsim.device.silicon import Die, silicon
from archsim.device.spec import Spec

MIB = 2.0**20


@dataclass(frozen=True, slots=True, kw_only=True)
class DieEstimate:
    """The die of a device: area and its `parts` [mm2], cost [USD], yield (`good`), and the published area of its base [mm2]."""

    area: float
    cost: float
    good: float
    parts: dict[str, float]
    published: float | None

    @property
    def feasible(self) -> bool:
        """Whether it fits the field of one exposure."""
        return self.area <= LARGEST_DIE


@dataclass(frozen=True, slots=True, kw_only=True)
class DieCheck:
    """A published die beside the model [mm2]."""

    name: str
    spec: str
    node: str
    published: float
    predicted: float

    @property
    def error(self) -> float:
        """predicted / published - 1."""
        return self.predicted / self.published - 1.0


def area_scale(base: Spec) -> float:
    """Published area / modelled area of the base device; 1 where no area is published. Raises Unsupported for a CPU.

    >>> 0.7 < area_scale(find("gtx_1080")) < 1.4
    True
    """
    device = _gpu(base)
    return 1.0 if device.chip.area is None else float(device.chip.area) / float(die_area(device, silicon()))


def area_and_cost(device: Gpu, scale: float) -> tuple[Array, Array]:
    """Area [mm2] and cost [USD] of D variants, each [D]. Each process node is computed apart, because it is a row of a file.

    >>> area, cost = area_and_cost(_gpu(find("gtx_1080")), area_scale(find("gtx_1080")))
    >>> area.round().tolist()  # the published die of GP104 [mm2]
    [314.0]
    """
    sizes = np.ravel(np.asarray(device.chip.node, dtype=float))
    found = [_of_one_node(replace(device, chip=replace(device.chip, node=size)), scale) for size in np.unique(sizes).tolist()]
    if len(found) == 1:
        return found[0]
    which = np.searchsorted(np.unique(sizes), sizes)
    areas, costs = (np.stack(np.broadcast_arrays(*columns, sizes)[:-1]) for columns in zip(*found, strict=True))
    points = np.arange(sizes.size)
    return areas[which, points], costs[which, points]


def _of_one_node(device: Gpu, scale: float) -> tuple[Array, Array]:
    node = silicon().node(float(np.ravel(device.chip.node)[0]))
    area = scale * np.ravel(np.asarray(die_area(device, silicon()), dtype=float))
    return area, np.asarray(die_cost(area, node, silicon()))


def die_estimate(base: Spec, changed: Spec) -> DieEstimate:
    """The die of `changed`, a what-if on `base`; if it is another chip, the scale is that of its own published area."""
    same = base.identity.id == changed.identity.id
    origin = base if same else find(changed.identity.id)
    scale, device = area_scale(origin), _gpu(changed)
    area, cost = area_and_cost(device, scale)
    node = silicon().node(float(device.chip.node))
    published = _gpu(origin).chip.area
    return DieEstimate(
        area=float(area[0]), cost=float(cost[0]), good=float(die_yield(float(area[0]), node, silicon().cluster)),
        parts={name: scale * float(part) for name, part in die_parts(device, silicon()).items()},
        published=None if published is None else float(published),
    )  # fmt: skip


def die_checks() -> list[DieCheck]:
    """Every published die of the file beside the model, with all units of the full chip enabled."""
    return [_check(die) for die in silicon().dies]


def _check(die: Die) -> DieCheck:
    device = _gpu(find(die.spec))
    assert device.chip.area is not None
    sm = device.sm if die.sms is None else replace(device.sm, count=float(die.sms))
    l2 = device.l2 if die.l2_mib is None else replace(device.l2, size=die.l2_mib * MIB)
    memory = device.memory
    if die.pins is not None and memory.bus is not None:
        memory = replace(memory, bandwidth=memory.bandwidth * die.pins / memory.bus)
    whole = replace(device, sm=sm, l2=l2, memory=memory)
    node = silicon().node(float(device.chip.node))
    return DieCheck(name=die.name, spec=die.spec, node=node.name, published=float(device.chip.area),
                 predicted=float(die_area(whole, silicon())))  # fmt: skip


def _gpu(spec: Spec) -> Gpu:
    if not isinstance(spec.device, Gpu):
        raise Unsupported(f"area: modelled for GPUs only, and {spec.identity.id} is a {spec.kind}")
    return spec.device
