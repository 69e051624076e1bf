"""The spec of this computer: what the system says, what the probe measured, and what is assumed from a shipped relative."""

from __future__ import annotations

from collections.abc import Iterator

from archsim.base.units import parse
from archsim.detect.architecture import CoreRow
from archsim.detect.probe import Probe
from archsim.detect.probed import Line, Measured, hertz, measured, sentence
from archsim.detect.system import UNTOLD, Cache, Computer, Told
from archsim.device.entry import ABSENT, Entry
from archsim.device.spec import Spec
from archsim.device.write import header_lines, table_lines

ID = "host"
STACK = "onnxruntime-cpu"
CACHES = "/sys/devices/system/cpu/cpu0/cache"
COUNTED = "/sys/devices/system/cpu, the processors that this process may use"
VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "0x41": "Arm", "0x61": "Apple"}
CORE = ("core.fma_latency", "core.miss_buffers", "core.scalar_ipc")
BEYOND = ("l2.miss_buffers", "l2.tlb_miss")  # that a probe tells, and few relatives have
REGISTERS = {"avx512f": 32, "sse2": 16, "asimd": 32}  # that an instruction set names
SENTENCE = 600  # characters of a sentence of ours, which has some text from outside
CLOCKS = ("boost", "all_core", "simd", "simd512")  # the last of cores with registers of 512 bit
NARROW = {  # products of narrow operands: the flags of which one says that the system lets programs use them
    "dot.int8_dot": {"avx512_vnni", "avx_vnni"}, "dot.int8_sdot": {"asimddp"}, "dot.int8_matrix": {"i8mm"},
    "dot.bf16_dot": {"avx512_bf16", "bf16"}, "dot.bf16_matrix": {"bf16"},
    "dot.fp16_lanes": {"avx512_fp16", "asimdhp"}, "tile.int8": {"amx_int8"}, "tile.bf16": {"amx_bf16"},
}  # fmt: skip
BOTH_PORTS = 2  # units a core without 512-bit registers in use starts at most


class Relative:
    """The shipped spec whose values stand where the system says nothing."""

    def __init__(self, spec: Spec, row: CoreRow) -> None:
        self.spec, self.row = spec, row
        self.source = f"hwspecs/{spec.identity.id}.toml"

    def line(self, key: str) -> Line:
        """The relative's value, with its kind where the core is the same one, assumed otherwise."""
        entry = self.spec.entries[key]
        if self.row.same and entry.kind != "assumed":
            return Line(key=key, value=_written(entry), source=f"{self.source}: {entry.source}", kind=entry.kind,
                        note=sentence("the same core", entry.note))  # fmt: skip
        return self.assumed(key, _written(entry), entry.note)

    def assumed(self, key: str, value: str | float, note: str = "") -> Line:
        """A value that is taken over from the relative, or derived from it."""
        why = f"{UNTOLD}; as {self.spec.identity.name}"
        return Line(key=key, value=value, source=self.source, kind="assumed", note=sentence(why, note))

    def number(self, key: str) -> float:
        """A value in base units."""
        return float(self.spec.entries[key].value)


def _written(entry: Entry) -> str | float:
    """The value as its file has it: counts as numbers, everything else with its unit."""
    try:
        return float(entry.written)
    except ValueError:
        return entry.written


def describe(computer: Computer, row: CoreRow, relative: Spec, probe: Probe | None = None, name: str = ID) -> str:
    """The text of the spec file.

    row, relative: the core, and the shipped spec that it names; probe: measured values, which stand instead of assumed ones
    """
    kin = Relative(relative, row)
    found = measured(probe, computer, simd_bits(computer, relative))
    lines = [*_core(computer, kin), *_clock(computer, kin, found), *_caches(computer, kin), *_memory(computer, kin),
             *_power(computer, kin), kin.assumed("chip.node", kin.spec.entries["chip.node"].written)]  # fmt: skip
    lines = [found.lines.get(line.key, line) for line in lines]
    lines = list(_with(lines, [found.lines[key] for key in BEYOND if key in found.lines]))
    head: dict[str, str | float] = {
        "schema": 1, "id": name, "name": f"this computer: {plain(computer.name) or row.architecture}", "kind": "cpu",
        "vendor": VENDORS.get(computer.vendor, plain(computer.vendor) or "unknown"), "architecture": row.architecture,
        "year": row.year, "default_stack": STACK,
    }  # fmt: skip
    said = [f"# {probe.busy}"] if probe and probe.busy else []
    said += [f"# not seen: {plain(text, SENTENCE)}" for text in _unseen(computer, simd_bits(computer, relative), probe)]
    tables = table_lines([(line.key, _words(line)) for line in lines])
    return "\n".join(["# Written by archsim detect.", *said, *header_lines(head), *tables]) + "\n"


