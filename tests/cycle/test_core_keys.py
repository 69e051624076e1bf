"""Every key of a core's pipeline and of its caches moves the time of a loop on a simulated core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec

import pytest

from archsim.base.errors import ArchsimError, Unsupported
from archsim.base.units import TEXT
from archsim.cycle.core.loops import chase, streamed
from archsim.cycle.core.machine import CoreMachine, core_machine
from archsim.cycle.core.operation import Access, CoreLoop, MemoryStream, Operation
from archsim.cycle.core.run import run_loop
from archsim.device import catalog
from archsim.device.spec import Spec, keys

WORDS = {"pipeline.order": ("in", "out"), "pipeline.binding": ("rename", "issue"),
         "pipeline.eliminates": ("none", "zero", "moves", "memory"), "pipeline.fuses": ("none", "memory", "branch", "both")}
FACTORS = (0.25, 4.0, 1 / 16, 16.0, 1e-3)
FIRST = ("i7_6700k", "xeon_platinum_8480", "epyc_9655", "tegra_x1_cpu", "apple_m1", "epyc_7601", "xeon_e5_2630_v3")
WIDE = "xeon_platinum_8480"
TOLD_BY = 3  # devices that state a key, at most, on which it is tried
CLOCK = 3e9  # Hz
NARROW = {f"port512.{name}" for name in ("int", "multiply", "address", "branch", "store_data", "broadcast")}  # never 512 bit wide
pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")]


def cycle_keys() -> dict[str, bool]:
    """The keys that only a simulated core reads, and whether each is a word."""
    return {key: unit.unit == TEXT for key, unit, _ in keys("cpu") if unit.cycle}


def variants(spec: Spec, key: str) -> Iterator[Spec]:
    """The device with other values of one key, or with a value of a key of which its spec says nothing."""
    if key in WORDS:
        values = list(WORDS[key])
    elif cycle_keys()[key]:
        values = list(core_machine(spec.device, CLOCK).ports)
    else:
        unit = next(unit for name, unit, _ in keys("cpu") if name == key)
        numbers = [float(spec.entries[key].number) * factor for factor in FACTORS] if key in spec.entries else [3.0, 20.0]
        values = [f"{max(1, round(n)) if unit.whole else n:g}" + ("" if unit.unit == "1" else f" {unit.unit}") for n in numbers]
    for value in values:
        try:
            changed = spec.with_settings({key: value})
        except ArchsimError:  # out of range, or what fits no other key
            continue
        if key not in spec.entries or changed.entries[key].value != spec.entries[key].value:
            yield changed


def machine_of(changed: Spec, spec: Spec) -> CoreMachine:
    """The core of a changed device, its ports numbered as they were."""
    made, ports = core_machine(changed.device, CLOCK), core_machine(spec.device, CLOCK).ports

    def numbered(masks: Mapping[str, int]) -> dict[str, int]:
        return {kind: sum(1 << ports.index(port) for at, port in enumerate(made.ports) if mask >> at & 1)
                for kind, mask in masks.items()}  # fmt: skip

    return replace(made, ports=ports, masks=numbered(made.masks), wide=numbered(made.wide)) if {*made.ports} <= {*ports} else made


MEMORY = {"load", "load_vector", "store_address", "store_data", "store_data_vector", "indexed", "gather", "broadcast"}
SCALAR = {"int", "multiply", "address", "branch"}
FAR = MemoryStream(name="x", stride=64, footprint=64, level=1)


def end(at: int) -> tuple[Operation, Operation]:
    """A counter and the branch back."""
    return (Operation(kind="int", vector=False, sources=((at, 1),)),
            Operation(kind="branch", vector=False, fused=True, writes=False, sources=((at, 0),)))  # fmt: skip


def of(*operations: Operation, streams: tuple[MemoryStream, ...] = ()) -> CoreLoop:
    return CoreLoop(name="loop", operations=(*operations, *end(len(operations))), streams=streams)


def loops(spec: Spec, key: str) -> Iterator[CoreLoop]:
    """What a key is about: its kind of operation, one after the other and side by side; or loads, stores, and what they hide."""
    table, _, name = key.partition(".")
    widest = int(float(spec.entries["core.simd"].number))
    kind = name.rstrip("0123456789").removesuffix("_chain")
    if table in ("port", "port512", "latency", "hold", "cracked") and kind not in MEMORY:
        for width in sorted({64} if kind in SCALAR else {128, 256, widest}):
            for element in (32, 64):
                one = Operation(kind=kind, width=width, element=element, vector=kind not in SCALAR, writes=kind != "branch")
                yield of(replace(one, sources=((0, 1),)))
                yield of(replace(one, sources=((0, 1),), chained=True))
                yield of(*[one] * 12)
                yield of(one, *[Operation(kind="fma", width=width)] * 48)
                yield of(one, *[Operation(kind="int", vector=False)] * 20)
        return
    for level in (1, 2, 3, 4):
        for loop in ("copy", "set", "triad"):
            yield streamed(loop, widest, 32, 4, level)
        yield chase(level, footprint=1 << 24)
    load = Operation(kind="load", width=widest, memory=Access(stream="x", offset=0, size=widest // 8))
    yield of(*[replace(load, kind="broadcast", memory=Access(stream="x", offset=0, size=4))] * 8, streams=(FAR,))
    yield of(replace(load, kind="broadcast", memory=Access(stream="x", offset=0, size=4), address=((0, 1),)), streams=(FAR,))
    yield of(*[replace(load, width=64, vector=False, memory=Access(stream="x", offset=0, size=8))] * 8, streams=(FAR,))
    yield of(*[replace(load, memory=Access(stream="x", offset=60, size=widest // 8))] * 8, streams=(FAR,))
    yield of(*[replace(load, elements=8, address=((0, 1),))] * 2, streams=(FAR,))
    yield of(replace(load, kind="gather", elements=8, address=((0, 1),)), streams=(FAR,))
    for vector, width in ((False, 64), (True, widest)):  # what was stored is loaded again
        again = Access(stream="x", offset=0, size=width // 8)
        store = Operation(kind="store", width=width, vector=vector, writes=False, memory=again, sources=((1, 1),))
        yield of(store, replace(store, kind="load", writes=True, sources=()), streams=(replace(FAR, stride=0),))
        yield of(*[replace(store, sources=())] * 8, streams=(replace(FAR, stride=0),))
    for kind in ("zero", "move", "add"):
        many = Operation(kind=kind, width=widest)
        yield of(*[many] * 6)
        yield of(*[replace(many, sources=((at - 1, 0),) if at else ((5, 1),)) for at in range(6)])
    yield of(*[Operation(kind="int", vector=False)] * 2000)  # more than the front end keeps decoded
    yield of(*[Operation(kind="branch", vector=False, writes=False)] * 4)
    yield of(Operation(kind="branch", vector=False, writes=False, missed=0.25))
    yield of(Operation(kind="branch", vector=False, writes=False, trips=160))
    index = replace(load, width=64, vector=False, memory=Access(stream="x", offset=0, size=8), address=((0, 1),), indexed=True)
    yield of(index, streams=(FAR,))


def cycles(machine: CoreMachine, loop: CoreLoop) -> float:
    """Clocks of an iteration; 0 where the core cannot run it."""
    try:
        return run_loop(machine, loop).cycles
    except Unsupported:
        return 0.0


def moves_a_loop(key: str) -> bool:
    for name in told_by(key):
        spec = catalog.find(name)
        before, others = core_machine(spec.device, CLOCK), [machine_of(changed, spec) for changed in variants(spec, key)]
        for loop in loops(spec, key):
            clocks = cycles(before, loop)
            if any(cycles(other, loop) != clocks for other in others):
                return True
    return False


def told_by(key: str) -> list[str]:
    """Devices whose specs say something of a key; where nobody does, those with the tables beside it."""
    cpus = [name for name in (*FIRST, *catalog.names()) if catalog.find(name).kind == "cpu"]
    found = [name for name in dict.fromkeys(cpus) if key in catalog.find(name).entries]
    return found[:TOLD_BY] or [WIDE if key.startswith("port512") else FIRST[0]]


@pytest.mark.parametrize("key", sorted({*cycle_keys()} - NARROW))
def test_each_key_of_a_core_moves_a_loop(key: str) -> None:
    assert moves_a_loop(key)


@pytest.mark.parametrize("key", sorted(NARROW))
def test_what_no_loop_asks_for_is_known(key: str) -> None:
    assert not moves_a_loop(key), "a model reads it now: take it off the list"
