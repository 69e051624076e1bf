"""A node: several devices and their host CPU as a graph of links and switches, with the disk and the cores that feed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from archsim.base.units import COUNT, TEXT
from archsim.device.part import fraction, spec, whole

if TYPE_CHECKING:
    import networkx

SERVER = "cpu0"  # the vertex of the first socket: inputs are made there, a parameter server keeps its values there
Edge = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkKind:
    """A kind of link (PCIe, NVLink, QPI, InfiniBand): a table [links.NAME] of the file."""

    name: str
    type: str = spec(TEXT, "generation and width")
    bandwidth: float = spec("B/s", "peak, one direction", low=1e6, high=1e16)
    achievable: float = fraction("share of the peak that a copy reaches")
    ring: float = fraction("share of the peak that a collective over rings reaches")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCpu:
    """The processors that dispatch kernels and prepare inputs."""

    id: str = spec(TEXT, "the CPU: id or path of its spec")
    sockets: float = whole("processors of that kind", high=1024)
    memory_bandwidth: float = spec("B/s", "peak bandwidth of the host memory as it is fitted, all sockets", low=1e6, high=1e16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """Where the inputs are stored."""

    bandwidth: float = spec("B/s", "sequential reads", low=1e3, high=1e15)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSamples:
    """What preparing an input takes. Where nobody measured `decode`, it follows from the stack's reader and the host CPU."""

    sample: float = spec("B", "one sample as it is stored", low=1, high=1e12)
    pixels: float | None = spec(COUNT, "pixels of a stored image; without them, as many as the network's input has", low=1,
                                high=1e9, optional=True)  # fmt: skip
    decode: float | None = spec("img/s", "samples that one core reads, decodes and crops, where that was measured", low=1e-3,
                                high=1e9, optional=True)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveLatency:
    """What a collective takes besides its bytes."""

    start: float = spec("s", "time of a call before the first byte", low=1e-9, high=1)
    step: float = spec("s", "time of one step of a ring besides its bytes", low=1e-9, high=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Devices, sockets of the host CPU and switches (the vertices), and the links between them (the edges).

    devices: number of devices; their vertices are gpu0, gpu1, ...
    links: (vertex, vertex, kind, number of parallel links); a link carries its bandwidth in both directions at once
    host_cpu, disk, input, collective: the tables of the file, numbers in base units
    cores: physical cores of all sockets of the host CPU, from its spec
    holds: id of the device that the node is sold with, empty where it is sold with none
    takes: ids of the cards that are plugged into its slots, where it is sold with none
    """

    id: str
    name: str
    devices: int
    links: tuple[tuple[str, str, LinkKind, int], ...]
    host_cpu: HostCpu
    disk: Disk
    input: StoredSamples
    collective: CollectiveLatency
    cores: float
    holds: str = ""
    takes: tuple[str, ...] = ()

    @property
    def gpus(self) -> list[str]:
        """The vertices of the devices, in order."""
        return [f"gpu{i}" for i in range(self.devices)]

    def sold_with(self, device: str) -> bool:
        """Whether it is sold with a device, of any size of memory, or has slots for it."""
        return device in self.takes or _form(self.holds) == _form(device)

    def graph(self) -> networkx.Graph:
        """The links as a graph. An edge has `kind`, `count` and `time` [s/B]; of several kinds it is the fastest."""
        import networkx

        graph = networkx.Graph(name=self.id)
        for one, other, kind, count in sorted(self.links, key=lambda link: link[2].bandwidth * link[3]):
            graph.add_edge(one, other, kind=kind, count=count, time=1.0 / (kind.bandwidth * count))
        return graph

    def capacity(self) -> Mapping[str, float]:
        """Bandwidth of copies over each link in each direction [B/s], keyed by `hop`: bandwidth x achievable x parallel links.

        >>> from archsim.node.spec import find
        >>> find("desktop_2gpu").node.capacity()["gpu0 > cpu0"] / 1e9  # 7.88 GB/s of PCIe 3.0 x8, times 0.76
        5.9888
        """
        return {hop(*ends): kind.bandwidth * kind.achievable * count for ends, kind, count in self._directed()}

    def ring_cost(self) -> Mapping[str, float]:
        """Capacity of each link that a byte of a collective takes [B]: achievable / ring, above 1 where copies are faster."""
        return {hop(*ends): kind.achievable / kind.ring for ends, kind, _ in self._directed()}

    def _directed(self) -> Iterator[tuple[Edge, LinkKind, int]]:
        for one, other, words in self.graph().edges(data=True):
            for ends in ((one, other), (other, one)):
                yield ends, words["kind"], words["count"]

    def path(self, source: str, target: str) -> list[str]:
        """The hops between two vertices over which a byte takes the shortest time."""
        import networkx

        vertices = networkx.shortest_path(self.graph(), source, target, weight="time")
        return [hop(*ends) for ends in pairwise(vertices)]


def _form(name: str) -> str:
    """A device's name without the size of its memory.

    >>> _form("a100_sxm4_80gb"), _form("rtx_3090")
    ('a100_sxm4', 'rtx_3090')
    """
    return name.rpartition("_")[0] if name.endswith("gb") else name


def hop(source: str, target: str) -> str:
    """The name of one direction of a link.

    >>> hop("gpu0", "cpu0")
    'gpu0 > cpu0'
    """
    return f"{source} > {target}"


TABLES: dict[str, type] = {"host_cpu": HostCpu, "disk": Disk, "input": StoredSamples, "collective": CollectiveLatency}
