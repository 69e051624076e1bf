"""The pipeline of a core: each micro-operation in the order of the program is renamed, starts, ends and retires.

An older operation is given its port before a younger one, as a scheduler that takes the oldest first does, so that one pass in
the order of the program finds all times. What is taken when stands in rings of clocks: `busy` has a bit for each port, `freed`
counts what each pool gets back, `started` what starts on each port, `buses` has what each bus carries [ticks]; the last column of
the three says whether there is anything. Only integers; lists or arrays of int64 give the same.
"""

from __future__ import annotations

from archsim.cycle.core.layout import (  # isort: skip  # fmt: skip
    AHEAD, AHEAD2, AT_RENAME, BACK1, BACK_TIME2, BACK_TO2, BRANCHES, BUFFERS, BUFFERS2, BUSES, BYTES, CARRIED, CHASED, CLOCK,
    COLUMNS, COMMITTED, DELAY, DIVIDER, DIVIDES, FAR, FETCH, FETCHED, FETCH_CLOCK, FOLLOWED, FREED, FROM1, FROM_L2, FRONT_END,
    HIGH, INT_REGISTERS, IN_ORDER, Ints, KIND, LAST, LAST_LINE, LAST_START, LATENCY, LATENCY2, LEVEL, LINE, LINES, LINES2,
    LOAD, LOAD_QUEUE, LOW, MISPREDICT, MISSED, MORE1, NEAR, NEXT, NOTHING, OFFSET, OPERATIONS, PAGED, PAGE_LINES, PAGE_READ,
    PASSES, POOL, POOLS, PORT, PORTS, PORT_COUNT, QUEUE, READS, READ_TIME, REGISTER, RENAME, RENAMED, REORDER, RETIRE,
    RETIRED, RETIRED_NOW, RING, SLOTS, SOURCES, SPLIT, START, STARTED_NOW, STORE, STORED, STORE_QUEUE, STREAM, STREAM_COLUMNS,
    STREAM_STATE, STRIDE, TAKEN, TAKEN_NOW, TICKS, TIME2, TLB_LINES, TLB_TIME, TRACED, TRACE_COLUMNS, WRITES, WRITE_TIME,
    WRITTEN,
)


def advance(s: Ints, used: Ints, freed: Ints, busy: Ints, waiting: Ints, started: Ints, buses: Ints, ports: int) -> None:
    """One clock more: what it frees is free."""
    s[CLOCK] += 1
    s[RENAMED] = 0
    at = s[CLOCK] & LAST
    row = at * FREED
    if freed[row + POOLS]:
        freed[row + POOLS] = 0
        for pool in range(POOLS):
            used[pool] -= freed[row + pool]
            freed[row + pool] = 0
    row = at * (ports + 1)
    if started[row + ports]:
        started[row + ports] = 0
        for port in range(ports):
            waiting[port] -= started[row + port]
            started[row + port] = 0
    before = at - 1 & LAST
    busy[before] = 0
    row = before * CARRIED
    if buses[row + BUSES]:
        buses[row + BUSES] = 0
        for bus in range(BUSES):
            buses[row + bus] = 0


def release(freed: Ints, pool: int, count: int, clock: int, now: int) -> None:
    """Some entries of a pool are free from a clock on, which is after now."""
    row = (min(max(clock, now + 1), now + LAST) & LAST) * FREED
    freed[row + pool] += count
    freed[row + POOLS] = 1


def carried(buses: Ints, bus: int, begin: int, ticks: int, now: int) -> int:
    """The clock at which a bus has carried what takes it some ticks, from a clock on, in what others leave free.

    A clock that is full has, less than zero, a later one before which all are full; who comes by makes that a later one still
    (path halving, as of disjoint sets).
    """
    clock, left = max(begin, now), ticks
    while left > 0 and clock < now + LAST:
        row = (clock & LAST) * CARRIED
        taken = buses[row + bus]
        if taken < 0:
            beyond = buses[(-taken & LAST) * CARRIED + bus]
            if beyond < 0:
                buses[row + bus] = taken = beyond
            clock = -taken
        else:
            buses[row + BUSES] = 1
            buses[row + bus] = taken + left if taken + left < TICKS else -clock - 1
            left -= TICKS - taken
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
    slot, at = slot_of(buffers2, m[BUFFERS2], begin), level - 2
    start = max(begin, buffers2[slot])
    counts[LINES2 + at] += 1
    come = carried(buses, FROM_L2 + at, start, m[TIME2 + at], s[CLOCK])
    there: int = max(start + m[LATENCY2 + at] - m[LATENCY2], come)
    buffers2[slot] = there
    return there


def write_back(m: Ints, s: Ints, counts: Ints, buses: Ints, level: int, begin: int) -> int:
    """When a dirty line that leaves for its level at `begin` is in it, over the bus of the L2 and its level's [clk]."""
    gone = begin
    for at in range(0, level - 1, max(1, level - 2)):
        counts[LINES2 + at] += 1
        gone = max(gone, carried(buses, m[BACK_TO2 + at], begin, m[BACK_TIME2 + at], s[CLOCK]))
    return gone


