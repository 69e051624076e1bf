"""`archsim.sweep`: the points of a sweep as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from archsim.base.errors import ArgumentError
from archsim.base.record import Answer
from archsim.estimation.request import Request
from archsim.study.space import Space
from archsim.study.sweep import in_this_process, rows
from archsim.study.sweep import names as columns_of

MANY = 5_000_000  # points that a list of rows in memory should not exceed


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep(Answer, Mapping[str, Sequence[Any]]):
    """A table of points: `sweep["latency_s"]` is a column, `sweep.rows()` are dictionaries; `units` by column.

    An output that a point does not have is None, and its `problem` says why.

    space, requests: what was asked for, and the request of each network on each device
    """

    columns: Mapping[str, tuple[Any, ...]]
    units: Mapping[str, str]
    space: Space = field(repr=False)
    requests: tuple[Request, ...] = field(repr=False)

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def points(self) -> int:
        """Number of points."""
        return len(self.columns["point"])

    def rows(self) -> Iterator[dict[str, Any]]:
        """The points one by one."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))


def swept(space: Space) -> Sweep:
    """All points of a space, computed in this process. Raises ArgumentError for too many."""
    requests = space.checked()
    if space.count > MANY:
        raise ArgumentError(f"vary: {space.count:,} points are more than {MANY:,}; sample takes some, `archsim sweep --out` all")
    units = columns_of(space, requests[0].spec.kind)
    listed = [row for chunk in in_this_process(space, range(space.parts)) for row in rows(chunk, space)]
    columns = dict(zip(units, zip(*listed, strict=True), strict=True))
    return Sweep(columns=columns, units=units, space=space, requests=tuple(requests))
