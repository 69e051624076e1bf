"""`CoreLoop`: the loop that a core runs, in operations over named values, before any machine; `LoopWriter` writes one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

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

    isa: the instruction set that it is written in; form: how it multiplies narrow operands, of `archsim.device.cpu_core.FORMS`
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


def stored_to(loop: CoreLoop) -> set[str]:
    """The streams that a store goes to, whose lines are dirty when they leave."""
    return {one.memory.stream for one in loop.operations if one.kind == "store" and one.memory is not None}


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


# ------------------------------------------------------------------------------------------------------- writing a loop

APART = 1088  # bytes between the places of streams in their pages, so that they begin in different sets of a cache
SCALAR = frozenset({"int", "address", "multiply", "branch"})  # kinds of operations on integer registers
Value = int | str | None  # an operation of this iteration, the name of a value of the one before, or what the loop does not make


class LoopWriter:
    """Collects the operations of an iteration.

    An operand is the number of an operation of this iteration, the name under which the iteration before kept a value, or None
    for what stands in a register all the time.
    """

    def __init__(self, name: str, width: int, element: int = 32) -> None:
        """`width` of registers and `element` of a value [bit], where an operation does not say otherwise."""
        self.name, self.width, self.element = name, width, element
        self._ops: list[Operation] = []
        self._sources: list[tuple[Value, ...]] = []
        self._addresses: list[tuple[Value, ...]] = []
        self._kept: dict[str, int] = {}
        self._streams: dict[str, MemoryStream] = {}

    def stream(self, name: str, stride: int, footprint: int = 64, level: int | None = 1, start: int = 0) -> str:
        """Name a stream of addresses; its pointer advances once an iteration."""
        self._streams[name] = MemoryStream(name=name, stride=stride, footprint=footprint, level=level, start=start)
        return name

    def op(self, kind: str, *operands: Value, chained: bool = False, vector: bool | None = None, width: int = 0) -> int:
        """Arithmetic of a kind, on vector registers but for the kinds of integers."""
        vector = kind not in SCALAR if vector is None else vector
        size = width or (self.width if vector else 64)
        element = self.element if vector else 64
        one = Operation(kind=kind, width=size, element=element, chained=chained, vector=vector, text=kind,
                        writes=kind != "branch")  # fmt: skip
        return self._add(one, operands, ())

    def multiply_add(self, a: Value, b: Value, c: Value, fused: bool, chained: bool = False) -> int:
        """a b + c, in one operation where it is fused."""
        return self.op("fma", a, b, c, chained=chained) if fused else self.op("add", self.op("mul", a, b), c)

    def load(self, stream: str, offset: int, *, kind: str = "load", folded: bool = False, width: int = 0, vector: bool = True,
             address: Value = "", indexed: bool = False) -> int:  # fmt: skip
        """A load of a register (`kind` load) or of one value for all lanes (broadcast); `folded` into the operation behind it.

        address: what it is computed from, where that is not the pointer of the stream; indexed: a base and an index
        """
        size = width or self.width
        each = self.element // 8 if kind == "broadcast" else size // 8
        one = Operation(kind=kind, width=size, element=self.element, folded=folded, vector=vector, indexed=indexed, text=kind,
                        memory=Access(stream=stream, offset=offset, size=each))  # fmt: skip
        return self._add(one, (), (f"at_{stream}" if address == "" else address,))

    def store(self, stream: str, offset: int, value: Value, width: int = 0, vector: bool = True) -> None:
        """A store of a register."""
        size = width or self.width
        one = Operation(kind="store", width=size, element=self.element, vector=vector, writes=False, text="store",
                        memory=Access(stream=stream, offset=offset, size=size // 8))  # fmt: skip
        self._add(one, (value,), (f"at_{stream}",))

    def keep(self, name: str, value: int) -> None:
        """The next iteration finds a value under a name."""
        self._kept[name] = value

    def branch(self, operand: Value, *, taken: bool = True, missed: float = 0.0, trips: int = 0) -> None:
        """A comparison of integers and a branch on it, one operation where the core fuses them."""
        at = self.op("branch", self.op("int", operand))
        self._ops[at] = replace(self._ops[at], fused=True, taken=taken, missed=missed, trips=trips)

    def step(self, pointers: Sequence[str], trips: int = 0) -> None:
        """Advance pointers, count, and branch back; `trips` of an inner loop, which falls through once in as many iterations."""
        for name in pointers:
            self.keep(f"at_{name}", self.op("int", f"at_{name}"))
        self.branch("count", trips=trips)
        self.keep("count", len(self._ops) - 2)

    def loop(self, flop: float = 0.0, isa: str = "", trips: int = TRIPS) -> CoreLoop:
        """The loop that was written; what nobody kept stands in a register."""
        operations = tuple(
            replace(one, sources=self._made(self._sources[at]), address=self._made(self._addresses[at]))
            for at, one in enumerate(self._ops)
        )
        return CoreLoop(name=self.name, operations=operations, streams=tuple(self._streams.values()), flop=flop, isa=isa,
                        trips=trips)  # fmt: skip

    def _add(self, one: Operation, operands: tuple[Value, ...], address: tuple[Value, ...]) -> int:
        self._ops.append(one)
        self._sources.append(operands)
        self._addresses.append(address)
        return len(self._ops) - 1

    def _made(self, values: tuple[Value, ...]) -> tuple[tuple[int, int], ...]:
        found: list[tuple[int, int]] = []
        for value in values:
            if isinstance(value, int):
                found.append((value, 0))
            elif value is not None and value in self._kept:
                found.append((self._kept[value], 1))
        return tuple(found)
