"""A machine: devices, processors and switches as a graph of links, with disks and cores beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx

SERVER = "cpu0"  # the node where inputs are made and a parameter server keeps its values
Edge = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkKind:
    """A kind of link. `bandwidth` is the peak of one direction [B/s], `achievable` the share of it that a copy reaches, `ring`
    the share that a collective reaches.
    """

    name: str
    type: str
    bandwidth: float
    achievable: float
    ring: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """`links` are (node, node, kind, how many beside each other); every link carries both directions at once.

    `start_s` is what a collective takes before the first byte, `step_s` what each of its steps takes besides its bytes.
    `sample_bytes` is one sample as it lies on the disk, `decode_rate` how many a core makes ready for the network [1/s].
    """

    id: str
    name: str
    devices: int
    links: tuple[tuple[str, str, LinkKind, int], ...]
    cores: float
    memory_bandwidth: float
    disk_bandwidth: float
    sample_bytes: float
    decode_rate: float
    start_s: float
    step_s: float
    holds: str = ""  # the device that it is sold with

    @property
    def gpus(self) -> list[str]:
        """The names of the device nodes, in order."""
        return [f"gpu{i}" for i in range(self.devices)]

    def graph(self) -> networkx.Graph:
        """The links as a graph; an edge bears its `kind` and its `count`, the fastest one where kinds differ."""
        import networkx

        graph = networkx.Graph(name=self.id)
        for one, other, kind, count in sorted(self.links, key=lambda link: link[2].bandwidth * link[3]):
            graph.add_edge(one, other, kind=kind, count=count, time=1.0 / (kind.bandwidth * count))
        return graph

    def capacity(self) -> Mapping[str, float]:
        """What each link carries in each direction [B/s], by the name that `hop` gives it."""
        return {hop(*ends): kind.bandwidth * kind.achievable * count for ends, kind, count in self._directed()}

    def ring_cost(self) -> Mapping[str, float]:
        """How much of a link's capacity one byte of a collective takes: more than 1 where a copy is faster."""
        return {hop(*ends): kind.achievable / kind.ring for ends, kind, _ in self._directed()}

    def _directed(self) -> Iterator[tuple[Edge, LinkKind, int]]:
        for one, other, words in self.graph().edges(data=True):
            for ends in ((one, other), (other, one)):
                yield ends, words["kind"], words["count"]

    def path(self, source: str, target: str) -> list[str]:
        """The hops of the path between two nodes that takes a byte the shortest time."""
        import networkx

        nodes = networkx.shortest_path(self.graph(), source, target, weight="time")
        return [hop(*ends) for ends in pairwise(nodes)]


def hop(source: str, target: str) -> str:
    """The name of a link in one direction."""
    return f"{source} > {target}"
