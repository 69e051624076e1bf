"""A case: one published value with the conditions that it was measured under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from archsim.device.spec import Spec
from archsim.evidence.pattern import UNSIMULATED, ClockPattern, LoopPattern, Pattern, ServingPattern, UnitPattern, VoltagePattern
from archsim.lower.context import AS_MULTIPLIED, Stored
from archsim.stack.stack import Stack
from archsim.trace.task import Work
from archsim.trace.trace import BoundOp, BoundTrace

if TYPE_CHECKING:
    from archsim.node.node import Node
    from archsim.node.system import PoweredSystem

SYSTEM_METRICS = ("system_power_w", "system_energy_j")  # of a whole computer, at its plug
WATCHED = "watched"  # rows that were looked at while the model was made: scored, and nothing is fitted to them
DOUBTED = "doubted"  # rows whose stated conditions their own source contradicts: they count in scores and intervals, not in fits
LEAST_SOUND = 3  # rounds of `archsim measure` that other work left alone, from which on its median is of such rounds only
METRICS = ("latency_s", "throughput_per_s", "power_w", "energy_j", *SYSTEM_METRICS)  # a kernel may have a clock_hz


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGroup:
    """The first `devices` devices of a node, which share each training step.

    `overlaps`: gradients are exchanged while others are still computed; otherwise after the backward pass.
    """

    node: Node
    devices: int
    overlaps: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """Another run of the same work, under the power limit `limit` [W], with its `measured` value."""

    limit: float
    measured: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of a measurement file, its words resolved: what ran, on what, and how it was timed.

    label: the network, or the op of a row of a single kernel
    task: as the source's script runs it, which may be more than its table says
    trace, work: the ops that were timed, of one device; `work` is None for single ops
    stack: the software that ran, with the input feed and the waits of the source's timer
    batch: as the source counts it, over all devices
    stored: formats of weights and of cached values in memory, where they are narrower than what was multiplied
    threads, clock [Hz]: as stated; None where the row does not say
    limit: the power limit that was set [W]; None for the device's own
    anchor: with it, only the ratio to another run is predicted
    group: the devices that shared the batch; None for one
    system: the computer whose power was measured at its plug, and how many devices in it ran the same; None at the device
    host_cpu: the CPU that dispatched to a GPU; None where the source does not say
    pattern: what a microbenchmark does; such a case has no ops
    dispatch: how much of the host CPU's time for calls and launches was timed; 0 for a kernel timed alone
    wrappers: modules, functions and warnings of Python around the call
    replayed: whether the run was one CUDA graph
    graph_calls: calls in a graph that was replayed again and again; 0: in none
    between: whether it is the time between two events that the host recorded before and after its call
    events: whether it is the time between two events of the stream, one of which waits for the kernel
    ahead: whether calls were issued without waiting for those before, so that each takes as long as host or device need, not both
    file, line, fields: where the row stands, and all its columns
    """

    line: int
    fields: Mapping[str, str]
    source: str
    label: str
    hardware: str
    stack_id: str
    task: str
    metric: str
    measured: float
    split: str
    trace: BoundTrace
    work: Work | None = None
    spec: Spec
    stack: Stack
    precision: str
    stored: Stored = AS_MULTIPLIED
    batch: int
    threads: int | None = None
    clock: float | None = None
    limit: float | None = None
    anchor: Anchor | None = None
    group: DeviceGroup | None = None
    system: tuple[PoweredSystem, int] | None = None
    host_cpu: Spec | None = None
    dispatch: float = 1.0
    wrappers: int = 0
    ahead: bool = False
    replayed: bool = False
    graph_calls: int = 0
    between: bool = False
    events: bool = False
    pattern: Pattern | LoopPattern | UnitPattern | ClockPattern | VoltagePattern | ServingPattern | None = None
    file: str = ""

    @property
    def ops(self) -> tuple[BoundOp, ...]:
        """The ops that were timed."""
        return self.trace.ops

    @property
    def disturbed(self) -> str:
        """In how many rounds other work took the cores, where the median is of such rounds; else empty."""
        rounds, disturbed = (int(self.fields.get(name) or 0) for name in ("rounds", "disturbed"))
        return f"{disturbed} of {rounds} rounds" if disturbed and rounds - disturbed < LEAST_SOUND else ""

    @property
    def fitted(self) -> bool:
        """Whether constants may be fitted to it."""
        return self.split not in (WATCHED, DOUBTED)

    @property
    def simulated(self) -> bool:
        """Whether only the simulated machine has an answer."""
        return self.pattern is not None and not isinstance(self.pattern, UNSIMULATED)

    @property
    def training(self) -> bool:
        """Whether the ops run as in training."""
        return self.task != "inference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """A row that cannot be predicted, and why."""

    line: int
    reason: str
    file: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


def with_power(cases: Sequence[Case]) -> list[Case]:
    """The cases that the constants of energy are fitted to: power, energy, ratios and clocks under a power limit."""
    return [case for case in cases if case.metric in ("power_w", "energy_j", "clock_hz") or case.anchor is not None]
