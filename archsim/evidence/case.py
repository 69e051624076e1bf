"""A case: one published value with the conditions that it was measured under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from archsim.device.spec import Spec
from archsim.evidence.pattern import UNSIMULATED, ClockPattern, LoopPattern, Pattern, ServingPattern, UnitPattern, VoltagePattern
from archsim.evidence.timer import TIMERS, Timer
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
TEST = "test"  # what people call the split of watched rows
LEAST_SOUND = 3  # rounds of `archsim measure` that other work left alone, from which on its median is of such rounds only
QUANTITY = {"latency_s": "time", "throughput_per_s": "time", "power_w": "power", "energy_j": "energy",
            "system_power_w": "wall power", "system_energy_j": "wall energy", "clock_hz": "clock",
            "bandwidth_bps": "bandwidth", "latency_clk": "latency", "clk_per_warp_load": "clocks",
            "clk_per_iteration": "clocks", "voltage_v": "voltage", "ttft_s": "prefill", "decode_s_per_token": "decode",
            "tpot_s": "decode", "e2e_s": "end to end", "tokens_per_s": "tokens", "energy_j_per_token": "energy"}  # fmt: skip
RATES = ("throughput_per_s", "bandwidth_bps", "tokens_per_s")
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
    timer: how it was timed; calls: of what was timed in one round or graph
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
    timer: Timer = TIMERS["host_sync"]
    calls: int = 1
    pattern: Pattern | LoopPattern | UnitPattern | ClockPattern | VoltagePattern | ServingPattern | None = None
    file: str = ""

    @property
    def ops(self) -> tuple[BoundOp, ...]:
        """The ops that were timed."""
        return self.trace.ops

    @property
    def dispatch(self) -> float:
        """How much of the host CPU's time for calls and launches was timed; 0 for a kernel timed alone."""
        return float(self.timer.host)

    @property
    def replayed(self) -> bool:
        """Whether the run was one graph."""
        return self.timer.graph

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


def error_of(metric: str, measured: float, predicted: float) -> float:
    """predicted / measured - 1 of a time, a power or an energy; of a rate, that of the time that it stands for.

    >>> error_of("latency_s", 1.0, 1.25), error_of("throughput_per_s", 100.0, 80.0)
    (0.25, 0.25)
    """
    return (measured / predicted if metric in RATES else predicted / measured) - 1.0
