"""What Linux says of this computer in /proc, /sys and the control groups; no program is started.

Every path is taken below `root`, so that a test can show another computer.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from archsim.base.errors import Unsupported

UNTOLD = "not told by the system"  # how the note of a value begins that is assumed of a detected computer
_CPU = re.compile(r"cpu(\d+)\Z")
_GIGAHERTZ = re.compile(r"@\s*([\d.]+)\s*GHz")
CPUS = "sys/devices/system/cpu"
UNLIMITED = 1 << 60  # a memory limit above this is the kernel's way to say that there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """One data or unified cache as /sys lists it; `shared_by` counts cores."""

    level: int
    size_B: int
    ways: int
    line_B: int
    shared_by: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A number [base unit] and where it was read."""

    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Computer:
    """A computer as its operating system describes it to this process.

    cores, threads: physical cores and hardware threads that this process may use; sockets: those they lie in
    quota: processors whose time a control group grants, None without a limit
    vector_bits: width of the widest SIMD registers [bit]
    memory [B], base and boost clock [Hz], power limit of all packages [W]: each with the file where it was read
    unseen: what could not be read, in sentences; such a field is None or empty
    """

    vendor: str
    name: str
    family: int | None
    model: int | None
    part: str
    flags: frozenset[str]
    virtual: bool
    cores: int
    threads: int
    sockets: int
    quota: float | None
    caches: tuple[Cache, ...]
    memory: Told | None
    base: Told | None
    boost: Told | None
    power: Told | None
    vector_bits: int | None
    unseen: tuple[str, ...]


def read_computer(root: Path = Path("/"), allowed: Collection[int] | None = None) -> Computer:
    """The computer below `root`; `allowed` are the logical processors this process may run on.

    Raises Unsupported where there is no /proc/cpuinfo.
    """
    described = _cpuinfo(root)
    if not described:
        raise Unsupported(
            "this computer cannot be described: there is no /proc/cpuinfo (only Linux has one); "
            "write a spec as hwspecs/README.md says and name its path"
        )
    words = described[0]
    present = _present(root) or set(range(len(described)))
    usable = sorted(present & set(allowed) if allowed is not None else present) or sorted(present)
    cores, sockets, unseen = _topology(root, usable, words)
    caches, missed = _caches(root, usable[0], usable, cores)
    flags = frozenset((words.get("flags") or words.get("Features", "")).split())
    power = _package_power(root, sockets)
    limits = [
        *unseen, *missed, *_hybrid(root),
        *(["power limit and energy: /sys/class/powercap is not readable here"] if power is None else []),
    ]  # fmt: skip
    return Computer(
        vendor=words.get("vendor_id") or words.get("CPU implementer", ""), name=" ".join(words.get("model name", "").split()),
        family=_integer(words.get("cpu family")), model=_integer(words.get("model")), part=words.get("CPU part", ""),
        flags=flags, virtual="hypervisor" in flags, cores=cores, threads=len(usable), sockets=sockets, quota=_quota(root),
        caches=caches, memory=_memory(root), base=_base_clock(root, words), power=power, vector_bits=_vector_bits(root, flags),
        boost=_frequency(root, "cpuinfo_max_freq"), unseen=tuple(limits),
    )  # fmt: skip


def allowed_here() -> set[int]:
    """The logical processors that this process may run on."""
    return set(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def load_average() -> float | None:
    """Programs that ran or waited for a processor over the last minute; None where the system does not say."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def words_of(place: Path) -> str:
    """The content of a small file of the system without blanks around it; empty where it cannot be read."""
    try:
        return place.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def number_in(place: Path) -> int | None:
    """The whole number in a small file of the system; None where there is none."""
    return _integer(words_of(place))


def _cpuinfo(root: Path) -> list[dict[str, str]]:
    """One mapping for each logical processor."""
    blocks = map(str.splitlines, re.split(r"\n\s*\n", words_of(root / "proc/cpuinfo")))
    parsed = [dict([word.strip() for word in line.split(":", 1)] for line in block if ":" in line) for block in blocks]
    return [words for words in parsed if "processor" in words]


def cpu_list(text: str) -> set[int]:
    """The numbers in a kernel list of processors.

    >>> sorted(cpu_list("0-2,8"))
    [0, 1, 2, 8]
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), int(last or first) + 1))
    return found


