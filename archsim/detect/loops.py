"""The loops that a probe times: what each of them does, and who has them.

Either LLVM compiles them (`llvm_loops`, the extra `fast`), for every processor, or some of them are there as machine code of
x86-64 (`ByteLoops`). A loop that neither has is None, and what it would measure stays unknown.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass

LINE_B = 64  # the distance of what a chase visits: a line of most processors, half of one on some ARM cores
CHAINS = 12  # independent multiply-adds in a turn: more than latency x ports of any core, fewer than its registers
CHAIN, MULTIPLY_CLK = 16, 3  # dependent 64-bit multiplies in a turn of the loop, latency of each (Agner Fog, instruction tables)
CLOCK_LOOP = b"\x48\x0f\xaf\xc0" * CHAIN + b"\x48\x83\xef\x01\x75\xba\xc3"  # imul rax,rax ...; sub rdi,1; jnz; ret
CHASE_LOOP = b"\x48\x8b\x0f\x48\x8b\x09\x48\xff\xce\x75\xf8\x48\x89\x0f\xc3"  # mov rcx,[rdi]; 1: mov rcx,[rcx]; dec rsi; jnz 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop in machine code.

    run: runs it, with the arguments that its maker names
    per_turn: what a turn does: clocks of the chain, multiply-adds, loads of each chain, or bytes read
    """

    run: Callable[..., object]
    per_turn: int


class Loops:
    """Makers of loops; each returns None for one that it cannot make here."""

    how = "copies and products alone"

    def chain(self) -> Loop | None:
        """Dependent integer operations whose clocks are known: run(turns)."""

    def fma(self, bits: int, chains: int, fused: bool) -> Loop | None:
        """Independent chains of single-precision multiply-adds of `bits`: run(turns).

        fused: one instruction along the accumulator; otherwise a multiply and an add that depend on each other
        """

    def chase(self, chains: int) -> Loop | None:
        """Independent chains of loads, each of which has the address of the next: run(array of first addresses, turns)."""

    def read(self, bits: int) -> Loop | None:
        """Loads of `bits` one after the other: run(address, turns of a pass, passes)."""

    def barrier(self) -> Loop | None:
        """A barrier of threads over one counter: run(address of the counter, threads, times) -> times that it was passed."""


class ByteLoops(Loops):
    """Functions of x86-64 machine code; see `loops.Loops`."""

    how = "machine code of x86-64"

    def __init__(self) -> None:
        if platform.machine() not in ("x86_64", "AMD64"):
            raise OSError('no loops for this processor without LLVM: pip install "archsim[fast]"')

    def chain(self) -> Loop:
        """Dependent 64-bit multiplies."""
        return Loop(run=self._function(CLOCK_LOOP, 1), per_turn=CHAIN * MULTIPLY_CLK)

    def fma(self, bits: int, chains: int, fused: bool) -> Loop | None:
        """Multiply-adds of 256 or 512 bit, in one chain or twelve."""
        if not fused or bits not in (256, 512) or chains not in (1, CHAINS):
            return None
        return Loop(run=self._function(fma_loop(bits, chains), 1), per_turn=CHAINS)

    def chase(self, chains: int) -> Loop | None:
        """One chain of loads."""
        return Loop(run=self._function(CHASE_LOOP, 2), per_turn=1) if chains == 1 else None

    def _function(self, code: bytes, numbers: int) -> Callable[..., int]:
        """A function of machine code; OSError where memory may not be executed."""
        import ctypes
        import mmap

        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(code)
        function = ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * numbers)(
            ctypes.addressof(ctypes.c_char.from_buffer(page))
        )
        function.page = page  # type: ignore[attr-defined]
        keep: Callable[..., int] = function
        return keep


def fma_loop(bits: int, chains: int = CHAINS) -> bytes:
    """Machine code of a loop of 12 multiply-adds of `bits` (VFMADD231PS), on 12 registers or all on the first; all zero.

    VEX.256.66.0F38.W0 B8 /r and EVEX.512.66.0F38.W0 B8 /r (VFMADD231PS) of Intel's instruction set reference. In one chain the
    accumulator alone is carried: the factors are register 1.
    """
    body = b"".join(_multiply_add(bits, i if chains > 1 else 0, i if chains > 1 else 1) for i in range(CHAINS))
    back = -(len(body) + 6) & 0xFF
    return b"\xc5\xfc\x77" + body + bytes((0x48, 0x83, 0xEF, 0x01, 0x75, back)) + b"\xc5\xf8\x77\xc3"


def _multiply_add(bits: int, target: int, factor: int) -> bytes:
    """target += factor * factor, on registers of the first sixteen."""
    inverse = (0x80 if target < 8 else 0) | 0x40 | (0x20 if factor < 8 else 0)  # R, X, B, each inverted
    vvvv, modrm = (~factor & 15) << 3, 0xC0 | (target & 7) << 3 | (factor & 7)
    if bits == 512:
        return bytes((0x62, inverse | 0x10 | 0x02, vvvv | 0x05, 0x48, 0xB8, modrm))
    return bytes((0xC4, inverse | 0x02, vvvv | 0x05, 0xB8, modrm))
