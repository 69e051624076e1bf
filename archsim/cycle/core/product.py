"""Products on a core: register blocks, the panels that feed them, and products of a matrix with a vector.

A block keeps rows x columns of the result in registers. Each step of k loads a row of B, a broadcast value of A for each row, and
multiplies (Goto and van de Geijn 2008). Around a block, its results are added to C in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from archsim.base.errors import ArgumentError
from archsim.cost.blocking import COLUMN_REGISTERS, OPERAND_REGISTERS
from archsim.cycle.core.machine import CoreMachine
from archsim.cycle.core.operation import APART, CoreLoop, LoopWriter, Value

# ------------------------------------------------------------------------------------------------------ the inner block

BROADCASTS = ("register", "embedded", "element")
PRODUCTS = ("fma", "muladd", "dot", "pairs", "matrix", "tile")
NARROW = PRODUCTS[2:]  # products of 8 or 16 bit that are summed in lanes of 32 bit
TILE_ROWS, TILE_BYTES = 16, 64  # of a register of AMX
LANE = 32  # bit of a sum of narrow products
SEGMENT = 128  # bit: an instruction that multiplies by one element takes it from 128 bit of a register


def gemm_block(
    rows: int, columns: int, width: int, element: int = 32, unroll: int = 1, broadcast: str = "register",
    a_level: int | None = 2, b_level: int | None = 1, *, registers: int | None = None, depth: int = 256, product: str = "fma",
    isa: str = "",
) -> CoreLoop:  # fmt: skip
    """Steps of the product of a packed panel A [depth, rows] and a packed panel B [depth, columns] into a block of C.

    C[r, c] += A[k, r] * B[k, c]        for all r and c, `unroll` steps k in an iteration (Van Zee and van de Geijn 2015)

    width: of vectors [bit]; element: of an operand [bit]
    broadcast: how a value of A meets a vector of B: `register` (loaded into all lanes of a register), `embedded` (memory operand
    of each multiply-add), `element` (lane of a register, as ARM has it)
    a_level, b_level: where the panels lie, 1 for the L1 to 4 for memory; None: as their footprint has it
    registers: vector registers that the program can name; 32 of 512 bit or for `element`, else 16. Accumulators that do not fit
    are loaded and stored in each step (spills)
    depth: steps of a pass
    product: `fma`, `muladd` (a multiplication and an addition); of 8 or 16 bit `dot` (32 bit of products added to each lane),
    `pairs` (the same by two multiplications that add neighbours, and an addition), `matrix` (a 2 x 2 block in each 128 bit) or
    `tile` (registers of 16 rows of 64 bytes)

    Raises ArgumentError for a block that is none.

    >>> loop = gemm_block(6, 16, 256)
    >>> sum(one.kind == "fma" for one in loop.operations), loop.bytes_loaded, loop.flop
    (12, 88, 192.0)
    """
    _check(rows, columns, width, element, unroll, broadcast, product, depth)
    grid = block_grid(rows, columns, width, element, product)
    rows, vectors, taken, lane = grid.lines, grid.vectors, grid.taken, grid.lane
    broadcast = "line" if product in ("matrix", "tile") else broadcast
    named = registers if registers is not None else grid.registers or (32 if width >= 512 or broadcast == "element" else 16)
    operands = ({"register": 1, "embedded": 0, "element": ceil(rows * lane / SEGMENT), "line": 1}[broadcast]
                + (product in ("muladd", "pairs")))  # fmt: skip
    held = vectors + operands + 1 <= named  # whether the vectors of B stay in registers during a step
    kept = max(0, min(rows * vectors, named - operands - (vectors if held else 1)))
    spilled = rows * vectors > kept
    kept = max(0, kept - 1) if spilled else kept  # one register is for accumulators that come and go
    w = LoopWriter(f"gemm {rows}x{columns}", width, lane)
    trips = max(1, depth // (unroll * taken))
    for name, stride, level in (("A", rows * grid.line_bytes * unroll, a_level), ("B", vectors * grid.bytes * unroll, b_level)):
        w.stream(name, stride, stride * trips, level, start=APART * (name == "B"))
    if spilled:
        w.stream("C", 0, (rows * vectors - kept) * grid.bytes, 1, start=2 * APART)
    results: list[Value] = [f"c{at}" for at in range(rows * vectors)]
    for step in range(unroll):
        results = _step(w, step, grid, broadcast, product, kept, held, results)
    for at, value in enumerate(results[:kept]):
        assert isinstance(value, int)
        w.keep(f"c{at}", value)
    w.step(("A", "B"))
    flop = 2.0 * rows * vectors * grid.results * taken * unroll
    return w.loop(flop=flop, isa=isa, trips=trips)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockGrid:
    """A block in registers: `lines` x `vectors` of them.

    taken: values of the depth in one step; lane: bit of an accumulator, and of what is multiplied at once
    results: multiply-adds of a register for each value of the depth; bytes: of a register of B; line_bytes: of A for one line
    loads: that fill a register of B; kind: of the operation; registers: that can be named, 0 for those of SIMD
    """

    lines: int
    vectors: int
    taken: int
    lane: int
    results: int
    bytes: int
    line_bytes: int
    loads: int = 1
    kind: str = "fma"
    registers: int = 0


def block_grid(rows: int, columns: int, width: int, element: int, product: str) -> BlockGrid:
    """The registers of a block of rows x columns results.

    >>> grid = block_grid(32, 32, 512, 8, "tile")
    >>> grid.lines, grid.vectors, grid.taken, grid.results
    (2, 2, 64, 256)
    """
    kind = "bfdot" if element > 8 else "dot"
    if product == "tile":
        side = TILE_BYTES * 8 // LANE
        return BlockGrid(lines=ceil(rows / TILE_ROWS), vectors=ceil(columns / side), taken=TILE_BYTES * 8 // element, lane=LANE,
                         results=TILE_ROWS * side, bytes=TILE_ROWS * TILE_BYTES, line_bytes=TILE_ROWS * TILE_BYTES,
                         loads=TILE_ROWS, kind="tile", registers=8)  # fmt: skip
    if product == "matrix":
        return BlockGrid(lines=ceil(rows / 2), vectors=ceil(columns * 2 * LANE / width), taken=2 * LANE // element, lane=LANE,
                         results=width // LANE, bytes=width // 8, line_bytes=SEGMENT // 8, kind=kind)  # fmt: skip
    lane = LANE if product in NARROW else element
    return BlockGrid(lines=rows, vectors=ceil(columns * lane / width), taken=lane // element, lane=lane, results=width // lane,
                     bytes=width // 8, line_bytes=lane // 8, kind=kind if product in NARROW else product)  # fmt: skip


def _step(w: LoopWriter, step: int, grid: BlockGrid, broadcast: str, product: str, kept: int, held: bool,
          before: list[Value]) -> list[Value]:  # fmt: skip
    """The rank-1 update of one step: the accumulators after it."""
    rows, vectors, size = grid.lines, grid.vectors, grid.bytes
    one, segment = grid.line_bytes, SEGMENT // w.element
    b: list[Value] = ([fill(w, "B", (step * vectors + vector) * size, grid) for vector in range(vectors)] if held
                      else [None] * vectors)  # fmt: skip
    parts = range(ceil(rows / segment)) if broadcast == "element" else ()
    lanes = [w.load("A", step * rows * one + part * SEGMENT // 8, width=min(w.width, SEGMENT)) for part in parts]
    results: list[Value] = []
    for row in range(rows):
        a: Value = lanes[row // segment] if lanes else None
        if broadcast == "register":
            a = w.load("A", (step * rows + row) * one, kind="broadcast")
        elif broadcast == "line":
            a = fill(w, "A", (step * rows + row) * one, grid, min(w.width, SEGMENT))
        for vector in range(vectors):
            if broadcast == "embedded":
                a = w.load("A", (step * rows + row) * one, kind="broadcast", folded=True)
            elif not held:
                b[vector] = fill(w, "B", (step * vectors + vector) * size, grid, folded=True)
            at = row * vectors + vector
            results.append(_update(w, at - kept, b[vector], a, before[at], product, grid))
    return results


def fill(w: LoopWriter, stream: str, offset: int, grid: BlockGrid, width: int = 0, folded: bool = False) -> int:
    """The loads that fill a register, one for each row of a tile; the last of them."""
    if grid.loads == 1:
        return w.load(stream, offset, folded=folded, width=width)
    return [w.load(stream, offset + row * TILE_BYTES, width=TILE_BYTES * 8) for row in range(grid.loads)][-1]


def multiplied(w: LoopWriter, product: str, kind: str, b: Value, a: Value, c: Value) -> int:
    """An accumulator c after one product of a and b."""
    if product == "muladd":
        return w.op("add", c, w.op("mul", a, b))
    if product == "pairs":
        return w.op("vint", w.op(kind, w.op(kind, b, a)), c)
    return w.op(kind, b, a, c, chained=True)


def _update(w: LoopWriter, spilled: int, b: Value, a: Value, c: Value, product: str, grid: BlockGrid) -> int:
    """One accumulator's multiply-add; one without a register (`spilled` is its place) is loaded before and stored behind."""
    if spilled >= 0:
        c = fill(w, "C", spilled * grid.bytes, grid)
    found = multiplied(w, product, grid.kind, b, a, c)
    if spilled >= 0:
        for row in range(grid.loads):
            w.store("C", spilled * grid.bytes + row * TILE_BYTES, found, TILE_BYTES * 8 if grid.loads > 1 else 0)
    return found


