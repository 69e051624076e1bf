"""Values of a spec from what the microbenchmarks found; what cannot be is refused, and its value stays assumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from archsim.detect.loops import LINE_B
from archsim.detect.probe import FAST, Probe
from archsim.detect.sampling import Finding
from archsim.detect.system import Computer

SOURCE = "archsim detect --probe"
PORTS_SLACK = 0.15  # of a port: wide code may clock lower than the scalar loop that its rate is compared with
WHOLE = 0.04  # by which a latency in whole clocks may be missed
WORN = 0.1  # a spread that is worth a word
SMALLER = 0.5  # part of a virtual machine's last cache that one core must reach, or the cache counts as what it reaches
KEYS = {  # what a figure is for
    "clock": "clock.boost", "fma_latency": "core.fma_latency", "fma_per_clock": "core.fma_ports",
    "in_flight": "core.miss_buffers",
    "l2.tlb_miss": "l2.tlb_miss",
    "fma128": "clock.simd", "fma256": "clock.simd", "fma512": "clock.simd512", "memory.latency": "memory.latency",
    **{f"l{i}.{what}": f"l{i}.{key}" for i in (1, 2, 3) for what, key in (("latency", "latency"), ("read", "bandwidth"))},
}  # fmt: skip
RANGES = {  # what a figure can be: names, least and most in the unit of the second column, for people
    "clock": (0.2e9, 10e9, 1e-9, "GHz"), "fma_latency": (1.5, 24, 1, "clk"), "fma_per_clock": (0.1, 8, 1, "1/clk"),
    "fma128": (0.1e9, 60e9, 1e-9, "G/s"), "fma256": (0.1e9, 60e9, 1e-9, "G/s"), "fma512": (0.1e9, 60e9, 1e-9, "G/s"),
    "l1.latency": (1.8, 12, 1, "clk"), "l2.latency": (6, 100, 1, "clk"), "l3.latency": (15, 500, 1, "clk"),
    "l1.read": (4, 512, 1, "B/clk"), "l2.read": (2, 512, 1, "B/clk"), "l3.read": (0.5, 256, 1, "B/clk"),
    "memory.latency": (20e-9, 5e-6, 1e9, "ns"), "memory.read": (1e8, 1e13, 1e-9, "GB/s"), "copy": (1e8, 1e13, 1e-9, "GB/s"),
    "in_flight": (1.5, 512, 1, "lines"), "l2.tlb_miss": (1, 400, 1, "clk"),
}  # fmt: skip
FARTHER = ("l1.latency", "l2.latency", "l3.latency")  # each is longer than the one before
SLOWER = ("l1.read", "l2.read", "l3.read")  # none is faster than the one before, but for what samples miss


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A key of the spec that is written: its value as text with its unit or as a count, and where it comes from."""

    key: str
    value: str | float
    source: str
    kind: str = "measured"
    note: str = ""


def sentence(*parts: str) -> str:
    """Notes, one after the other."""
    return "; ".join(filter(None, parts))


def hertz(value: float) -> str:
    """A clock as a file has it."""
    return f"{value / 1e9:.3f} GHz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Values by the keys of a spec, and what was refused, in sentences."""

    lines: dict[str, Line]
    refused: tuple[str, ...] = ()


def measured(probe: Probe | None, computer: Computer, bits: int) -> Measured:
    """What a probe says of a computer whose widest registers have `bits`."""
    if probe is None:
        return Measured(lines={})
    kept, refused = plausible(probe)
    made = (*_core(kept, bits), *_clocks(kept, computer, bits), *_caches(kept, computer), *_memory(kept))
    return Measured(lines={line.key: line for line in made}, refused=(*refused, *_lacking(probe)))


