"""The inner loop of one cache level, in the subset of Python that numba compiles.

The functions work on anything indexed by integers: lists when they run as they are, which is faster than numpy for single
elements, and int64 arrays when compiled (`archsim.cache.compile`). All values stay below 2^63, so both give the same result to
the bit. Only the search of a set and the shift of its lines exist twice: as list methods, and as loops for arrays (`ARRAYS`). All
callees are in this file, because numba keeps machine code on disk until the file of its source changes.

A request is a line number with a mask of sectors. `cells` holds the sets of all levels one after the other. A set has rows of
ways + 1 cells, the last one spare: a row of tags (-1 for an empty way); a row of sectors, those present in the low bits and the
dirty ones from bit `DIRTY` on; for some policies a row of ages. A slot is the position of a tag.

Under LRU and FIFO a set is a stack: the line used (or filled) last is in front, so the victim is always the last one and nothing
has to be compared (Mattson et al. 1970). It leaves through the spare cell.
"""

from __future__ import annotations

from typing import Any

# Kinds of request. WRITE_BACK: dirty data of a victim. CLEAN_VICTIM: a clean victim, for an exclusive level below.
READ, WRITE, CLEAN_VICTIM, WRITE_BACK = 0, 1, 2, 3
LRU, FIFO, RANDOM, TREE_PLRU, BIT_PLRU, SRRIP = range(6)
# Counters of a level; sectors are the smallest ones of the hierarchy. SEED, DIRTY_TAKEN and NEXT are state, not counts.
READ_HITS, READ_MISSES, WRITE_HITS, WRITE_MISSES, EVICTIONS, DIRTY_EVICTIONS = range(6)
SECTORS_READ, SECTORS_WRITTEN, INVALIDATIONS, SEED, DIRTY_TAKEN, NEXT = range(6, 12)
COUNTERS = 12
DIRTY = 31
SECTORS = (1 << DIRTY) - 1
DISTANT = 3  # re-reference prediction of two bits (Jaleel et al. 2010, SRRIP-HP with M = 2)
MOST_PER_REQUEST = 3  # requests to the level below that one request causes: a fetch, a victim, a write-through

Ints = Any  # a list of int, or an array of int64


def search(cells: Ints, line: int, first: int, ways: int) -> int:
    """The slot of a line in its set, or the spare cell if it is not there."""
    cells[first + ways] = line  # a sentinel in the spare cell
    slot: int = cells.index(line, first)
    return slot


