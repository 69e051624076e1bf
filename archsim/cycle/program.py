"""`Program`: the instructions of one warp, and how a CTA of them occupies an SM; `Assembler` writes one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import log2

from archsim.cycle import layout

# Pipes of an SM.
FP32, INT, SPECIAL, TENSOR, MEMORY, CONTROL = range(6)
PIPES = ("fp32", "int", "special", "tensor", "memory", "control")
WIDTHS = (8, 16, 32, 64, 128)  # bits of a thread's access to memory (PTX, ld and st)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction of a warp.

    reads: operands that the register banks deliver; those that the scheduler keeps from the instruction before are not counted
    clocks: that it takes its pipe, where that is not a warp over the pipe's lanes [clk]
    port: clocks of the SM's port to shared memory or to the L1 [clk]
    size: bytes that the warp asks for [B]
    stream: of the program's streams, which says where the data are
    groups: of copies that may still be under way (AWAIT); tokens that are there from the start (TAKE); trips ahead that a load or
    copy is for, which is off in the last ones
    channel: of the CTA (GIVE, TAKE); givers: warps that give to each of its tokens
    target: of a loop
    """

    name: str
    kind: int = layout.FIXED
    pipe: int = INT
    dst: int = -1
    src: tuple[int, ...] = ()
    reads: float = 0.0
    clocks: float = 0.0
    port: float = 0.0
    size: float = 0.0
    stream: int = 0
    groups: int = 0
    target: int = -1
    channel: int = 0
    givers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the data of a stream are: the share of its accesses that go past the L1, and of these past the L2."""

    past_l1: float = 1.0
    past_l2: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Program:
    """What one warp of a kernel does, and what a CTA occupies. `trips` times each loop runs in the whole kernel.

    roles: (warp, instruction) from where the warps of a CTA from this one on begin, where not all do the same
    launched: threads of a CTA that take registers and places, where not all are simulated
    period: trips after which the loop does the same again: its stages, if copies fill a ring of them
    """

    instructions: tuple[Instruction, ...]
    threads: int
    registers: int
    shared: float
    trips: int
    streams: tuple[Source, ...] = (Source(),)
    roles: tuple[tuple[int, int], ...] = ()
    period: int = 1
    launched: int = 0

    def __hash__(self) -> int:
        """Of the sizes and the ends: programs that differ are rarely alike in these, and some have thousands of instructions."""
        ends = (len(self.instructions), *self.instructions[:1], *self.instructions[-2:])
        return hash((ends, self.threads, self.registers, self.shared, self.trips, self.streams, self.roles))

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The first instruction of what some of the warps do, and the one behind its last."""
        begins = sorted({first for _, first in self.roles} or {0})
        return list(zip(begins, [*begins[1:], len(self.instructions)], strict=True))

    @property
    def loops(self) -> list[tuple[int, int]]:
        """The first and the last instruction of each loop, in order."""
        return [(i.target, at) for at, i in enumerate(self.instructions) if i.kind == layout.LOOP]

    @cached_property
    def unstored(self) -> Program:
        """The same, without what it stores behind its loops."""
        within = {at for first, last in self.loops for at in range(first, last)}
        nothing = Instruction(name="NOP", pipe=CONTROL)
        return replace(self, instructions=tuple(nothing if i.kind == layout.STORE and at not in within else i
                                                for at, i in enumerate(self.instructions)))  # fmt: skip


@lru_cache(maxsize=1 << 16)
def _arithmetic(name: str, dst: int, src: tuple[int, ...], pipe: int, reads: float, clocks: float) -> Instruction:
    """Loops have thousands of them, of which most are in other loops too."""
    return Instruction(name=name, pipe=pipe, dst=dst, src=src, clocks=clocks, reads=reads)


def width(lane_bytes: float) -> int:
    """Bits of the access that serves a thread so many bytes, as the instruction's name has them.

    >>> [width(size) for size in (2, 4, 11, 128)]
    [16, 32, 128, 128]
    """
    return next((bits for bits in WIDTHS if 8 * lane_bytes <= bits), WIDTHS[-1])


