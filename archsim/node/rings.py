"""The rings of a collective: over direct links between devices where these close a ring, else over switches and sockets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, permutations

from archsim.node.node import Node, hop

Ring = tuple[str, ...]
LARGEST = 8  # devices among which all rings are tried; more are taken in order


def rings(node: Node, devices: int) -> list[Ring]:
    """Rings through the first `devices` devices, no two over the same direct link; bytes run in both directions of each.

    NCCL builds rings so over NVLink. Where direct links close none, there is one ring in the order of the devices, whose hops are
    paths over switches and sockets. Up to 8 devices all rings are tried; the result has the most disjoint ones.

    >>> from archsim.node.spec import find
    >>> [len(rings(find(name).node, 8)) for name in ("dgx_1_v100", "dgx_1_p100", "deepbench_8gpu")]
    [3, 2, 1]
    """
    gpus = tuple(node.gpus[:devices])
    direct = Counter({
        frozenset((one, other)): count for one, other, _, count in node.links if one in gpus and other in gpus
    })  # fmt: skip
    if devices == 2 and direct:
        return [gpus] * direct[frozenset(gpus)]
    if devices > LARGEST or not direct:
        return [gpus]
    return list(_most_rings(gpus, tuple(sorted((tuple(sorted(edge)), count) for edge, count in direct.items())))) or [gpus]


@lru_cache(maxsize=64)
def _most_rings(gpus: Ring, direct: tuple[tuple[tuple[str, ...], int], ...]) -> tuple[Ring, ...]:
    left = Counter({frozenset(edge): count for edge, count in direct})
    most = min(sum(count for edge, count in left.items() if gpu in edge) for gpu in gpus) // 2
    found = [(gpus[0], *rest) for rest in permutations(gpus[1:]) if rest[0] < rest[-1]]
    closed = [ring for ring in found if all(left[edge] for edge in _edges(ring))]
    return _disjoint(closed, 0, left, most)


def _disjoint(rings: Sequence[Ring], begin: int, left: Counter[frozenset[str]], most: int) -> tuple[Ring, ...]:
    """As many of the rings from `begin` on as the links that are left allow, `most` at most; a ring may be taken twice."""
    best: tuple[Ring, ...] = ()
    for i in range(begin, len(rings)):
        edges = _edges(rings[i])
        if all(left[edge] for edge in edges):
            left.subtract(edges)
            found = (rings[i], *_disjoint(rings, i, left, most - 1)) if most > 1 else (rings[i],)
            left.update(edges)
            if len(found) > len(best):
                best = found
            if len(best) == most:
                break
    return best


def _edges(ring: Ring) -> list[frozenset[str]]:
    return [frozenset(pair) for pair in pairwise((*ring, ring[0]))]


def ring_demand(node: Node, devices: int) -> Mapping[str, float]:
    """Capacity of each hop that a collective takes for each byte that passes every device [B], keyed by `hop`.

    The bytes are shared evenly among all rings and both directions; on each hop a byte takes `Node.ring_cost`.

    >>> from archsim.node.spec import find
    >>> demand = ring_demand(find("desktop_2gpu").node, 2)
    >>> round(demand["gpu0 > cpu0"], 3)  # half of the bytes in each of two directions, both over this hop: 0.76 / 0.6
    1.267
    """
    found, cost = rings(node, devices), node.ring_cost()
    demand: dict[str, float] = {}
    for ring in found:
        for way in (ring, ring[::-1]) if len(ring) > 1 else ():
            for source, target in pairwise((*way, way[0])):
                direct = hop(source, target)
                for step in [direct] if direct in cost else node.path(source, target):
                    demand[step] = demand.get(step, 0.0) + cost[step] / (2 * len(found))
    return demand
