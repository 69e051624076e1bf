"""The area of a changed device's die, scaled so that the device it was changed from has its published area, where there is one.

An estimate: the model of areas is good to some ten per cent (`archsim.cost.area`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from archsim.base.errors import Unsupported
from archsim.cost.area import die_area, die_cost
from archsim.cost.cost import Array
from archsim.device.catalog import is_shipped
from archsim.device.device import Gpu
from archsim.device.silicon import silicon
from archsim.device.spec import Spec
from archsim.device.variant import same_value

OUTPUTS = ("area_mm2", "cost_usd", "one_die")


def with_own_area(spec: Spec) -> Spec:
    """The device that a spec was changed from whose file states the area of its die: what is inherited is of the parent's chip.

    >>> from archsim.device.catalog import find
    >>> with_own_area(find("gtx_1080").with_settings({"sm.count": "80"})).identity.id
    'gtx_1080'
    """
    while spec.base is not None and same_value(*(one.entries.get("chip.area") for one in (spec, spec.base))):
        spec = spec.base
    return spec


def area_scale(spec: Spec) -> float:
    """Published area / modelled area of the chip that a device was changed from; 1 where no area is published.

    Raises Unsupported for a CPU, and for a process node of which nothing is known.

    >>> from archsim.device.catalog import find
    >>> 0.7 < area_scale(find("gtx_1080")) < 1.4
    True
    """
    device = gpu_of(with_own_area(spec))
    return _area(device) / float(die_area(device, silicon()))


def _area(device: Gpu) -> float:
    """The area of a die as it was published, or as it is modelled [mm2]."""
    return float(die_area(device, silicon()) if device.chip.area is None else device.chip.area)


def largest_area(spec: Spec) -> float:
    """The largest area that masks can make of a device [mm2]: one exposure, or two where the shipped device that it was changed
    from is sold as two dies.

    >>> from archsim.device.catalog import find
    >>> largest_area(find("gtx_1080")), largest_area(find("b200_sxm"))
    (858.0, 1716.0)
    """
    while spec.base is not None:
        spec = spec.base
    return silicon().field * (math.ceil(_area(gpu_of(spec)) / silicon().field) if is_shipped(spec) else 1)


def area_and_cost(device: Gpu, scale: float) -> tuple[Array, Array]:
    """Area [mm2] and cost [USD] of D variants, each [D]. Each process node is computed apart, because it is a row of a file.

    >>> from archsim.device.catalog import find
    >>> area, cost = area_and_cost(gpu_of(find("gtx_1080")), area_scale(find("gtx_1080")))
    >>> area.round().tolist()  # the published die of GP104 [mm2]
    [314.0]
    """
    nodes, which = np.unique(np.ravel(np.asarray(device.chip.node, dtype=float)), return_inverse=True)
    found: list[tuple[Array, Array]] = []
    for size in nodes.tolist():
        one = replace(device, chip=replace(device.chip, node=size))
        area = scale * np.ravel(np.asarray(die_area(one, silicon()), dtype=float))
        found.append((area, np.asarray(die_cost(area, silicon().node(size), silicon()))))
    if len(nodes) == 1:
        return found[0]
    columns = np.stack([np.broadcast_arrays(*pair, which)[:-1] for pair in found])  # [nodes, 2, D]
    areas, costs = columns[which, :, np.arange(which.size)].T
    return areas, costs


def die_columns(spec: Spec, columns: Mapping[str, Array], count: int) -> dict[str, Array]:
    """Area [mm2], cost [USD], and whether masks can make it (1 or 0), of `count` what-ifs, each [D], by the names in `OUTPUTS`.

    columns: spec keys in base units, each [D]. Empty where the die is not modelled: a CPU, a process node without figures.
    """
    try:
        scale, largest = area_scale(spec), largest_area(spec)
        numbers = {key: np.asarray(column, dtype=float)[:, None] for key, column in columns.items()}
        area, cost = area_and_cost(gpu_of(spec.with_values(numbers) if numbers else spec), scale)
    except Unsupported:
        return {}
    found = (area, cost, (area <= largest).astype(float))
    return {name: np.broadcast_to(column, (count,)) for name, column in zip(OUTPUTS, found, strict=True)}


def moves_area(spec: Spec, key: str) -> bool:
    """Whether a number of a device moves the area of its die.

    >>> from archsim.device.catalog import find
    >>> [moves_area(find("gtx_1080"), key) for key in ("rate.fp64", "memory.data_rate", "clock.base")]
    [True, False, False]
    """
    entry = spec.entries.get(key)
    if entry is None or isinstance(entry.value, str):
        return False
    before, after = (die_columns(one, {}, 1) for one in (spec, spec.with_values({key: 2.0 * entry.number})))
    return bool(before and after and before["area_mm2"][0] != after["area_mm2"][0])


def too_large(spec: Spec) -> str:
    """What is to be said of a device whose die no mask can make; empty for any other."""
    found = die_columns(spec, {}, 1)
    if not found or found["one_die"][0]:
        return ""
    return (f"no mask can make it as one die: about {float(found['area_mm2'][0]):.0f} mm2, and one exposure covers "
            f"{silicon().field:.0f} mm2")  # fmt: skip


def gpu_of(spec: Spec) -> Gpu:
    """The device of a spec. Raises Unsupported for a CPU."""
    if not isinstance(spec.device, Gpu):
        raise Unsupported(f"area: modelled for GPUs only, and {spec.identity.id} is a {spec.kind}")
    return spec.device
