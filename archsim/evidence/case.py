"""A case: one published value, what ran, on what, and how it was timed; and the kinds of timers and microbenchmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from archsim.device.spec import Spec
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


# ---------------------------------------------------------------------------------------------------------------- timers

def calls_ahead(run_s: float, wait_s: float, host_s: float) -> float:
    """Time of one of many calls that the host issues without waiting for those before [s]: what host or device need.

    max(run_s - wait_s, host_s)

    run_s: of one call alone [s]; wait_s: of it, the time in which the device waits for the host [s]; host_s: the host's time [s]

    >>> round(calls_ahead(50e-6, 30e-6, 35e-6) * 1e6, 3)
    35.0
    """
    return max(run_s - wait_s, host_s)


def replays(run_s: float, calls: int, gap_s: float, launch_s: float) -> float:
    """Time of one call in graphs of some `calls` that are replayed one after the other [s].

    max(run_s + gap_s / calls, launch_s / calls)

    run_s: of the call's kernels [s]
    gap_s: before the first kernel of a graph, besides that between kernels, `graph.gap_s` [s]
    launch_s: of the whole graph by the host, which launches the next one while one runs [s]

    >>> [round(replays(t, 1, 1e-6, 6.2e-6) * 1e6, 2) for t in (0.5e-6, 9e-6)]
    [6.2, 10.0]
    """
    return max(run_s + gap_s / calls, launch_s / calls)


def event_pair(run_s: float, latency_s: float) -> float:
    """Time between two events of a stream around a kernel [s]: the second waits as a kernel would, `launch.latency` [s].

    >>> round(event_pair(7e-6, 2e-6) * 1e6, 3)
    9.0
    """
    return run_s + latency_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """One way to time a call.

    words: how a call is timed, as in "timed on the device alone"
    time: from what `arguments` names to the time that a table has [s]; usually that of the run as it is scheduled
    host: whether the host's time for calls and launches is in it; it is not where a kernel is timed alone
    waits: whether the host waits for the device after each op
    graph: whether the whole run is recorded as one graph, which the host launches
    """

    words: str
    time: Callable[..., float] = float
    arguments: tuple[str, ...] = ("run_s",)
    host: bool = True
    waits: bool = False
    graph: bool = False


TIMERS = {
    "host_sync": Timer(words="with a wait at the end of the run"),
    "each_layer": Timer(words="with a wait after each layer", waits=True),
    "host_async": Timer(words="with no wait between calls", time=calls_ahead, arguments=("run_s", "wait_s", "host_s")),
    "graph": Timer(words="as one graph, launched and waited for", graph=True),
    "device": Timer(words="on the device alone", host=False),
    "graphs": Timer(words="in graphs of some calls, replayed one after the other", time=replays, host=False,
                    arguments=("run_s", "calls", "gap_s", "launch_s")),
    "events": Timer(words="between two events of the stream", time=event_pair, arguments=("run_s", "latency_s"), host=False),
}  # fmt: skip


# -------------------------------------------------------------------------------------------- what a microbenchmark does


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPattern:
    """One row of a microbenchmark.

    benchmark, kernel: as the source calls them; variant: of its code
    element: bytes that a thread loads or stores at once [B]; threads: of a block; blocks: on one SM at once
    size: distinct bytes of all arrays [B]; stride: as the benchmark counts it
    words: what else it takes
    """

    benchmark: str
    kernel: str
    variant: str
    element: int
    threads: int
    blocks: int
    size: float
    stride: float
    words: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPattern:
    """One product of a single CTA, of which the tile is the whole result.

    m, n, k: of the product; tile_k, stages: of the ring in shared memory, 0 stages for as many as fit
    operand: size of a value of A and B [B]
    """

    m: int
    n: int
    k: int
    tile_k: int
    stages: int
    operand: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPattern:
    """A loop of one core, a `CoreLoop` of the cycle model."""

    loop: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPattern:
    """How busy a kernel keeps the units of a GPU, by the name of the unit; nothing of a GPU that idles with clocks up.

    shares: of what each unit could do
    core [Hz], memory: the clocks at which they were counted, that of the memory as a share of the usual one
    memory_now: the memory's clock, as a share of the usual one, when the power was read
    running: share of the time of which the power is the mean in which the kernel runs; the device idles in the rest
    alike: whether each value in memory is like the next, so that bytes switch as little as those of zeros
    """

    shares: Mapping[str, float]
    core: float
    memory: float = 1.0
    memory_now: float = 1.0
    running: float = 1.0
    alike: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockPattern:
    """A workload at a lower clock than `top` [Hz], at which it takes `power` [W].

    rate: work in a second beside that at the top clock; free: share of its time that does not go with the clock
    """

    top: float
    power: float
    rate: float
    free: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VoltagePattern:
    """The core voltage at a lower clock than `top` [Hz], at which it is `volts` [V]."""

    top: float
    volts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPattern:
    """A language model that an engine served.

    model: id of a shipped one; engine: its stack; arguments: of `archsim.generation.plan.serving_plan`
    batch: requests at once, on average; steady: new requests take the place of finished ones
    prompt_chunk: tokens of a prompt for each step of the engine (`llama-bench -b`), 0: as the engine does
    """

    model: str
    engine: str
    input: int
    output: float
    batch: float
    steady: bool = False
    prompt_chunk: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)


UNSIMULATED = (UnitPattern, ClockPattern, VoltagePattern, ServingPattern)  # answered without ops of a case
Pattern = AccessPattern | ProductPattern | LoopPattern | UnitPattern | ClockPattern | VoltagePattern | ServingPattern


# ----------------------------------------------------------------------------------------------------------------- cases


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
    pattern: Pattern | None = None
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


def error_of(metric: str, measured: float, predicted: float) -> float:
    """predicted / measured - 1 of a time, a power or an energy; of a rate, that of the time that it stands for.

    >>> error_of("latency_s", 1.0, 1.25), error_of("throughput_per_s", 100.0, 80.0)
    (0.25, 0.25)
    """
    return (measured / predicted if metric in RATES else predicted / measured) - 1.0
