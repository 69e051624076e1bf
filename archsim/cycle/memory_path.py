"""The way of a memory instruction through ports, buffers and queues, in the subset of Python that numba compiles."""

from __future__ import annotations

from archsim.cycle.layout import (  # isort: skip  # fmt: skip
    ACCESS, BUFFERS, BULK_FREE, BULK_GAP, BULK_TIME, BYTES, DRAM_BYTES, DRAM_FREE, DRAM_TICKS, DRAM_TIME, ISSUE_PART, KIND,
    L1_BYTES, L1_TIME, L2_BYTES, L2_FREE, L2_STORED, L2_TICKS, L2_TIME, LINE_BYTES, LINES, NEXT_BUFFER, PART, PORT, QUEUE, READ,
    SHARED, SHARED_BYTES, SHARED_TIME, SM_PORT, STORE, STORED_BYTES, STREAM, TICKS, TURN, TURN_TICKS, Ints,
)


def access(s: int, t: int, row: int, program: Ints, sm: Ints, queues: Ints, buffers: Ints, streams: Ints, turns: Ints,
           counters: Ints, m: Ints) -> int:  # fmt: skip
    """Send a memory instruction on its way at time `t`; returns when its data are there (a store: when it has left)."""
    kind, size = program[row + KIND], program[row + BYTES]
    start = max(t, max(turns[s * TURN + PART], sm[SM_PORT]))
    turns[s * TURN + PART] = start + m[ISSUE_PART]
    sm[SM_PORT] = max(t, sm[SM_PORT]) + program[row + PORT]  # of others, while this one waits for its part
    place = s * (m[QUEUE] + 1)
    oldest = queues[place + m[QUEUE]]
    queues[place + oldest] = start
    queues[place + m[QUEUE]] = oldest + 1 if oldest + 1 < m[QUEUE] else 0
    if kind == SHARED:
        counters[SHARED_BYTES] += size
        done: int = start + m[SHARED_TIME] + max(0, program[row + PORT] - m[ACCESS])
        return done
    counters[L1_BYTES] += size
    at = program[row + STREAM] * 4
    streams[at + 2] += streams[at]
    if kind != STORE and streams[at + 2] < TICKS:
        done = start + m[L1_TIME] + max(0, program[row + PORT] - m[ACCESS])
        return done
    streams[at + 2] -= TICKS if kind != STORE else streams[at]
    first = sm[NEXT_BUFFER]
    buffer = first
    for _ in range(program[row + LINES]):  # a miss takes a buffer for each line until its data are there
        start = max(start, buffers[buffer])
        buffer = buffer + 1 if buffer + 1 < m[BUFFERS] else 0
    sm[NEXT_BUFFER] = buffer
    counters[L2_BYTES] += size
    way = L2_STORED if kind == STORE else L2_FREE  # the crossbar has wires for each direction
    arrival = max(start, sm[way])
    sm[way] = arrival + size * m[L2_TICKS]
    done = arrival + m[L2_TIME]
    streams[at + 3] += streams[at + 1]
    passed = streams[at + 3] >= TICKS
    if passed:
        streams[at + 3] -= TICKS
        counters[DRAM_BYTES] += size
        arrival = max(arrival, sm[DRAM_FREE])
        turned = min(size, sm[READ]) if kind == STORE else 0  # the bus turns once more for what is written beside reads
        sm[READ] += -turned if kind == STORE else size
        sm[DRAM_FREE] = arrival + size * m[DRAM_TICKS] + turned * m[TURN_TICKS]
        done = arrival + m[DRAM_TIME]
    if kind == STORE:
        counters[STORED_BYTES] += size
        done = arrival + size * (m[DRAM_TICKS] if passed else m[L2_TICKS])
    buffer = first
    for _ in range(program[row + LINES]):
        buffers[buffer] = done
        buffer = buffer + 1 if buffer + 1 < m[BUFFERS] else 0
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
        sm[READ] += missed * size // lines
        sm[DRAM_FREE] = max(begin, sm[DRAM_FREE]) + missed * size // lines * m[DRAM_TICKS]
        done = max(done, max(start + program[row + PORT], sm[DRAM_FREE]) + m[DRAM_TIME] + m[BULK_TIME])
    return done
