"""The bounds: one row each, with all that any part of the program needs to know of it.

A time is the smooth maximum of named bounds. Costs, explanations, what-ifs, pages, JSON, the power limit and contention read
these rows and nothing else, so that a new bound is one row, with its function, and no edit elsewhere. Colours are those of
Okabe and Ito (2008), which people with any common colour blindness tell apart, and a few that keep their distance from them;
in the roofline a symbol says the same once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from archsim.cost import cpu, gpu, roofline
from archsim.cost.cost import LAUNCH, Array

GPU, CPU, TPU, ROOFLINE = "gpu", "cpu", "tpu", "roofline"  # what has bounds: kinds of device, and the fidelity without overheads
INPUT = "input"  # the wait for samples that the host decodes
POWER = "power"  # what limits where the power limit lowers the clock
PIPES, L2, DRAM = "SM pipes", "L2", "DRAM"  # what kernels that run at the same time share

Equation = Callable[[Any], Array | None]


@dataclass(frozen=True, slots=True)
class OfTpu:
    """An equation of `cost.tpu`, which is imported when it is first computed: few estimates are of a TPU."""

    name: str

    @property
    def function(self) -> Equation:
        """The equation itself."""
        from archsim.cost import tpu

        found: Equation = getattr(tpu, self.name)
        return found

    def __call__(self, terms: Any) -> Array | None:
        """The time of one launch [s], [D, V]."""
        return self.function(terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One bound. Every field has to be given, so that a row which lacks one fails when it is made.

    `time` has its equation for each kind of device that has this bound: a function of `GpuTerms`, `CpuTerms` or `RooflineTerms`
    that returns the time of one launch [s], [D, V], or None where no kernel has it; empty where the time is none of a kernel's,
    as that of the host. An `overhead` comes on top of the smooth maximum of the others. `side` is what a reader calls an op that
    is limited by it. `clocked`: the time is inverse to the core clock; otherwise the clock does not move it. `resource` is what
    kernels that run at the same time share of it (None: nothing). `word` is what a reader calls the resource, `more` what helps,
    `meaning` stands in legends.
    """

    name: str
    word: str
    more: str
    time: Mapping[str, Equation]
    overhead: bool
    side: str
    clocked: bool
    resource: str | None
    colour: str
    meaning: str

    @property
    def decides(self) -> str:
        """How a sentence begins: `Memory decides: the memory's bandwidth is used up`, `Launches decide: ...`."""
        return f"{self.word[0].upper()}{self.word[1:]} decide{'' if self.word.endswith('es') else 's'}: {self.meaning}"


