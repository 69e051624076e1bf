"""What each resource is worth: the costs of kernels if one of them served faster, all else as it is.

The kernels stay the ones that were chosen. Under a power limit their clock settles anew, because faster kernels draw more power.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from archsim.calibration.constants import Calibration
from archsim.cost.bounds import POWER
from archsim.cost.cost import LAUNCH, Array, Cost
from archsim.cost.power import slowed, sustained_share
from archsim.device.device import Device

FASTER = 1.2  # how much faster the resource serves. A choice: less would not show what steps hide, more is another machine.


def relief(
    cost: Cost, device: Device, precision: str, limit: Array | float | None, constants: Calibration, factor: float = FASTER
) -> Mapping[str, Cost]:
    """The costs with each bound in turn served `factor` times as fast, by the name of the bound; each [D, V].

    cost: of one launch of every variant; `cost.share` says at which share of the highest clock
    limit: of power [W], a float or [D, 1]; with one, `power` is the limit raised by the factor. None: nothing lowers the clock
    factor: how many times as fast [1]

    >>> import numpy as np
    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> one = np.ones((1, 1))
    >>> cost = Cost(bounds={"compute": 3 * one, "dram": 4 * one}, busy_s=5 * one, overhead_s=one, dram_bytes=one, cache_bytes=one)
    >>> times = relief(cost, find("gtx_1080").device, "fp32", None, default(), 2.0)
    >>> {name: round((after.busy_s + after.overhead_s).item(), 2) for name, after in times.items()}
    {'compute': 5.27, 'dram': 4.61, 'launch': 5.5}
    """
    names = (*cost.bounds, LAUNCH)
    if limit is None:
        return {name: eased(cost, name, factor) for name in names}
    full = slowed(cost, 1.0 / cost.share)

    def settled(one: Cost, limit: Array | float) -> Cost:
        return slowed(one, sustained_share(one, device, precision, one.clock, limit, constants))

    return {**{name: settled(eased(full, name, factor), limit) for name in names}, POWER: settled(full, limit * factor)}


def eased(cost: Cost, name: str, factor: float) -> Cost:
    """The costs with one bound served `factor` times as fast, or with launches that take 1/factor of their time.

    t = (b_1^q + ... + (b_name / factor)^q + ...)^(1/q) + t_overhead [s], [D, V]

    cost: of one launch of every variant; name: of the bound; factor: how many times as fast [1]

    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> cost = Cost(bounds={"compute": 3 * one, "dram": 8 * one}, busy_s=73**0.5 * one, overhead_s=one, dram_bytes=one,
    ...             cache_bytes=one)
    >>> eased(cost, "dram", 2.0).busy_s.item(), eased(cost, "launch", 2.0).overhead_s.item()
    (5.0, 0.5)
    """
    if name == LAUNCH:
        return replace(cost, overhead_s=cost.overhead_s / factor)
    return cost.served({**cost.bounds, name: cost.bounds[name] / factor})
