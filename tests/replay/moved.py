"""What moved between two versions: errors before and after by source and device, and the largest single moves."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tests.replay.values import CORPUS, Value, Values

SAME = 1e-9  # relative
MOST = 12  # single moves that are printed
GROUPS = 60  # lines of the table


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One value that is another now; `by` is the larger of |ln(after / before)| over its numbers, infinite for words."""

    group: str
    key: str
    before: list[Value] | None
    after: list[Value] | None
    by: float


def moves(before: Values, after: Values) -> list[Move]:
    """Every key whose values differ by more than one part in 10^9, or which only one version has; the largest first."""
    found = []
    for group in before.keys() | after.keys():
        old, new = before.get(group, {}), after.get(group, {})
        for key in old.keys() | new.keys():
            by = _by(old.get(key), new.get(key))
            if by > 0:
                found.append(Move(group=group, key=key, before=old.get(key), after=new.get(key), by=by))
    return sorted(found, key=lambda move: (-move.by, move.group, move.key))


def _by(before: Sequence[Value] | None, after: Sequence[Value] | None) -> float:
    if before is None or after is None or len(before) != len(after):
        return math.inf
    largest = 0.0
    first = 0 if len(before) == 1 else 1  # the error of a row follows from its prediction
    for one, other in zip(before[first:], after[first:], strict=True):
        if one == other or (one != one and other != other):  # NaN is as NaN
            continue
        if isinstance(one, str) or isinstance(other, str) or not (math.isfinite(one) and math.isfinite(other)):
            return math.inf
        apart = abs(one - other) / max(abs(one), abs(other))
        if apart > SAME:
            largest = max(largest, abs(math.log(other / one)) if one * other > 0 else math.inf)
    return largest


def table(before: Values, after: Values) -> str:
    """What moved, for people: by source and device where values are measured, then other groups, then single moves."""
    found = moves(before, after)
    if not found:
        return "no prediction moved"
    lines = [f"{len(found):,} values moved, in {len({move.group for move in found})} groups", ""]
    rows = [move for move in found if move.group.startswith(CORPUS)]
    if rows:
        lines += [f"{'published rows':58} {'rows':>6} {'moved':>6} {'median %':>16} {'p90 %':>16}"]
        told = list(_measured(rows, before, after))
        lines += told[:GROUPS] + ([f"... {len(told) - GROUPS} lines more"] if len(told) > GROUPS else []) + [""]
    others: dict[str, list[Move]] = defaultdict(list)
    for move in found:
        if not move.group.startswith(CORPUS):
            others[move.group].append(move)
    for group, own in list(others.items())[:GROUPS]:
        lines.append(f"{group}: {len(own)} moved; {_single(own[0])}")
    lines += [f"... {len(others) - GROUPS} groups more"] if len(others) > GROUPS else []
    if rows:
        lines += ["", "largest single moves of published rows"]
        lines += [f"  {move.group.removeprefix(CORPUS + ' ')} {_single(move)}" for move in rows[:MOST]]
    return "\n".join(lines)


def _measured(rows: Sequence[Move], before: Values, after: Values) -> Iterator[str]:
    """A line for all rows, for each source, and for each device of a source that moved."""
    touched: dict[str, int] = defaultdict(int)
    for move in rows:
        source, device, _ = move.group.removeprefix(f"{CORPUS} ").split(" | ")
        for name in ("all", source, f"{source} | {device}"):
            touched[name] += 1
    old, new = _errors(before), _errors(after)
    for name in sorted(touched, key=lambda name: (name != "all", name)):
        figures = [_figures(of.get(name, [])) for of in (old, new)]
        at = [f"{a:6.2f} -> {b:6.2f}" for a, b in zip(*figures, strict=True)]
        yield f"{name[:58]:58} {len(new.get(name, [])):6} {touched[name]:6} {at[0]} {at[1]}"


def _errors(values: Values) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for group, own in values.items():
        if group.startswith(f"{CORPUS} "):
            source, device, _ = group.removeprefix(f"{CORPUS} ").split(" | ")
            errors = [abs(float(one[0])) for one in own.values()]
            for name in ("all", source, f"{source} | {device}"):
                found[name] += errors
    return found


def _figures(errors: Sequence[float]) -> tuple[float, float]:
    if not errors:
        return math.nan, math.nan
    return float(100 * np.median(errors)), float(100 * np.quantile(errors, 0.9))


def _single(move: Move) -> str:
    if move.before is None or move.after is None:
        return f"{move.key}: only {'after' if move.before is None else 'before'}"
    pairs = [(a, b) for a, b in zip(move.before[1:] or move.before, move.after[1:] or move.after, strict=False) if a != b]
    one, other = pairs[0] if pairs else (move.before[-1], move.after[-1])
    if isinstance(one, str) or isinstance(other, str):
        return f"{move.key}: {str(one)[:60]!r} -> {str(other)[:60]!r}"
    return f"{move.key}: {one:.6g} -> {other:.6g}" + (f" ({100 * (other / one - 1):+.3g} %)" if one else "")


def by_group(values: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    """The groups whose lines differ in two files."""
    return sorted(group for group in values.keys() | others.keys() if values.get(group) != others.get(group))