BOUNDS = {
    row.name: row
    for row in (
        Bound(name="compute", colour="#0072b2", side="compute-bound", clocked=True, resource=PIPES, overhead=False,
              time={GPU: gpu.compute_bound, CPU: cpu.compute_bound, TPU: OfTpu("compute_bound"),
                    ROOFLINE: roofline.compute_bound},
              word="arithmetic", more="more arithmetic", meaning="the arithmetic units are busy"),
        Bound(name="dram", colour="#d55e00", side="memory-bound", clocked=False, resource=DRAM, overhead=False,
              time={GPU: gpu.memory_bound, CPU: cpu.memory_bound, TPU: OfTpu("memory_bound"), ROOFLINE: roofline.memory_bound},
              word="memory", more="more memory bandwidth", meaning="the memory's bandwidth is used up"),
        Bound(name="l1", side="cache-bound", clocked=True, resource=None, overhead=False, time={CPU: cpu.refill_bound},
              word="L1 cache", more="more L1 bandwidth", colour="#8c510a",
              meaning="the bandwidth between a core's own caches is used up"),
        Bound(name="l2", colour="#e69f00", side="cache-bound", clocked=True, resource=L2, overhead=False,
              time={GPU: gpu.cache_bound, CPU: cpu.cache_bound},
              word="L2 cache", more="more L2 bandwidth", meaning="the bandwidth of the cache that all cores share is used up"),
        Bound(name="buffer", side="buffer-bound", clocked=True, resource=None, overhead=False, time={TPU: OfTpu("buffer_bound")},
              word="on-chip buffer", more="more buffer bandwidth", colour="#a6761d",
              meaning="the bandwidth of the buffer that software manages is used up"),
        Bound(name="link", side="memory-bound", clocked=False, resource=None, overhead=False, time={CPU: cpu.link_bound},
              word="link of sockets", more="more link bandwidth", colour="#f0e442",
              meaning="the link between sockets is used up"),
        Bound(name="latency", side="latency-bound", clocked=False, resource=None, overhead=False, time={GPU: gpu.latency_bound},
              word="latency of loads", more="shorter latency", colour="#cc79a7",
              meaning="too few loads in flight to hide latency"),
        Bound(name=LAUNCH, colour="#009e73", side="launch-bound", clocked=False, resource=None, overhead=True,
              time={GPU: gpu.launch_gap, CPU: cpu.team_overhead, TPU: OfTpu("start_gap")},
              word="launches", more="faster launches", meaning="starting kernels or threads"),
        Bound(name="host", colour="#56b4e9", side="host-bound", clocked=False, resource=None, overhead=True, time={},
              word="dispatch", more="faster dispatch", meaning="framework and driver, which the device waits for"),
        Bound(name=INPUT, colour="#b15928", side="input-bound", clocked=False, resource=None, overhead=True, time={},
              word="input", more="faster input", meaning="reading and decoding the samples of a batch"),
        Bound(name=POWER, colour="#6a3d9a", side="power-limited", clocked=False, resource=None, overhead=True, time={},
              word="power limit", more="more power", meaning="the power limit lowers the core clock"),
        Bound(name="none", colour="#999999", side="idle", clocked=False, resource=None, overhead=True, time={},
              word="nothing", more="less idle time", meaning="takes no time"),
    )
}  # fmt: skip


def bounds_of(terms: object, kind: str, without: frozenset[str] = frozenset()) -> dict[str, Array]:
    """The time that each resource needs on its own [s], by the name of the bound, in the order of the table.

    {name: t}, t [D, V]; terms: record of that kind (`GpuTerms`, `CpuTerms`, `RooflineTerms`); kind: one of GPU, CPU, ROOFLINE;
    without: names of rows to leave out, besides those that no kernel has

    >>> from types import SimpleNamespace as some
    >>> terms = some(flop=2e9, peak=1e12, dram_bytes=3.2e9, device=some(memory=some(bandwidth=320e9)))
    >>> {name: bound.item() for name, bound in bounds_of(terms, ROOFLINE).items()}
    {'compute': 0.002, 'dram': 0.01}
    """
    named = {name: row.time[kind](terms) for name, row in BOUNDS.items()
             if kind in row.time and not row.overhead and name not in without}  # fmt: skip
    return {name: bound for name, bound in named.items() if bound is not None}


def overhead_of(terms: object, kind: str, without: frozenset[str] = frozenset()) -> Array | float:
    """What comes on top of every launch [s]: the sum of the rows that are overheads, [D, V], 0 without one.

    terms: record of that kind; kind: one of GPU, CPU, ROOFLINE; without: names of rows to leave out

    >>> from types import SimpleNamespace as some
    >>> gpu_terms = some(device=some(launch=some(latency=3e-6)), kernels=some(chain=2.0))
    >>> overhead_of(gpu_terms, GPU).item(), overhead_of(gpu_terms, GPU, frozenset({"launch"}))
    (6e-06, 0)
    """
    parts = [row.time[kind](terms) for name, row in BOUNDS.items() if kind in row.time and row.overhead and name not in without]
    return sum(part for part in parts if part is not None)


def clocked(name: str) -> bool:
    """Whether the time of a bound, called `name`, is inverse to the core clock.

    >>> clocked("compute"), clocked("dram")
    (True, False)
    """
    return BOUNDS[name].clocked


def bound_word(name: str) -> str:
    """What readers call what limits a run: a bound, or something beside the kernels, by its own name.

    >>> bound_word("dram"), bound_word("links")
    ('memory', 'links')
    """
    return BOUNDS[name].word if name in BOUNDS else name


def contended() -> dict[str, str]:
    """The bounds that share a resource with kernels that run at the same time, and what they share, by name.

    >>> contended()["dram"]
    'DRAM'
    """
    return {name: row.resource for name, row in BOUNDS.items() if row.resource is not None}
