"""What one level of a cache does with a run of requests, in a subset of Python that numba compiles as it stands.

The functions work on anything that is indexed by integers: lists when they run as they are, which is faster than numpy for
single elements, and numpy arrays when they are compiled (`archsim.cache.compile`). They use integers below 2^63 only, so that
both give the same result to the bit. Only the search of a set and the shift of its lines, for which a list has methods, are
written a second time as loops for arrays, in `ARRAYS`. All that these functions call stands in this one file, as numba keeps
machine code on disk until the file of its source changes.

A request names a line by its number and the sectors of it as bits of a mask. The sets of all levels stand one after the other in
one array, `cells`, in rows of a cell for each way and a spare one: of each set first the tags (-1 for an empty way), then the
sectors that each way holds, in the low bits, and has written, from bit `DIRTY` on, then, for some policies, ages. A slot is the
position of a tag. Under LRU and FIFO a set is a stack, the line that came or was used last in front, so that the victim is
always the last one and nothing has to be compared (Mattson et al. 1970); it leaves through the spare cell.
"""

from __future__ import annotations

from typing import Any

# A request. BACK is a write that comes from a victim, PLACE a clean victim for a level that holds what the one above drops.
READ, WRITE, PLACE, BACK = 0, 1, 2, 3
LRU, FIFO, RANDOM, TREE, BITS, SRRIP = range(6)
# What each level counts, [COUNTERS]; sectors are in the smallest unit of the hierarchy.
READ_HITS, READ_MISSES, WRITE_HITS, WRITE_MISSES, EVICTIONS, DIRTY_EVICTIONS = range(6)
SECTORS_READ, SECTORS_WRITTEN, INVALIDATIONS, SEED, TAKEN = range(6, 11)
COUNTERS = 11
DIRTY = 31
SECTORS = (1 << DIRTY) - 1
FARTHEST = 3  # a re-reference prediction of two bits (Jaleel et al. 2010, SRRIP-HP with M = 2)
MOST_PER_REQUEST = 3  # requests that one request makes below: a fetch, a victim, a write that goes through

Ints = Any  # a list of int, or an array of int64


def search(cells: Ints, line: int, first: int, ways: int) -> int:
    """Where a line stands in a set, or the spare cell behind its tags."""
    cells[first + ways] = line  # the search ends here at the latest
    slot: int = cells.index(line, first)
    return slot


def promote(cells: Ints, line: int, first: int, ways: int) -> bool:
    """Bring a line to the front of its set, and say whether it was there.

    If it was not, it is there now, with no sectors, and the last one is in the spare cells.
    """
    end, state = first + ways, first + ways + 1
    cells[end] = line
    slot = cells.index(line, first)
    last = slot + ways + 1
    if slot == end:  # tags and sectors move as one
        cells[first + 1 : last + 1] = cells[first:last]
        cells[first], cells[state] = line, 0
        return False
    held = cells[last]
    cells[first + 1 : slot + 1] = cells[first:slot]
    cells[state + 1 : last + 1] = cells[state:last]
    cells[first], cells[state] = line, held
    return True


def prefetch(cells: Ints, first: int, count: int) -> None:
    """Nothing: a processor is told only by machine code what it will read soon (`archsim.cache.compile`)."""


def search_by_loop(cells: Ints, line: int, first: int, ways: int) -> int:
    """`search` of arrays."""
    slot = first
    while slot < first + ways and cells[slot] != line:
        slot += 1
    return slot


def promote_by_loop(cells: Ints, line: int, first: int, ways: int) -> bool:
    """`promote` of arrays: what stood before each place is put there while the search goes on."""
    row = ways + 1
    tag, held = cells[first], cells[first + row]
    cells[first] = line
    found: bool = tag == line
    slot = first + 1
    while not found and slot < first + ways:
        next_tag, next_held = cells[slot], cells[slot + row]
        cells[slot], cells[slot + row] = tag, held
        tag, held = next_tag, next_held
        found = tag == line
        slot += 1
    if not found:
        cells[slot], cells[slot + row] = tag, held
        held = 0
    cells[first + row] = held
    return found


ARRAYS = {"search": search_by_loop, "promote": promote_by_loop}


