"""Execution order of ops, which may have any order in a file."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from graphlib import TopologicalSorter


def ordered(needs: Sequence[tuple[str, Iterable[str]]], given: Iterable[str] = ()) -> list[int]:
    """Positions in an order in which every op comes after all that it needs: as they stand, where that is one.

    needs: (name, inputs) of each op; given: the network inputs. Raises what `execution_order` does.

    >>> ordered([("c", ["a"]), ("a", []), ("b", [])])
    [1, 0, 2]
    """
    seen = set(given)
    for name, inputs in needs:
        if not seen.issuperset(inputs):
            return execution_order(needs)
        seen.add(name)
    return list(range(len(needs)))


def execution_order(needs: Sequence[tuple[str, Iterable[str]]]) -> list[int]:
    """Positions in `needs` in an order in which every op comes after those that it needs; ties keep the order of the file.

    Raises graphlib.CycleError, whose second argument is a ring of names, the first of them again at its end.

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
