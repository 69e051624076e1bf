"""The pipeline of a core: each micro-operation in the order of the program is renamed, starts, ends and retires.

An older operation is given its port before a younger one, as a scheduler that takes the oldest first does, so that one pass in
the order of the program finds all times. What is taken when stands in rings of clocks: `busy` has a bit for each port and unit,
`freed` counts what each pool gets back, `buses` has what each bus carries [1/1024 of a clock]. Only integers; lists or arrays of
int64 give the same.
"""

from __future__ import annotations

from archsim.cycle.core.layout import (  # isort: skip  # fmt: skip
    AHEAD, AHEAD2, AT_RENAME, BACK1, BRANCHES, BUFFERS, BUFFERS2, BUSES, BYTES, CHASED, CLOCK, COLUMNS, COMMITTED, DELAY,
    DIVIDER, DIVIDES, FAR, FETCH, FETCHED, FETCH_CLOCK, FOLLOWED, FROM1, FROM_L2, FROM_L3, FROM_MEMORY, FRONT_END,
    INT_REGISTERS, IN_ORDER, KIND, LAST_LINE, LAST_START, LATENCY, LATENCY2, LATENCY3, LATENCY4, LEVEL, LINE, LINES, LINES2,
    LINES3, LINES4, LOAD, LOAD_QUEUE, MORE1, NEAR, NEXT, NOTHING, OFFSET, OPERATIONS, PAGED, PAGE_LINES, PAGE_READ, PASSES,
    POOL, POOLS, PORTS, PORT_COUNT, QUEUE, READS, READ_TIME, REGISTER, RENAME, RENAMED, REORDER, RETIRE, RETIRED, RETIRED_NOW,
    RING, SLOTS, SOURCES, SPLIT, START, STARTED_NOW, STORE, STORED, STORE_QUEUE, STREAM, STREAM_COLUMNS, STREAM_STATE, STRIDE,
    TAKEN, TAKEN_NOW, TICKS, TIME2, TIME3, TIME4, TLB_LINES, TLB_TIME, TRACED, TRACE_COLUMNS, WRITES, WRITE_TIME, Ints,
)


def advance(s: Ints, used: Ints, freed: Ints, busy: Ints, waiting: Ints, started: Ints, buses: Ints, ports: int) -> None:
    """One clock more: what it frees is free."""
    s[CLOCK] += 1
    s[RENAMED] = 0
    at = s[CLOCK] % RING
    for pool in range(POOLS):
        used[pool] -= freed[pool * RING + at]
        freed[pool * RING + at] = 0
    for port in range(ports):
        waiting[port] -= started[port * RING + at]
        started[port * RING + at] = 0
    before = (at + RING - 1) % RING
    busy[before] = 0
    for bus in range(BUSES):
        buses[bus * RING + before] = 0


def release(freed: Ints, pool: int, clock: int, now: int) -> None:
    """One entry of a pool is free from a clock on, which is after now."""
    at = min(max(clock, now + 1), now + RING - 1)
    freed[pool * RING + at % RING] += 1


def carried(buses: Ints, bus: int, begin: int, ticks: int, now: int) -> int:
    """The clock at which a bus has carried what takes it some ticks, from a clock on, in what others leave free."""
    clock, left = max(begin, now), ticks
    while left > 0 and clock < now + RING - 1:
        at = bus * RING + clock % RING
        taken = min(left, TICKS - buses[at])
        buses[at] += taken
        left -= taken
        clock += 1
    return int(clock)


def slot_of(buffers: Ints, count: int, begin: int) -> int:
    """A buffer that is free at a clock, or the one that is free first."""
    best = 0
    for i in range(count):
        if buffers[i] <= begin:
            return i
        if buffers[i] < buffers[best]:
            best = i
    return best


