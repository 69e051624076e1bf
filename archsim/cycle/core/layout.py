"""Where the pipeline of a core keeps what: columns of a program, fields of a machine, state and counts."""

from __future__ import annotations

from typing import Any

TICKS = 1 << 20  # of a clock, for what a bus carries
RING = 1 << 14  # clocks that reservations reach ahead; a power of two
LAST = RING - 1
LINES = 512  # lines of a stream whose arrival is remembered

# Kinds of micro-operations.
ARITHMETIC, LOAD, STORE, NOTHING = range(4)
# Columns of a program: one row for each micro-operation.
(KIND, SLOTS, PORTS, PASSES, DIVIDES, LATENCY, QUEUE, REGISTER, STREAM, OFFSET, BYTES, TAKEN,
 FROM1, BACK1, MORE1, FROM2, BACK2, MORE2, FROM3, BACK3, MORE3, FROM4, BACK4, MORE4, LOW, HIGH, MISSED) = range(27)  # fmt: skip
SOURCES = 4  # operands of a micro-operation: who made each, how many iterations before, and what it takes more or less
COLUMNS = 27  # LOW, HIGH: the first of its ports, and the one behind the last; MISSED: mispredictions an iteration [ticks]
# Columns of the streams of a program. START: the first byte in its page; LEVEL: where its data lie, 1 to 4; CHASED: each address
# is in the data before; PAGED: its pages are more than the TLB has; WRITTEN: a store goes to it
START, STRIDE, LEVEL, CHASED, PAGED, WRITTEN = range(6)
STREAM_COLUMNS = 6
# State of a stream: the furthest line that was asked for by the L1, and by the L2, the page and the line that were read last, and
# how many lines followed each other.
NEAR, FAR, PAGE_READ, LAST_LINE, FOLLOWED = range(5)
STREAM_STATE = 5
NEXT = 2  # lines from one access to the next that a prefetcher takes for a stream
# Fields of the machine.
(FETCH, BRANCHES, RENAME, RETIRE, DELAY, IN_ORDER, AT_RENAME, PORT_COUNT, LINE, PAGE_LINES, BUFFERS, BUFFERS2, AHEAD, AHEAD2,
 LATENCY2, LATENCY3, LATENCY4, READ_TIME, WRITE_TIME, TIME2, TIME3, TIME4, SPLIT, TLB_LINES, TLB_TIME,
 MISPREDICT, BACK_TO2, BACK_TO3, BACK_TO4, BACK_TIME2, BACK_TIME3, BACK_TIME4) = range(32)  # fmt: skip
MACHINE_FIELDS = 32
# Buses: bytes of loads and of stores at the L1, lines from the L2, from the L3, from memory and to it, dirty lines to the L2 and
# to the L3 where they do not share the bus of those that come; the divider counts as one.
READS, WRITES, FROM_L2, FROM_L3, FROM_MEMORY, TO_L2, TO_L3, DIVIDER = range(8)
BUSES = 8
CARRIED = BUSES + 1  # columns of a clock: what each bus carries, and whether any does
# Pools that are full at their number of entries.
(INT_QUEUE, VECTOR_QUEUE, MEMORY_QUEUE, LOAD_QUEUE, STORE_QUEUE, INT_REGISTERS, VECTOR_REGISTERS, REORDER) = range(8)
POOLS = 8
FREED = POOLS + 1  # columns of a clock: what each pool gets back, and whether any does
POOL_NAMES = ("integer scheduler", "vector scheduler", "memory scheduler", "load queue", "store queue", "integer registers",
              "vector registers", "reorder buffer")  # fmt: skip
# State of the pipeline: the clock of rename and what was renamed in it; fetch; retirement; the last start of an in-order core;
# the last commit of a store; the port that was found last.
(CLOCK, RENAMED, FETCH_CLOCK, FETCHED, TAKEN_NOW, RETIRED, RETIRED_NOW, LAST_START, STARTED_NOW, COMMITTED, PORT) = range(11)
STATES = 11
# Counts: operations, lines from and to each level, bytes stored, what is traced, clocks of rename lost to the front end and to
# each pool.
OPERATIONS, LINES2, LINES3, LINES4, STORED, TRACED, FRONT_END, POOL = range(8)
COUNTS = POOL + POOLS
# Of a traced micro-operation: its row, iteration, clock of rename, start, end and retirement, and its port.
TRACE_COLUMNS = 7

Ints = Any  # a list of int, or an array of int64
