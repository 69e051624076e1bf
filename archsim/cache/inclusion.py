"""Hierarchies with inclusive or exclusive levels, request by request, in the subset of Python that numba compiles.

Such a level changes the levels above it. When an inclusive level evicts a line, the levels above drop it too. When an exclusive
level hands a line up, the line's dirty sectors move with it.
"""

from __future__ import annotations

from typing import Any

from archsim.cache.kernel import (
    CLEAN_VICTIM,
    DIRTY,
    DIRTY_EVICTIONS,
    DIRTY_TAKEN,
    INVALIDATIONS,
    SECTORS_WRITTEN,
    WRITE_BACK,
    Ints,
    bits,
    remove,
    search,
    serve,
    set_slot,
)


def invalidate_above(
    cells: Ints, line: int, core: int, level: int, shapes: Any, places: Any, tallies: Any
) -> int:
    """Drop a line that an inclusive level has evicted from all caches above it; returns the sectors that were dirty there."""
    shared = places[level][4]
    begin = (core // shared) * shared
    end = min(begin + shared, places[len(shapes)][0])
    dirty = 0
    for upper in range(level):
        ways, policy = shapes[upper][0], shapes[upper][1]
        for one in range(begin, end, places[upper][4]):
            first = set_slot(line, one, places[upper])
            slot = search(cells, line, first, ways)
            if slot < first + ways:
                tallies[upper][INVALIDATIONS] += 1
                dirty |= remove(cells, slot, first, ways, policy)
    return dirty


def mark_dirty_above(cells: Ints, line: int, core: int, level: int, dirty: int, shapes: Any, places: Any) -> None:
    """Mark sectors of a line dirty in the level to which the line has moved up."""
    upper = level - 1
    while shapes[upper][6]:
        upper -= 1
    first, ways = set_slot(line, core, places[upper]), shapes[upper][0]
    slot = search(cells, line, first, ways)
    if slot < first + ways:
        cells[slot + ways + 1] |= dirty << DIRTY


def serve_stepwise(
    total: int, slots: Ints, lines: Ints, masks: Ints, kinds: Ints, counts: Ints, cores: Ints, sources: Ints,
    cells: Ints, shapes: Any, places: Any, inclusive: Any, tallies: Any, made: Ints,
) -> None:  # fmt: skip
    """Requests one by one through all levels, for hierarchies in which a level changes those above it.

    Row k of each table of requests holds the requests to level k, the last row those to memory; `made[k]` counts them. A victim
    of an inclusive level is dropped above as well, where its latest data may be.
    """
    levels = len(shapes)
    for i in range(total):
        begin, end = i, i + 1
        for k in range(levels):
            start = kept = made[k + 1]
            for j in range(begin, end):
                line, core = lines[k][j], cores[k][j]
                slots[k][j] = set_slot(line, core, places[k])
                tallies[k][DIRTY_TAKEN] = 0
                new = serve(j, j + 1, slots[k], lines[k], masks[k], kinds[k], counts[k], cells, shapes[k], sources[k + 1],
                            lines[k + 1], masks[k + 1], kinds[k + 1], counts[k + 1], kept, tallies[k])  # fmt: skip
                if tallies[k][DIRTY_TAKEN]:
                    mark_dirty_above(cells, line, core, k, tallies[k][DIRTY_TAKEN], shapes, places)
                for out in range(kept, new):
                    kind, mask = kinds[k + 1][out], masks[k + 1][out]
                    if inclusive[k] and kind in (WRITE_BACK, CLEAN_VICTIM):
                        dirty = invalidate_above(cells, lines[k + 1][out], core, k, shapes, places, tallies)
                        if dirty:
                            tallies[k][SECTORS_WRITTEN] += bits(dirty if kind == CLEAN_VICTIM else dirty & ~mask)
                            tallies[k][DIRTY_EVICTIONS] += 1 if kind == CLEAN_VICTIM else 0
                            mask = dirty if kind == CLEAN_VICTIM else mask | dirty
                            kind = WRITE_BACK
                    if kind == CLEAN_VICTIM and (k + 1 == levels or not shapes[k + 1][6]):
                        continue  # only an exclusive level takes clean victims
                    lines[k + 1][kept], kinds[k + 1][kept], masks[k + 1][kept] = lines[k + 1][out], kind, mask
                    counts[k + 1][kept], sources[k + 1][kept], cores[k + 1][kept] = counts[k + 1][out], j, core
                    kept += 1
            made[k + 1] = kept
            begin, end = start, kept
