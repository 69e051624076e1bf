"""The SM clock by clock, in the subset of Python that numba compiles.

The functions work on lists of int when they run as they are, and on int64 arrays when compiled (`archsim.cycle.run`). All
times are whole ticks, `TICKS` to a clock, so both give the same result to the bit.

Every scheduler has its own time. The one that is least far issues next; ties go to the lower number, or round with the clock
where lanes are shared. So whatever schedulers share, the load-store unit, the L1, the share of L2 and memory, is asked in the
order of time, and a queue is one number: when it is free. A scheduler that cannot issue jumps to the next time at which one of
its warps may.

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

from archsim.cycle.layout import (  # isort: skip  # fmt: skip
    ALIVE, ALONE, ARG, AWAIT, BANKS, BARRIER, BARRIER_STALL, BARRIER_TIME, BULK, BUSY, BYTES, CAUSE, CHANNELS, CLOCKS,
    COLUMNS, COMMIT, COPY, CTA, CTA_GAP, CTA_START, CTAS, DEFERRED, DRAM_FREE, DST, EARLIEST, EXIT, FETCH, FETCHED, FIELDS,
    FINISHED, FIXED, GIVE, GIVEN, GREEDY, GROUP, GROUPS, HOLD, ISSUED, KIND, L2_STORED, LAST, LATENCY, LATEST, LAUNCH_FREE,
    LEFT, LG_THROTTLE, LOAD, LONG_SCOREBOARD, LOOP, MIO_THROTTLE, NEVER, NO_INSTRUCTION, NOT_SELECTED, NOW, OPEN, ORIGIN,
    OTHERS, PAIR, PAIRED, PC, PIPE, PIPE_THROTTLE, QUEUE, REASONS, REGISTERS, RING, RINGS, SCHEDULERS, SELECTED, SHARED,
    SHORT_SCOREBOARD, SLOT, SRC1, SRC2, SRC3, STARTED, STATE, STREAM, TAKE, TAKEN, TICKS, TIES, TOKEN, TRACE, TRACED, TRIPS,
    TURN, WAIT, WARP_GAP, WARPS, WARPS_OF_CTA, WIDTH, Ints,
)
from archsim.cycle.memory_path import access, bulk


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
    if count == 1:
        free[first] = pools[pool + 2] = t + program[row + HOLD]
        return
    server = first
    for other in range(first + 1, first + count):
        if free[other] < free[server]:
            server = other
    free[server] = t + program[row + HOLD]
    soonest = free[first]
    for other in range(first + 1, first + count):
        soonest = min(soonest, free[other])
    pools[pool + 2] = soonest


def wake(s: int, t: int, turns: Ints) -> None:
    """A warp of scheduler `s`, which was not known to go on, may issue from time `t` on."""
    at = s * TURN
    turns[at + OTHERS] = min(turns[at + OTHERS], t)
    turns[at + NOW] = max(turns[at + BUSY], min(turns[at + NOW], t))


def give(w: int, t: int, row: int, program: Ints, state: Ints, ready: Ints, kinds: Ints, groups: Ints, tokens: Ints, turns: Ints,
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
            wake(other % m[SCHEDULERS], max(t, state[other * STATE + EARLIEST]), turns)


def enter(cta: int, slot: int, t: int, state: Ints, ready: Ints, groups: Ints, tokens: Ints, turns: Ints, m: Ints) -> None:
    """Start a CTA in a slot at time `t`, one warp after the other."""
    for place in range(slot * CHANNELS * RING * TOKEN, (slot * CHANNELS + m[RINGS]) * RING * TOKEN):
        tokens[place] = 0
    for i in range(m[WARPS_OF_CTA]):
        w = slot * m[WARPS_OF_CTA] + i
        at, begin = w * STATE, t + i * m[WARP_GAP]
        state[at + PC], state[at + EARLIEST], state[at + LEFT], state[at + CTA] = m[FIELDS + i], begin, m[TRIPS], cta
        state[at + LAST], state[at + CAUSE], state[at + OPEN], state[at + GROUP], state[at + ALIVE] = begin, WAIT, 0, 0, 1
        state[at + ORIGIN] = m[FIELDS + i]
        for c in range(2 * CHANNELS):
            state[at + TAKEN + c] = 0
        for r in range(m[REGISTERS]):
            ready[w * m[REGISTERS] + r] = 0
        for g in range(m[GROUPS]):
            groups[w * m[GROUPS] + g] = 0
        wake(w % m[SCHEDULERS], begin, turns)


def meet(w: int, t: int, program: Ints, state: Ints, ready: Ints, kinds: Ints, groups: Ints, tokens: Ints, slots: Ints,
         turns: Ints, m: Ints) -> None:  # fmt: skip
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
        wake(other % m[SCHEDULERS], t + m[BARRIER_TIME], turns)


def leave(w: int, t: int, state: Ints, slots: Ints, sm: Ints, ready: Ints, groups: Ints, tokens: Ints, turns: Ints,
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
        enter(sm[STARTED], slot, start + m[CTA_START], state, ready, groups, tokens, turns, m)
        sm[STARTED] += 1


def issue(w: int, t: int, s: int, program: Ints, state: Ints, ready: Ints, kinds: Ints, groups: Ints, tokens: Ints, slots: Ints,
          free: Ints, pools: Ints, sm: Ints, queues: Ints, buffers: Ints, streams: Ints, turns: Ints,
          counters: Ints, m: Ints) -> None:  # fmt: skip
    """Warp `w` issues its next instruction at time `t`."""
    at = w * STATE
    row = state[at + PC] * COLUMNS
    kind, base = program[row + KIND], w * m[REGISTERS]
    occupy(s, t, row, program, free, pools, m)
    counters[ISSUED] += 1
    pc, over = state[at + PC] + 1, t + program[row + SLOT]
    fetched = m[CTA_START] + (pc - state[at + ORIGIN]) * m[FETCH] if over < m[FETCHED] else 0
    state[at + PC], state[at + LAST] = pc, over
    if fetched > over:
        state[at + EARLIEST], state[at + CAUSE] = fetched, NO_INSTRUCTION
    else:
        state[at + EARLIEST], state[at + CAUSE] = over, WAIT
    done, cause = t + program[row + LATENCY], WAIT
    if SHARED <= kind <= COPY:
        off = (kind == LOAD or kind == COPY) and state[at + LEFT] <= program[row + ARG]  # noqa: SIM109, no tuple in the plain loop
        if not off:  # else it fetches for a trip beyond the last one
            done = access(s, t, row, program, sm, queues, buffers, streams, turns, counters, m)
            cause = SHORT_SCOREBOARD if kind == SHARED else LONG_SCOREBOARD
    elif program[row + ARG] == -1:  # of a pipe of variable latency
        cause = SHORT_SCOREBOARD
    if program[row + DST] >= 0:
        ready[base + program[row + DST]], kinds[base + program[row + DST]] = done, cause
    if kind == BULK:
        done = bulk(t, row, program, sm, streams, counters, m)
    if kind == FIXED:
        pass
    elif kind == COPY or kind == BULK or kind == DEFERRED:  # noqa: SIM109, as above
        state[at + OPEN] = max(state[at + OPEN], done)
    elif kind == GIVE:
        give(w, t, row, program, state, ready, kinds, groups, tokens, turns, m)
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
        meet(w, t, program, state, ready, kinds, groups, tokens, slots, turns, m)
    elif kind == EXIT:
        leave(w, t, state, slots, sm, ready, groups, tokens, turns, counters, m)
    if state[at + ALIVE] and state[at + EARLIEST] < NEVER:
        dependency(w, program, state, ready, kinds, groups, tokens, m)


def account(w: int, t: int, structure: int, row: int, program: Ints, state: Ints, reasons: Ints) -> None:
    """Where the time went between the last instruction of warp `w` and this one, at time `t`: `REASONS` for each instruction."""
    at, here = w * STATE, state[w * STATE + PC] * REASONS
    reasons[here + SELECTED] += program[row + SLOT]
    since, early = state[at + LAST], state[at + EARLIEST]
    if early > since:
        reasons[here + state[at + CAUSE]] += early - since
        since = early
    if structure > t:
        structure = t
    if structure > since:
        kind = program[row + KIND]
        why = MIO_THROTTLE if kind == SHARED else LG_THROTTLE if LOAD <= kind <= COPY else PIPE_THROTTLE
        reasons[here + why] += structure - since
        since = structure
    if t > since:
        reasons[here + NOT_SELECTED] += t - since


def straight(s: int, w: int, program: Ints, state: Ints, ready: Ints, kinds: Ints, groups: Ints, tokens: Ints, free: Ints,
             pools: Ints, turns: Ints, reasons: Ints, counters: Ints, m: Ints) -> None:  # fmt: skip
    """Warp `w`, which issued last, goes on as long as it can in every issue slot and shares nothing with other schedulers.

    So nothing that they do meanwhile changes it, and it need not wait until they are as far.
    """
    at, base, begin = w * STATE, w * m[REGISTERS], state[w * STATE + PC]
    t, pc = turns[s * TURN + NOW], begin
    if state[at + EARLIEST] > t or state[at + LAST] != t:
        return
    row = pc * COLUMNS
    while program[row + ALONE]:
        pool = pools[program[row + PIPE] * m[SCHEDULERS] + s]
        if pools[pool + 2] > t or (t < m[FETCHED] and t < m[CTA_START] + (pc - state[at + ORIGIN]) * m[FETCH]):
            break
        first, second, third, result = program[row + SRC1], program[row + SRC2], program[row + SRC3], program[row + DST]
        if (first >= 0 and ready[base + first] > t) or (second >= 0 and ready[base + second] > t):
            break
        if (third >= 0 and ready[base + third] > t) or (result >= 0 and ready[base + result] > t):
            break
        free[pools[pool]] = pools[pool + 2] = t + program[row + HOLD]
        if result >= 0:
            ready[base + result] = t + program[row + LATENCY]
            kinds[base + result] = SHORT_SCOREBOARD if program[row + ARG] == -1 else WAIT
        reasons[pc * REASONS + SELECTED] += program[row + SLOT]
        t += program[row + SLOT]
        pc += 1
        row += COLUMNS
    if pc > begin:
        counters[ISSUED] += pc - begin
        turns[s * TURN + NOW] = turns[s * TURN + BUSY] = state[at + LAST] = t
        fetched = m[CTA_START] + (pc - state[at + ORIGIN]) * m[FETCH]
        state[at + PC], state[at + EARLIEST] = pc, max(t, fetched)
        state[at + CAUSE] = NO_INSTRUCTION if fetched > t else WAIT
        dependency(w, program, state, ready, kinds, groups, tokens, m)


def choose(s: int, t: int, program: Ints, state: Ints, pools: Ints, queues: Ints, turns: Ints, m: Ints) -> int:
    """The warp of scheduler `s` that issues at time `t`; else minus one, minus the next time at which one may.

    Greedy: the warp that issued last goes on while it can; else the one goes first that issued longest ago. Were it the oldest
    or the youngest always, some would wait until all others end, and throughput would fall with more warps, where measured
    ones rise and stay (Volkov 2016). Otherwise that one goes first, too, each in its turn.
    """
    w = turns[s * TURN + LATEST]
    early = NEVER
    if m[GREEDY]:
        early = state[w * STATE + EARLIEST]
        if early <= t:
            early = structural(s, state[w * STATE + PC] * COLUMNS, program, pools, queues, m)
        if early <= t:
            return int(w)
        if turns[s * TURN + OTHERS] > t:
            return int(-1 - min(early, turns[s * TURN + OTHERS]))
    best, oldest, soon, number = -1, NEVER, NEVER, 0
    for i in range(m[WARPS] // m[SCHEDULERS]):
        if i > 0:
            w += m[SCHEDULERS]
            if w >= m[WARPS]:
                w = s
        elif m[GREEDY]:
            continue
        at = w * STATE
        time = state[at + EARLIEST]
        if time <= t:
            time = structural(s, state[at + PC] * COLUMNS, program, pools, queues, m)
        if time <= t:
            number += 1
            if state[at + LAST] < oldest:
                best, oldest = w, state[at + LAST]
        elif time < soon:
            soon = time
    if best < 0:
        turns[s * TURN + OTHERS] = soon
        return int(-1 - min(early, soon))
    turns[s * TURN + OTHERS] = t if number > 1 else min(early, soon)
    return best


def simulate(program: Ints, m: Ints, state: Ints, ready: Ints, kinds: Ints, groups: Ints, tokens: Ints, slots: Ints, free: Ints,
             pools: Ints, sm: Ints, queues: Ints, buffers: Ints, streams: Ints, turns: Ints, reasons: Ints, counters: Ints,
             record: Ints) -> None:  # fmt: skip
    """Run all CTAs. `record` takes (time, scheduler, warp, instruction) of the first instructions."""
    for slot in range(len(slots) // 2):
        if sm[STARTED] < m[CTAS]:
            enter(sm[STARTED], slot, sm[LAUNCH_FREE] + m[CTA_START], state, ready, groups, tokens, turns, m)
            sm[LAUNCH_FREE] += m[CTA_GAP]
            sm[STARTED] += 1
    while True:
        s, t = 0, turns[NOW]
        for other in range(1, m[SCHEDULERS]):
            if turns[other * TURN + NOW] < t:
                s, t = other, turns[other * TURN + NOW]
        if m[TIES]:
            s = t // TICKS & m[TIES]
            while turns[s * TURN + NOW] != t:
                s = s + 1 if s + 1 < m[SCHEDULERS] else 0
        here = s * TURN
        if t >= NEVER:  # what was stored last has still to leave
            counters[CLOCKS] = max(counters[CLOCKS], max(sm[L2_STORED], sm[DRAM_FREE]))
            return
        w = choose(s, t, program, state, pools, queues, turns, m)
        if w < 0:
            turns[here + NOW] = -1 - w
            continue
        turns[here + LATEST] = w
        slot_time = banks = 0
        for width in range(m[WIDTH]):
            row = state[w * STATE + PC] * COLUMNS
            structure = structural(s, row, program, pools, queues, m)
            if width > 0:
                if not program[row + PAIR] or max(state[w * STATE + EARLIEST] - slot_time, structure) > t:
                    break
                counters[PAIRED] += 1
            account(w, t, structure, row, program, state, reasons)
            slot_time = program[row + SLOT]
            banks += program[row + BANKS]
            if counters[TRACED] < m[TRACE]:
                place = counters[TRACED] * 4
                record[place], record[place + 1], record[place + 2] = t, s, w
                record[place + 3] = state[w * STATE + PC]
                counters[TRACED] += 1
            turns[here + NOW] = turns[here + BUSY] = t + max(slot_time, banks)
            issue(w, t, s, program, state, ready, kinds, groups, tokens, slots, free, pools, sm, queues, buffers, streams, turns,
                  counters, m)  # fmt: skip
            if not state[w * STATE + ALIVE] or state[w * STATE + EARLIEST] >= NEVER:
                break
        if m[GREEDY] and counters[TRACED] >= m[TRACE]:  # a record is in the order of time
            straight(s, w, program, state, ready, kinds, groups, tokens, free, pools, turns, reasons, counters, m)
