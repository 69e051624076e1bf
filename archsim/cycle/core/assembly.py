"""`AssemblyWriter`: a loop written over registers by name, as assembly is; who made an operand is found at the end."""

from __future__ import annotations

from archsim.cycle.core.operation import Access, CoreLoop, MemoryStream, Operation

APART = 1088  # bytes between the places of streams in their pages, so that they begin in different sets of a cache


class AssemblyWriter:
    """The operations of one iteration in the order of the program.

    width: of vectors [bit]; element: of a value [bit]

    A register that an operation reads has what the last operation before it wrote, or what the iteration before left in it; one
    that no operation writes is set before the loop.
    """

    def __init__(self, width: int, element: int) -> None:
        self.width, self.element = width, element
        self.streams: list[MemoryStream] = []
        self._written: list[tuple[Operation, tuple[str, ...], tuple[str, ...], str]] = []

    @property
    def lanes(self) -> int:
        """Values of a vector."""
        return self.width // self.element

    @property
    def size(self) -> int:
        """Bytes of a vector [B]."""
        return self.width // 8

    def stream(self, name: str, stride: int, level: int | None = None, footprint: int = 0) -> str:
        """A stream that advances by `stride` in an iteration [B]; `footprint` where it is not what the trips cover."""
        self.streams.append(MemoryStream(name=name, stride=stride, level=level, start=len(self.streams) * APART % 4096,
                                         footprint=footprint))  # fmt: skip
        return name

    def op(self, kind: str, out: str, *reads: str, width: int | None = None, element: int | None = None, chained: bool = False,
           text: str = "") -> None:  # fmt: skip
        """A vector operation; `chained` if the last operand is an addend."""
        self._add(Operation(kind=kind, width=width or self.width, element=element or self.element, chained=chained,
                            text=text or kind), reads, (), out)  # fmt: skip

    def load(self, out: str, stream: str, offset: int, *, size: int | None = None, width: int | None = None,
             folded: bool = False, broadcast: bool = False) -> None:  # fmt: skip
        """A load of a vector, or of one value into all lanes; `folded` if it is the memory operand of what follows."""
        size = size or (self.element // 8 if broadcast else (width or self.width) // 8)
        self._add(Operation(
            kind="broadcast" if broadcast else "load", width=width or self.width, element=self.element, folded=folded,
            memory=Access(stream=stream, offset=offset, size=size), text="broadcast" if broadcast else "load",
        ), (), (_pointer(stream),), out)  # fmt: skip

    def store(self, value: str, stream: str, offset: int, *, width: int | None = None) -> None:
        """A store of a register."""
        self._add(Operation(
            kind="store", width=width or self.width, element=self.element, writes=False, text="store",
            memory=Access(stream=stream, offset=offset, size=(width or self.width) // 8),
        ), (value,), (_pointer(stream),), "")  # fmt: skip

    def loop(self, name: str, trips: int, isa: str = "", flop: float = 0.0) -> CoreLoop:
        """The loop: what was written, the pointers that advance, and the counter with its branch."""
        for stream in self.streams:
            if stream.stride:
                self._scalar("int", _pointer(stream.name), _pointer(stream.name), text="add pointer")
        self._scalar("int", "count", "count", text="subtract")
        self._scalar("branch", "", "count", fused=True, text="branch")
        last = {out: at for at, (_, _, _, out) in enumerate(self._written) if out}
        now: dict[str, int] = {}
        operations = []
        for at, (one, reads, address, out) in enumerate(self._written):
            operations.append(Operation(
                kind=one.kind, width=one.width, element=one.element, sources=_made(reads, now, last),
                address=_made(address, now, last), memory=one.memory, folded=one.folded, fused=one.fused, chained=one.chained,
                vector=one.vector, writes=bool(out), text=one.text,
            ))  # fmt: skip
            if out:
                now[out] = at
        streams = tuple(
            MemoryStream(name=one.name, stride=one.stride, level=one.level, start=one.start,
                         footprint=one.footprint or abs(one.stride) * trips)
            for one in self.streams
        )  # fmt: skip
        return CoreLoop(name=name, operations=tuple(operations), streams=streams, trips=trips, isa=isa, flop=flop)

    def _scalar(self, kind: str, out: str, *reads: str, fused: bool = False, text: str = "") -> None:
        self._add(Operation(kind=kind, width=64, element=64, vector=False, fused=fused, text=text), reads, (), out)

    def _add(self, one: Operation, reads: tuple[str, ...], address: tuple[str, ...], out: str) -> None:
        self._written.append((one, reads, address, out))


def _pointer(stream: str) -> str:
    return f"pointer {stream}"


def _made(names: tuple[str, ...], now: dict[str, int], last: dict[str, int]) -> tuple[tuple[int, int], ...]:
    """Who made each register, and how many iterations before; those that are set before the loop are left out."""
    return tuple((now[name], 0) if name in now else (last[name], 1) for name in names if name in last)
