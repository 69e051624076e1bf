"""Execution order of ops, which may have any order in a file."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter


def in_order(needs: Sequence[tuple[str, Sequence[str]]], given: Mapping[str, object]) -> bool:
    """Whether each op comes after all that it needs; `needs` lists (name, inputs), `given` the network inputs."""
    seen = set(given)
    for name, inputs in needs:
        if not seen.issuperset(inputs):
            return False
        seen.add(name)
    return True


def execution_order(needs: Sequence[tuple[str, Sequence[str]]]) -> list[int]:
    """Positions in `needs` in an order in which every op comes after those that it needs; ties keep the order of the file.

    Raises graphlib.CycleError.

    >>> execution_order([("c", ["a"]), ("a", []), ("b", [])])
    [1, 0, 2]
    """
    place = {name: position for position, (name, _) in enumerate(needs)}
    sorter = TopologicalSorter({name: [i for i in inputs if i in place] for name, inputs in needs})
    sorter.prepare()
    order: list[int] = []
    ready = [place[name] for name in sorter.get_ready()]
    heapq.heapify(ready)
    while ready:
        position = heapq.heappop(ready)
        order.append(position)
        sorter.done(needs[position][0])
        for name in sorter.get_ready():
            heapq.heappush(ready, place[name])
    return order


def cycle(needs: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """The members of one cycle, each feeding the next and the last the first; empty without a cycle."""
    try:
        execution_order(needs)
    except CycleError as error:
        return list(error.args[1][:-1])
    return []
