"""The inner loops of stack distances, in the subset of Python that numba compiles, as in `archsim.cache.kernel`."""

from __future__ import annotations

from archsim.cache.kernel import Ints


def find(line: int, keys: Ints) -> int:
    """The slot of a line in an open-addressing hash table, or the empty slot where it belongs; the table's length is a power of
    two.
    """
    last = len(keys) - 1
    mixed = (((line ^ (line >> 29)) & 0x7FFFFFFF) * 2654435761) & 0xFFFFFFFF  # Knuth's multiplicative hash, within 63 bits
    place = (mixed ^ (mixed >> 15)) & last
    while keys[place] >= 0 and keys[place] != line:
        place = (place + 1) & last
    return place


def insert_all(total: int, order: Ints, keys: Ints, times: Ints) -> None:
    """Fill an empty table with lines whose last uses have the times 1, 2, ..."""
    for i in range(total):
        place = find(order[i], keys)
        keys[place], times[place] = order[i], i + 1


def stack_distances(total: int, lines: Ints, keys: Ints, times: Ints, tree: Ints, now: int, known: int, out: Ints) -> None:
    """The stack distance of each use, or -1 for a first use, into `out`: the number of lines whose last use is later than the
    line's.

    `tree` is a Fenwick tree with a 1 at the time of each last use; `now` is the latest time, `known` the number of lines.
    """
    size = len(tree)
    for i in range(total):
        line = lines[i]
        now += 1
        place = find(line, keys)
        if keys[place] == line:
            time = times[place]
            before, node = 0, time
            while node > 0:
                before += tree[node]
                node -= node & -node
            out[i] = known - before
            node = time
            while node < size:
                tree[node] -= 1
                node += node & -node
        else:
            out[i] = -1
            known += 1
            keys[place] = line
        times[place] = now
        node = now
        while node < size:
            tree[node] += 1
            node += node & -node
