"""`Program`: the instructions of one warp, and how a CTA of them occupies an SM; `Assembler` writes one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

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

    def __hash__(self) -> int:
        """Of the sizes and the ends: programs that differ are rarely alike in these, and some have thousands of instructions."""
        ends = (len(self.instructions), *self.instructions[:1], *self.instructions[-2:])
        return hash((ends, self.threads, self.registers, self.shared, self.trips, self.streams, self.roles))

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The first instruction of what some of the warps do, and the one behind its last."""
        begins = sorted({first for _, first in self.roles} or {0})
        return list(zip(begins, [*begins[1:], len(self.instructions)], strict=True))

    @cached_property
    def unstored(self) -> Program:
        """The same, without what it stores behind its loops."""
        loops = [(i.target, at) for at, i in enumerate(self.instructions) if i.kind == layout.LOOP]
        within = {at for first, last in loops for at in range(first, last)}
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

    def arithmetic(self, name: str, dst: int, src: Sequence[int], pipe: int = INT, reads: float | None = None,
                   clocks: float = 0.0) -> None:  # fmt: skip
        """An instruction of a pipe; it reads all its sources from the banks unless `reads` says less."""
        self.out.append(_arithmetic(name, dst, tuple(src)[:3], pipe, len(src) if reads is None else reads, clocks))

    def load_shared(self, dst: int, src: int, lane_bytes: int, wavefronts: float) -> None:
        """LDS: `lane_bytes` for each thread, in `wavefronts` turns of the banks."""
        self.out.append(Instruction(name=f"LDS.{width(lane_bytes)}", kind=layout.SHARED, pipe=MEMORY, dst=dst, src=(src,),
                                    reads=1, port=wavefronts, size=lane_bytes * self.warp))  # fmt: skip

    def store_shared(self, src: Sequence[int], lane_bytes: int, wavefronts: float) -> None:
        """STS."""
        self.out.append(Instruction(name=f"STS.{width(lane_bytes)}", kind=layout.SHARED, pipe=MEMORY, src=tuple(src)[:3], reads=2,
                                    port=wavefronts, size=lane_bytes * self.warp))  # fmt: skip

    def shuffle(self, dst: int, src: int) -> None:
        """SHFL: each thread gets the register of another one of its warp, through the crossbar of shared memory."""
        self.out.append(Instruction(name="SHFL", kind=layout.SHARED, pipe=MEMORY, dst=dst, src=(src,), reads=1, port=1.0,
                                    size=4.0 * self.warp))  # fmt: skip

    def load(self, dst: int, src: int, lane_bytes: int, stream: int = 0, size: float | None = None, ahead: int = 0) -> None:
        """LDG of `lane_bytes` for each thread, of `size` bytes in all where threads share some; for `ahead` trips later."""
        self.out.append(Instruction(name=f"LDG.{width(lane_bytes)}", kind=layout.LOAD, pipe=MEMORY, dst=dst, src=(src,), reads=1,
                                    port=-1.0, size=lane_bytes * self.warp if size is None else size, stream=stream,
                                    groups=ahead))  # fmt: skip

    def store(self, src: Sequence[int], lane_bytes: int, stream: int = 0, size: float | None = None) -> None:
        """STG of `lane_bytes` for each thread, of `size` bytes in all where some threads are off."""
        self.out.append(Instruction(name=f"STG.{width(lane_bytes)}", kind=layout.STORE, pipe=MEMORY, src=tuple(src)[:3], reads=2,
                                    port=-1.0, size=lane_bytes * self.warp if size is None else size, stream=stream))  # fmt: skip

    def copy(self, lane_bytes: int, stream: int = 0, size: float | None = None, ahead: int = 0) -> None:
        """LDGSTS: from memory to shared memory, past the registers, for a trip `ahead` of this one."""
        self.out.append(Instruction(name=f"LDGSTS.{width(lane_bytes)}", kind=layout.COPY, pipe=MEMORY, reads=1, port=-1.0,
                                    size=lane_bytes * self.warp if size is None else size, stream=stream,
                                    groups=ahead))  # fmt: skip

    def commit(self) -> None:
        """Ends a group of copies."""
        self.out.append(Instruction(name="LDGDEPBAR", kind=layout.COMMIT, pipe=CONTROL))

    def await_copies(self, groups: int) -> None:
        """Waits until all but the last `groups` groups of copies are there."""
        self.out.append(Instruction(name="DEPBAR", kind=layout.AWAIT, pipe=CONTROL, groups=groups))

    def bulk(self, size: float, rows: float, stream: int = 0) -> None:
        """UTMALDG: one thread starts a copy of `size` bytes in `rows` rows to shared memory."""
        self.out.append(Instruction(name="UTMALDG", kind=layout.BULK, pipe=MEMORY, port=rows, size=size, stream=stream))

    def deferred(self, name: str, clocks: float) -> None:
        """A product on tensor cores that runs on by itself; a token that is given afterwards waits for it."""
        self.out.append(Instruction(name=name, kind=layout.DEFERRED, pipe=TENSOR, clocks=clocks))

    def give(self, channel: int) -> None:
        """Gives a token once the copies and products that were started before are done."""
        self.out.append(Instruction(name="SYNCS.ARRIVE", kind=layout.GIVE, pipe=CONTROL, channel=channel))

    def take(self, channel: int, givers: int = 1, ready: int = 0) -> None:
        """Waits for the next token of a channel, to which `givers` warps give; the first `ready` are there from the start."""
        self.out.append(Instruction(name="SYNCS.TRYWAIT", kind=layout.TAKE, pipe=CONTROL, channel=channel, givers=givers,
                                    groups=ready))  # fmt: skip

    def barrier(self) -> None:
        """BAR.SYNC of the CTA."""
        self.out.append(Instruction(name="BAR.SYNC", kind=layout.BARRIER, pipe=CONTROL))

    def back(self, target: int) -> None:
        """The branch at the end of the loop that begins at `target`."""
        self.out.append(Instruction(name="BRA", kind=layout.LOOP, pipe=CONTROL, target=target))

    def end(self) -> None:
        """EXIT."""
        self.out.append(Instruction(name="EXIT", kind=layout.EXIT, pipe=CONTROL))

    @property
    def here(self) -> int:
        """The number of the next instruction."""
        return len(self.out)

    def program(self, *, threads: int, registers: int, shared: float, trips: int, streams: Sequence[Source],
                roles: Sequence[tuple[int, int]] = (), period: int = 1) -> Program:  # fmt: skip
        """What has been written, as a program."""
        return Program(instructions=tuple(self.out), threads=threads, registers=registers, shared=shared, trips=trips,
                       streams=tuple(streams), roles=tuple(roles), period=period)  # fmt: skip
