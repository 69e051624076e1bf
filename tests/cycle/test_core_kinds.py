"""What a kind of operation takes on a core: micro-operations, ports that it keeps, widths, the loop buffer, one scheduler."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from archsim.cycle.core.assemble import assembled
from archsim.cycle.core.machine import CoreMachine, core_machine
from archsim.cycle.core.operation import Access, CoreLoop, MemoryStream, Operation
from archsim.cycle.core.run import run_loop
from archsim.device.catalog import find

LOOP_END = (
    Operation(kind="int", vector=False, sources=((-1, 1),)),
    Operation(kind="branch", vector=False, fused=True, writes=False, sources=((-2, 0),)),
)


def machine(device: str, **pipeline: Any) -> CoreMachine:
    found = core_machine(find(device).device, 3e9)
    return replace(found, pipeline=replace(found.pipeline, **pipeline))


def loop(*operations: Operation, streams: tuple[MemoryStream, ...] = ()) -> CoreLoop:
    """Operations, a counter and a branch."""
    at = len(operations)
    end = (replace(LOOP_END[0], sources=((at, 1),)), replace(LOOP_END[1], sources=((at, 0),)))
    return CoreLoop(name="loop", operations=(*operations, *end), streams=streams)


def chain(kind: str, width: int = 256, **words: Any) -> CoreLoop:
    """One operation that waits for its own result."""
    return loop(Operation(kind=kind, width=width, sources=((0, 1),), **words))


def test_an_operation_that_is_cracked_takes_a_slot_and_a_port_for_each_part() -> None:
    skylake = machine("i7_6700k")
    rows = [row for row in assembled(skylake, loop(Operation(kind="round", width=256))) if row.operation == 0]
    assert [row.slots for row in rows] == [1, 1]
    eight = loop(*(Operation(kind="round", width=256) for _ in range(8)))
    assert run_loop(skylake, eight).cycles == pytest.approx(8, rel=0.02)  # 16 micro-operations on two ports
    assert run_loop(skylake, chain("round")).cycles == 8  # the latency is that of the whole


def test_a_wide_operation_of_a_narrow_core_takes_several_slots_but_not_a_longer_chain() -> None:
    wide = machine("i7_6700k", slot_width=128.0, datapath=128.0)
    assert [row.slots for row in assembled(wide, chain("add")) if row.operation == 0] == [2]
    assert run_loop(wide, chain("add")).cycles == run_loop(machine("i7_6700k"), chain("add")).cycles == 4
    adds = loop(*(Operation(kind="add", width=256) for _ in range(8)))
    assert run_loop(wide, adds).cycles == pytest.approx(8, rel=0.02)
    assert run_loop(machine("i7_6700k"), adds).cycles == pytest.approx(4, rel=0.02)


def test_an_operation_takes_no_more_slots_than_rename_has() -> None:
    """Eight slots of 32 bit would wait for ever where five are renamed in a clock, or the window holds three."""
    for pipeline, slots in (({"rename": 5.0}, 5), ({"rename": 5.0, "window": 3.0}, 3), ({"rename": 9.0}, 8)):
        narrow = machine("i7_6700k", slot_width=32.0, **pipeline)
        assert next(row.slots for row in assembled(narrow, chain("add"))) == slots
        assert run_loop(narrow, chain("add")).cycles >= 4


def test_a_loop_in_the_loop_buffer_loses_no_slot_at_its_branch() -> None:
    five = loop(*(Operation(kind="zero", width=256) for _ in range(4)))  # five slots with the counter
    assert run_loop(machine("xeon_e5_2650_v3", loop_buffer=56.0), five).cycles == pytest.approx(1.25, rel=0.05)
    assert run_loop(machine("xeon_e5_2650_v3", loop_buffer=None), five).cycles == 2
    assert run_loop(machine("xeon_e5_2650_v3", loop_buffer=4.0), five).cycles == 2


def test_one_scheduler_is_full_of_all_kinds_together() -> None:
    loads = tuple(Operation(kind="load", width=256, memory=Access(stream="x", offset=32 * at, size=32)) for at in range(8))
    mixed = loop(Operation(kind="divide", width=256, sources=((0, 1),)), *loads, *(Operation(kind="int", vector=False),) * 8,
                 streams=(MemoryStream(name="x", stride=0, footprint=256),))  # fmt: skip
    shared = run_loop(machine("i7_6700k", scheduler=12.0), mixed)
    assert shared.waits["scheduler"] > 0
    assert "integer scheduler" not in shared.waits


@pytest.mark.parametrize(("width", "element", "clocks"), [(512, 32, 17), (256, 32, 11), (512, 64, 23), (256, 64, 15)])
def test_a_narrow_division_is_faster_than_a_wide_one(width: int, element: int, clocks: float) -> None:
    assert run_loop(machine("xeon_gold_6148"), chain("divide", width, element=element)).cycles == clocks


def test_an_addend_that_is_forwarded_shortens_its_chain_only() -> None:
    a57 = machine("tegra_x1_cpu")
    assert run_loop(a57, chain("fma", 128, chained=True)).cycles == 4
    assert run_loop(a57, chain("fma", 128)).cycles == 10


def test_a_broadcast_takes_what_spreads_it_where_loads_do_not() -> None:
    spread = Operation(kind="broadcast", width=128, memory=Access(stream="x", offset=0, size=4))
    stream = (MemoryStream(name="x", stride=0, footprint=64),)
    assert sum(run_loop(machine("tegra_x1_cpu"), loop(spread, streams=stream)).ports[port] for port in ("F0", "F1")) > 0
    assert run_loop(machine("i7_6700k"), loop(spread, streams=stream)).ports["P5"] < 0.5


def test_addresses_wait_in_a_scheduler_of_their_own_where_the_core_has_one() -> None:
    adds = (Operation(kind="add", width=256, sources=((0, 0),)),) * 8
    mixed = loop(Operation(kind="divide", width=256, sources=((0, 1),)), *adds)
    waits = run_loop(machine("i7_6700k", scheduler=12.0, scheduler_memory=40.0), mixed).waits
    assert waits["scheduler"] > 0
    assert waits["memory scheduler"] == 0
