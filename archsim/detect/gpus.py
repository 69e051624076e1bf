"""The NVIDIA GPUs of this computer, as the driver's management library (NVML) tells them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from archsim.base.errors import Unsupported
from archsim.base.units import parse
from archsim.detect.describe import plain
from archsim.detect.detect import Detected
from archsim.device.catalog import find, names
from archsim.device.entry import Entry
from archsim.device.file import loads
from archsim.device.spec import Spec, unit_of
from archsim.device.write import to_toml

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