def plausible(probe: Probe) -> tuple[Probe, list[str]]:
    """The figures that can be, and a sentence on each that cannot."""
    refused, kept = [], {name: dict(found) for name, found in probe.readings.items()}
    for name, (low, high, scale, unit) in RANGES.items():
        for at, reading in probe.readings.get(name, {}).items():
            if not low <= reading.value <= high:
                refused.append(f"{KEYS.get(name, name)}: the probe found {reading.value * scale:.3g} {unit}, "
                               f"which is not within {low * scale:g} to {high * scale:g} {unit}")  # fmt: skip
                del kept[name][at]
    for names, sign in ((FARTHER, 1), (SLOWER, -1)):
        last: tuple[str, float] | None = None
        for name in names:
            value = max((reading.value for reading in kept.get(name, {}).values()), default=None)
            if value is not None and last is not None and (value < 1.1 * last[1] if sign > 0 else value > 1.1 * last[1]):
                refused.append(f"{KEYS[name]}: the probe found {value:.3g}, beside {last[1]:.3g} for {KEYS[last[0]]}")
                del kept[name]
            elif value is not None:
                last = name, value
    found = {name: readings for name, readings in kept.items() if readings}
    return replace(probe, readings=found), refused


def _lacking(probe: Probe) -> Iterator[str]:
    """What other loops would measure."""
    keys = dict.fromkeys(KEYS[name] for name in probe.absent if name in KEYS)
    if keys:
        yield f'{", ".join(keys)}: loops for them come with pip install "{FAST}"'


