"""Power at the wall: what stands beside the devices of a computer, and what its power supply loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

LOADS = (0.1, 0.2, 0.5, 1.0)  # of the rating, at which the classes of 80 PLUS are defined


def supply_loss(output: float, rating: float, efficiencies: Sequence[float]) -> float:
    """What a power supply loses at a load [W].

    rating loss(output / rating), loss(u) = u (1 / efficiency(u) - 1) in straight lines between the loads of 80 PLUS

    output: what all parts take [W]; rating: of all supplies that share it [W]
    efficiencies: at 10, 20, 50 and 100 % of the rating
    Below the first load the loss stays what it is there: that of a supply with nothing to feed; above the last, its efficiency.

    Source: 80 PLUS, test points and least efficiencies of its classes (CLEAResult).

    >>> round(supply_loss(500.0, 1000.0, (0.83, 0.9, 0.94, 0.91)), 2)
    31.91
    """
    losses = [load * (1.0 / efficiency - 1.0) for load, efficiency in zip(LOADS, efficiencies, strict=True)]
    load = output / rating
    if load > LOADS[-1]:
        return output * (1.0 / efficiencies[-1] - 1.0)
    return rating * float(np.interp(load, LOADS, losses))


def host_power(idle: float, tdp: float, sockets: float, busy_cores: float, cores: float) -> float:
    """Power of the host's packages [W].

    sockets (idle + (tdp - idle) min(1, busy / all))

    idle, tdp: of a package [W]; busy_cores, cores: at work, and of all packages

    >>> host_power(65.0, 225.0, 2.0, 8.0, 128.0)
    150.0
    """
    return sockets * (idle + (tdp - idle) * min(1.0, busy_cores / cores))


def at_the_wall(
    parts_w: Mapping[str, float], fans: float, rating: float, efficiencies: Sequence[float]
) -> dict[str, float]:
    """Power of every part of a computer at its plug [W]: the parts, then `fans` and `supply`; their sum is what a meter shows.

    fans = share x sum of parts; supply = loss(parts + fans)

    parts_w: what each part takes [W]; fans: share of them that fans and converters take
    rating: of all supplies that share the load [W]; efficiencies: at 10, 20, 50 and 100 % of it

    >>> found = at_the_wall({"devices": 400.0, "host": 100.0}, 0.1, 1000.0, (0.83, 0.9, 0.94, 0.91))
    >>> found["fans"], round(sum(found.values()), 1)
    (50.0, 588.6)
    """
    fed = sum(parts_w.values())
    moved = fans * fed
    return {**parts_w, "fans": moved, "supply": supply_loss(fed + moved, rating, efficiencies)}
