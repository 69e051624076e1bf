"""The parts of a CPU core that only its simulation reads: the pipeline, its ports, and what each kind of operation takes there.

A kind of operation has the same name in every table. A table lacks what its core takes from a kind that it stands for, as
`FALLBACK` has it: a core whose adder is its multiplier says so once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.base.units import COUNT, TEXT
from archsim.device.part import cycles, spec, whole

if TYPE_CHECKING:
    from archsim.device.part import Number

FALLBACK = {  # where a table has no word on a kind of operation, this kind's counts
    "multiply": "int", "address": "int", "branch": "int", "load_vector": "load", "store_address": "load",
    "store_data_vector": "store_data", "add": "fma", "mul": "fma", "max": "add", "divide": "mul", "root": "divide",
    "cross": "shuffle", "convert": "add", "round": "convert", "scale": "mul", "vint": "logic", "vmul": "mul", "shift": "vint",
    "blend": "logic", "mask": "vint", "pairwise": "add", "transfer": "convert", "dot": "fma", "bfdot": "dot", "tile": "dot",
}  # fmt: skip


def _entries(doc: str, **limits: Any) -> Any:
    return whole(doc, high=1e6, optional=True, cycle=True, **limits)


def _cracked(doc: str) -> Any:
    return _entries(doc, sense=-1)


def _clocks(doc: str) -> Any:
    return cycles(doc, optional=True, cycle=True)


def _ports(doc: str) -> Any:
    return spec(TEXT, f"ports that take {doc}, by name, with spaces between", optional=True, cycle=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePipeline:
    """What brings operations to the ports of a core and takes them away."""

    order: str = spec(TEXT, "out: operations start as their operands are there; in: in the order of the program", cycle=True)
    rename: Number = whole("slots renamed per clock; an operation with its memory operand, or a compare with its branch, is one",
                           high=256, cycle=True)  # fmt: skip
    retire: Number | None = _entries("slots retired per clock")
    decode: Number | None = _entries("instructions decoded per clock, where a loop is too long for the cache of operations")
    op_cache: Number | None = _entries("operations that the cache of decoded operations holds")
    fetch: Number | None = _entries("slots per clock from the cache of decoded operations")
    loop_buffer: Number | None = _entries("slots of a loop that are replayed without a fetch: no slot is lost at its branch")
    slot_width: Number | None = spec("bit", "what one slot of rename carries: a wider operation takes several slots", low=8,
                                     high=1e6, optional=True, cycle=True)  # fmt: skip
    branches: Number | None = spec(COUNT, "taken branches per clock", low=0.1, high=64, optional=True, cycle=True, sense=1)
    window: Number | None = _entries("slots between rename and retirement (reorder buffer)")
    scheduler: Number | None = _entries("operations that wait, where one scheduler serves all ports, or all ports for arithmetic")
    scheduler_int: Number | None = _entries("operations that wait for integer ports")
    scheduler_vector: Number | None = _entries("operations that wait for vector ports")
    scheduler_memory: Number | None = _entries("operations that wait for addresses to be computed")
    load_queue: Number | None = _entries("loads between rename and retirement")
    store_queue: Number | None = _entries("stores between rename and their write into the L1")
    int_registers: Number | None = _entries("physical integer registers")
    vector_registers: Number | None = _entries("physical vector registers")
    datapath: Number = spec("bit", "width of the vector units: a wider operation passes them several times", low=8, high=1e6,
                            cycle=True)  # fmt: skip
    load_path: Number | None = spec("bit", "width of a load; a wider one passes its port several times", low=8, high=1e6,
                                    optional=True, cycle=True)  # fmt: skip
    store_path: Number | None = spec("bit", "width of a store; a wider one passes its port several times", low=8, high=1e6,
                                     optional=True, cycle=True)  # fmt: skip
    issue_delay: Number | None = _clocks("from rename to the earliest start of an operation")
    mispredict: Number | None = _clocks("from a mispredicted branch to the rename of what follows")
    binding: str | None = spec(TEXT, "when an operation is given its port: rename or issue", optional=True, cycle=True)
    eliminates: str | None = spec(TEXT, "what rename does without a port: none, zero (idioms), moves (and idioms), memory (loads "
                                  "of what was just stored, too)", optional=True, cycle=True)  # fmt: skip
    fuses: str | None = spec(TEXT, "what takes one slot of rename: none, memory (operand and operation), branch (compare and "
                             "branch), both", optional=True, cycle=True)  # fmt: skip
    forward: Number | None = _clocks("from a store to a load of the same bytes")
    forward_vector: Number | None = _clocks("from a vector store to a load of the same bytes")
    split: Number | None = _clocks("further clocks of its port that a load across two lines takes")
    exit_trips: Number | None = _entries("trips of a loop up to which its exit is predicted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """The ports of a core by kind of operation."""

    int: str | None = _ports("integer arithmetic and logic")
    multiply: str | None = _ports("integer multiplications")
    address: str | None = _ports("address arithmetic (lea)")
    branch: str | None = _ports("taken branches")
    load: str | None = _ports("scalar loads")
    load_vector: str | None = _ports("vector loads and broadcasts from memory")
    broadcast: str | None = _ports("what spreads a value that was loaded, where the ports for loads do not")
    store_address: str | None = _ports("the addresses of stores")
    store_data: str | None = _ports("the data of scalar stores")
    store_data_vector: str | None = _ports("the data of vector stores")
    add: str | None = _ports("floating-point additions")
    mul: str | None = _ports("floating-point multiplications")
    fma: str | None = _ports("fused multiply-adds")
    divide: str | None = _ports("divisions")
    root: str | None = _ports("square roots")
    max: str | None = _ports("maxima, minima and comparisons")
    shuffle: str | None = _ports("shuffles within 128 bit")
    cross: str | None = _ports("shuffles across 128 bit")
    convert: str | None = _ports("conversions between numbers")
    round: str | None = _ports("roundings to whole numbers")
    scale: str | None = _ports("scalings by powers of two (scalef)")
    vint: str | None = _ports("vector integer additions")
    vmul: str | None = _ports("vector integer multiplications")
    shift: str | None = _ports("vector shifts")
    logic: str | None = _ports("vector logic")
    blend: str | None = _ports("blends")
    mask: str | None = _ports("what sets a mask")
    pairwise: str | None = _ports("additions of neighbours")
    transfer: str | None = _ports("transfers between vector and integer registers")
    dot: str | None = _ports("dot products of 8 or 16 bit (VNNI, sdot)")
    bfdot: str | None = _ports("dot products of bf16")
    tile: str | None = _ports("products of tiles (AMX, SME)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Clocks from operands to result by kind of operation; `l1.latency` is that of scalar loads."""

    int: Number | None = _clocks("integer arithmetic and logic")
    multiply: Number | None = _clocks("integer multiplication")
    address: Number | None = _clocks("address arithmetic (lea)")
    load_vector: Number | None = _clocks("vector load that hits the L1")
    broadcast: Number | None = _clocks("spreading a value that was loaded, beyond the load")
    indexed: Number | None = _clocks("what an index register adds to a load")
    add: Number | None = _clocks("floating-point addition")
    add_chain: Number | None = _clocks("addition whose operand another addition made")
    mul: Number | None = _clocks("floating-point multiplication")
    fma: Number | None = _clocks("multiply-add from its factors, where `core.fma_latency` is that from its addend")
    fma_chain: Number | None = _clocks("multiply-add, from its addend")
    divide: Number | None = _clocks("division, fp32")
    divide64: Number | None = _clocks("division, fp64")
    divide128: Number | None = _clocks("division of 128 bit, fp32")
    divide256: Number | None = _clocks("division of 256 bit, fp32, where the vector units are wider")
    root: Number | None = _clocks("square root, fp32")
    root64: Number | None = _clocks("square root, fp64")
    root128: Number | None = _clocks("square root of 128 bit, fp32")
    root256: Number | None = _clocks("square root of 256 bit, fp32, where the vector units are wider")
    max: Number | None = _clocks("maximum, minimum or comparison")
    shuffle: Number | None = _clocks("shuffle within 128 bit")
    cross: Number | None = _clocks("shuffle across 128 bit")
    convert: Number | None = _clocks("conversion between numbers")
    round: Number | None = _clocks("rounding to whole numbers")
    scale: Number | None = _clocks("scaling by powers of two")
    vint: Number | None = _clocks("vector integer addition")
    vmul: Number | None = _clocks("vector integer multiplication")
    shift: Number | None = _clocks("vector shift")
    logic: Number | None = _clocks("vector logic")
    blend: Number | None = _clocks("blend")
    mask: Number | None = _clocks("setting a mask")
    pairwise: Number | None = _clocks("addition of neighbours")
    transfer: Number | None = _clocks("transfer between vector and integer registers")
    gather: Number | None = _clocks("gather, beyond the loads of its elements")
    dot: Number | None = _clocks("dot product of 8 or 16 bit")
    dot_chain: Number | None = _clocks("dot product, from its addend")
    bfdot: Number | None = _clocks("dot product of bf16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Clocks that an operation of the width of the vector units keeps its port; one where nothing is said."""

    multiply: Number | None = _clocks("integer multiplication")
    divide: Number | None = _clocks("division, fp32")
    divide64: Number | None = _clocks("division, fp64")
    divide128: Number | None = _clocks("division of 128 bit, fp32")
    divide256: Number | None = _clocks("division of 256 bit, fp32, where the vector units are wider")
    root: Number | None = _clocks("square root, fp32")
    root64: Number | None = _clocks("square root, fp64")
    root128: Number | None = _clocks("square root of 128 bit, fp32")
    root256: Number | None = _clocks("square root of 256 bit, fp32, where the vector units are wider")
    fma: Number | None = _clocks("fused multiply-add")
    add: Number | None = _clocks("floating-point addition")
    mul: Number | None = _clocks("floating-point multiplication")
    max: Number | None = _clocks("maximum, minimum or comparison")
    shuffle: Number | None = _clocks("shuffle within 128 bit")
    cross: Number | None = _clocks("shuffle across 128 bit")
    convert: Number | None = _clocks("conversion between numbers")
    round: Number | None = _clocks("rounding to whole numbers")
    vmul: Number | None = _clocks("vector integer multiplication")
    blend: Number | None = _clocks("blend")
    pairwise: Number | None = _clocks("addition of neighbours")
    dot: Number | None = _clocks("dot product of 8 or 16 bit")
    gather: Number | None = _clocks("gather of one element, of a port for loads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cracked:
    """Micro-operations, each with a slot and a port, that an operation is cracked into; one where nothing is said."""

    multiply: Number | None = _cracked("integer multiplication")
    fma: Number | None = _cracked("fused multiply-add")
    add: Number | None = _cracked("floating-point addition")
    mul: Number | None = _cracked("floating-point multiplication")
    shuffle: Number | None = _cracked("shuffle within 128 bit")
    cross: Number | None = _cracked("shuffle across 128 bit")
    convert: Number | None = _cracked("conversion between numbers")
    round: Number | None = _cracked("rounding to whole numbers")
    scale: Number | None = _cracked("scaling by powers of two")
    vmul: Number | None = _cracked("vector integer multiplication")
    blend: Number | None = _cracked("blend")
    pairwise: Number | None = _cracked("addition of neighbours")
    dot: Number | None = _cracked("dot product of 8 or 16 bit")
