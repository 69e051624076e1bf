"""The time of scalar loops on the cores of a CPU: what a stack says that a loop does for each value, as programs."""

from __future__ import annotations

from collections.abc import Callable

from archsim.cost.team import siblings
from archsim.cycle.core import library, scalar
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.variant import CpuVariant, Simulated

COUNTED = ("elements", "operations", "tests", "branches", "adds", "exps", "pows")  # what has a program
INFERRED = ("steps", "divisions", "gathers")  # from times: whose instructions nobody has counted
STATES = "transitions"  # between AVX and SSE code: the processor saves its registers, which is no instruction of the loop
ROW = 8  # slots of the loop around the innermost one of an unfolding: pointers, the row's bounds test, counter and branch


def scalar_clocks(v: CpuVariant, on: Simulated) -> float | None:
    """Clocks of all that a library does value by value, summed over cores, with its hyper-threads at work [clk].

    None for a kernel of which the stack says no such thing.
    """
    if not is_scalar(v):
        return None
    counts = {name: v.of(name) for name in COUNTED if v.of(name)}
    if v.of("tests") and v.of("trips"):
        counts["operations"] = counts.get("operations", 0.0) + ROW * v.of("tests") / v.of("trips")
    total = 0.0
    for name, count in counts.items():
        values, program, words = _program(name, v)
        total += on.spent(count / values, program, *words) * _together(v, on, program, words)
    return total + v.of(STATES) * v.terms.constants["loop.transitions_clk"]


def _program(name: str, v: CpuVariant) -> tuple[float, Callable[..., CoreLoop], tuple[object, ...]]:
    """The values that an iteration takes, the program, and its words."""
    moved = v.of("a_bytes") + v.of("b_bytes") + v.of("c_bytes")
    at = max(64, int(moved)), v.level(moved)
    area, trips = max(1, int(v.of("window"))), int(v.of("trips"))
    if name == "branches":
        return scalar.stored_every(area), scalar.largest, (area, *at, trips)
    if name == "adds":
        return float(area if area <= scalar.WRITTEN_OUT else 1), scalar.mean, (area, *at, trips)
    if name in ("exps", "pows"):
        return 1.0, library.called, (name.removesuffix("s"), at[1], at[0])
    if name == "operations":
        return float(scalar.SIDE_BY_SIDE), scalar.further, ()
    return 1.0, scalar.unfold if name == "tests" else scalar.step, (*at, trips)


def is_scalar(v: CpuVariant) -> bool:
    """Whether the stack says what instructions the loop of a kernel has for each value."""
    return not v.of("matrix") and any(v.of(name) for name in COUNTED) and not is_inferred(v)


def is_inferred(v: CpuVariant) -> bool:
    """Whether the stack has counts for a kernel that stand for clocks of its loop; such a kernel keeps its closed form.

    So have branches on single values: how many of them are mispredicted depends on the data.
    """
    return any(v.of(name) for name in INFERRED) or (v.of("branches") > 0 and v.of("window") <= 1)


def _together(v: CpuVariant, on: Simulated, program: Callable[..., CoreLoop], words: tuple[object, ...]) -> float:
    """Clocks with the hyper-threads of a core at work, as a share of those of one thread for the same work.

    max(1 / siblings, both / (2 alone)); both: clocks of an iteration of one of two threads [clk]; alone: of one without another
    """
    terms = v.terms
    running = v.at(siblings(terms.kernels, terms.device, terms.workers, terms.threads))
    if running <= 1.0:
        return 1.0
    return min(1.0, max(1.0 / running, on.both().clocks(program, *words) / (2.0 * on.clocks(program, *words))))
