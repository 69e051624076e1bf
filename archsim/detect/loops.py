"""The loops that a probe times: what each does and who has them; in LLVM's language, compiled for the processor at hand.

Either LLVM compiles them (`LlvmLoops`, the extra `fast`), for every processor, or some of them are there as machine code of
x86-64 (`ByteLoops`). A loop that neither has is None, and what it would measure stays unknown.

One text in the language of LLVM serves every processor. Nothing is optimised but the choice of instructions, so that each
operation is one instruction: floating-point operations may not be reordered, loads of the reading loop are volatile, and operands
come from outside. Addresses are integers, because older and newer versions of LLVM write pointers in two ways.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


# ---------------------------------------------------------------------------------------------- in the language of LLVM

LINKS = 512  # dependent operations in a turn, one clock each on every processor; so many that the jump back adds nothing
UNROLLED = 8
READS = 16  # loads in a turn
SPINS = 10_000_000  # reads of the counter after which a thread gives a barrier up: some milliseconds


class LlvmLoops(Loops):
    """Functions compiled by LLVM; see `loops.Loops`."""

    how = "loops compiled by LLVM"

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()

    def chain(self) -> Loop:
        """Dependent exclusive-ors and additions of two registers by turns; an addition of a constant may cost no clock."""
        return Loop(run=self._function(chain_text(), None, 3, (1, 3, 5)), per_turn=LINKS)

    def fma(self, bits: int, chains: int, fused: bool) -> Loop:
        """Multiply-adds of any width."""
        return Loop(run=self._function(fma_text(bits, chains, fused), None, 1), per_turn=UNROLLED * chains)

    def chase(self, chains: int) -> Loop:
        """Any number of chains; those that find no register are kept in the L1."""
        return Loop(run=self._function(chase_text(chains), None, 2), per_turn=1)

    def read(self, bits: int) -> Loop:
        """Loads of any width."""
        return Loop(run=self._function(read_text(bits), None, 3), per_turn=READS * bits // 8)

    def barrier(self) -> Loop:
        """A barrier that a thread gives up where another does not arrive."""
        return Loop(run=self._function(barrier_text(), ctypes.c_uint64, 3), per_turn=1)

    def _function(self, text: str, result: Any, numbers: int, defaults: tuple[int, ...] = ()) -> Callable[..., object]:
        """The function `f` of a module; the last arguments may be left out where `defaults` has them."""
        import llvmlite.binding as llvm

        module = llvm.parse_assembly(text)
        module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, jit=True)  # fmt: skip
        engine = llvm.create_mcjit_compiler(module, machine)  # which owns the machine from now on
        engine.finalize_object()
        function = ctypes.CFUNCTYPE(result, *[ctypes.c_uint64] * numbers)(engine.get_function_address("f"))

        def run(*given: int) -> object:
            assert engine is not None  # which holds the code as long as there is this function
            return function(*given, *defaults[len(given) :])

        return run


def pointer(kind: str) -> str:
    """How this version of LLVM writes the type of a pointer."""
    import llvmlite.binding as llvm

    return "ptr" if llvm.llvm_version_info[0] >= 17 else f"{kind}*"


def _loop(arguments: str, before: str, carried: str, body: str, after: str, result: str = "void") -> str:
    """A function that runs a body `turns` times; `carried` are values that the body hands on."""
    return f"""