def _check(rows: int, columns: int, width: int, element: int, unroll: int, broadcast: str, product: str, depth: int) -> None:
    for name, value, most in (("rows", rows, 256), ("columns", columns, 1024), ("unroll", unroll, 64), ("depth", depth, 1 << 24)):
        if not 1 <= value <= most:
            raise ArgumentError(f"gemm block: {name} = {value} is not from 1 to {most}")
    if width < 64 or width & (width - 1) or width > 2048:
        raise ArgumentError(f"gemm block: width = {width} is no power of two from 64 to 2048 bit")
    if broadcast not in BROADCASTS:
        raise ArgumentError(f"gemm block: broadcast = {broadcast!r} is not one of {', '.join(BROADCASTS)}")
    if product not in PRODUCTS:
        raise ArgumentError(f"gemm block: product = {product!r} is not one of {', '.join(PRODUCTS)}")
    fitting = (8,) if product == "pairs" else (8, 16) if product in NARROW else (16, 32, 64)
    if element not in fitting:
        raise ArgumentError(f"gemm block: element = {element} is not one of {', '.join(map(str, fitting))} bit ({product})")


# -------------------------------------------------------------------------------------------------- blocks of a machine

SPARE, VECTORS = int(OPERAND_REGISTERS), int(COLUMN_REGISTERS)  # registers beside the results, and in a row of them
OLDER = 16  # registers of x86 before AVX-512
UNROLLED = 4  # steps of k between two branches
ROWS = 4  # rows of a matrix that a product with a vector takes at a time
BY_ELEMENT = 128  # bit of the registers of NEON, whose multiply-adds take one element for all lanes
NARROWEST = 8  # bit of an operand; four of them are summed in a lane
PITCH = 4096 + 256  # B between rows of C, which lie in different pages


