"""What a computer says that was detected: its peaks and memory, what is assumed of it, and what to type next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from archsim.answers.device import fp32_peak
from archsim.base.units import show, show_capacity
from archsim.detect.describe import unseen
from archsim.detect.detect import Detected
from archsim.detect.probed import told
from archsim.device.device import Cpu
from archsim.render.blocks import Block, Facts, Verdict

LISTED = 8  # assumed values that are named


def sections(found: Detected, gpus: Sequence[str] = (), place: str = "host") -> list[Block]:
    """The blocks of a detected computer.

    gpus: a line for each of its GPUs; place: the device or file by which other commands name it
    """
    spec, computer = found.spec, found.computer
    device = spec.device
    memory = spec.entries.get("memory.type")
    clock = f"at {show(float(device.default_clock), 'Hz', 3)}"
    lines = [
        (f"{fp32_peak(device)} fp32", clock, _doubt(found, "clock.boost", "clock.simd")),
        (f"{show(float(device.memory.bandwidth), 'B/s', 3)} of memory",
         f"{show_capacity(float(device.memory.capacity), 3)} {'' if memory is None else memory.value}",
         _doubt(found, "memory.bandwidth")),
        (show(float(device.power.tdp), "W", 3), "its power limit", _doubt(found, "power.tdp")),
    ]  # fmt: skip
    virtual = ["a virtual machine, which shows what its hypervisor tells"] if computer and computer.virtual else []
    cores = [f"{device.core.count:g} cores, {device.core.simd:g}-bit SIMD"] if isinstance(device, Cpu) else []
    return [Verdict(title=spec.identity.name, asked=[spec.identity.architecture, *cores, *virtual], lines=lines),
            Facts(rows=[*_facts(found, gpus, place)])]  # fmt: skip


def _doubt(found: Detected, *keys: str) -> str:
    """That a value is assumed; empty where it is known."""
    return "assumed" if any(found.spec.entries[key].kind == "assumed" for key in keys if key in found.spec.entries) else ""


def _facts(found: Detected, gpus: Sequence[str], place: str) -> Iterator[tuple[str, str | list[str]]]:
    entries = found.spec.entries
    sizes = ((level.upper(), entries.get(f"{level}.size")) for level in ("l1", "l2", "l3"))
    yield "caches", ", ".join(f"{name} {show_capacity(float(size.number))}" for name, size in sizes if size is not None)
    kinds = Counter(entry.kind for entry in entries.values())
    yield "values", ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    guessed = [entry.key for entry in found.spec.assumed if entry.kind == "assumed"]
    more = f" and {len(guessed) - LISTED} more" if len(guessed) > LISTED else ""
    measures = "" if found.probe or found.computer is None else "; --probe measures clocks and bandwidths"
    yield "assumed", f"{', '.join(guessed[:LISTED])}{more}{measures}" if guessed else "nothing"
    if found.probe is not None:
        yield "probed", list(told(found.probe))
    if found.computer is not None:
        yield "not seen", list(unseen(found.computer, found.spec, found.probe))
    yield "GPU", list(gpus)
    yield "next", f"archsim estimate --net alexnet --hw {place}"
