"""Measured loops of a file as cases: the cycles of an iteration on one core, which the cycle fidelity predicts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from archsim.base.errors import ArgumentError, Unsupported
from archsim.base.files import read_text
from archsim.base.limits import LIMITS
from archsim.detect.architecture import CoreRow, core_of
from archsim.detect.catalog import find as find_device
from archsim.detect.system import Computer
from archsim.device.device import Cpu
from archsim.device.spec import Spec
from archsim.evidence.case import TIMERS, WATCHED, Case, LoopPattern, Skip
from archsim.evidence.row import alone
from archsim.stack import catalog as stacks
from archsim.validation.loop_file import read_loops

SUFFIX = ".json"
METRIC = "clk_per_iteration"
COLUMNS = ("group", "isa", "elem", "description")  # of a loop, which become columns of its row


def is_loop_file(path: str) -> bool:
    """Whether a measurement file has loops and not rows."""
    return path.lower().endswith(SUFFIX)


def loop_cases(path: str, devices: Sequence[str] = ()) -> tuple[list[Case], list[Skip]]:
    """A case for each measured loop of a file, a skip for each other one.

    devices: the one on which the loops are simulated; that of the file's machine where none is named. A loop runs at the middle
    of the clocks that were seen beside it.

    Raises InputError for a file that is none, ArgumentError for a device that cannot have been the one measured.
    """
    read_loops(path)  # every problem of the file at once
    words = json.loads(read_text(Path(path), LIMITS["network"].size))
    found = words.get("loops", [words])
    meta = words.get("meta")
    spec = _device(path, meta if isinstance(meta, Mapping) else {}, devices)
    stack = stacks.find(spec.identity.default_stack)
    cases: list[Case] = []
    skips: list[Skip] = []
    for line, one in enumerate(found, start=1):
        measured = one.get("measured") or {}
        fields = {"name": str(one["name"]), **{name: str(one[name]) for name in COLUMNS if one.get(name)}}
        value = measured.get("cycles_per_iteration")
        if value is None:
            skips.append(Skip(line=line, reason="nobody has measured the loop", file=path, fields=fields))
            continue
        cases.append(Case(
            line=line, fields=fields, source=Path(path).stem, label=fields["name"], hardware=spec.identity.id, stack_id=stack.id,
            task="inference", metric=METRIC, measured=float(value), split=WATCHED, trace=alone("loop"),
            spec=spec, stack=stack, precision="fp64" if one.get("elem") == "f64" else "fp32", batch=1, clock=_clock(measured),
            timer=TIMERS["device"], pattern=LoopPattern(words=one), file=path,
        ))  # fmt: skip
    return cases, skips


def _clock(measured: Mapping[str, Any]) -> float | None:
    """The middle of the clocks beside a measurement [Hz]; None where it says nothing."""
    ends = measured.get("clock_ghz")
    if not isinstance(ends, list) or not all(isinstance(end, (int, float)) and 0 < end < 100 for end in ends) or not ends:
        return None
    return 1e9 * sum(ends) / len(ends)


def _device(path: str, meta: Mapping[str, Any], devices: Sequence[str]) -> Spec:
    """The device that was measured: the one named, or a shipped one with the core of the file's machine."""
    if len(devices) > 1:
        raise ArgumentError(f"hw {','.join(devices)}: the loops of {path} were measured on one device; name one")
    row = _core(meta)
    if not devices:
        if row is None:
            raise ArgumentError(f"{path} does not say which processor was measured (meta.machine.cpu); --hw names it")
        return find_device(row.like)
    spec = find_device(devices[0])
    if not isinstance(spec.device, Cpu):
        raise ArgumentError(f"hw {devices[0]}: is a GPU, and the loops of {path} run on CPUs")
    if row is not None and spec.identity.architecture != row.architecture:
        raise ArgumentError(f"hw {devices[0]}: has cores of {spec.identity.architecture}, and the cycles of {path} were measured "
                            f"on {row.architecture}; leave --hw out for {row.like}")  # fmt: skip
    return spec


def _core(meta: Mapping[str, Any]) -> CoreRow | None:
    """The row of the processor that the file names; None where it names none that is known."""
    machine = meta.get("machine")
    cpu = machine.get("cpu") if isinstance(machine, Mapping) else None
    if not isinstance(cpu, Mapping):
        return None
    flags = machine.get("flags") if isinstance(machine, Mapping) else None
    try:
        return core_of(Computer(
            vendor=str(cpu.get("vendor_id", "")), name=str(cpu.get("model name", "")), part=str(cpu.get("CPU part", "")),
            family=_whole(cpu.get("cpu family")), model=_whole(cpu.get("model")), flags=frozenset(map(str, flags or ())),
            virtual=False, cores=1, threads=1, sockets=1, quota=None, caches=(), memory=None, base=None, boost=None, power=None,
            vector_bits=None, unseen=(),
        ))  # fmt: skip
    except Unsupported:
        return None


def _whole(text: Any) -> int | None:
    try:
        return int(str(text))
    except ValueError:
        return None