def plain(text: str, most: int = 200) -> str:
    """Text from outside, cut to so many printable ASCII characters.

    >>> plain("Xeon\x1b[31m \u00b5arch")
    'Xeon[31m arch'
    """
    return "".join(c for c in text if c.isascii() and c.isprintable())[:most]


def _words(line: Line) -> dict[str, str | float]:
    words: dict[str, str | float] = {"value": line.value, "source": line.source, "kind": line.kind}
    return words | ({"note": line.note} if line.note else {})


# ---------------------------------------------------------------------------------------------- the tables


def usable_cores(computer: Computer) -> int:
    """Cores that this process can keep busy: those it may use, at most the processors whose time a control group grants."""
    return computer.cores if computer.quota is None else max(1, min(computer.cores, int(computer.quota)))


def simd_bits(computer: Computer, relative: Spec) -> int:
    """Width of the widest SIMD registers [bit]; the relative's where the system does not say."""
    return computer.vector_bits or int(float(relative.entries["core.simd"].value))


def _with(lines: list[Line], more: list[Line]) -> Iterator[Line]:
    """The lines, and at the end of each table those that belong to it."""
    for i, line in enumerate(lines):
        yield line
        table = line.key.partition(".")[0]
        if i + 1 == len(lines) or lines[i + 1].key.partition(".")[0] != table:
            yield from (other for other in more if other.key.partition(".")[0] == table)


def _unseen(computer: Computer, bits: int, probe: Probe | None) -> tuple[str, ...]:
    """What neither the system tells nor the probe could measure, in sentences."""
    refused = measured(probe, computer, bits).refused
    return (*computer.unseen, *(probe.failed if probe else ()), *refused)