def _present(root: Path) -> set[int]:
    online = cpu_list(words_of(root / CPUS / "online"))
    return online or {int(match[1]) for entry in entries(root / CPUS) if (match := _CPU.match(entry))}


def entries(folder: Path) -> list[str]:
    """The names in a folder, sorted; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _topology(root: Path, usable: list[int], words: Mapping[str, str]) -> tuple[int, int, list[str]]:
    """Cores and sockets under the usable processors."""
    places = [_core_of(root, cpu) for cpu in usable]
    if all(place is not None for place in places):
        known = {place for place in places if place is not None}
        return len(known), len({package for package, _ in known}), []
    siblings, cores = _integer(words.get("siblings")), _integer(words.get("cpu cores"))
    if siblings and cores:
        return max(1, len(usable) * cores // siblings), 1, ["sockets: /sys shows no topology; taken for one"]
    return len(usable), 1, ["cores and sockets: /sys shows no topology; every processor is taken for a core of one socket"]


def _core_of(root: Path, cpu: int) -> tuple[int, int] | None:
    """(socket, core); siblings name a core better than core_id, which repeats between clusters of some ARM chips."""
    folder = root / CPUS / f"cpu{cpu}" / "topology"
    package = number_in(folder / "physical_package_id")
    siblings = cpu_list(words_of(folder / "thread_siblings_list"))
    core = min(siblings) if siblings else number_in(folder / "core_id")
    return None if core is None else (package or 0, core)


def one_of_each_core(root: Path, usable: Collection[int]) -> list[int]:
    """One of the usable processors on each core, those of one core being the same one's hardware threads."""
    seen: dict[object, int] = {}
    for cpu in sorted(usable):
        seen.setdefault(_core_of(root, cpu) or cpu, cpu)
    return list(seen.values())


def _hybrid(root: Path) -> list[str]:
    """What is lost where a processor has cores of two kinds."""
    small = cpu_list(words_of(root / "sys/devices/cpu_atom/cpus"))
    return [f"two kinds of cores: {len(small)} processors are efficiency cores, but count like the others"] if small else []


def _caches(root: Path, cpu: int, usable: list[int], cores: int) -> tuple[tuple[Cache, ...], list[str]]:
    folder = root / CPUS / f"cpu{cpu}" / "cache"
    found = [_cache(folder / entry, usable, cores) for entry in entries(folder) if entry.startswith("index")]
    caches = sorted((cache for cache in found if cache is not None), key=lambda cache: cache.level)
    if not caches:
        return (), ["caches: /sys/devices/system/cpu lists none"]
    return tuple(caches), []


def _cache(place: Path, usable: list[int], cores: int) -> Cache | None:
    size, level = words_of(place / "size"), number_in(place / "level")
    match = re.fullmatch(r"(\d+)([KM]?)", size)
    if words_of(place / "type") == "Instruction" or level is None or match is None or not int(match[1]):
        return None
    sharers = len(cpu_list(words_of(place / "shared_cpu_list")) & set(usable)) or 1
    return Cache(
        level=level, size_B=int(match[1]) * {"": 1, "K": 1024, "M": 1024**2}[match[2]],
        ways=number_in(place / "ways_of_associativity") or 0, line_B=number_in(place / "coherency_line_size") or 64,
        shared_by=max(1, math.ceil(sharers * cores / len(usable))),
    )  # fmt: skip


def groups(root: Path, controller: str) -> list[Path]:
    """The folders of this process's control group and of those around it, version 2 and version 1."""
    folders: list[Path] = []
    for line in words_of(root / "proc/self/cgroup").splitlines():
        _, names, path = [*line.split(":", 2), "", ""][:3]
        base = root / "sys/fs/cgroup" / (controller if names else "")
        if names and controller not in names.split(","):
            continue
        inner = base / path.strip("/")
        folders += [place for place in (inner, *inner.parents) if place == base or base in place.parents]
    return [*folders, root / "sys/fs/cgroup", root / "sys/fs/cgroup" / controller]


def _quota(root: Path) -> float | None:
    """Processors whose time the tightest control group grants."""
    granted = []
    for folder in groups(root, "cpu"):
        quota, period = [*words_of(folder / "cpu.max").split(), "", ""][:2]
        if not quota:
            quota, period = words_of(folder / "cpu.cfs_quota_us"), words_of(folder / "cpu.cfs_period_us")
        if quota.isdecimal() and period.isdecimal() and int(period):
            granted.append(int(quota) / int(period))
    return min(granted, default=None)


