"""Stack distances, use by use: like `archsim.cache.kernel`, in a subset of Python that numba compiles as it stands."""

from __future__ import annotations

from archsim.cache.kernel import Ints


def find(line: int, keys: Ints) -> int:
    """Where a line stands in a hash table of lines, or the empty place where it belongs; their number is a power of two."""
    last = len(keys) - 1
    mixed = (((line ^ (line >> 29)) & 0x7FFFFFFF) * 2654435761) & 0xFFFFFFFF  # Knuth's multiplicative hash, within 63 bits
    place = (mixed ^ (mixed >> 15)) & last
    while keys[place] >= 0 and keys[place] != line:
        place = (place + 1) & last
    return place


def remember(total: int, order: Ints, keys: Ints, times: Ints) -> None:
    """Fill an empty table with lines whose last uses were numbers 1, 2, ..."""
    for i in range(total):
        place = find(order[i], keys)
        keys[place], times[place] = order[i], i + 1


def follow(total: int, lines: Ints, keys: Ints, times: Ints, tree: Ints, now: int, known: int, out: Ints) -> None:
    """The stack distance of each use, -1 for a first one: the lines whose last use is later than its own.

    `tree` is a Fenwick tree that marks the times of last uses; `now` is the last time given, `known` the number of marks.
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