def promote(cells: Ints, line: int, first: int, ways: int) -> bool:
    """Move a line to the front of its set; returns whether it was there.

    A line that was not there is inserted without sectors, and the last line of the set moves to the spare cells.
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
    """Does nothing here; compiled, it prefetches the cells of a later request (`archsim.cache.compile`)."""


def search_by_loop(cells: Ints, line: int, first: int, ways: int) -> int:
    """`search` for arrays."""
    slot = first
    while slot < first + ways and cells[slot] != line:
        slot += 1
    return slot


def promote_by_loop(cells: Ints, line: int, first: int, ways: int) -> bool:
    """`promote` for arrays: lines are shifted back while the search goes on."""
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
    """Number of sectors in a mask.

    >>> bits(0b1011)
    3
    """
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


def widened(mask: int, grain: int) -> int:
    """The mask with every group of `grain` sectors completed of which it has one, for a level that moves larger sectors.

    >>> bin(widened(0b0010, 2))
    '0b11'
    """
    whole, group, result = (1 << grain) - 1, 0, 0
    while mask >> group:
        if (mask >> group) & whole:
            result |= whole << group
        group += grain
    return result


def remove(cells: Ints, slot: int, first: int, ways: int, policy: int) -> int:
    """Remove a line from a set; returns its dirty sectors. In a stack the lines behind it move up."""
    dirty: int = cells[slot + ways + 1] >> DIRTY
    last = first + ways - 1 if policy <= FIFO else slot
    while slot < last:
        cells[slot], cells[slot + ways + 1] = cells[slot + 1], cells[slot + ways + 2]
        slot += 1
    cells[slot], cells[slot + ways + 1] = -1, 0
    return dirty


def touch(cells: Ints, slot: int, first: int, ways: int, policy: int) -> None:
    """Record a use of a slot, for policies that keep ages."""
    ages = 2 * (ways + 1)
    begin = first + ages
    if policy == TREE_PLRU:  # every node on the path points away from the slot
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
    elif policy == BIT_PLRU:  # when the last bit is set, all others are cleared
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
    """The slot to fill next under a policy without a stack: an empty one if there is one."""
    ages = 2 * (ways + 1)
    begin = first + ages
    slot = search(cells, -1, first, ways)
    if slot < first + ways:
        return slot
    if policy == RANDOM:  # the linear congruential generator of the C standard; its high bits are random enough
        tally[SEED] = (tally[SEED] * 1103515245 + 12345) & 0x7FFFFFFF
        return int(first + (tally[SEED] >> 8) % ways)
    if policy == TREE_PLRU:
        node, slot, size, tree = 0, first, ways, cells[begin]
        while size > 1:
            size >>= 1
            if (tree >> node) & 1:
                slot += size
                node = 2 * node + 2
            else:
                node = 2 * node + 1
        return slot
    if policy == BIT_PLRU:
        for slot in range(first, first + ways):
            if cells[slot + ages] == 0:
                return slot
        return first
    slot = first  # SRRIP: the first with the largest prediction; all age until that is DISTANT
    for other in range(first + 1, first + ways):
        if cells[other + ages] > cells[slot + ages]:
            slot = other
    older = DISTANT - cells[slot + ages]
    for other in range(begin, begin + ways):
        cells[other] += older
    return slot


def serve(
    begin: int, end: int, slots: Ints, lines: Ints, masks: Ints, kinds: Ints, counts: Ints, cells: Ints, shape: Any,
    out_source: Ints, out_line: Ints, out_mask: Ints, out_kind: Ints, out_count: Ints, made: int, tally: Ints, most: int,
) -> int:  # fmt: skip
    """Requests `begin` to `end` at one level, in order. Requests to the level below are appended to `out_...` from `made` on.

    slots: first slot of each request's set; counts: consecutive repetitions, of which all but the first hit
    shape: (ways, policy, write back, allocate on writes, fetch on writes, writes count as uses, exclusive, pass clean victims
        down, sectors moved together, step, ahead)
    step: 0 where requests to the level below need not be kept, because only their bytes count
    ahead: how many requests ahead the cells of a set are prefetched, 0 for never
    most: end of `out_...` beyond which no further request is served, nor after a line that moves up: `tally[NEXT]` is the next

    A missing line is fetched before its victim leaves. `out_source` is the position of the request that caused each request
    below. Returns the end of `out_...`.

    This is the innermost loop. Reads at an LRU level that is neither exclusive nor sectored, nearly all requests, come first; the
    rest of the loop does the same for every kind of request and level.
    """
    ways, policy, back, allocate, fetch, touches, exclusive, clean, grain, step, ahead = shape
    read_hits, read_misses, write_hits, write_misses = 0, 0, 0, 0
    fetched, wrote, evictions, dirty_evictions = 0, 0, 0, 0
    row = ways + 1
    stack, common = policy <= FIFO, policy == LRU and not exclusive and not clean and grain == 1
    tally[NEXT] = end
    for i in range(begin, end):
        if made > most:
            tally[NEXT] = i
            break
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
                    out_kind[made], out_count[made] = WRITE_BACK, 1
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
                if exclusive:  # the line moves up with its dirty sectors
                    tally[DIRTY_TAKEN] = remove(cells, slot, first, ways, policy)
                    tally[NEXT] = i + 1
                    break
            elif kind == CLEAN_VICTIM:
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
        elif kind != CLEAN_VICTIM:
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
                out_kind[made], out_count[made] = WRITE_BACK, 1
                made += step
            elif clean:
                out_source[made], out_line[made], out_mask[made] = i, gone, state
                out_kind[made], out_count[made] = CLEAN_VICTIM, 1
                made += step
        if stack:
            slot = first
        else:
            cells[slot] = line
        cells[slot + row] = wanted | mask << DIRTY if written and back else wanted
        if policy == SRRIP:
            used = count > 1 and (touches or not written)
            cells[slot + 2 * row] = 0 if used else DISTANT - 1
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


def set_slot(line: int, core: int, place: Any) -> int:
    """The first slot of the set of a line, for a core; `place` is (first slot, sets, cells of a set, hashed, cores that share).

    A hashed level folds higher bits into the set index. This stands for the undisclosed hashes of GPUs and of sliced caches,
    which spread regular strides over the sets.
    """
    offset, sets, width, hashed, cores = place
    if hashed:
        line = line ^ (line // sets) ^ (line // (sets * sets))
    chosen = line & (sets - 1) if sets & (sets - 1) == 0 else line % sets
    instance = core // cores if core else 0
    return int(chosen * width + (offset + instance * (width * sets)))


def set_slots(total: int, lines: Ints, cores: Ints, place: Any, slots: Ints) -> None:
    """`set_slot` of some requests, into `slots`."""
    for i in range(total):
        slots[i] = set_slot(lines[i], cores[i], place)