def ask_far(m: Ints, s: Ints, counts: Ints, buses: Ints, buffers2: Ints, level: int, begin: int) -> int:
    """When a line that the L2 lacks is there, if it is asked for at `begin` [clk]."""
    slot = slot_of(buffers2, m[BUFFERS2], begin)
    start = max(begin, buffers2[slot])
    there: int = start
    if level == 3:
        counts[LINES3] += 1
        there = max(start + m[LATENCY3] - m[LATENCY2], carried(buses, FROM_L3, start, m[TIME3], s[CLOCK]))
    else:
        counts[LINES4] += 1
        there = max(start + m[LATENCY4] - m[LATENCY2], carried(buses, FROM_MEMORY, start, m[TIME4], s[CLOCK]))
    buffers2[slot] = there
    return there


def ask(m: Ints, s: Ints, counts: Ints, buses: Ints, buffers: Ints, begin: int, there: int) -> int:
    """When a line is in the L1 that is asked for at `begin` and in the L2 at `there` [clk]."""
    slot = slot_of(buffers, m[BUFFERS], begin)
    start = max(begin, buffers[slot], there)
    counts[LINES2] += 1
    arrives: int = max(start + m[LATENCY2], carried(buses, FROM_L2, start, m[TIME2], s[CLOCK]))
    buffers[slot] = arrives
    return arrives


