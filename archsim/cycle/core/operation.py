"""`Operation`, `MemoryStream` and `CoreLoop`: the loop that a core runs, in operations over named values, before any machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

TRIPS = 1000  # of a loop whose data do not say how many it has
SHUFFLES_ACROSS = frozenset({"perm2f128", "permpd", "permd", "extractf128", "insertf128", "permute"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The bytes of an operation: `offset` from the base of a stream, which advances by the stream's stride each iteration."""

    stream: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of an iteration.

    kind: as in the tables of a spec: load, store, fma, add, int, branch, ...; broadcast for a load of one value into all lanes
    width: of its registers [bit]; element: of a value [bit]
    sources: (position in the loop of who made an operand, iterations before), for each operand that the loop makes
    address: the same for what the address is computed from
    memory: what it loads or stores
    folded: a load that is the memory operand of the operation behind it; fused: a branch that is one with the operation before it
    chained: its last operand is an addend (multiply-accumulate), which may be late
    vector: whether its result is a vector register; writes: whether it has a result
    elements: loads of a gather; indexed: its address is the sum of a base and an index
    taken: whether a branch is taken; missed: the share of iterations in which it is mispredicted
    trips: of an inner loop that a branch closes: it falls through once in so many iterations; 0: it never does
    """

    kind: str
    width: int = 64
    element: int = 32
    sources: tuple[tuple[int, int], ...] = ()
    address: tuple[tuple[int, int], ...] = ()
    memory: Access | None = None
    folded: bool = False
    fused: bool = False
    chained: bool = False
    vector: bool = True
    writes: bool = True
    elements: int = 1
    indexed: bool = False
    taken: bool = True
    missed: float = 0.0
    trips: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStream:
    """Addresses that a loop reads or writes: `start` in its page, and `stride` further in each iteration [B].

    footprint: bytes that a pass of the loop covers; level: where they lie, 1 for the L1 to 4 for memory; None: as the footprint
    of all streams has it
    alias: the stream whose bytes these are, too
    """

    name: str
    stride: int
    footprint: int
    start: int = 0
    level: int | None = None
    alias: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreLoop:
    """A loop: operations in the order of the program, the memory that they touch, and how often a pass runs it.

    isa: the instruction set that it is written in; form: how it multiplies narrow operands, of `archsim.device.dot.FORMS`
    """

    name: str
    operations: tuple[Operation, ...]
    streams: tuple[MemoryStream, ...] = ()
    trips: int = TRIPS
    isa: str = ""
    form: str = ""
    flop: float = 0.0
    measured: float | None = field(default=None, compare=False)

    @property
    def bytes_loaded(self) -> int:
        """Bytes of all loads of an iteration [B]."""
        return sum(one.memory.size for one in self.operations if one.memory is not None and one.kind != "store")

    @property
    def bytes_stored(self) -> int:
        """Bytes of all stores of an iteration [B]."""
        return sum(one.memory.size for one in self.operations if one.memory is not None and one.kind == "store")

    @property
    def footprint(self) -> int:
        """Bytes that a pass covers, streams of the same bytes once [B]."""
        return sum(stream.footprint for stream in self.streams if not stream.alias)


def chased(loop: CoreLoop, stream: str) -> bool:
    """Whether the next address of a stream is in the data before: a chain of pointers."""
    loads = {at for at, one in enumerate(loop.operations) if one.memory is not None and one.memory.stream == stream}
    return any(made in loads for at in loads for made, _ in loop.operations[at].address)


def levels(loop: CoreLoop, sizes: Sequence[float]) -> tuple[int, ...]:
    """Where the data of each stream lie: in the first cache that all streams together fit, 1 for the L1; beyond the last, memory.

    A pass begins anew where the one before began, so that of what does not fit nothing is left (least recently used).

    >>> one = CoreLoop(name="read", operations=(), streams=(MemoryStream(name="x", stride=64, footprint=100_000),))
    >>> levels(one, (32_768, 262_144, 8_388_608))
    (2,)
    """
    whole = loop.footprint
    found = 1 + sum(whole > size for size in sizes)
    return tuple(found if stream.level is None else stream.level for stream in loop.streams)