def touch(m: Ints, s: Ints, counts: Ints, buses: Ints, buffers: Ints, buffers2: Ints, streams: Ints, of: Ints, near: Ints,
          far: Ints, stream: int, line: int, begin: int) -> int:  # fmt: skip
    """When the line of a stream is in the L1 that an operation asks for at `begin` [clk]; the prefetchers go ahead of it.

    The L1 keeps a buffer for a line from when it asks for it until it is there; the prefetcher of the L2 takes buffers of the L2
    alone. In a stream that is written, a dirty line leaves for each that comes, and keeps the buffer until it has left.
    """
    row, state = stream * STREAM_COLUMNS, stream * STREAM_STATE
    level, chased = streams[row + LEVEL], streams[row + CHASED]
    if streams[row + PAGED] and (chased or line // m[TLB_LINES] != of[state + PAGE_READ]):
        of[state + PAGE_READ] = line // m[TLB_LINES]
        begin += m[TLB_TIME]
    if level == 1:
        return begin
    if chased:  # another line each time, that nobody foresees
        of[state + NEAR] = of[state + FAR] = line - 1
        of[state + FOLLOWED] = 0
    elif line != of[state + LAST_LINE]:
        of[state + FOLLOWED] = of[state + FOLLOWED] + 1 if 0 < line - of[state + LAST_LINE] <= NEXT else 0
    of[state + LAST_LINE] = line
    # A prefetcher goes as far ahead as it has seen lines follow each other, and stays in the page.
    end = min(line + of[state + FOLLOWED], (line // m[PAGE_LINES] + 1) * m[PAGE_LINES] - 1)
    for ahead in range(max(of[state + NEAR] + 1, line), max(line, min(line + m[AHEAD], end)) + 1):
        slot = slot_of(buffers, m[BUFFERS], begin)
        there = max(begin, buffers[slot]) if ahead == line else begin
        if level > 2:
            for beyond in range(max(of[state + FAR] + 1, ahead), max(ahead, min(line + m[AHEAD2], end)) + 1):
                far[stream * LINES + beyond % LINES] = ask_far(m, s, counts, buses, buffers2, level, there)
                of[state + FAR] = beyond
            there = max(there, far[stream * LINES + ahead % LINES])
        there = max(there, buffers[slot])
        counts[LINES2] += 1
        buffers[slot] = max(there + m[LATENCY2], carried(buses, FROM_L2, there, m[TIME2], s[CLOCK]))
        near[stream * LINES + ahead % LINES] = buffers[slot]
        of[state + NEAR] = ahead
        if streams[row + WRITTEN]:
            buffers[slot] = max(buffers[slot], write_back(m, s, counts, buses, level, buffers[slot]))
    arrives: int = near[stream * LINES + line % LINES]
    return arrives


def free_port(s: Ints, busy: Ints, waiting: Ints, full: Ints, mask: int, low: int, high: int, passes: int, ready: int,
              last: int) -> int:  # fmt: skip
    """The first clock from `ready` on at which one of some ports is free for some passes; `s[PORT]` is the port.

    Of free ports the one on which fewest wait. low, high: the first of the ports, and the one behind the last; full: the clock
    before which each port has no room
    """
    clock = last
    for port in range(low, high):
        if mask >> port & 1:
            clock = min(clock, full[port])
    clock = max(clock, ready)
    while clock < last:
        free = mask & ~busy[clock & LAST]
        for later in range(1, passes):
            free &= ~busy[clock + later & LAST]
        if free:
            best = -1
            for port in range(low, high):
                if free >> port & 1 and (best < 0 or waiting[port] < waiting[best]):
                    best = port
            s[PORT] = best
            return clock
        clock += 1
    s[PORT] = 0
    return clock


def take(busy: Ints, full: Ints, port: int, passes: int, begin: int, now: int) -> None:
    """A port is taken for some passes from a clock on."""
    for later in range(passes):
        busy[begin + later & LAST] |= 1 << port
    clock = max(full[port], now)
    while clock < now + LAST and busy[clock & LAST] >> port & 1:
        clock += 1
    full[port] = clock


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


def mispredicted(m: Ints, s: Ints, share: int, iteration: int, end: int) -> None:
    """A branch that is mispredicted in a share of the iterations [ticks]: what follows is fetched once it has ended."""
    if (iteration + 1) * share // TICKS > iteration * share // TICKS:
        s[FETCH_CLOCK] = max(s[FETCH_CLOCK], end + m[MISPREDICT])
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
                ready = max(ready, done[(before & keep - 1) * count + made] + program[row + MORE1 + 3 * source])
    return ready


def simulate(program: Ints, m: Ints, size: Ints, streams: Ints, iterations: int, keep: int, ends: Ints, done: Ints, s: Ints,
             used: Ints, freed: Ints, busy: Ints, waiting: Ints, started: Ints, full: Ints, taken: Ints, buses: Ints,
             buffers: Ints, buffers2: Ints, of: Ints, near: Ints, far: Ints, counts: Ints, trace: Ints,
             traced: int) -> None:  # fmt: skip
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
            short = room(program, row, used, size)
            while short >= 0:
                counts[POOL + short] += 1
                advance(s, used, freed, busy, waiting, started, buses, ports)
                short = room(program, row, used, size)
            s[RENAMED] += slots
            now = s[CLOCK]
            made = operands(program, row, done, iteration, count, keep)
            ready = max(made, now + m[DELAY])
            stream, size_of = program[row + STREAM], program[row + BYTES]
            first = final = 0
            if stream >= 0 and kind != NOTHING:
                at = streams[stream * STREAM_COLUMNS + START] + iteration * streams[stream * STREAM_COLUMNS + STRIDE]
                at += program[row + OFFSET]
                first = at // m[LINE]
                final = first if at + size_of <= (first + 1) * m[LINE] else (at + size_of - 1) // m[LINE]
            end, begin, port = max(now, made), now, -1  # what rename does itself is there with its operand
            if kind != NOTHING:
                mask, passes, low, high = program[row + PORTS], program[row + PASSES], program[row + LOW], program[row + HIGH]
                passes += kind == LOAD and final > first and m[SPLIT] > 0  # across two lines the port is taken once more
                last = now + RING - passes - 1
                if m[IN_ORDER]:
                    ready = max(ready, s[LAST_START])
                if m[AT_RENAME]:
                    for one in range(low, high):
                        if mask >> one & 1 and (port < 0 or waiting[one] < waiting[port]):
                            port = one
                    mask, low, high = 1 << port, port, port + 1
                begin = free_port(s, busy, waiting, full, mask, low, high, passes, ready, last)
                if m[IN_ORDER]:
                    if begin == s[LAST_START] and s[STARTED_NOW] >= m[RENAME]:
                        begin = free_port(s, busy, waiting, full, mask, low, high, passes, begin + 1, last)
                    if begin > s[LAST_START]:
                        s[LAST_START] = begin
                        s[STARTED_NOW] = 0
                    s[STARTED_NOW] += 1
                port = s[PORT]
                take(busy, full, port, passes, begin, now)
                taken[port] += passes
                waiting[port] += 1
                started[(begin & LAST) * (ports + 1) + port] += 1
                started[(begin & LAST) * (ports + 1) + ports] = 1
                used[program[row + QUEUE]] += 1
                release(freed, program[row + QUEUE], 1, begin, now)
                end = begin + program[row + LATENCY]
                if program[row + DIVIDES]:  # it works on one after the other
                    held = program[row + DIVIDES]
                    rest = program[row + LATENCY] - (held + TICKS - 1) // TICKS
                    end = max(end, carried(buses, DIVIDER, begin, held, now) + rest)
                counts[OPERATIONS] += 1
            arrives = 0
            if stream >= 0 and kind != NOTHING:
                for line in range(first, final + 1):
                    there = touch(m, s, counts, buses, buffers, buffers2, streams, of, near, far, stream, line, begin)
                    arrives = max(arrives, there)
                if kind == LOAD:
                    gone = carried(buses, READS, begin, size_of * m[READ_TIME], now)
                    more = m[SPLIT] if final > first else 0
                    end = max(end + more, arrives, gone - 1 + program[row + LATENCY])
            done[(iteration & keep - 1) * count + u] = end
            retired = retire(m, s, end, slots)
            if slots:
                used[REORDER] += slots
                release(freed, REORDER, slots, retired + 1, now)
            if program[row + REGISTER]:
                used[INT_REGISTERS - 1 + program[row + REGISTER]] += 1
                release(freed, INT_REGISTERS - 1 + program[row + REGISTER], 1, retired + 1, now)
            if kind == LOAD:
                used[LOAD_QUEUE] += 1
                release(freed, LOAD_QUEUE, 1, retired + 1, now)
            if kind == STORE and size_of:
                counts[STORED] += size_of
                s[COMMITTED] = carried(buses, WRITES, max(retired, arrives, s[COMMITTED] - 1), size_of * m[WRITE_TIME], now)
                used[STORE_QUEUE] += 1
                release(freed, STORE_QUEUE, 1, s[COMMITTED] + 1, now)
            if program[row + TAKEN]:
                branched(m, s)
            if program[row + MISSED]:
                mispredicted(m, s, program[row + MISSED], iteration, end)
            if counts[TRACED] < traced:
                place = counts[TRACED] * TRACE_COLUMNS
                trace[place], trace[place + 1], trace[place + 2], trace[place + 3] = u, iteration, now, begin
                trace[place + 4], trace[place + 5], trace[place + 6] = end, retired, port
                counts[TRACED] += 1
        ends[iteration] = max(s[RETIRED], s[COMMITTED])