@dataclass(slots=True)
class Assembler:
    """Writes a program: one method for each sort of instruction; `Machine` knows latencies and widths."""

    warp: int
    out: list[Instruction] = field(default_factory=list)
    free: int = 0

    def register(self, count: int = 1) -> int:
        """The first of `count` new registers."""
        first, self.free = self.free, self.free + count
        return first

    def registers(self, count: int) -> list[int]:
        """So many new registers."""
        return [self.register() for _ in range(count)]

    def set_up(self, count: int = 1) -> int:
        """What a thread does first: it finds its place, in so many instructions; returns the register of its address."""
        place = self.register()
        for _ in range(count):
            self.arithmetic("IMAD", place, (place,))
        return place

    def arithmetic(self, name: str, dst: int, src: Sequence[int], pipe: int = INT, reads: float | None = None,
                   clocks: float = 0.0) -> None:  # fmt: skip
        """An instruction of a pipe; it reads all its sources from the banks unless `reads` says less."""
        self.out.append(_arithmetic(name, dst, tuple(src)[:3], pipe, len(src) if reads is None else reads, clocks))

    def across(self, name: str, register: int, other: int, threads: float) -> None:
        """Combines a register over so many threads of a warp: shuffles into `other`, each with an instruction of that name."""
        for _ in range(int(log2(threads))):
            self.shuffle(other, register)
            self.arithmetic(name, register, (register, other), pipe=FP32)

    def _memory(
        self, name: str, kind: int, lane_bytes: float, *, src: Sequence[int] = (), reads: float = 1, dst: int = -1,
        port: float = -1.0, stream: int = 0, size: float | None = None, ahead: int = 0,
    ) -> None:  # fmt: skip
        """An access of `lane_bytes` for each thread, of `size` bytes in all where they are not those of a whole warp."""
        self.out.append(Instruction(
            name=f"{name}.{width(lane_bytes)}", kind=kind, pipe=MEMORY, dst=dst, src=tuple(src)[:3], reads=reads, port=port,
            size=lane_bytes * self.warp if size is None else size, stream=stream, groups=ahead))  # fmt: skip

    def _control(self, name: str, kind: int, *, groups: int = 0, target: int = -1, channel: int = 0, givers: int = 1) -> None:
        self.out.append(Instruction(name=name, kind=kind, pipe=CONTROL, groups=groups, target=target, channel=channel,
                                    givers=givers))  # fmt: skip

    def load_shared(self, dst: int, src: int, lane_bytes: int, wavefronts: float) -> None:
        """LDS: `lane_bytes` for each thread, in `wavefronts` turns of the banks."""
        self._memory("LDS", layout.SHARED, lane_bytes, dst=dst, src=(src,), port=wavefronts)

    def store_shared(self, src: Sequence[int], lane_bytes: int, wavefronts: float) -> None:
        """STS."""
        self._memory("STS", layout.SHARED, lane_bytes, src=src, reads=2, port=wavefronts)

    def shuffle(self, dst: int, src: int) -> None:
        """SHFL: each thread gets the register of another one of its warp, through the crossbar of shared memory, no bank."""
        self.out.append(Instruction(name="SHFL", kind=layout.SHARED, pipe=MEMORY, dst=dst, src=(src,), reads=1, port=1.0))

    def load(self, dst: int, src: int, lane_bytes: int, stream: int = 0, size: float | None = None, ahead: int = 0) -> None:
        """LDG of `lane_bytes` for each thread, of `size` bytes in all where threads share some; for `ahead` trips later."""
        self._memory("LDG", layout.LOAD, lane_bytes, dst=dst, src=(src,), stream=stream, size=size, ahead=ahead)

    def store(self, src: Sequence[int], lane_bytes: int, stream: int = 0, size: float | None = None) -> None:
        """STG of `lane_bytes` for each thread, of `size` bytes in all where some threads are off."""
        self._memory("STG", layout.STORE, lane_bytes, src=src, reads=2, stream=stream, size=size)

    def copy(self, lane_bytes: int, stream: int = 0, size: float | None = None, ahead: int = 0) -> None:
        """LDGSTS: from memory to shared memory, past the registers, for a trip `ahead` of this one."""
        self._memory("LDGSTS", layout.COPY, lane_bytes, stream=stream, size=size, ahead=ahead)

    def commit(self) -> None:
        """Ends a group of copies."""
        self._control("LDGDEPBAR", layout.COMMIT)

    def await_copies(self, groups: int) -> None:
        """Waits until all but the last `groups` groups of copies are there."""
        self._control("DEPBAR", layout.AWAIT, groups=groups)

    def bulk(self, size: float, rows: float, stream: int = 0) -> None:
        """UTMALDG: one thread starts a copy of `size` bytes in `rows` rows to shared memory."""
        self.out.append(Instruction(name="UTMALDG", kind=layout.BULK, pipe=MEMORY, port=rows, size=size, stream=stream))

    def deferred(self, name: str, clocks: float) -> None:
        """A product on tensor cores that runs on by itself; a token that is given afterwards waits for it."""
        self.out.append(Instruction(name=name, kind=layout.DEFERRED, pipe=TENSOR, clocks=clocks))

    def give(self, channel: int) -> None:
        """Gives a token once the copies and products that were started before are done."""
        self._control("SYNCS.ARRIVE", layout.GIVE, channel=channel)

    def take(self, channel: int, givers: int = 1, ready: int = 0) -> None:
        """Waits for the next token of a channel, to which `givers` warps give; the first `ready` are there from the start."""
        self._control("SYNCS.TRYWAIT", layout.TAKE, channel=channel, givers=givers, groups=ready)

    def barrier(self) -> None:
        """BAR.SYNC of the CTA."""
        self._control("BAR.SYNC", layout.BARRIER)

    def back(self, target: int) -> None:
        """The branch at the end of the loop that begins at `target`."""
        self._control("BRA", layout.LOOP, target=target)

    def turn(self, place: int, target: int) -> None:
        """The end of a loop whose address moves on."""
        self.arithmetic("IADD3", place, (place,))
        self.back(target)

    def end(self) -> None:
        """EXIT."""
        self._control("EXIT", layout.EXIT)

    @property
    def here(self) -> int:
        """The number of the next instruction."""
        return len(self.out)

    def program(
        self, *, threads: int, registers: int, shared: float = 0.0, trips: int = 1, streams: Sequence[Source] = (Source(),),
        roles: Sequence[tuple[int, int]] = (), period: int = 1, launched: int = 0,
    ) -> Program:  # fmt: skip
        """What has been written, as a program."""
        if not self.out or self.out[-1].kind != layout.EXIT:  # the last warps end here
            self.end()
        return Program(instructions=tuple(self.out), threads=threads, registers=registers, shared=shared, trips=trips,
                       streams=tuple(streams), roles=tuple(roles), period=period, launched=launched)  # fmt: skip