def bits(mask: int) -> int:
    """Sectors in a mask."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


def widened(mask: int, grain: int) -> int:
    """The mask with every group of `grain` sectors whole of which it has one: a level that moves larger sectors."""
    whole, group, result = (1 << grain) - 1, 0, 0
    while mask >> group:
        if (mask >> group) & whole:
            result |= whole << group
        group += grain
    return result


def remove(cells: Ints, slot: int, first: int, ways: int, policy: int) -> int:
    """Take a line out of a set; returns its dirty sectors. In a stack those behind it move up."""
    dirty: int = cells[slot + ways + 1] >> DIRTY
    last = first + ways - 1 if policy <= FIFO else slot
    while slot < last:
        cells[slot], cells[slot + ways + 1] = cells[slot + 1], cells[slot + ways + 2]
        slot += 1
    cells[slot], cells[slot + ways + 1] = -1, 0
    return dirty


def touch(cells: Ints, slot: int, first: int, ways: int, policy: int) -> None:
    """Note a use of a slot, for policies that keep ages."""
    ages = 2 * (ways + 1)
    begin = first + ages
    if policy == TREE:  # every node on the way down points to the other half
        node, low, size, tree = 0, first, ways, cells[begin]
        while size > 1:
            size >>= 1
            if slot < low + size:
                tree |= 1 << node
                node = 2 * node + 1
            else:
                tree &= ~(1 << node)
                low += size
                node = 2 * node + 2
        cells[begin] = tree
    elif policy == BITS:  # the last bit to be set clears all others
        cells[slot + ages] = 1
        for other in range(begin, begin + ways):
            if cells[other] == 0:
                return
        for other in range(begin, begin + ways):
            cells[other] = 0
        cells[slot + ages] = 1
    elif policy == SRRIP:
        cells[slot + ages] = 0


def victim(cells: Ints, first: int, ways: int, policy: int, tally: Ints) -> int:
    """The slot to be filled next by policies without a stack: an empty one if there is one."""
    ages = 2 * (ways + 1)
    begin = first + ages
    slot = search(cells, -1, first, ways)
    if slot < first + ways:
        return slot
    if policy == RANDOM:  # the generator of C's example, of which the high bits are good enough
        tally[SEED] = (tally[SEED] * 1103515245 + 12345) & 0x7FFFFFFF
        return int(first + (tally[SEED] >> 8) % ways)
    if policy == TREE:
        node, slot, size, tree = 0, first, ways, cells[begin]
        while size > 1:
            size >>= 1
            if (tree >> node) & 1:
                slot += size
                node = 2 * node + 2
            else:
                node = 2 * node + 1
        return slot
    if policy == BITS:
        for slot in range(first, first + ways):
            if cells[slot + ages] == 0:
                return slot
        return first
    slot = first  # SRRIP: the first that is predicted farthest, after all have aged as much as it takes
    for other in range(first + 1, first + ways):
        if cells[other + ages] > cells[slot + ages]:
            slot = other
    older = FARTHEST - cells[slot + ages]
    for other in range(begin, begin + ways):
        cells[other] += older
    return slot


def serve(
    begin: int, end: int, slots: Ints, lines: Ints, masks: Ints, kinds: Ints, counts: Ints, cells: Ints, shape: Any,
    out_source: Ints, out_line: Ints, out_mask: Ints, out_kind: Ints, out_count: Ints, made: int, tally: Ints,
) -> int:  # fmt: skip
    """Requests `begin` to `end` at one level, in order; what they ask of the level below goes to `out`, from `made` on.

    `slots` are the first of each request's set. `counts` says how often a request is repeated: all but the first find what the
    first brought. On a miss the line is fetched before its victim leaves. `out_source` is the position of the request that made
    each request below. `shape` is (ways, policy, write back, allocate on writes, fetch on writes, writes count as uses,
    exclusive, drop clean victims below, sectors moved together, step, ahead); a step of 0 keeps no requests below, of which only
    the bytes count then, and `ahead` is how many requests early a processor is told what it will read, 0 for never. Returns the
    end of what was made.

    This is the inner loop of everything. What nearly all requests are comes first: reads of an LRU level that keeps what it is
    asked for. The rest of the loop does the same for every kind of request and level.
    """
    ways, policy, back, allocate, fetch, touches, exclusive, clean, grain, step, ahead = shape
    read_hits, read_misses, write_hits, write_misses = 0, 0, 0, 0
    fetched, wrote, evictions, dirty_evictions = 0, 0, 0, 0
    row = ways + 1
    stack, common = policy <= FIFO, policy == LRU and not exclusive and not clean and grain == 1
    for i in range(begin, end):
        line, mask, kind, count, first = lines[i], masks[i], kinds[i], counts[i], slots[i]
        if ahead and i + ahead < end:
            prefetch(cells, slots[i + ahead], row + row)
        if common and kind == READ:
            if cells[first] == line or promote(cells, line, first, ways):
                missing = mask & ~cells[first + row]
                if not missing:
                    read_hits += count
                    continue
                gone = state = -1
            else:
                missing = mask
                gone, state = cells[first + ways], cells[first + ways + row]
            read_misses += 1
            read_hits += count - 1
            if step:
                out_source[made], out_line[made], out_mask[made] = i, line, missing
                out_kind[made], out_count[made] = READ, 1
                made += 1
            fetched += 1 if missing == 1 else bits(missing)
            cells[first + row] |= mask
            if gone >= 0:
                evictions += 1
                if state > SECTORS:
                    dirty_evictions += 1
                    wrote += bits(state >> DIRTY)
                    out_source[made], out_line[made], out_mask[made] = i, gone, state >> DIRTY
                    out_kind[made], out_count[made] = BACK, 1
                    made += step
            continue
        if grain > 1 and kind == READ:
            mask = widened(mask, grain)
        slot = search(cells, line, first, ways)
        held = slot + row
        if slot < first + ways:
            missing = mask & ~cells[held]
            if kind == READ:
                if missing:
                    read_misses += 1
                    read_hits += count - 1
                    out_source[made], out_line[made], out_mask[made] = i, line, missing
                    out_kind[made], out_count[made] = READ, 1
                    made += step
                    fetched += bits(missing)
                    cells[held] |= mask
                else:
                    read_hits += count
                if exclusive:  # it moves up, and takes along that it is dirty
                    tally[TAKEN] = remove(cells, slot, first, ways, policy)
                    continue
            elif kind == PLACE:
                cells[held] |= mask
            else:
                if missing and fetch:
                    if grain > 1:
                        missing = widened(missing, grain) & ~cells[held]
                    write_misses += 1
                    write_hits += count - 1
                    out_source[made], out_line[made], out_mask[made] = i, line, missing
                    out_kind[made], out_count[made] = READ, 1
                    made += step
                    fetched += bits(missing)
                    cells[held] |= missing
                else:
                    write_hits += count
                    missing = 0
                if back:
                    cells[held] |= mask | mask << DIRTY
                else:
                    cells[held] |= mask
                    out_source[made], out_line[made], out_mask[made] = i, line, mask
                    out_kind[made], out_count[made] = WRITE, count
                    made += step
                    wrote += bits(mask) * count
                if not touches and not missing:
                    continue
            if policy == LRU:
                promote(cells, line, first, ways)
            elif not stack:
                touch(cells, slot, first, ways, policy)
            continue
        written = False
        if kind == READ:
            read_misses += 1
            read_hits += count - 1
        elif kind != PLACE:
            if not allocate:
                write_misses += count
                out_source[made], out_line[made], out_mask[made] = i, line, mask
                out_kind[made], out_count[made] = WRITE, count
                made += step
                wrote += bits(mask) * count
                continue
            written = True
            write_misses += 1
            write_hits += count - 1
        wanted = mask
        if kind == READ or (written and fetch):
            if written and grain > 1:
                wanted = widened(mask, grain)
            if step:
                out_source[made], out_line[made], out_mask[made] = i, line, wanted
                out_kind[made], out_count[made] = READ, 1
                made += 1
            fetched += 1 if wanted == 1 else bits(wanted)
        if exclusive and kind == READ:
            continue
        if stack:
            promote(cells, line, first, ways)
            slot = first + ways
        else:
            slot = victim(cells, first, ways, policy, tally)
        gone, state = cells[slot], cells[slot + row]
        if gone >= 0:
            evictions += 1
            if state > SECTORS:
                dirty_evictions += 1
                wrote += bits(state >> DIRTY)
                out_source[made], out_line[made], out_mask[made] = i, gone, state >> DIRTY
                out_kind[made], out_count[made] = BACK, 1
                made += step
            elif clean:
                out_source[made], out_line[made], out_mask[made] = i, gone, state
                out_kind[made], out_count[made] = PLACE, 1
                made += step
        if stack:
            slot = first
        else:
            cells[slot] = line
        cells[slot + row] = wanted | mask << DIRTY if written and back else wanted
        if policy == SRRIP:
            used = count > 1 and (touches or not written)
            cells[slot + 2 * row] = 0 if used else FARTHEST - 1
        elif not stack:
            touch(cells, slot, first, ways, policy)
        if written and not back:
            out_source[made], out_line[made], out_mask[made] = i, line, mask
            out_kind[made], out_count[made] = WRITE, count
            made += step
            wrote += bits(mask) * count
    tally[READ_HITS] += read_hits
    tally[READ_MISSES] += read_misses
    tally[WRITE_HITS] += write_hits
    tally[WRITE_MISSES] += write_misses
    tally[EVICTIONS] += evictions
    tally[DIRTY_EVICTIONS] += dirty_evictions
    tally[SECTORS_READ] += fetched
    tally[SECTORS_WRITTEN] += wrote
    return made


def place_of(line: Any, core: Any, place: Any) -> Any:
    """The first slot of the set of a line, for a core; `place` is (first slot, sets, cells of a
    set, hashed, cores that share).

    A level that hashes folds higher bits into the set. This stands for the undisclosed hashes of GPUs and of sliced caches,
    which keep regular strides from meeting in few sets.
    """
    offset, sets, width, hashed, cores = place
    if hashed:
        line = line ^ (line // sets) ^ (line // (sets * sets))
    chosen = line & (sets - 1) if sets & (sets - 1) == 0 else line % sets
    return chosen * width + (offset + (core // cores) * (width * sets))