define {result} @f({arguments}) {{
entry:
{before}
  br label %loop
loop:
  %n = phi i64 [ %turns, %entry ], [ %left, %loop ]
{carried}
{body}
  %left = sub i64 %n, 1
  %done = icmp eq i64 %left, 0
  br i1 %done, label %out, label %loop
out:
{after}
}}
"""


def chain_text() -> str:
    """x = x xor a, x = x + b, ...: arguments turns, a, b."""
    names = ["%x", *(f"%x{i}" for i in range(LINKS))]
    body = [f"  {names[i + 1]} = {'add' if i % 2 else 'xor'} i64 {names[i]}, {'%b' if i % 2 else '%a'}" for i in range(LINKS)]
    text = _loop(
        "i64 %turns, i64 %a, i64 %b", "", f"  %x = phi i64 [ %a, %entry ], [ {names[-1]}, %loop ]", "\n".join(body),
        f"  store volatile i64 {names[-1]}, {pointer('i64')} %kept\n  ret void",
    )  # fmt: skip
    return text.replace("entry:\n", "entry:\n  %kept = alloca i64\n", 1)


def fma_text(bits: int, chains: int, fused: bool) -> str:
    """c += a b in each chain, or c = c a + a where a product and a sum are two instructions: argument turns."""
    lanes = bits // 32
    kind = f"<{lanes} x float>"
    lines, last = [], [f"%c{i}" for i in range(chains)]
    for step in range(UNROLLED):
        for i in range(chains):
            name = f"%c{i}_{step}"
            if fused:
                lines.append(f"  {name} = call {kind} @llvm.fma.v{lanes}f32({kind} %a, {kind} %a, {kind} {last[i]})")
            else:
                lines.append(f"  %p{i}_{step} = fmul {kind} {last[i]}, %a\n  {name} = fadd {kind} %p{i}_{step}, %a")
            last[i] = name
    carried = [f"  %c{i} = phi {kind} [ %a, %entry ], [ {last[i]}, %loop ]" for i in range(chains)]
    kept = [f"  store volatile {kind} {last[i]}, {pointer(kind)} %kept" for i in range(chains)]
    before = f"  %kept = alloca {kind}\n  store volatile {kind} zeroinitializer, {pointer(kind)} %kept\n"
    before += f"  %a = load volatile {kind}, {pointer(kind)} %kept"
    text = _loop("i64 %turns", before, "\n".join(carried), "\n".join(lines), "\n".join([*kept, "  ret void"]))
    return f"declare {kind} @llvm.fma.v{lanes}f32({kind}, {kind}, {kind})\n{_wide(text, bits)}"


def _wide(text: str, bits: int) -> str:
    """The function for registers of `bits` where their width is not known before (SVE): a multiple of 128 bit."""
    if bits <= 128 or not _scalable():
        return text
    return text.replace(") {", f") vscale_range({bits // 128},{bits // 128}) {{", 1)


def _scalable() -> bool:
    import llvmlite.binding as llvm

    return bool(llvm.get_host_cpu_features().get("sve", False))


def chase_text(chains: int) -> str:
    """p = [p] in each chain: arguments the array of first addresses, into which the last ones go, and turns."""
    word = pointer("i64")
    before, carried, body, after = [], [], [], []
    for i in range(chains):
        before.append(f"  %s{i} = add i64 %starts, {8 * i}\n  %t{i} = inttoptr i64 %s{i} to {word}")
        before.append(f"  %f{i} = load i64, {word} %t{i}")
        carried.append(f"  %p{i} = phi i64 [ %f{i}, %entry ], [ %q{i}, %loop ]")
        body.append(f"  %a{i} = inttoptr i64 %p{i} to {word}\n  %q{i} = load i64, {word} %a{i}")
        after.append(f"  store i64 %q{i}, {word} %t{i}")
    return _loop("i64 %starts, i64 %turns", *("\n".join(part) for part in (before, carried, body, [*after, "  ret void"])))


def read_text(bits: int) -> str:
    """Loads side by side, over the same bytes in each pass: arguments address, turns of a pass, passes."""
    step, kind = bits // 8, f"<{bits // 32} x float>"
    body = [f"  %s{i} = add i64 %q, {i * step}\n  %t{i} = inttoptr i64 %s{i} to {pointer(kind)}\n"
            f"  %v{i} = load volatile {kind}, {pointer(kind)} %t{i}, align {step}" for i in range(READS)]  # fmt: skip
    text = f"""
define void @f(i64 %address, i64 %turns, i64 %passes) {{
entry:
  br label %outer
outer:
  %k = phi i64 [ %passes, %entry ], [ %others, %next ]
  br label %loop
loop:
  %q = phi i64 [ %address, %outer ], [ %r, %loop ]
  %n = phi i64 [ %turns, %outer ], [ %left, %loop ]
{chr(10).join(body)}
  %r = add i64 %q, {READS * step}
  %left = sub i64 %n, 1
  %done = icmp eq i64 %left, 0
  br i1 %done, label %next, label %loop
next:
  %others = sub i64 %k, 1
  %all = icmp eq i64 %others, 0
  br i1 %all, label %out, label %outer
out:
  ret void
}}
"""
    return _wide(text, bits)


def barrier_text() -> str:
    """Add one to the counter, wait until all have, again: arguments address, threads, times; returns the times passed."""
    word = pointer("i64")
    return f"""
define i64 @f(i64 %address, i64 %threads, i64 %times) {{
entry:
  %c = inttoptr i64 %address to {word}
  br label %arrive
arrive:
  %passed = phi i64 [ 0, %entry ], [ %more, %pass ]
  %more = add i64 %passed, 1
  %goal = mul i64 %more, %threads
  %old = atomicrmw add {word} %c, i64 1 seq_cst
  br label %spin
spin:
  %n = phi i64 [ {SPINS}, %arrive ], [ %left, %wait ]
  %seen = load atomic i64, {word} %c seq_cst, align 8
  %there = icmp uge i64 %seen, %goal
  br i1 %there, label %pass, label %wait
wait:
  %left = sub i64 %n, 1
  %gone = icmp eq i64 %left, 0
  br i1 %gone, label %given_up, label %spin
pass:
  %end = icmp eq i64 %more, %times
  br i1 %end, label %out, label %arrive
given_up:
  ret i64 %passed
out:
  ret i64 %more
}}
"""
