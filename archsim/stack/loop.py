"""What scalar loops of a framework's CPU code do for each value: rows of `traces/kernels/loops`, a file for each framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache

from archsim.stack.menu import rows_in

FOLDER = "traces/kernels/loops"
COLUMNS = ("op", "phase", "does", "source")
PHASES = ("", "training", "backward")  # training: the forward pass of a training step
MOST = 1e6  # of one thing for each value


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarLoop:
    """What a loop does for each value that it goes through: of the result, of the unfolded images, or of a window.

    Counted in the source:
    elements: values that it loads, changes and stores
    operations: operations on them beyond one each, which the closed form has in the clocks of an element
    tests: values that it copies if their index lies within bounds
    compares: values of windows that it compares with the largest so far
    adds: values of windows that it adds up, one after the other
    exps: exponentials, logarithms and tangents of the C library
    pows: powers of the C library
    vectors: SIMD instructions for each register of values

    Inferred from times:
    steps: of a load, an operation and a store whose instructions are not known
    divisions: of integers
    gathers: values that are fetched one by one, by index or at a stride
    """

    elements: float = 0.0
    operations: float = 0.0
    steps: float = 0.0
    tests: float = 0.0
    compares: float = 0.0
    adds: float = 0.0
    divisions: float = 0.0
    exps: float = 0.0
    pows: float = 0.0
    gathers: float = 0.0
    vectors: float = 0.0


LOOP = tuple(field.name for field in fields(ScalarLoop))
UNKNOWN = ScalarLoop()  # a loop of which nothing is known


def loops_of(names: Sequence[str]) -> dict[str, ScalarLoop]:
    """The loops of some files by `op` or `op.phase`, those of the first file that has a row for one.

    Raises InputError, or MissingFile, which name the file.
    """
    found: dict[str, ScalarLoop] = {}
    for name in reversed(names):
        found |= loop_table(name)
    return found


@cache
def loop_table(name: str) -> Mapping[str, ScalarLoop]:
    """The rows of a file of `traces/kernels/loops`, or of one at a path."""
    found: dict[str, ScalarLoop] = {}

    def read(cells: Mapping[str, str]) -> None:
        loop, does = _read(cells)
        if loop in found:
            raise ValueError(f"{loop}: has a row already")
        found[loop] = does

    rows_in(name, FOLDER, "loops", COLUMNS, read)
    return found


def _read(cells: Mapping[str, str]) -> tuple[str, ScalarLoop]:
    """The op of a row, with its phase, and what its loop does. Raises ValueError."""
    if not cells["op"] or cells["phase"] not in PHASES:
        raise ValueError("must have an op, and a phase: nothing, training or backward")
    counts: dict[str, float] = {}
    for word in cells["does"].split():
        name, _, number = word.partition("=")
        if name not in LOOP:
            raise ValueError(f"does: {name!r} is none of {', '.join(LOOP)}")
        counts[name] = float(number or "nan")
        if not 0.0 < counts[name] <= MOST:
            raise ValueError(f"does: {word!r} has no number above 0")
    if not counts:
        raise ValueError("does: is empty; a loop of which nothing is known has no row")
    return f"{cells['op']}.{cells['phase']}".rstrip("."), ScalarLoop(**counts)
