"""Die area and cost of a what-if, scaled so that the base device has its published area, where there is one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from archsim.cost.area import die_area, die_parts, die_yield
from archsim.detect.catalog import find
from archsim.device.silicon import Die, silicon
from archsim.device.spec import Spec
from archsim.estimation.die import area_and_cost, area_scale, gpu_of, largest_area, with_own_area

MIB = 2.0**20


@dataclass(frozen=True, slots=True, kw_only=True)
class DieEstimate:
    """The die of a device: area and its `parts` [mm2], cost [USD], yield (`good`), and the published area of its base [mm2].

    largest: the area that one exposure covers, times the dies that the base is sold with [mm2]
    """

    area: float
    cost: float
    good: float
    parts: dict[str, float]
    published: float | None
    largest: float

    @property
    def feasible(self) -> bool:
        """Whether a mask can make it."""
        return self.area <= self.largest


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


def die_estimate(spec: Spec) -> DieEstimate:
    """The die of a device, scaled by the published area of the device that it was changed from."""
    origin, device = with_own_area(spec), gpu_of(spec)
    scale = area_scale(spec)
    area, cost = area_and_cost(device, scale)
    node = silicon().node(float(device.chip.node))
    published = gpu_of(origin).chip.area
    return DieEstimate(
        area=float(area[0]), cost=float(cost[0]), good=float(die_yield(float(area[0]), node, silicon().cluster)),
        parts={name: scale * float(part) for name, part in die_parts(device, silicon()).items()},
        published=None if published is None else float(published), largest=largest_area(spec),
    )  # fmt: skip


def die_checks() -> list[DieCheck]:
    """Every published die of the file beside the model, with all units of the full chip enabled."""
    return [_check(die) for die in silicon().dies]


def _check(die: Die) -> DieCheck:
    device = gpu_of(find(die.spec))
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
