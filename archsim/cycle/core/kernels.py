"""The time of lowered kernels on the cores of a CPU: their loops are simulated, what repeats is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil

import numpy as np

from archsim.cost.blocking import block_lines, panel_depth
from archsim.cost.cores import copy_share, second_clocks
from archsim.cost.cost import SMOOTH, family_efficiency, overlapping, smooth_maximum
from archsim.cost.cpu import CpuTerms
from archsim.cost.team import busiest_share, siblings
from archsim.cycle.core import library, scalar
from archsim.cycle.core.copies import MOST, SCALARS, UNROLLED, elements, rows_copied, transposed, value_by_value
from archsim.cycle.core.machine import core_machine, shared
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.product import ROWS, VECTORS, block, block_of, by_element, narrow_block, vector_product
from archsim.cycle.core.run import run_loop
from archsim.cycle.core.variant import LANE_BITS, CpuVariant, Known, Simulated
from archsim.device.device import Cpu
from archsim.device.variant import first_of

COUNTED = ("elements", "operations", "tests", "compares", "adds", "exps", "pows")  # what has a program
INFERRED = ("steps", "divisions", "gathers")  # from times: whose instructions nobody has counted
FOOTPRINT, SIDE = 16384, 3  # of the data of `loop_constants` [B]; rows and columns of its window
ROW = 8  # slots of the loop around the innermost one of an unfolding: pointers, the row's bounds test, counter and branch


def scalar_clocks(v: CpuVariant, on: Simulated) -> float | None:
    """Clocks of all that a library does value by value, summed over cores, with its hyper-threads at work [clk].

    None for a kernel of which the stack says no such thing.
    """
    if not is_scalar(v):
        return None
    counts = {name: v.count(name) for name in COUNTED if v.count(name)}
    if v.count("tests") and v.kernel.trips:
        counts["operations"] = counts.get("operations", 0.0) + ROW * v.count("tests") / v.kernel.trips
    total = 0.0
    for name, count in counts.items():
        values, program, words = _program(name, v)
        total += on.spent(count / values, program, *words) * _together(v, on, program, words)
    return total


def _program(name: str, v: CpuVariant) -> tuple[float, Callable[..., CoreLoop], tuple[object, ...]]:
    """The values that an iteration takes, the program, and its words."""
    moved = v.of("a_bytes") + v.of("b_bytes") + v.of("c_bytes")
    at = max(64, int(moved)), v.level(moved)
    area, trips = max(1, int(v.kernel.window)), int(v.kernel.trips)
    if name == "compares":
        return scalar.stored_every(area), scalar.largest, (area, *at, trips)
    if name == "adds":
        return float(area if area <= scalar.WRITTEN_OUT else 1), scalar.mean, (area, *at, trips)
    if name in ("exps", "pows"):
        return 1.0, library.called, (name.removesuffix("s"), at[1], at[0])
    if name == "operations":
        return float(scalar.SIDE_BY_SIDE), scalar.further, ()
    return 1.0, scalar.unfold if name == "tests" else scalar.step, (*at, trips)


def loop_constants(device: Cpu) -> dict[str, float]:
    """Constants of the closed form: clocks of what a counted loop does for each value, of data in the first level [clk]."""
    machine, at = core_machine(device, first_of(device.clock.boost), 1.0), (FOOTPRINT, 1)

    def clocks(program: Callable[..., CoreLoop], *words: object) -> float:
        return run_loop(machine, program(*words)).cycles

    return {
        "loop.elements_clk": clocks(scalar.step, *at),
        "loop.operations_clk": clocks(scalar.further) / scalar.SIDE_BY_SIDE,
        "loop.adds_clk": clocks(scalar.mean, SIDE**2, *at, SIDE) / SIDE**2,
        "loop.compares_clk": clocks(scalar.largest, SIDE**2, *at, SIDE) / scalar.stored_every(SIDE**2),
        "loop.exps_clk": clocks(library.called, "exp", 1, FOOTPRINT),
        "loop.pows_clk": clocks(library.called, "pow", 1, FOOTPRINT),
    }


def is_scalar(v: CpuVariant) -> bool:
    """Whether the stack says what instructions the loop of a kernel has for each value."""
    return not v.of("matrix") and any(v.count(name) for name in COUNTED) and not is_inferred(v)


def is_inferred(v: CpuVariant) -> bool:
    """Whether the stack has counts for a kernel that stand for clocks of its loop; such a kernel keeps its closed form."""
    return any(v.count(name) for name in INFERRED)


def _together(v: CpuVariant, on: Simulated, program: Callable[..., CoreLoop], words: tuple[object, ...]) -> float:
    """Clocks with the hyper-threads of a core at work, as a share of those of one thread for the same work.

    max(1 / siblings, both / (2 alone)); both: clocks of an iteration of one of two threads [clk]; alone: of one without another
    """
    terms = v.terms
    running = v.at(siblings(terms.kernels, terms.device, terms.workers, terms.threads))
    if running <= 1.0:
        return 1.0
    return min(1.0, max(1.0 / running, on.both().clocks(program, *words) / (2.0 * on.clocks(program, *words))))


SUM_BYTES = 4.0  # of a sum
SHORT, LONG = 16, 32  # steps of k from whose blocks those of any depth follow


def simulated_core(terms: CpuTerms, bounds: Mapping[str, float], known: Known, column: int) -> float | None:
    """Time of one launch of a kernel [s], without waking its threads; None for one that has no program yet.

    terms: of one device; bounds: of the kernel in the closed form [s]
    known: clocks of what was simulated before, to which new ones are added

    What a core does with its own caches is in the simulation; what cores share bounds them together as in the closed form, of
    whose smooth maximum the simulated core replaces its part. Where memory is read before the arithmetic, it adds what it adds to
    that of the closed form: a simulated copy waits for some of it.
    """
    v = CpuVariant(terms=terms, column=column)
    clocks = busiest_clocks(v, known)
    if clocks is None:
        return None
    known_s = {name: np.array([[bound]]) for name, bound in bounds.items()}
    closed = smooth_maximum(overlapping(known_s, v.at(terms.in_turn))).item()
    replaced = bounds["compute"] ** SMOOTH + bounds.get("l1", 0.0) ** SMOOTH
    own = clocks / v.at(terms.speed)
    return float((closed**SMOOTH - replaced + own**SMOOTH) ** (1.0 / SMOOTH))


def simulated_on(v: CpuVariant, known: Known) -> Simulated:
    """One core among those that work on a kernel; beside a hyper-thread that spins, a scalar loop has what that leaves it."""
    machine = core_machine(v.terms.device, v.at(v.terms.core_clock), v.workers, v.runtime.local)
    return Simulated(shared(machine) if is_scalar(v) and v.disturbed else machine, known)


def busiest_clocks(v: CpuVariant, known: Known) -> float | None:
    """Clocks of the busiest core for one launch of a kernel [clk]; None for one that has no program yet."""
    found, terms = loops_clocks(v, simulated_on(v, known)), v.terms
    if found is None:
        return None
    team = terms.kernels, terms.device, terms.workers, terms.threads
    if is_scalar(v):  # whose core is that of one of two hyper-threads already, and whose clock is not slower for them
        found = found[0] * v.at(terms.speed) / v.at(terms.core_clock), 0.0
    return found[0] * v.at(busiest_share(*team)) + (found[1] * v.at(copy_share(*team)) if found[1] else 0.0)


def loops_clocks(v: CpuVariant, on: Simulated) -> tuple[float, float] | None:
    """Clocks of the arithmetic and of the copies of a launch, summed over cores [clk]; None for a kernel without a program."""
    second = float(second_clocks(v.terms.kernels, v.terms.device, v.terms.constants)[..., v.column].item())
    if v.of("dense") and not v.of("matrix") and v.element == 8 * v.size:  # a product of one row, not packed and not widened
        return _matrix_vector(v, on, v.of("flop") / 2.0, 1.0, v.element) + second, 0.0
    if not v.of("matrix"):
        passed = _pass(v, on)
        return None if passed is None else (passed + second, 0.0)
    copying = _copies(v, on)
    return _product(v, on) / float(family_efficiency(v.terms.kernels, v.terms.constants)[v.column]) + second, copying


# ---------------------------------------------------------------------------------------------- products


def _product(v: CpuVariant, on: Simulated) -> float:
    """All register blocks of a product, summed over cores [clk]."""
    m, n, k, count = v.of("m"), v.of("n"), v.of("k"), v.of("count")
    element = v.element
    rows, vectors = block_of(on.machine, v.width)
    lanes = v.width // element
    if not v.of("packed"):
        # Channels lie in the lanes, pixels in the rows of a block; as many channels of the input pass at a time as leave the
        # filters in the first level.
        m, n, depth = n, m, k
    elif min(m, n) == 1 and not v.of("copied"):  # else the blocks read panels, as those of any product
        return count * _matrix_vector(v, on, max(m, n), k, element)
    else:
        depth = v.at(panel_depth(v.terms.device, v.size))
    if v.form:
        return _narrow(v, on, m, n, min(depth, k))
    total = 0.0
    for panel, panels in _cut(k, min(depth, k)):
        for r, down in _cut(m, rows):
            for c, across in _cut(n, vectors * lanes):
                total += blocks_clocks(v, on, count * panels * down * across, int(r), ceil(c / lanes), panel)
    return total


def _narrow(v: CpuVariant, on: Simulated, m: float, n: float, depth: float) -> float:
    """All register blocks of a product of narrow operands, summed over cores [clk]."""
    shape, simd = v.terms.device.dot_shape(v.form), v.at(v.terms.device.core.simd)
    assert shape is not None
    kind, element = v.form.rpartition("_")[2], v.element
    side, taken = v.at(shape.rows), v.at(shape.depth)
    across = v.at(shape.columns) * (1.0 if kind == "tile" else v.width / simd)
    rows, columns = side * v.at(block_lines(shape.registers)), VECTORS * across
    elements = by_element(on.machine, v.width)
    total = 0.0
    for panel, panels in _cut(v.of("k"), depth):
        for r, down in _cut(m, rows):
            for c, beside in _cut(n, columns):
                number = v.of("count") * panels * down * beside

                def words(steps: int, r: float = r, c: float = c) -> tuple[object, ...]:
                    return kind, ceil(r), ceil(c), steps, v.width, element, elements

                total += _deep(on, number, ceil(panel / taken), narrow_block, words)
    return total


def _cut(whole: float, piece: float) -> list[tuple[float, float]]:
    """A length in pieces: (length, how many) of the whole ones and of the rest.

    >>> _cut(20.0, 6.0)
    [(6.0, 3.0), (2.0, 1.0)]
    """
    full, rest = divmod(whole, piece)
    return [(length, number) for length, number in ((piece, full), (rest, 1.0)) if length and number]


def blocks_clocks(v: CpuVariant, on: Simulated, number: float, rows: int, vectors: int, depth: float) -> float:
    """Clocks of some register blocks: those of short ones, and what each further step of k takes."""

    def words(steps: int) -> tuple[object, ...]:
        return rows, vectors, steps, v.width, v.element, on.fused(v), by_element(on.machine, v.width)

    return _deep(on, number, depth, block, words)


def _deep(on: Simulated, number: float, depth: float, program: Callable[..., CoreLoop],
          words: Callable[[int], tuple[object, ...]]) -> float:  # fmt: skip
    """Clocks of some blocks of a depth, from those of short and of long ones."""
    if depth <= SHORT:
        return on.spent(number, program, *words(max(1, int(depth))))
    short = on.clocks(program, *words(SHORT))
    more = on.spent(number * (depth - SHORT) / (LONG - SHORT), program, *words(LONG))
    return more + number * short * (1.0 - (depth - SHORT) / (LONG - SHORT))


def _matrix_vector(v: CpuVariant, on: Simulated, rows: float, k: float, element: int) -> float:
    words = v.width, element, v.level(rows * k * element / 8), on.fused(v)
    return on.spent(rows * k / (ROWS * v.width / element), vector_product, *words)


def _copies(v: CpuVariant, on: Simulated) -> float:
    """The copies into panels [clk]: rows of B as they lie, A transposed; or value by value."""
    copied = v.of("copied")
    if not copied:
        return 0.0
    m, n = v.of("m"), v.of("n")
    size = v.of("operand_a")
    of_a, of_b = m / (m + n), n / (m + n)
    a_level, b_level = v.level(copied * of_a * size), v.level(copied * of_b * size)
    if v.runtime.scalar_copies:
        return sum(on.spent(copied * share / SCALARS, value_by_value, int(size), int(copied * share * size), level)
                   for level, share in ((a_level, of_a), (b_level, of_b)))  # fmt: skip
    _, vectors = block_of(on.machine, v.width)
    lanes = v.width / (8 * size)
    turned = lanes**2 if size >= SUM_BYTES else (v.width / LANE_BITS) ** 2 * SUM_BYTES / size  # neighbours in k stay together
    total = on.spent(copied * of_a / turned, transposed, v.width, int(v.of("k") * size), int(copied * of_a * size), a_level)
    return total + on.spent(copied * of_b / (vectors * lanes), rows_copied, v.width, vectors, int(n * size),
                            int(copied * of_b * size), b_level)  # fmt: skip


# ---------------------------------------------------------------------------------------------- passes


def _pass(v: CpuVariant, on: Simulated) -> float | None:
    """A loop over the values of a tensor [clk], scalar where the stack says what it does for each, or vectorised."""
    scalars = scalar_clocks(v, on)
    if scalars is not None:
        return scalars
    if not v.runtime.vectorised or v.of("dense") or is_inferred(v):
        return None
    read, written, size = v.of("b_bytes") + v.of("a_bytes"), v.of("c_bytes"), v.of("operand_a")
    values = max(written, read / 8.0) / size
    if values < 1:
        return None
    loads = min(8, ceil(read / size / values)) if read else 0
    operations = ceil(v.of("flop") / values)
    words = v.width, loads, min(MOST, operations), int(written > 0), int(read + written), v.level(read + written)
    return on.spent(values / (UNROLLED * v.width / (8 * size)), elements, *words)
