"""The computer that this process runs on, as a spec; and its NVIDIA GPUs, as the driver's library (NVML) tells them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from archsim.base.errors import Unsupported
from archsim.base.units import parse
from archsim.detect.architecture import core_of
from archsim.detect.describe import ID, describe, plain, simd_bits, usable_cores
from archsim.detect.probe import Probe, Subject, measure
from archsim.detect.sampling import PAGE_B
from archsim.detect.system import Computer, Told, allowed_here, available_here, read_computer
from archsim.device.catalog import find, names
from archsim.device.entry import Entry
from archsim.device.file import loads
from archsim.device.spec import Spec, unit_of
from archsim.device.write import to_toml

UNKNOWN_B = 1 << 31  # memory that is taken to be there where nobody tells


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """A computer, the spec that stands for it, and the text of the spec's file; of a GPU alone there is no computer."""

    computer: Computer | None
    probe: Probe | None
    text: str
    spec: Spec


def detect(
    probe: bool = False, name: str = ID, root: Path = Path("/"), tell: Callable[[str], None] = lambda text: None
) -> Detected:
    """Describe the computer; with `probe` some of its values are measured, which takes seconds.

    Raises Unsupported where the system tells nothing, InputError where a value it tells cannot be.
    """
    computer = read_computer(root, allowed_here() if root == Path("/") else None)
    row = core_of(computer)
    relative = find(row.like)
    found = None
    if probe:
        found = measure(subject_of(computer, relative, available_here(root)), tell)
    text = describe(computer, row, relative, found, name)
    return Detected(computer=computer, probe=found, text=text, spec=loads(text, "this computer", find))


def subject_of(computer: Computer, relative: Spec, left: Told | None) -> Subject:
    """What the probe must know; `relative` is the spec of the nearest core, `left` the memory that can still be taken."""
    sizes = [size.value for size in (computer.memory, left) if size is not None]
    threads = usable_cores(computer)
    last = -(-threads // computer.caches[-1].shared_by) if computer.caches else 1
    tlb, page = (relative.entries.get(f"l2.{key}") for key in ("tlb_entries", "tlb_page"))
    small = tlb is not None and page is not None and page.value == PAGE_B
    return Subject(
        threads=threads, last=last, simd=simd_bits(computer, relative), fused=not {"fma", "asimd"}.isdisjoint(computer.flags),
        caches_B=tuple(cache.size_B for cache in computer.caches), memory_B=int(min(sizes, default=UNKNOWN_B)),
        tlb_entries=int(float(tlb.value)) if tlb is not None and small else 0,
    )  # fmt: skip


@cache
def host() -> Spec:
    """The spec of this computer without measuring anything; the same object in the whole process."""
    return detect().spec


# ----------------------------------------------------------------------------------------------------------------- GPUs

UNKNOWN = "no GPU was looked for: nvidia-ml-py is not installed (pip install \"archsim[measure]\")"
MAKER = re.compile(r"^(nvidia|geforce|\s)+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """What NVML tells of one GPU; None where the driver does not say."""

    name: str
    memory_B: float | None
    clock_Hz: float | None
    power_W: float | None


def library() -> Any:
    """NVML, ready to be asked; Unsupported says why there is none."""
    try:
        import pynvml
    except ImportError:
        raise Unsupported(UNKNOWN) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise Unsupported(f"no NVIDIA GPU: {error}") from None
    return pynvml


def read_gpus() -> list[GpuFacts]:
    """The GPUs in the order of the driver; Unsupported where none can be asked."""
    nvml = library()
    return [_facts(nvml, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(nvml.nvmlDeviceGetCount())]


def _facts(nvml: Any, handle: Any) -> GpuFacts:
    def asked(question: Callable[[], float], scale: float) -> float | None:
        try:
            return float(question()) * scale
        except nvml.NVMLError:
            return None

    name = nvml.nvmlDeviceGetName(handle)
    return GpuFacts(
        name=plain(name.decode() if isinstance(name, bytes) else name),
        memory_B=asked(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total, 1.0),
        clock_Hz=asked(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM), 1e6),
        power_W=asked(lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle), 1e-3),
    )


def relative(facts: GpuFacts) -> Spec | None:
    """The shipped spec of a GPU: by its name, and among several of that name by the size of the memory."""
    wanted = _plain(MAKER.sub("", facts.name))
    specs = [spec for spec in map(find, names()) if spec.kind == "gpu"]
    named = [(spec, {_plain(MAKER.sub("", word)) for word in (*spec.identity.aliases, spec.identity.name, spec.identity.id)})
             for spec in specs]  # fmt: skip
    fitting = [spec for spec, words in named if wanted in words]
    fitting = fitting or [spec for spec, words in named if any(word.startswith(wanted) for word in words)]
    if not fitting or facts.memory_B is None:
        return fitting[0] if len(fitting) == 1 else None
    size = facts.memory_B
    return min(fitting, key=lambda spec: abs(float(spec.entries["memory.capacity"].value) - size))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def gpus_said() -> list[str]:
    """One line for each GPU, or why there is none."""
    try:
        found = read_gpus()
    except Unsupported as error:
        return [str(error)]
    return [_said(i, facts) for i, facts in enumerate(found)] or ["no NVIDIA GPU: the driver lists none"]


def _said(i: int, facts: GpuFacts) -> str:
    kin = relative(facts)
    use = f"--hw {kin.identity.id}, or archsim detect --gpu {i}" if kin else "not described; write a spec (hwspecs/README.md)"
    return f"{i}: {facts.name}: {use}"


def described(index: int, name: str) -> Detected:
    """The spec of a GPU; Unsupported for one that is not among the shipped devices."""
    found = read_gpus()
    if index >= len(found):
        raise Unsupported(f"--gpu {index}: the driver lists {len(found)} GPUs, from 0")
    facts = found[index]
    kin = relative(facts)
    if kin is None:
        raise Unsupported(f"{facts.name} is not among the shipped devices; write its spec as hwspecs/README.md says")
    text = gpu_text(facts, kin, name)
    return Detected(computer=None, probe=None, text=text, spec=loads(text, f"GPU {index}", find))


def gpu_text(facts: GpuFacts, kin: Spec, name: str) -> str:
    """A whole spec: what NVML tells, and the rest as the shipped spec of the same product has it."""
    base = float(kin.entries["clock.base"].number)
    told = {
        "clock.boost": (facts.clock_Hz and max(facts.clock_Hz, base) / 1e6, "MHz", "NVML, highest SM clock"),
        "memory.capacity": (facts.memory_B and facts.memory_B / 2**20, "MiB", "NVML, total memory"),
        "power.tdp": (facts.power_W, "W", "NVML, default power limit"),
    }
    entries = dict(kin.entries)
    for key, (value, unit, source) in told.items():
        if value:
            written = f"{value:g} {unit}"
            number = parse(written, unit_of("gpu", key).unit)
            entries[key] = Entry(key=key, value=number, written=written, source=source, kind="measured")
    identity = replace(kin.identity, id=name, name=f"this computer: {facts.name}", aliases=())
    mine = replace(kin, identity=identity, entries=entries, stated={})
    return to_toml(mine, f"Written by archsim detect: what NVML tells, the rest as in hwspecs/{kin.identity.id}.toml.")