def block_of(machine: CoreMachine, width: int) -> tuple[int, int]:
    """Rows of a register block and registers in each: all that the instructions name but those of the operands.

    ((registers - 4) / 2, 2)        (6 x 16 values of AVX2, 14 x 32 of AVX-512, 14 x 8 of NEON)

    Instructions for narrower registers than the core has are of an older set, which names sixteen.
    """
    registers = machine.registers if width >= machine.width else min(machine.registers, OLDER)
    return max(1, (registers - SPARE) // VECTORS), VECTORS


def by_element(machine: CoreMachine, width: int) -> bool:
    """Whether multiply-adds take one element of a register for all lanes: those of NEON do."""
    return width == BY_ELEMENT == machine.width and machine.registers > OLDER


def block(rows: int, vectors: int, steps: int, width: int, element: int = 32, fused: bool = True,
          elements: bool = False) -> CoreLoop:  # fmt: skip
    """A register block of `rows` x `vectors` registers over `steps` of k, and its results into C; an iteration is one block.

    fused: it multiplies and adds at once; elements: it loads a register of A and multiplies by one of its elements, instead of
    a value of A that is broadcast from memory
    """
    size, lanes = width // 8, width // element
    w = _writer(f"block of {rows} x {vectors} registers, {steps} steps", width, element, rows * steps * element // 8,
                vectors * size, steps)  # fmt: skip
    results: list[list[int | None]] = [[None] * vectors for _ in range(rows)]
    for step in range(steps):
        b = [w.load("B", (step * vectors + v) * size) for v in range(vectors)]
        for row in range(rows):
            at = (step * rows + row) * element // 8
            if not elements:
                a = w.load("A", at, kind="broadcast")
            elif row % lanes == 0:
                a = w.load("A", at)
            for v in range(vectors):
                before = results[row][v]
                if before is None:
                    results[row][v] = w.op("mul", a, b[v])
                else:
                    results[row][v] = w.multiply_add(a, b[v], before, fused, chained=True)
        if (step + 1) % UNROLLED == 0 and step + 1 < steps:
            w.step(("A_in", "B_in"))
    for row in range(rows):
        for v in range(vectors):
            w.load("C", row * PITCH + v * size, folded=True)
            whole = w.op("fma", results[row][v], None) if fused else w.op("add", results[row][v])
            w.store("C", row * PITCH + v * size, whole)
    w.step(("A", "C"))
    return w.loop(flop=2.0 * rows * vectors * lanes * steps)


def _writer(name: str, width: int, lane: int, panel: int, row: int, steps: int) -> LoopWriter:
    """A block of which `panel` bytes of A pass, and a `row` of registers of B in each step: B in the L1, A and C in the L2."""
    w = LoopWriter(name, width, lane)
    w.stream("A", panel, 1 << 16, 2)
    w.stream("B", 0, row * steps)
    w.stream("C", row, 1 << 20, 2)  # libraries ask for C in time
    return w


def narrow_block(product: str, rows: int, columns: int, steps: int, width: int, element: int,
                 elements: bool = False) -> CoreLoop:  # fmt: skip
    """A register block of narrow operands over `steps` instructions of k, and its sums into C; an iteration is one block.

    product: as of `gemm_block`: dot, pairs, matrix or tile; element: of an operand [bit]; elements: as of `block`
    """
    grid = block_grid(rows, columns, width, element, product)
    size, vectors, segment = grid.bytes, grid.vectors, SEGMENT // LANE
    w = _writer(f"{product} block of {rows} x {columns}, {steps} steps", width, LANE, grid.lines * steps * grid.line_bytes,
                vectors * size, steps)  # fmt: skip
    results: list[Value] = [None] * (grid.lines * vectors)
    for step in range(steps):
        b = [fill(w, "B", (step * vectors + v) * size, grid) for v in range(vectors)]
        a: Value = None
        for line in range(grid.lines):
            at = (step * grid.lines + line) * grid.line_bytes
            if product in ("matrix", "tile"):
                a = fill(w, "A", at, grid, SEGMENT)
            elif not elements:
                a = w.load("A", at, kind="broadcast")
            elif line % segment == 0:
                a = w.load("A", at, width=SEGMENT)
            for v in range(vectors):
                place = line * vectors + v
                results[place] = multiplied(w, product, grid.kind, b[v], a, results[place])
        if (step + 1) % UNROLLED == 0 and step + 1 < steps:
            w.step(("A_in", "B_in"))
    added = "vint" if element == 8 else "add"
    for place, value in enumerate(results):
        for row in range(grid.loads):
            offset = place // vectors * PITCH + place % vectors * size + row * TILE_BYTES
            w.load("C", offset, folded=True)
            w.store("C", offset, w.op(added, value, None))
    w.step(("A", "C"))
    return w.loop(flop=2.0 * grid.lines * vectors * grid.results * grid.taken * steps)


def vector_product(width: int, element: int, level: int, fused: bool = True) -> CoreLoop:
    """A matrix, some rows at a time, times a vector that stays in the first level; an iteration takes a register of each row."""
    w = LoopWriter("matrix times vector", width, element)
    size = width // 8
    w.stream("x", size, 1 << 14, 1)
    x = w.load("x", 0)
    for row in range(ROWS):
        w.stream(f"a{row}", size, 1 << 26, level, start=row * APART)
        w.load(f"a{row}", 0, folded=True)
        total = f"sum{row}"
        narrow = element == NARROWEST
        w.keep(total, w.op("dot", x, total, chained=True) if narrow else w.multiply_add(x, None, total, fused, chained=True))
    w.step(("x", "a0"))
    return w.loop(flop=2.0 * ROWS * width / element)
