"""Which of the calls of a profile count, by when they ran; and what repeats among them."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.trace.profiles.aten import VIEWS
from archsim.trace.profiles.gradients import is_gradient
from archsim.trace.readers.aten_calls import NO_OPS, counted, operator_of
from archsim.trace.readers.aten_rules import RULES


def parents_of(starts: Sequence[float], durations: Sequence[float], threads: Sequence[int]) -> list[int]:
    """For each call, in the order in which they began, the call that it ran within; -1 for none."""
    open_: dict[int, list[int]] = {}
    found = []
    for i, (start, duration, thread) in enumerate(zip(starts, durations, threads, strict=True)):
        stack = open_.setdefault(thread, [])
        while stack and starts[stack[-1]] + durations[stack[-1]] < start + min(duration, 1e-9):
            stack.pop()
        while stack and starts[stack[-1]] + durations[stack[-1]] <= start and duration > 0:
            stack.pop()
        found.append(stack[-1] if stack else -1)
        stack.append(i)
    return found


def counted_calls(
    starts: Sequence[float], durations: Sequence[float], threads: Sequence[int], names: Sequence[str], launched: Sequence[bool]
) -> tuple[list[int], dict[int, int]]:
    """The calls that count, in the order in which they began; and for each call within one of them, that one.

    A kernel that a compiler made has no operator around it: its launch counts, `launched`, under the name of the kernel.
    """
    called = [operator_of(name) for name in names]
    known = [space == "aten" and ((kind in RULES and kind not in VIEWS) or is_gradient(kind)) for space, kind in called]
    able = [space not in NO_OPS if kind else each for (space, kind), each in zip(called, launched, strict=True)]
    return counted(parents_of(starts, durations, threads), able, known)


def outermost(starts: Sequence[float], durations: Sequence[float], threads: Sequence[int]) -> list[int]:
    """The places of the outermost calls of the thread that has most of them, in the order in which they began."""
    order = sorted(range(len(starts)), key=lambda i: (starts[i], -durations[i]))
    ends: dict[int, float] = {}
    found: dict[int, list[int]] = {}
    for i in order:
        thread = threads[i]
        if starts[i] >= ends.get(thread, float("-inf")):
            found.setdefault(thread, []).append(i)
            ends[thread] = starts[i] + durations[i]
    return max(found.values(), key=len)


def period(items: Sequence[int]) -> int:
    """The length of the shortest beginning whose repetitions are all of the list; its own length where it repeats nothing.

    >>> period([1, 2, 1, 2, 1, 2]), period([1, 2, 1])
    (2, 3)
    """
    border = [0] * len(items)
    k = 0
    for i in range(1, len(items)):
        while k and items[i] != items[k]:
            k = border[k - 1]
        k += items[i] == items[k]
        border[i] = k
    length = len(items) - border[-1] if items else 0
    return length if items and len(items) % length == 0 else len(items)
