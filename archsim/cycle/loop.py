"""The SM clock by clock, in the subset of Python that numba compiles.

The functions work on lists of int when they run as they are, and on int64 arrays when compiled (`archsim.cycle.compile`). All
times are whole ticks, `TICKS` to a clock, so both give the same result to the bit.

Every scheduler has its own time. The one that is least far issues next; ties go to the lower number. So whatever schedulers
share, the load-store unit, the L1, the share of L2 and memory, is asked in the order of time, and a queue is one number: when it
is free. A scheduler that cannot issue jumps to the next time at which one of its warps may.

Of an instruction the loop knows its kind, the pipe that it takes and for how long (`HOLD`), how long it takes the scheduler
(`SLOT`), its registers, and for memory how long it takes the port of its SM (`PORT`) and how many bytes it asks for. Results of
fixed latency are ready `LATENCY` after issue; loads when they return. A warp issues in order, and waits for the registers that an
instruction reads and writes. The code of each part is fetched from the start on, one instruction after the other; a warp that
comes to one before it is there waits.

Warps of a CTA may have different parts of the program (`m[FIELDS + i]` is where warp i begins). They meet at channels: a token of
a channel is complete when all that give to it have given, and has the time at which the last of their copies and products was
done; a warp that takes a token waits for that time. So a ring of stages is two channels: stages that are full, and empty ones.
"""

from __future__ import annotations

from typing import Any

TICKS = 1024  # of a clock
NEVER = 1 << 60

# Kinds of instructions.
FIXED, SHARED, LOAD, STORE, COPY, COMMIT, AWAIT, BARRIER, LOOP, EXIT, BULK, DEFERRED, GIVE, TAKE = range(14)
# Columns of a program: one row for each instruction.
KIND, PIPE, HOLD, SLOT, LATENCY, DST, SRC1, SRC2, SRC3, PORT, BYTES, STREAM, ARG, PAIR = range(14)
COLUMNS = 14
# Fields of the machine.
(SCHEDULERS, WARPS, WARPS_OF_CTA, CTAS, REGISTERS, TRIPS, GREEDY, WIDTH, CTA_START, CTA_GAP, BARRIER_TIME, QUEUE, ISSUE_PART,
 ISSUE_SM, L1_TIME, L2_TIME, DRAM_TIME, L2_TICKS, DRAM_TICKS, BUFFERS, BUFFER_BYTES, PIPES, SERVERS, SHARED_TIME, TRACE,
 GROUPS, BULK_TIME, BULK_GAP, LINE_BYTES, FETCH) = range(30)  # fmt: skip
FIELDS = 30
CHANNELS = 4  # of a CTA
RING = 64  # tokens of a channel that may wait
TOKEN = 2  # of a token: how many have given, and the last time of what they gave
# Why a warp did not issue, in the words of a profiler.
(SELECTED, NOT_SELECTED, LONG_SCOREBOARD, SHORT_SCOREBOARD, WAIT, BARRIER_STALL, PIPE_THROTTLE, MIO_THROTTLE, LG_THROTTLE,
 NO_INSTRUCTION) = range(10)  # fmt: skip
REASONS = 10
# Counters besides the reasons.
CLOCKS, ISSUED, SHARED_BYTES, L1_BYTES, L2_BYTES, DRAM_BYTES, STORED_BYTES, FINISHED, TRACED, PAIRED = range(10)
COUNTERS = 10
# State of a warp.
PC, EARLIEST, LEFT, CTA, LAST, CAUSE, OPEN, GROUP, ALIVE, TAKEN = range(10)
GIVEN = TAKEN + CHANNELS  # how many tokens the warp has taken of each channel, and given to it
STATE = GIVEN + CHANNELS
# State of the SM.
SM_PORT, L2_FREE, DRAM_FREE, NEXT_BUFFER, STARTED, LAUNCH_FREE, BULK_FREE = range(7)
SHARED_STATE = 7

Ints = Any  # a list of int, or an array of int64


