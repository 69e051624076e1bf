"""Products on a core: register blocks, the panels that feed them, and products of a matrix with a vector.

A block keeps rows x columns of the result in registers. Each step of k loads a row of B, a broadcast value of A for each row, and
multiplies (Goto and van de Geijn 2008). Around a block, its results are added to C in memory.
"""

from __future__ import annotations

from archsim.cost.blocking import COLUMN_REGISTERS, OPERAND_REGISTERS
from archsim.cycle.core.gemm_block import LANE, SEGMENT, TILE_BYTES, block_grid, fill, multiplied
from archsim.cycle.core.machine import CoreMachine
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.writer import APART, LoopWriter, Value

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
