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
    NEXT,
    SECTORS_WRITTEN,
    WRITE_BACK,
    Ints,
    bits,
    remove,
    search,
    serve,
    set_slot,
    set_slots,
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

    Row k of each table of requests holds the requests to level k, the last row those to memory; `made[k]` counts them. A level
    serves as many at once as cause none below. A victim of an inclusive level is dropped above as well, where its latest data may
    be.
    """
    levels, at = len(shapes), 0
    while at < total:
        begin, end = at, total
        for k in range(levels):
            shape, place, tally = shapes[k], places[k], tallies[k]
            slot, line, mask, kind, count, core = slots[k], lines[k], masks[k], kinds[k], counts[k], cores[k]
            source_of, line_of, mask_of, kind_of = sources[k + 1], lines[k + 1], masks[k + 1], kinds[k + 1]
            count_of, core_of = counts[k + 1], cores[k + 1]
            start = kept = made[k + 1]
            if k:
                for j in range(begin, end):
                    slot[j] = set_slot(line[j], core[j], place)
            elif not at:
                set_slots(total, line, core, place, slot)
            while begin < end:
                tally[DIRTY_TAKEN] = 0
                new = serve(begin, end, slot, line, mask, kind, count, cells, shape, source_of, line_of, mask_of, kind_of,
                            count_of, kept, tally, kept)  # fmt: skip
                begin = tally[NEXT]
                by = core[begin - 1]
                if tally[DIRTY_TAKEN]:
                    mark_dirty_above(cells, line[begin - 1], by, k, tally[DIRTY_TAKEN], shapes, places)
                for out in range(kept, new):
                    sort, sectors = kind_of[out], mask_of[out]
                    if inclusive[k] and sort in (WRITE_BACK, CLEAN_VICTIM):
                        dirty = invalidate_above(cells, line_of[out], by, k, shapes, places, tallies)
                        if dirty:
                            tally[SECTORS_WRITTEN] += bits(dirty if sort == CLEAN_VICTIM else dirty & ~sectors)
                            tally[DIRTY_EVICTIONS] += 1 if sort == CLEAN_VICTIM else 0
                            sectors = dirty if sort == CLEAN_VICTIM else sectors | dirty
                            sort = WRITE_BACK
                    if sort == CLEAN_VICTIM and (k + 1 == levels or not shapes[k + 1][6]):
                        continue  # only an exclusive level takes clean victims
                    line_of[kept], kind_of[kept], mask_of[kept] = line_of[out], sort, sectors
                    count_of[kept], source_of[kept], core_of[kept] = count_of[out], begin - 1, by
                    kept += 1
                if k == 0 and kept > start:
                    break
            if k == 0:
                at = begin
            made[k + 1] = kept
            begin, end = start, kept