def dependency(w: int, program: Ints, state: Ints, ready: Ints, kinds: Ints, groups: Ints, tokens: Ints, m: Ints) -> None:
    """Set when the next instruction of warp `w` has its registers, and what it waits for."""
    at, row = w * STATE, state[w * STATE + PC] * COLUMNS
    time, cause = state[at + EARLIEST], state[at + CAUSE]
    base = w * m[REGISTERS]
    for column in range(DST, SRC3 + 1):
        register = program[row + column]
        if register >= 0 and ready[base + register] > time:
            time, cause = ready[base + register], kinds[base + register]
    if program[row + KIND] == AWAIT:  # until all but the last ARG groups of copies are there
        last = state[at + GROUP] - program[row + ARG]
        for g in range(max(0, last - m[GROUPS]), last):
            if groups[w * m[GROUPS] + g % m[GROUPS]] > time:
                time, cause = groups[w * m[GROUPS] + g % m[GROUPS]], LONG_SCOREBOARD
    elif program[row + KIND] == TAKE:  # the first tokens of some channels are there from the start
        channel = program[row + ARG]
        number = state[at + TAKEN + channel] - program[row + BYTES]
        if number >= 0:
            place = ((w // m[WARPS_OF_CTA] * CHANNELS + channel) * RING + number % RING) * TOKEN
            if tokens[place] < program[row + STREAM] * (number // RING + 1):
                time, cause = NEVER, BARRIER_STALL
            elif tokens[place + 1] > time:
                time, cause = tokens[place + 1], LONG_SCOREBOARD
    state[at + EARLIEST] = time
    state[at + CAUSE] = cause


def structural(s: int, row: int, program: Ints, pools: Ints, queues: Ints, m: Ints) -> int:
    """When the pipe of an instruction, and the queue to memory, have room for it on scheduler `s`."""
    time: int = pools[pools[program[row + PIPE] * m[SCHEDULERS] + s] + 2]
    if SHARED <= program[row + KIND] <= COPY:  # the oldest of those that wait has to leave first
        place = s * (m[QUEUE] + 1)
        time = max(time, queues[place + queues[place + m[QUEUE]]])
    return time


def occupy(s: int, t: int, row: int, program: Ints, free: Ints, pools: Ints, m: Ints) -> None:
    """An instruction takes the server of its pipe that is free first."""
    pool = pools[program[row + PIPE] * m[SCHEDULERS] + s]
    first, count = pools[pool], pools[pool + 1]
    server = first
    for other in range(first + 1, first + count):
        if free[other] < free[server]:
            server = other
    free[server] = t + program[row + HOLD]
    soonest = free[first]
    for other in range(first + 1, first + count):
        soonest = min(soonest, free[other])
    pools[pool + 2] = soonest


def access(s: int, t: int, row: int, program: Ints, sm: Ints, queues: Ints, parts: Ints, buffers: Ints, streams: Ints,
           counters: Ints, m: Ints) -> int:  # fmt: skip
    """Send a memory instruction on its way at time `t`; returns when its data are there (a store: when it has left)."""
    kind, size = program[row + KIND], program[row + BYTES]
    start = max(t, max(parts[s], sm[SM_PORT]))
    parts[s] = start + m[ISSUE_PART]
    sm[SM_PORT] = start + max(program[row + PORT], m[ISSUE_SM])
    place = s * (m[QUEUE] + 1)
    queues[place + queues[place + m[QUEUE]]] = start
    queues[place + m[QUEUE]] = (queues[place + m[QUEUE]] + 1) % m[QUEUE]
    if kind == SHARED:
        counters[SHARED_BYTES] += size
        done: int = start + m[SHARED_TIME] + program[row + PORT] - TICKS
        return done
    counters[L1_BYTES] += size
    at = program[row + STREAM] * 4
    streams[at + 2] += streams[at]
    if kind != STORE and streams[at + 2] < TICKS:
        done = start + m[L1_TIME] + program[row + PORT] - TICKS
        return done
    streams[at + 2] -= TICKS if kind != STORE else streams[at]
    for _ in range(max(1, size // m[BUFFER_BYTES])):  # a miss takes a buffer until its data are there
        start = max(start, buffers[sm[NEXT_BUFFER]])
        last = sm[NEXT_BUFFER]
        sm[NEXT_BUFFER] = (sm[NEXT_BUFFER] + 1) % m[BUFFERS]
    counters[L2_BYTES] += size
    arrival = max(start, sm[L2_FREE])
    sm[L2_FREE] = arrival + size * m[L2_TICKS]
    done = arrival + m[L2_TIME]
    streams[at + 3] += streams[at + 1]
    passed = streams[at + 3] >= TICKS
    if passed:
        streams[at + 3] -= TICKS
        counters[DRAM_BYTES] += size
        arrival = max(arrival, sm[DRAM_FREE])
        sm[DRAM_FREE] = arrival + size * m[DRAM_TICKS]
        done = arrival + m[DRAM_TIME]
    if kind == STORE:
        counters[STORED_BYTES] += size
        done = arrival + size * (m[DRAM_TICKS] if passed else m[L2_TICKS])
    for back in range(max(1, size // m[BUFFER_BYTES])):
        buffers[(last - back) % m[BUFFERS]] = done
    return done


def bulk(t: int, row: int, program: Ints, sm: Ints, streams: Ints, counters: Ints, m: Ints) -> int:
    """Send a copy of many lines on its way at time `t`; returns when all of it is in shared memory.

    The copy engine asks for one line, or one row of the copy, at a time (`PORT` for all of them).
    """
    size, at = program[row + BYTES], program[row + STREAM] * 4
    start = max(t, sm[BULK_FREE])
    sm[BULK_FREE] = start + max(program[row + PORT], m[BULK_GAP])
    counters[L2_BYTES] += size
    begin = max(start, sm[L2_FREE])
    sm[L2_FREE] = begin + size * m[L2_TICKS]
    done: int = max(start + program[row + PORT], sm[L2_FREE]) + m[L2_TIME] + m[BULK_TIME]
    lines = max(1, size // m[LINE_BYTES])
    streams[at + 3] += streams[at + 1] * lines
    missed = min(lines, streams[at + 3] // TICKS)
    if missed > 0:  # all of the copy waits for the lines that come from memory
        streams[at + 3] -= missed * TICKS
        counters[DRAM_BYTES] += missed * size // lines
        sm[DRAM_FREE] = max(begin, sm[DRAM_FREE]) + missed * size // lines * m[DRAM_TICKS]
        done = max(done, max(start + program[row + PORT], sm[DRAM_FREE]) + m[DRAM_TIME] + m[BULK_TIME])
    return done


def give(w: int, t: int, row: int, program: Ints, state: Ints, ready: Ints, kinds: Ints, groups: Ints, tokens: Ints, now: Ints,
         m: Ints) -> None:  # fmt: skip
    """Warp `w` gives a token, at the time at which all that it has started is done; who waits for it may go on then."""
    at, channel, slot = w * STATE, program[row + ARG], w // m[WARPS_OF_CTA]
    place = ((slot * CHANNELS + channel) * RING + state[at + GIVEN + channel] % RING) * TOKEN
    state[at + GIVEN + channel] += 1
    tokens[place] += 1
    tokens[place + 1] = max(tokens[place + 1], max(t, state[at + OPEN]))
    for i in range(m[WARPS_OF_CTA]):
        other = slot * m[WARPS_OF_CTA] + i
        next_row = state[other * STATE + PC] * COLUMNS
        waits = state[other * STATE + ALIVE] and state[other * STATE + EARLIEST] >= NEVER
        if other != w and waits and program[next_row + KIND] == TAKE:
            state[other * STATE + EARLIEST], state[other * STATE + CAUSE] = state[other * STATE + LAST], WAIT
            dependency(other, program, state, ready, kinds, groups, tokens, m)
            s = other % m[SCHEDULERS]
            now[s] = min(now[s], max(t, state[other * STATE + EARLIEST]))


def enter(cta: int, slot: int, t: int, state: Ints, ready: Ints, groups: Ints, tokens: Ints, now: Ints, m: Ints) -> None:
    """Start a CTA in a slot at time `t`."""
    for place in range(slot * CHANNELS * RING * TOKEN, (slot + 1) * CHANNELS * RING * TOKEN):
        tokens[place] = 0
    for i in range(m[WARPS_OF_CTA]):
        w = slot * m[WARPS_OF_CTA] + i
        at = w * STATE
        state[at + PC], state[at + EARLIEST], state[at + LEFT], state[at + CTA] = m[FIELDS + i], t, m[TRIPS], cta
        state[at + LAST], state[at + CAUSE], state[at + OPEN], state[at + GROUP], state[at + ALIVE] = t, WAIT, 0, 0, 1
        for c in range(2 * CHANNELS):
            state[at + TAKEN + c] = 0
        for r in range(m[REGISTERS]):
            ready[w * m[REGISTERS] + r] = 0
        for g in range(m[GROUPS]):
            groups[w * m[GROUPS] + g] = 0
        now[w % m[SCHEDULERS]] = min(now[w % m[SCHEDULERS]], t)


def meet(w: int, t: int, program: Ints, state: Ints, ready: Ints, kinds: Ints, groups: Ints, tokens: Ints, slots: Ints,
         now: Ints, m: Ints) -> None:  # fmt: skip
    """Warp `w` arrives at the barrier of its CTA; the last one frees all, and each waits for the registers that it needs next."""
    slot = w // m[WARPS_OF_CTA]
    slots[slot * 2] += 1
    state[w * STATE + EARLIEST], state[w * STATE + CAUSE] = NEVER, BARRIER_STALL
    if slots[slot * 2] < m[WARPS_OF_CTA]:
        return
    slots[slot * 2] = 0
    for i in range(m[WARPS_OF_CTA]):
        other = slot * m[WARPS_OF_CTA] + i
        state[other * STATE + EARLIEST] = t + m[BARRIER_TIME]
        dependency(other, program, state, ready, kinds, groups, tokens, m)
        s = other % m[SCHEDULERS]
        now[s] = min(now[s], t + m[BARRIER_TIME])


def leave(w: int, t: int, state: Ints, slots: Ints, sm: Ints, ready: Ints, groups: Ints, tokens: Ints, now: Ints,
          counters: Ints, m: Ints) -> None:  # fmt: skip
    """Warp `w` ends; after the last one of its CTA the next CTA enters."""
    slot = w // m[WARPS_OF_CTA]
    state[w * STATE + ALIVE], state[w * STATE + EARLIEST] = 0, NEVER
    slots[slot * 2 + 1] += 1
    counters[CLOCKS] = max(counters[CLOCKS], t)
    if slots[slot * 2 + 1] < m[WARPS_OF_CTA]:
        return
    slots[slot * 2 + 1] = 0
    counters[FINISHED] += 1
    if sm[STARTED] < m[CTAS]:
        start = max(t, sm[LAUNCH_FREE])
        sm[LAUNCH_FREE] = start + m[CTA_GAP]
        enter(sm[STARTED], slot, start + m[CTA_START], state, ready, groups, tokens, now, m)
        sm[STARTED] += 1


def issue(w: int, t: int, s: int, program: Ints, state: Ints, ready: Ints, kinds: Ints, groups: Ints, tokens: Ints, slots: Ints,
          free: Ints, pools: Ints, sm: Ints, queues: Ints, parts: Ints, buffers: Ints, streams: Ints, now: Ints,
          counters: Ints, m: Ints) -> None:  # fmt: skip
    """Warp `w` issues its next instruction at time `t`."""
    at = w * STATE
    row = state[at + PC] * COLUMNS
    kind, base = program[row + KIND], w * m[REGISTERS]
    occupy(s, t, row, program, free, pools, m)
    counters[ISSUED] += 1
    state[at + PC] += 1
    first = m[FIELDS + w % m[WARPS_OF_CTA]]
    state[at + EARLIEST] = max(t + program[row + SLOT], m[CTA_START] + (state[at + PC] - first) * m[FETCH])
    state[at + LAST] = t + program[row + SLOT]
    state[at + CAUSE] = NO_INSTRUCTION if state[at + EARLIEST] > state[at + LAST] else WAIT
    done, cause = t + program[row + LATENCY], WAIT
    if LOAD <= kind <= COPY and kind != STORE and state[at + LEFT] <= program[row + ARG]:
        cause = WAIT  # it fetches for a trip beyond the last one, and is off
    elif SHARED <= kind <= COPY:
        done = access(s, t, row, program, sm, queues, parts, buffers, streams, counters, m)
        cause = SHORT_SCOREBOARD if kind == SHARED else LONG_SCOREBOARD
    elif program[row + ARG] == -1:  # of a pipe of variable latency
        cause = SHORT_SCOREBOARD
    if program[row + DST] >= 0:
        ready[base + program[row + DST]], kinds[base + program[row + DST]] = done, cause
    if kind == BULK:
        done = bulk(t, row, program, sm, streams, counters, m)
    if kind in (COPY, BULK, DEFERRED):
        state[at + OPEN] = max(state[at + OPEN], done)
    elif kind == GIVE:
        give(w, t, row, program, state, ready, kinds, groups, tokens, now, m)
    elif kind == TAKE:
        state[at + TAKEN + program[row + ARG]] += 1
    elif kind == COMMIT:
        groups[w * m[GROUPS] + state[at + GROUP] % m[GROUPS]] = state[at + OPEN]
        state[at + GROUP] += 1
        state[at + OPEN] = 0
    elif kind == LOOP:
        state[at + LEFT] -= 1
        if state[at + LEFT] > 0:
            state[at + PC] = program[row + ARG]
        else:  # the next loop of the program runs as often
            state[at + LEFT] = m[TRIPS]
    elif kind == BARRIER:
        meet(w, t, program, state, ready, kinds, groups, tokens, slots, now, m)
    elif kind == EXIT:
        leave(w, t, state, slots, sm, ready, groups, tokens, now, counters, m)
    if state[at + ALIVE] and state[at + EARLIEST] < NEVER:
        dependency(w, program, state, ready, kinds, groups, tokens, m)


def account(w: int, t: int, structure: int, row: int, program: Ints, state: Ints, reasons: Ints) -> None:
    """Where the time went between the last instruction of warp `w` and this one, at time `t`: `REASONS` for each instruction."""
    at, here = w * STATE, state[w * STATE + PC] * REASONS
    waited = max(0, state[at + EARLIEST] - state[at + LAST])
    reasons[here + state[at + CAUSE]] += waited
    since = max(state[at + EARLIEST], state[at + LAST])
    blocked = max(0, min(t, structure) - since)
    if blocked > 0:
        kind = program[row + KIND]
        reasons[here + (MIO_THROTTLE if kind == SHARED else LG_THROTTLE if LOAD <= kind <= COPY else PIPE_THROTTLE)] += blocked
    reasons[here + NOT_SELECTED] += max(0, t - since - blocked)
    reasons[here + SELECTED] += program[row + SLOT]


def choose(s: int, t: int, greedy: int, program: Ints, state: Ints, pools: Ints, queues: Ints, m: Ints) -> int:
    """The warp of scheduler `s` that issues at time `t`; else minus one, minus the next time at which one may.

    greedy: the warp that issued last, which goes on while it can; else the oldest CTA goes first. -1: each in its turn after it.
    """
    best, oldest, soon = -1, NEVER, NEVER
    w = greedy
    for i in range(m[WARPS] // m[SCHEDULERS]):
        if i > 0:
            w += m[SCHEDULERS]
            if w >= m[WARPS]:
                w = s
        at = w * STATE
        early = state[at + EARLIEST]
        if early <= t:
            early = structural(s, state[at + PC] * COLUMNS, program, pools, queues, m)
        if early <= t:
            if i == 0 and m[GREEDY]:
                return w
            age = state[at + CTA] if m[GREEDY] else i
            if age < oldest:
                best, oldest = w, age
        else:
            soon = min(soon, early)
    return best if best >= 0 else -1 - soon


def simulate(program: Ints, m: Ints, state: Ints, ready: Ints, kinds: Ints, groups: Ints, tokens: Ints, slots: Ints, free: Ints,
             pools: Ints, sm: Ints, queues: Ints, parts: Ints, buffers: Ints, streams: Ints, now: Ints, last: Ints, reasons: Ints,
             counters: Ints, record: Ints) -> None:  # fmt: skip
    """Run all CTAs. `record` takes (time, scheduler, warp, instruction) of the first instructions."""
    for slot in range(len(slots) // 2):
        if sm[STARTED] < m[CTAS]:
            enter(sm[STARTED], slot, sm[LAUNCH_FREE] + m[CTA_START], state, ready, groups, tokens, now, m)
            sm[LAUNCH_FREE] += m[CTA_GAP]
            sm[STARTED] += 1
    while True:
        s = 0
        for other in range(1, m[SCHEDULERS]):
            if now[other] < now[s]:
                s = other
        t = now[s]
        if t >= NEVER:  # what was stored last has still to leave
            counters[CLOCKS] = max(counters[CLOCKS], max(sm[L2_FREE], sm[DRAM_FREE]))
            return
        w = choose(s, t, last[s], program, state, pools, queues, m)
        if w < 0:
            now[s] = -1 - w
            continue
        slot_time = 0
        for width in range(m[WIDTH]):
            row = state[w * STATE + PC] * COLUMNS
            structure = structural(s, row, program, pools, queues, m)
            if width > 0:
                if not program[row + PAIR] or max(state[w * STATE + EARLIEST] - slot_time, structure) > t:
                    break
                counters[PAIRED] += 1
            account(w, t, structure, row, program, state, reasons)
            slot_time = program[row + SLOT]
            if counters[TRACED] < m[TRACE]:
                place = counters[TRACED] * 4
                record[place], record[place + 1], record[place + 2] = t, s, w
                record[place + 3] = state[w * STATE + PC]
                counters[TRACED] += 1
            now[s] = t + slot_time
            issue(w, t, s, program, state, ready, kinds, groups, tokens, slots, free, pools, sm, queues, parts, buffers, streams,
                  now, counters, m)  # fmt: skip
            last[s] = w
            now[s] = max(now[s], t + slot_time)
            if not state[w * STATE + ALIVE] or state[w * STATE + EARLIEST] >= NEVER:
                break