def _core(computer: Computer, kin: Relative) -> Iterator[Line]:
    cores, note = usable_cores(computer), ""
    if cores < computer.cores:
        note = f"a control group grants the time of {computer.quota:g} of {computer.cores} cores"
    threads = max(cores, computer.threads * cores // computer.cores)
    kind = "measured" if not note else "derived"
    yield Line(key="core.count", value=cores, source=COUNTED, kind=kind, note=note)
    yield Line(key="core.threads", value=threads, source=COUNTED, kind=kind, note=note)
    yield Line(key="core.sockets", value=min(computer.sockets, cores), source=COUNTED)
    bits = simd_bits(computer, kin.spec)
    yield Line(key="core.simd", value=f"{bits} bit", source="/proc/cpuinfo, flags")
    yield _ports(bits, kin)
    registers = next((count for flag, count in REGISTERS.items() if flag in computer.flags), None)
    if registers is None:
        yield kin.line("core.registers")
    else:
        yield Line(key="core.registers", value=registers, source="/proc/cpuinfo, flags", kind="derived")
    for key in CORE:
        yield kin.line(key)
    for key, needed in NARROW.items():
        if key in kin.spec.entries and computer.flags and computer.flags.isdisjoint(needed):
            yield Line(key=key, value=ABSENT, source="/proc/cpuinfo, flags")


def _ports(bits: int, kin: Relative) -> Line:
    """Multiply-adds of the full width per clock: those of the relative for its width."""
    width = kin.number("core.simd")
    if kin.row.fma_ports is not None:
        return kin.assumed("core.fma_ports", kin.row.fma_ports, "the number of units is this architecture's own")
    if width == bits:
        return kin.line("core.fma_ports")
    ports = min(float(BOTH_PORTS), kin.number("core.fma_ports") * width / bits)
    return kin.assumed("core.fma_ports", ports, f"its {width:g}-bit units, used for {bits} bit")


def _clock(computer: Computer, kin: Relative, found: Measured) -> Iterator[Line]:
    """Clocks that the system tells, the others between base and boost; those that were measured stand instead of them."""
    base = computer.base or (Told(value=computer.boost.value, source=computer.boost.source) if computer.boost else None)
    if base is None:
        yield kin.assumed("clock.base", _written(kin.spec.entries["clock.base"]))
    else:
        yield Line(key="clock.base", value=hertz(base.value), source=base.source)
    low = base.value if base else kin.number("clock.base")
    boost = computer.boost.value if computer.boost else low * kin.number("clock.boost") / kin.number("clock.base")
    if "clock.boost" in found.lines:
        boost = parse(str(found.lines["clock.boost"].value), "Hz")
        low = min(low, boost)
    for name in CLOCKS if simd_bits(computer, kin.spec) >= 512 else CLOCKS[:-1]:
        if name == "boost" and computer.boost is not None:
            yield Line(key="clock.boost", value=hertz(boost), source=computer.boost.source)
        else:
            value = _between(low, boost, kin, name)
            yield kin.assumed(f"clock.{name}", hertz(value), "in proportion between base and boost clock; --probe measures it")


def _between(low: float, high: float, kin: Relative, name: str) -> float:
    """The clock that lies between base and boost where the relative's does."""
    base, boost = kin.number("clock.base"), kin.number("clock.boost")
    key = f"clock.{name}" if f"clock.{name}" in kin.spec.entries else "clock.simd"
    share = (kin.number(key) - base) / (boost - base) if boost > base else 1.0
    return low + (high - low) * min(1.0, max(-0.5, share))


def _caches(computer: Computer, kin: Relative) -> Iterator[Line]:
    seen = {f"l{cache.level}": cache for cache in computer.caches}
    for level in ("l1", "l2", "l3"):
        if f"{level}.size" in kin.spec.entries and (level in seen or not seen):
            yield from _cache(level, seen.get(level), kin, computer)


def _cache(level: str, cache: Cache | None, kin: Relative, computer: Computer) -> Iterator[Line]:
    told: dict[str, str | float] = {}
    if cache is not None:
        told = {"size": f"{cache.size_B / 1024:g} KiB", "ways": cache.ways, "line": f"{cache.line_B} B"}
        told["shared_by"] = min(cache.shared_by, usable_cores(computer))
    note = "as the virtual machine shows it; other virtual machines may use it too" if computer.virtual and level == "l3" else ""
    for name in ("size", "ways", "line", "latency", "bandwidth", "shared_by"):
        value = told.get(name)
        if value:
            yield Line(key=f"{level}.{name}", value=value, source=CACHES, note=note * (name == "size"))
        else:
            yield kin.line(f"{level}.{name}")


def _memory(computer: Computer, kin: Relative) -> Iterator[Line]:
    yield kin.assumed("memory.type", str(kin.spec.entries["memory.type"].value))
    per_socket = kin.number("memory.bandwidth") / kin.number("core.sockets")
    rate = f"{per_socket * computer.sockets / 1e9:.1f} GB/s"
    yield kin.assumed("memory.bandwidth", rate, "of each socket; --probe measures it")
    yield kin.line("memory.achievable")
    yield kin.line("memory.latency")
    if computer.memory is None:
        yield kin.assumed("memory.capacity", kin.spec.entries["memory.capacity"].written)
    else:
        yield Line(key="memory.capacity", value=f"{computer.memory.value / 2**20:.0f} MiB",
                   source=computer.memory.source)  # fmt: skip


def _power(computer: Computer, kin: Relative) -> Iterator[Line]:
    share = usable_cores(computer) / kin.number("core.count")
    scaled = f"its power times {share:.3g}, the share of its cores"
    if computer.power is not None:
        yield Line(key="power.tdp", value=f"{computer.power.value:.0f} W", source=computer.power.source)
    else:
        yield kin.assumed("power.tdp", f"{kin.number('power.tdp') * share:.3g} W", scaled)
    tdp = computer.power.value if computer.power else kin.number("power.tdp") * share
    idle = tdp * kin.number("power.idle") / kin.number("power.tdp")
    yield kin.assumed("power.idle", f"{idle:.3g} W", "the same share of the thermal design power")
    yield Line(key="power.boundary", value="package", source="as hwspecs/README.md asks", kind="derived")
    if "power.operation" in kin.spec.entries:
        yield kin.line("power.operation")


def unseen(computer: Computer, spec: Spec, probe: Probe | None) -> list[str]:
    """What neither the system tells nor the probe could measure, in printable sentences."""
    return [plain(text, SENTENCE) for text in _unseen(computer, int(float(spec.entries["core.simd"].value)), probe)]
