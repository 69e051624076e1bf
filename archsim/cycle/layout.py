"""Where the loop of the SM keeps what: the columns of a program, the fields of a machine, the state of warps and of the SM."""

from __future__ import annotations

from typing import Any

TICKS = 1024  # of a clock
NEVER = 1 << 60

# Kinds of instructions.
FIXED, SHARED, LOAD, STORE, COPY, COMMIT, AWAIT, BARRIER, LOOP, EXIT, BULK, DEFERRED, GIVE, TAKE = range(14)
# Columns of a program: one row for each instruction.
KIND, PIPE, HOLD, SLOT, LATENCY, DST, SRC1, SRC2, SRC3, PORT, BYTES, STREAM, ARG, PAIR, LINES, ALONE, BANKS = range(17)
COLUMNS = 17
# Fields of the machine.
(SCHEDULERS, WARPS, WARPS_OF_CTA, CTAS, REGISTERS, TRIPS, GREEDY, WIDTH, CTA_START, CTA_GAP, BARRIER_TIME, QUEUE, ISSUE_PART,
 ACCESS, L1_TIME, L2_TIME, DRAM_TIME, L2_TICKS, DRAM_TICKS, BUFFERS, SHARED_TIME, TRACE,
 GROUPS, BULK_TIME, BULK_GAP, LINE_BYTES, FETCH, FETCHED, RINGS, WARP_GAP, TURN_TICKS, TIES) = range(32)  # fmt: skip
FIELDS = 32
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
PC, EARLIEST, LEFT, CTA, LAST, CAUSE, OPEN, GROUP, ALIVE, ORIGIN, TAKEN = range(11)
GIVEN = TAKEN + CHANNELS  # how many tokens the warp has taken of each channel, and given to it
STATE = GIVEN + CHANNELS
# State of a scheduler: when it is looked at next, until when it issues what it has begun, before when none of its warps but the
# last one may issue, the warp that issued last, and when its port to memory is free.
NOW, BUSY, OTHERS, LATEST, PART = range(5)
TURN = 5
# State of the SM. READ: bytes from memory since as many were written.
SM_PORT, L2_FREE, DRAM_FREE, NEXT_BUFFER, STARTED, LAUNCH_FREE, BULK_FREE, READ, L2_STORED = range(9)
SHARED_STATE = 9

Ints = Any  # a list of int, or an array of int64
