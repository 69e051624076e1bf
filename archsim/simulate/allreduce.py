"""All-reduces on the links of a node, beside DeepBench's measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from archsim.base.errors import refuse_arguments
from archsim.base.files import data_folder
from archsim.evidence.table import read_table
from archsim.node.node import Node
from archsim.node.rings import rings
from archsim.node.spec import NodeSpec
from archsim.schedule.collective import all_reduce
from archsim.schedule.events import SharedServer

MEASURED_ON = "deepbench_8gpu"  # the node of DeepBench's rows
FLOAT = 4.0  # B of one value of DeepBench's buffers


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAllReduce:
    """A row of DeepBench: the fastest of its libraries."""

    hardware: str
    devices: int
    size: float  # B
    time_s: float
    library: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduceTime:
    """One all-reduce. `bandwidth_Bps` is 2 (n - 1) / n x size / time, NCCL's "bus bandwidth" [B/s]."""

    devices: int
    size: float
    time_s: float
    bandwidth_Bps: float
    rings: int
    measured: tuple[MeasuredAllReduce, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduces:
    """All-reduces on a node, which is called as it was asked for."""

    node: str
    rows: tuple[AllReduceTime, ...]

    @property
    def errors(self) -> list[float]:
        """Simulated over measured times less 1, of every measured row."""
        return [row.time_s / m.time_s - 1 for row in self.rows for m in row.measured]


def simulate_all_reduce(spec: NodeSpec, devices: Sequence[int], sizes: Sequence[float]) -> list[AllReduceTime]:
    """Every size [B] on every number of devices, on an otherwise idle node.

    >>> from archsim.node.spec import find
    >>> (found,) = simulate_all_reduce(find("dgx_1_v100"), [8], [1e9])
    >>> round(found.bandwidth_Bps / 1e9)  # GB/s
    126
    """
    node = spec.node
    refuse_arguments({
        "devices: none are named": not devices, "bytes: none are named": not sizes,
        **{f"devices {count} is not between 2 and {node.devices}, which node {node.id} holds": not 2 <= count <= node.devices
           for count in devices},
        **{f"bytes {size:g} is not a size above 0": not 0 < size < 1e15 for size in sizes},
    })  # fmt: skip
    found = []
    for count in devices:
        for size in sizes:
            time = all_reduce_time(node, count, size)
            rows = [row for row in measured_all_reduces() if (row.devices, row.size) == (count, size)]
            found.append(AllReduceTime(
                devices=count, size=size, time_s=time, bandwidth_Bps=2 * (count - 1) / count * size / time,
                rings=len(rings(node, count)), measured=tuple(rows) if node.id == MEASURED_ON else (),
            ))  # fmt: skip
    return found


def all_reduce_time(node: Node, devices: int, size: float) -> float:
    """Time of an all-reduce of `size` bytes on an idle node [s], from the event engine; equals `collective.unloaded_time_s`.

    >>> from archsim.node.spec import find
    >>> round(1e3 * all_reduce_time(find("dgx_1_v100").node, 8, 1e9), 1)  # ms
    13.9
    """
    from simpy import Environment

    env = Environment()
    SharedServer(env, node.capacity()).run(all_reduce(node, devices, size))
    env.run()
    return float(env.now)


@cache
def measured_all_reduces() -> tuple[MeasuredAllReduce, ...]:
    """DeepBench's all-reduces."""
    cells = (row.cells for row in read_table(data_folder("reports/published").joinpath("deepbench.csv")).rows)
    return tuple(
        MeasuredAllReduce(hardware=row["hardware"], devices=int(row["n_devices"]), size=FLOAT * float(row["floats"]),
                          time_s=float(row["time_ms"]) * 1e-3, library=row["algo"])
        for row in cells if row["op"] == "allreduce"
    )  # fmt: skip
