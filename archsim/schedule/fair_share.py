"""Max-min fair shares of resources that several flows use at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Demand = tuple[tuple[str, float], ...]  # (resource, how much of it a flow takes for each unit of its own rate)

TINY = 1e-12  # of a capacity: what rounding leaves of a resource that is used up


def max_min(demands: Sequence[Demand], caps: Sequence[float], capacity: Mapping[str, float]) -> list[float]:
    """The max-min fair rates: no flow can get more without taking from a flow that has no more than it.

    Progressive filling (Bertsekas and Gallager 1992, Data Networks, section 6.5.2): all rates rise together; a flow stops at its
    cap, or where a resource of its demand is used up.

    demands: for each of F flows the units of each resource that one unit of its rate takes
    caps: rate of each flow alone, [F]
    capacity: units per second of each resource; a resource without an entry has no limit

    Two flows share a link of capacity 4; the first can use only 1 of it:

    >>> max_min([(("link", 1.0),), (("link", 1.0),)], [1.0, 9.0], {"link": 4.0})
    [1.0, 3.0]
    """
    rates = [0.0] * len(caps)
    left = dict(capacity)
    rising = [i for i, cap in enumerate(caps) if cap > 0]
    while rising:
        pull: dict[str, float] = {}
        for i in rising:
            for resource, weight in demands[i]:
                if weight > 0 and resource in left:
                    pull[resource] = pull.get(resource, 0.0) + weight
        step = min([caps[i] - rates[i] for i in rising])
        for resource, weight in pull.items():
            if left[resource] < step * weight:
                step = left[resource] / weight
        spent = set()
        for resource, weight in pull.items():
            left[resource] = max(0.0, left[resource] - step * weight)
            if left[resource] <= TINY * capacity[resource]:
                spent.add(resource)
        still = []
        for i in rising:
            rates[i] += step
            if rates[i] < caps[i] * (1 - TINY):
                for resource, weight in demands[i]:
                    if resource in spent and weight > 0:
                        break
                else:
                    still.append(i)
        rising = still
    return rates
