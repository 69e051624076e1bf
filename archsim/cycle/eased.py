"""What would relieve a kernel: it is simulated again on a device that is twice as good in one respect.

The kernel keeps its tile. Latencies are halved, rates and numbers of places doubled, and all else stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from archsim.cost.gpu import GpuTerms
from archsim.cycle import layout
from archsim.cycle.kernels import Known, SimulatedLaunch, launch_of
from archsim.cycle.program import FP32, INT, SPECIAL, TENSOR
from archsim.device.device import Gpu

BETTER = 2.0  # how much better. A choice: an SM holds whole CTAs, and 20 % more room has often none more
LESS = ("latency", "interval", "start", "miss")  # the last words of keys of which less is better


@dataclass(frozen=True, slots=True, kw_only=True)
class Relief:
    """What a better device would save of a kernel.

    what: in words; keys: of the spec that are twice as good; time_s: of one launch then [s]
    saved: the share of the time that this saves; negative where the kernel takes longer
    """

    what: str
    keys: tuple[str, ...]
    time_s: float
    saved: float


Launched = Callable[[SimulatedLaunch], bool]


def _has(*kinds: int) -> Launched:
    return lambda launch: any(i.kind in kinds for i in launch.on.program.instructions)


def _on(*pipes: int) -> Launched:
    return lambda launch: any(i.pipe in pipes for i in launch.on.program.instructions)


def _always(launch: SimulatedLaunch) -> bool:
    return True


def _from_l1(launch: SimulatedLaunch) -> bool:
    return _loads(launch) and any(source.past_l1 < 1.0 for source in launch.on.program.streams)


def _from_memory(launch: SimulatedLaunch) -> bool:
    streams = launch.on.program.streams
    return launch.memory_s > 0.0 or (_global(launch) and any(source.past_l1 * source.past_l2 > 0.0 for source in streams))


def _beyond_one_wave(launch: SimulatedLaunch) -> bool:
    return launch.grid.busiest > launch.on.held


_loads, _shared = _has(layout.LOAD, layout.COPY, layout.BULK), _has(layout.SHARED)
_global = _has(layout.LOAD, layout.COPY, layout.BULK, layout.STORE)
_queued = _has(layout.LOAD, layout.COPY, layout.STORE, layout.SHARED)
_tensor = _on(TENSOR)
TENSOR_RATES = tuple([f"rate.tensor_{precision}" for precision in ("fp16", "bf16", "tf32", "fp8", "int8")])

# In words, the keys of the spec, and which programs they may matter to.
EASINGS: tuple[tuple[str, tuple[str, ...], Launched], ...] = (
    ("memory bandwidth", ("memory.bandwidth",), _from_memory),
    ("memory latency", ("memory.latency",), _from_memory),
    ("L2 bandwidth", ("l2.bandwidth",), _global),
    ("L2 latency", ("l2.latency",), _loads),
    ("L1 bandwidth", ("l1.bandwidth",), _global),
    ("L1 latency", ("l1.latency",), _from_l1),
    ("bandwidth of stores", ("l1.write_bandwidth",), _has(layout.STORE)),
    ("misses of the TLBs", ("l1.tlb_miss", "l2.tlb_miss"), _global),
    ("miss buffers of the L1", ("l1.miss_buffers",), _loads),
    ("memory instructions in flight", ("sm.memory_interval", "sm.memory_queue"), _queued),
    ("width of loads into registers", ("sm.return_bandwidth",), _shared),
    ("shared-memory bandwidth", ("sm.shared_bandwidth",), _shared),
    ("shared-memory latency", ("sm.shared_latency",), _shared),
    ("schedulers", ("sm.schedulers",), _always),
    ("issue width", ("sm.issue_width",), _always),
    ("register banks", ("sm.register_reads",), _always),
    ("fp32 lanes", ("rate.fp32",), _on(FP32, INT)),
    ("integer lanes", ("sm.int_lanes",), _on(INT)),
    ("special functions", ("rate.special", "sm.special_latency"), _on(SPECIAL)),
    ("tensor cores", TENSOR_RATES, _tensor),
    ("latency of tensor cores", ("sm.tensor_latency",), _tensor),
    ("ALU latency", ("sm.alu_latency",), _on(FP32, INT)),
    ("barrier latency", ("sm.barrier_latency",), _has(layout.BARRIER)),
    ("latency of bulk copies", ("sm.copy_latency",), _has(layout.BULK)),
    ("code fetch", ("sm.fetch_interval",), _always),
    ("start of CTAs", ("sm.cta_start", "sm.cta_interval", "sm.warp_interval", "launch.rate"), _always),
    ("room for CTAs", ("sm.registers", "sm.shared_memory", "sm.warps", "sm.ctas"), _beyond_one_wave),
)  # fmt: skip


def reliefs(terms: GpuTerms, column: int, known: Known) -> tuple[Relief, ...]:
    """What each respect that a kernel depends on is worth to it, the largest saving first.

    known: clocks of what was simulated before, to which new ones are added
    column: of the V variants, on the first device; one that has a program
    """
    now = launch_of(terms, column)
    assert now is not None
    before, found = now.busy_s(known), []
    for what, keys, matters in EASINGS:
        there = tuple([key for key in keys if _value(terms.device, key)])
        if there and matters(now):
            then = launch_of(replace(terms, device=better(terms.device, there)), column)
            assert then is not None
            time = then.busy_s(known)
            found.append(Relief(what=what, keys=there, time_s=time, saved=1.0 - time / before))
    return tuple(sorted(found, key=lambda one: -one.saved))


def better(device: Gpu, keys: tuple[str, ...]) -> Gpu:
    """The device with some keys of its spec twice as good."""
    for key in keys:
        part, _, name = key.partition(".")
        factor = 1.0 / BETTER if name.rpartition("_")[2] in LESS else BETTER
        values = {name: getattr(getattr(device, part), name) * factor}
        if key == "sm.issue_width" and device.sm.pairing == "none":  # what is issued beside an instruction is a word
            values["pairing"] = "memory"
        device = replace(device, **{part: replace(getattr(device, part), **values)})
    return device


def _value(device: Gpu, key: str) -> object:
    """The value of a key; None where the spec has none, 0 where there is nothing to double."""
    part, _, name = key.partition(".")
    return getattr(getattr(device, part), name)
