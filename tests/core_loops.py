"""Random loops on random cores, for laws that hold for all of them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from archsim.cycle.core.machine import CoreMachine, core_machine
from archsim.cycle.core.operation import Access, CoreLoop, MemoryStream, Operation
from archsim.device.catalog import find

ARITHMETIC = ("fma", "add", "mul", "max", "shuffle", "cross", "divide", "root", "vint", "blend", "convert")
INTEGER = ("int", "multiply", "address")
PORTS = 6
STRIDES = (8, 32, 64, 96, 256)
# A loop as its file has it: one accumulator of multiply-adds, 4 clocks an iteration where they take as many.
LOOP: dict[str, Any] = {
    "name": "chain", "measured": {"cycles_per_iteration": 4.1}, "streams": [], "flops_per_iteration": 16,
    "ops": [
        {"id": 0, "kind": "fma", "width_bits": 256, "elem": "f32", "out": "a", "form": "accumulate", "address_in": [],
         "in": [{"value": "a", "producer": 0, "distance": 1}]},
        {"id": 1, "kind": "int", "width_bits": 64, "elem": "i64", "out": "n", "address_in": [],
         "in": [{"value": "n", "producer": 1, "distance": 1}]},
        {"id": 2, "kind": "branch", "width_bits": 64, "elem": "i64", "out": None, "macro_fusible_with": 1, "address_in": [],
         "in": [{"value": "n", "producer": 1, "distance": 0}]},
    ],
}  # fmt: skip


@lru_cache(maxsize=1)
def zen5() -> CoreMachine:
    """A shipped core that every key of the pipeline describes."""
    return core_machine(find("epyc_9655").device, 4.15e9)


@st.composite
def cores(draw: Any, order: str | None = None) -> CoreMachine:
    """A core with all widths, entries, ports and latencies drawn."""
    base = zen5()
    count = draw(st.integers(1, PORTS))
    masks = {kind: draw(st.integers(1, (1 << count) - 1)) for kind in base.masks}
    whole = st.integers
    pipeline = replace(
        base.pipeline, order=order or draw(st.sampled_from(("out", "out", "in"))), rename=draw(whole(1, 8)),
        retire=draw(whole(1, 8)),
        fetch=draw(whole(1, 12)), branches=draw(whole(1, 2)), window=draw(whole(8, 200)), scheduler_int=draw(whole(4, 60)),
        scheduler_vector=draw(whole(4, 60)), scheduler_memory=draw(whole(4, 60)), load_queue=draw(whole(4, 60)),
        store_queue=draw(whole(4, 60)), int_registers=draw(whole(24, 200)), vector_registers=draw(whole(40, 200)),
        binding=draw(st.sampled_from(("rename", "issue"))), eliminates=draw(st.sampled_from(("none", "moves", "memory"))),
        fuses=draw(st.sampled_from(("none", "both"))), issue_delay=draw(whole(1, 6)),
        mispredict=draw(whole(3, 30)), exit_trips=draw(whole(1, 100)),
        datapath=draw(st.sampled_from((128, 256, 512))), load_path=draw(st.sampled_from((128, 256, 512))),
    )  # fmt: skip
    latency = {kind: draw(whole(1, 8)) for kind in base.latency}
    latency |= {"divide": draw(whole(4, 20)), "root": draw(whole(4, 20)), "divide64": draw(whole(4, 20))}
    near, far = draw(whole(8, 20)), draw(whole(30, 60))
    return replace(
        base, pipeline=pipeline, ports=tuple(f"p{at}" for at in range(count)), masks=masks, wide={}, latency=latency,
        load=draw(whole(1, 6)), read=draw(st.sampled_from((16.0, 48.0, 128.0))), write=draw(st.sampled_from((8.0, 24.0, 64.0))),
        near=((draw(whole(4, 64)), near), (draw(whole(4, 32)), far), (draw(whole(2, 16)), draw(whole(100, 200)))),
        buffers=draw(whole(1, 16)), far_buffers=draw(whole(1, 32)), ahead=draw(whole(0, 4)), far_ahead=draw(whole(0, 8)),
    )  # fmt: skip


@st.composite
def loops(draw: Any, most: int = 10) -> CoreLoop:
    """A loop of up to some operations, whose operands come from anywhere before."""
    count = draw(st.integers(1, most))
    streams = tuple(
        MemoryStream(name=f"s{at}", stride=draw(st.sampled_from(STRIDES)), footprint=1 << 20, start=draw(st.integers(0, 15)) * 8,
                     level=draw(st.sampled_from((1, 1, 2, 3, 4))))
        for at in range(draw(st.integers(1, 2)))
    )  # fmt: skip
    operations = [_operation(draw, at, count, streams) for at in range(count)]
    operations.append(Operation(kind="int", vector=False, element=64, sources=((count, 1),)))
    operations.append(Operation(kind="branch", vector=False, element=64, sources=((count, 0),), writes=False, fused=True,
                                missed=draw(st.sampled_from((0.0, 0.0, 0.25, 0.02))), trips=draw(st.sampled_from((0, 3, 70)))))
    return CoreLoop(name="random", operations=tuple(operations), streams=streams)


def _operation(draw: Any, at: int, count: int, streams: tuple[MemoryStream, ...]) -> Operation:
    kind = draw(st.sampled_from((*ARITHMETIC, *INTEGER, "load", "load", "broadcast", "store", "mov")))
    vector = kind not in INTEGER
    width = draw(st.sampled_from((128, 256, 512))) if vector else 64
    sources = tuple(_source(draw, at, count) for _ in range(draw(st.integers(0, 2))))
    if kind not in ("load", "broadcast", "store"):
        return Operation(kind=kind, width=width, sources=sources, vector=vector)
    size = 4 if kind == "broadcast" else width // 8
    memory = Access(stream=draw(st.sampled_from(streams)).name, offset=draw(st.integers(0, 8)) * size, size=size)
    stored = sources[:1] if kind == "store" else ()
    return Operation(kind=kind, width=width, sources=stored, memory=memory, writes=kind != "store", address=((count, 1),))


def _source(draw: Any, at: int, count: int) -> tuple[int, int]:
    """Who made an operand: an operation of this iteration, or of one or two before."""
    back = draw(st.integers(0 if at else 1, 2))
    return draw(st.integers(0, at - 1 if back == 0 else count)), back
