"""`LoopWriter`: an iteration of a loop, written operation by operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from archsim.cycle.core.operation import TRIPS, Access, CoreLoop, MemoryStream, Operation

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