def touch(m: Ints, s: Ints, counts: Ints, buses: Ints, buffers: Ints, buffers2: Ints, streams: Ints, of: Ints, near: Ints,
          far: Ints, stream: int, line: int, begin: int) -> int:  # fmt: skip
    """When the line of a stream is in the L1 that an operation asks for at `begin` [clk]; the prefetchers go ahead of it."""
    row, state = stream * STREAM_COLUMNS, stream * STREAM_STATE
    level, chased = streams[row + LEVEL], streams[row + CHASED]
    if streams[row + PAGED] and (chased or line // m[TLB_LINES] != of[state + PAGE_READ]):
        of[state + PAGE_READ] = line // m[TLB_LINES]
        begin += m[TLB_TIME]
    if level == 1:
        return begin
    if chased:
        there = ask_far(m, s, counts, buses, buffers2, level, begin) if level > 2 else begin
        return ask(m, s, counts, buses, buffers, begin, there)
    ahead_of_last = line - of[state + LAST_LINE]
    if ahead_of_last != 0:
        of[state + FOLLOWED] = of[state + FOLLOWED] + 1 if 0 < ahead_of_last <= NEXT else 0
    of[state + LAST_LINE] = line
    # A prefetcher goes as far ahead as it has seen lines follow each other, and stays in the page.
    end = min(line + of[state + FOLLOWED], (line // m[PAGE_LINES] + 1) * m[PAGE_LINES] - 1)
    if level > 2:
        for ahead in range(max(of[state + FAR] + 1, line), max(line, min(line + m[AHEAD2], end)) + 1):
            far[stream * LINES + ahead % LINES] = ask_far(m, s, counts, buses, buffers2, level, begin)
            of[state + FAR] = ahead
    for ahead in range(max(of[state + NEAR] + 1, line), max(line, min(line + m[AHEAD], end)) + 1):
        there = far[stream * LINES + ahead % LINES] if level > 2 and ahead <= of[state + FAR] else begin
        near[stream * LINES + ahead % LINES] = ask(m, s, counts, buses, buffers, begin, max(there, begin))
        of[state + NEAR] = ahead
    arrives: int = near[stream * LINES + line % LINES]
    return arrives


def free_port(busy: Ints, waiting: Ints, ports: int, passes: int, ready: int, count: int, last: int) -> int:
    """The first clock from `ready` on at which one of some ports is free, times the ports of the core, plus the port.

    Of free ports the one on which fewest wait.
    """
    clock = ready
    while clock < last:
        best = -1
        for port in range(count):
            if ports >> port & 1:
                free = True
                for later in range(passes):
                    if busy[(clock + later) % RING] >> port & 1:
                        free = False
                if free and (best < 0 or waiting[port] < waiting[best]):
                    best = port
        if best >= 0:
            return clock * count + best
        clock += 1
    return clock * count


def fetched(m: Ints, s: Ints, slots: int) -> int:
    """The clock at which the front end delivers some slots."""
    if s[FETCHED] + slots > m[FETCH] and s[FETCHED] > 0:
        s[FETCH_CLOCK] += 1
        s[FETCHED] = 0
        s[TAKEN_NOW] = 0
    s[FETCHED] += slots
    clock: int = s[FETCH_CLOCK]
    return clock


def branched(m: Ints, s: Ints) -> None:
    """A branch was taken: what follows is fetched with it only where the front end follows several a clock."""
    s[TAKEN_NOW] += 1
    if s[TAKEN_NOW] >= m[BRANCHES]:
        s[FETCH_CLOCK] += 1
        s[FETCHED] = 0
        s[TAKEN_NOW] = 0


def room(program: Ints, row: int, used: Ints, size: Ints) -> int:
    """The pool that has no room for a micro-operation; -1 where all have."""
    if program[row + SLOTS] and used[REORDER] + program[row + SLOTS] > size[REORDER]:
        return REORDER
    queue: int = program[row + QUEUE]
    kind, register = program[row + KIND], program[row + REGISTER]
    file: int = INT_REGISTERS - 1 + register
    if kind != NOTHING and used[queue] >= size[queue]:
        return queue
    if kind == LOAD and used[LOAD_QUEUE] >= size[LOAD_QUEUE]:
        return LOAD_QUEUE
    if kind == STORE and program[row + BYTES] and used[STORE_QUEUE] >= size[STORE_QUEUE]:
        return STORE_QUEUE
    if register and used[file] >= size[file]:
        return file
    return -1


def retire(m: Ints, s: Ints, end: int, slots: int) -> int:
    """The clock at which a micro-operation retires that has ended, behind the one before it."""
    if end > s[RETIRED]:
        s[RETIRED] = end
        s[RETIRED_NOW] = 0
    if s[RETIRED_NOW] + slots > m[RETIRE]:
        s[RETIRED] += 1
        s[RETIRED_NOW] = 0
    s[RETIRED_NOW] += slots
    clock: int = s[RETIRED]
    return clock


def operands(program: Ints, row: int, done: Ints, iteration: int, count: int, keep: int) -> int:
    """The clock at which all operands of a micro-operation are there."""
    ready = 0
    for source in range(SOURCES):
        made = program[row + FROM1 + 3 * source]
        if made >= 0:
            before = iteration - program[row + BACK1 + 3 * source]
            if before >= 0:
                ready = max(ready, done[before % keep * count + made] + program[row + MORE1 + 3 * source])
    return ready


def simulate(program: Ints, m: Ints, size: Ints, streams: Ints, iterations: int, keep: int, ends: Ints, done: Ints, s: Ints,
             used: Ints, freed: Ints, busy: Ints, waiting: Ints, started: Ints, taken: Ints, buses: Ints, buffers: Ints,
             buffers2: Ints, of: Ints, near: Ints, far: Ints, counts: Ints, trace: Ints, traced: int) -> None:  # fmt: skip
    """Run some iterations of a loop; `ends` gets the clock at which the last micro-operation of each retires."""
    count = len(program) // COLUMNS
    ports = m[PORT_COUNT]
    for iteration in range(iterations):
        for u in range(count):
            row = u * COLUMNS
            kind, slots = program[row + KIND], program[row + SLOTS]
            if slots:
                clock = fetched(m, s, slots)
                while s[CLOCK] < clock or s[RENAMED] + slots > m[RENAME]:
                    if s[CLOCK] < clock and s[RENAMED] + slots <= m[RENAME]:
                        counts[FRONT_END] += 1
                    advance(s, used, freed, busy, waiting, started, buses, ports)
            full = room(program, row, used, size)
            while full >= 0:
                counts[POOL + full] += 1
                advance(s, used, freed, busy, waiting, started, buses, ports)
                full = room(program, row, used, size)
            s[RENAMED] += slots
            now = s[CLOCK]
            ready = max(operands(program, row, done, iteration, count, keep), now + m[DELAY])
            end, begin, port = now, now, -1
            if kind != NOTHING:
                mask, passes = program[row + PORTS], program[row + PASSES]
                if m[IN_ORDER]:
                    ready = max(ready, s[LAST_START])
                if m[AT_RENAME]:
                    for one in range(ports):
                        if mask >> one & 1 and (port < 0 or waiting[one] < waiting[port]):
                            port = one
                    mask = 1 << port
                found = free_port(busy, waiting, mask, passes, ready, ports, now + RING - passes - 1)
                begin, port = found // ports, found % ports
                if m[IN_ORDER]:
                    if begin == s[LAST_START] and s[STARTED_NOW] >= m[RENAME]:
                        found = free_port(busy, waiting, mask, passes, begin + 1, ports, now + RING - passes - 1)
                        begin, port = found // ports, found % ports
                    if begin > s[LAST_START]:
                        s[LAST_START] = begin
                        s[STARTED_NOW] = 0
                    s[STARTED_NOW] += 1
                for later in range(passes):
                    busy[(begin + later) % RING] |= 1 << port
                taken[port] += passes
                waiting[port] += 1
                started[port * RING + begin % RING] += 1
                used[program[row + QUEUE]] += 1
                release(freed, program[row + QUEUE], begin, now)
                end = begin + program[row + LATENCY]
                if program[row + DIVIDES]:  # it works on one after the other
                    held = program[row + DIVIDES]
                    rest = program[row + LATENCY] - (held + TICKS - 1) // TICKS
                    end = max(end, carried(buses, DIVIDER, begin, held, now) + rest)
                counts[OPERATIONS] += 1
            stream, size_of = program[row + STREAM], program[row + BYTES]
            arrives = 0
            if stream >= 0 and kind != NOTHING:
                at = streams[stream * STREAM_COLUMNS + START] + iteration * streams[stream * STREAM_COLUMNS + STRIDE]
                at += program[row + OFFSET]
                first, last = at // m[LINE], (at + max(size_of, 1) - 1) // m[LINE]
                for line in range(first, last + 1):
                    there = touch(m, s, counts, buses, buffers, buffers2, streams, of, near, far, stream, line, begin)
                    arrives = max(arrives, there)
                if kind == LOAD:
                    gone = carried(buses, READS, begin, size_of * m[READ_TIME], now)
                    more = m[SPLIT] if last > first else 0
                    if more:  # the port is taken a second time
                        busy[(begin + passes) % RING] |= 1 << port
                    end = max(end + more, arrives, gone - 1 + program[row + LATENCY])
            done[iteration % keep * count + u] = end
            retired = retire(m, s, end, slots)
            if slots:
                used[REORDER] += slots
                for _ in range(slots):
                    release(freed, REORDER, retired + 1, now)
            if program[row + REGISTER]:
                used[INT_REGISTERS - 1 + program[row + REGISTER]] += 1
                release(freed, INT_REGISTERS - 1 + program[row + REGISTER], retired + 1, now)
            if kind == LOAD:
                used[LOAD_QUEUE] += 1
                release(freed, LOAD_QUEUE, retired + 1, now)
            if kind == STORE and size_of:
                counts[STORED] += size_of
                s[COMMITTED] = carried(buses, WRITES, max(retired, arrives, s[COMMITTED] - 1), size_of * m[WRITE_TIME], now)
                used[STORE_QUEUE] += 1
                release(freed, STORE_QUEUE, s[COMMITTED] + 1, now)
            if program[row + TAKEN]:
                branched(m, s)
            if counts[TRACED] < traced:
                place = counts[TRACED] * TRACE_COLUMNS
                trace[place], trace[place + 1], trace[place + 2], trace[place + 3] = u, iteration, now, begin
                trace[place + 4], trace[place + 5], trace[place + 6] = end, retired, port
                counts[TRACED] += 1
        ends[iteration] = max(s[RETIRED], s[COMMITTED])