def _memory(root: Path) -> Told | None:
    """Memory of the computer, or what the control group allows of it."""
    limits = [number for folder in groups(root, "memory") for name in ("memory.max", "memory.limit_in_bytes")
              if (number := number_in(folder / name)) and number < UNLIMITED]  # fmt: skip
    whole = _meminfo(root, "MemTotal")
    if whole and limits and min(limits) < whole.value:
        return Told(value=min(limits), source="memory limit of the control group")
    return whole


def _meminfo(root: Path, name: str) -> Told | None:
    match = re.search(rf"^{name}:\s*(\d+) kB", words_of(root / "proc/meminfo"), re.MULTILINE)
    return Told(value=int(match[1]) * 1024, source=f"/proc/meminfo, {name}") if match else None


def _base_clock(root: Path, words: Mapping[str, str]) -> Told | None:
    """The nominal clock; the current one of /proc/cpuinfo only in a virtual machine, where it is the nominal one."""
    match = _GIGAHERTZ.search(words.get("model name", ""))
    if match is not None:
        return Told(value=float(match[1]) * 1e9, source="/proc/cpuinfo, model name")
    rated = _frequency(root, "base_frequency")
    if rated is not None or "hypervisor" not in words.get("flags", "").split():
        return rated
    try:
        megahertz = float(words.get("cpu MHz", ""))
    except ValueError:
        return None
    return Told(value=round(megahertz, -1) * 1e6, source="/proc/cpuinfo, cpu MHz of a virtual machine") if megahertz else None


def _frequency(root: Path, name: str) -> Told | None:
    found = number_in(root / CPUS / "cpu0/cpufreq" / name)
    return Told(value=found * 1e3, source=f"/{CPUS}/cpu0/cpufreq/{name}") if found else None


def _package_power(root: Path, sockets: int) -> Told | None:
    """The long-term limit that RAPL enforces, over all sockets."""
    watts = [number_in(root / f"sys/class/powercap/intel-rapl:{i}/constraint_0_power_limit_uw") for i in range(sockets)]
    known = [watt for watt in watts if watt]
    if len(known) < sockets:
        return None
    return Told(value=sum(known) / 1e6, source="/sys/class/powercap, long-term limit of each package")


def _vector_bits(root: Path, flags: Collection[str]) -> int | None:
    """Width of the widest SIMD registers for arithmetic."""
    if "sve" in flags and (length := number_in(root / "proc/sys/abi/sve_default_vector_length")):
        return 8 * length
    widths = {"avx512f": 512, "avx2": 256, "avx": 256, "asimd": 128, "neon": 128, "sse2": 128}
    return next((bits for name, bits in widths.items() if name in flags), None)


# ---------------------------------------------------------------------------------------------- memory that is left

# names of a control group's limit, use, and cached files, which the kernel gives up first: version 2 and version 1
GROUPS = (
    ("memory.max", "memory.current", ("inactive_file", "active_file")),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")),
)


def available_here(root: Path = Path("/")) -> Told | None:
    """The memory that this process can still take before the kernel refuses it or kills the process [B].

    The least of what the computer and the control groups around the process have left; None where nobody tells.
    """
    found = [_meminfo(root, "MemAvailable"), *_of_groups(root), _of_process()]
    return min((told for told in found if told), key=lambda told: told.value, default=None)


def _of_groups(root: Path) -> list[Told]:
    found = []
    for folder in groups(root, "memory"):
        for limit, use, caches in GROUPS:
            most, taken = number_in(folder / limit), number_in(folder / use)
            if most is None or most >= UNLIMITED:
                continue
            stat = dict(re.findall(r"^(\w+) (\d+)$", words_of(folder / "memory.stat"), re.MULTILINE))
            cached = sum(int(stat.get(name, 0)) for name in caches)
            left = max(0, most - max(0, (taken or 0) - cached))
            found.append(Told(value=left, source="what the memory limit of the control group leaves"))
    return found


def _of_process() -> Told | None:
    """The limit of the address space (`ulimit -v`)."""
    try:
        import resource
    except ImportError:  # no POSIX system
        return None
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if most in (resource.RLIM_INFINITY, -1) else Told(value=most, source="ulimit -v")