def per_clock(probe: Probe, bits: int) -> float | None:
    """Multiply-adds of that width that a core starts per clock, a whole number from one on [1/clk].

    What is measured is at most that: wide code may run at a lower clock than the chain beside it.
    """
    found = probe.values("fma_per_clock").get(bits)
    if found is None:
        return None
    return float(max(1, -int(-(found - PORTS_SLACK) // 1))) if found > 1 - PORTS_SLACK else round(2 * found, 0) / 2 or 0.25


def _core(probe: Probe, bits: int) -> Iterator[Line]:
    ports = per_clock(probe, bits)
    rates = probe.values("fma_per_clock")
    if ports is not None:
        told = ", ".join(f"{rate:.2f} of {width} bit" for width, rate in rates.items())
        reading = probe.readings["fma_per_clock"][bits]
        whole = int(ports) if ports >= 1 else ports
        yield _line("core.fma_ports", whole, reading, f"multiply-adds per clock of scalar code: {told}")
    latency = probe.readings.get("fma_latency", {}).get(bits)
    if latency is not None:
        yield _line("core.fma_latency", _clocks_text(latency.value), latency, f"along the accumulator, {bits} bit")
    lines = probe.best("in_flight")
    if lines is not None:
        yield _line("core.miss_buffers", max(1, round(lines.value)), lines, "lines of memory on their way at once (Little's law)")


def _clocks(probe: Probe, computer: Computer, bits: int) -> Iterator[Line]:
    """Clocks by loops of a known number of cycles, on one core and on all."""
    scalar = probe.readings.get("clock", {})
    if not scalar:
        return
    most = max(scalar)
    fastest = max(scalar.values(), key=lambda reading: reading.value)
    if computer.base is None or computer.base.value > fastest.value:
        yield _line("clock.base", hertz(fastest.value), fastest, "no rated clock below it is told; taken as the measured one")
    yield _line("clock.boost", hertz(fastest.value), fastest, "a chain of dependent operations on one core")
    if most == probe.threads:
        yield _line("clock.all_core", hertz(scalar[most].value), scalar[most], f"the same on {_cores(most)}")
    for key, width in (("clock.simd", min(256, bits)), ("clock.simd512", 512)):
        readings, starts = probe.readings.get(f"fma{width}", {}), per_clock(probe, width)
        if readings and starts and width <= bits and max(readings) == probe.threads:
            reading = readings[max(readings)]
            value = min(fastest.value, reading.value / starts)
            yield _line(key, hertz(value), reading, f"{width}-bit multiply-adds on {_cores(max(readings))}")


def _caches(probe: Probe, computer: Computer) -> Iterator[Line]:
    for level in ("l1", "l2", "l3"):
        latency = probe.best(f"{level}.latency")
        read = probe.least(f"{level}.read")  # what reads sustain, whatever part of the cache they visit
        if latency is not None:
            yield _line(f"{level}.latency", _clocks_text(latency.value), latency)
        if read is not None:
            others = [found for found in probe.readings[f"{level}.read"].values() if found is not read]
            notes = [f"{found.value:.3g} B/clk: {found.note}" for found in others]
            yield _line(f"{level}.bandwidth", f"{read.value:.3g} B/clk", read, note_after=sentence(*notes))
    miss = probe.best("l2.tlb_miss")
    if miss is not None:
        yield _line("l2.tlb_miss", f"{miss.value:.1f} clk", miss)
    for told, reading in probe.readings.get("reach", {}).items():
        level = f"l{computer.caches[-1].level}" if computer.caches else "l3"
        if computer.virtual and reading.value < SMALLER * told:
            yield _line(f"{level}.size", f"{reading.value / 1024:g} KiB", reading,
                        f"what one core reaches of the {told / 2**20:g} MiB that the virtual machine shows")  # fmt: skip


def _memory(probe: Probe) -> Iterator[Line]:
    copies, reads = probe.best("copy"), probe.best("memory.read")
    top = max((found for found in (copies, reads) if found), key=lambda found: found.value, default=None)
    if top is not None and probe.threads in probe.values("memory.read") | probe.values("copy"):
        kinds = (("read", "memory.read"), ("read plus written by copies", "copy"))
        told = [f"{what}, GB/s (threads): {', '.join(f'{rate / 1e9:.1f} ({n})' for n, rate in probe.values(name).items())}"
                for what, name in kinds if probe.values(name)]  # fmt: skip
        yield _line("memory.bandwidth", f"{top.value / 1e9:.2f} GB/s", top, sentence(*told))
        share = copies.value / top.value if copies else 1.0
        yield Line(key="memory.achievable", value=round(share, 3), source=SOURCE, kind="derived",
                   note="copies beside the bandwidth above, which was reached")  # fmt: skip
    latency = probe.best("memory.latency")
    if latency is not None:
        yield _line("memory.latency", f"{latency.value * 1e9:.1f} ns", latency)
    read = probe.readings.get("memory.read", {}).get(1)
    if read is not None and latency is not None:
        lines = read.value * latency.value / LINE_B
        yield _line("l2.miss_buffers", max(1, round(lines)), read,
                    f"{read.value / 1e9:.1f} GB/s read by one core x {latency.value * 1e9:.0f} ns / {LINE_B} B")  # fmt: skip


def _line(key: str, value: str | float, reading: Finding, note: str = "", note_after: str = "") -> Line:
    disturbed = f"other samples up to {100 * reading.spread:.0f} % worse" if reading.spread > WORN else ""
    return Line(key=key, value=value, source=SOURCE, note=sentence(note, reading.note, note_after, disturbed))


def _clocks_text(value: float) -> str:
    """Clocks, in whole ones where they are that but for what samples miss.

    >>> _clocks_text(3.98), _clocks_text(13.7), _clocks_text(59.3)
    ('4 clk', '14 clk', '59.3 clk')
    """
    whole = round(value)
    near = whole > 0 and value < 30 and abs(value / whole - 1) <= WHOLE
    return f"{whole if near else round(value, 1):g} clk"


def _cores(count: int) -> str:
    return f"{count} cores at once" if count > 1 else "one core"


def told(probe: Probe) -> Iterable[str]:
    """What was found and is no value of a spec, for people."""
    products = probe.values("product")
    if products:
        yield "matrix product: " + ", ".join(f"{rate / 1e9:.0f} GFLOP/s ({n} threads)" for n, rate in products.items())
    for n, seconds in probe.values("barrier").items():
        yield f"a barrier of {n} threads that spin: {seconds * 1e9:.0f} ns"
    if probe.how:
        yield f"probed by {probe.how}"
    if probe.busy:
        yield probe.busy
