"""Loops written in LLVM's intermediate language and compiled for the processor at hand by llvmlite, which comes with numba.

One text serves every processor. Nothing is optimised but the choice of instructions, so that each operation below is one
instruction: floating-point operations may not be reordered, loads of the reading loop are volatile, and operands come from
outside. Addresses are integers, because older and newer versions of LLVM write pointers in two ways.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from archsim.detect.loops import Loop, Loops

CHAIN = 512  # dependent operations in a turn, one clock each on every processor; so many that the jump back adds nothing
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
        return Loop(run=self._function(chain_text(), None, 3, (1, 3, 5)), per_turn=CHAIN)

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
    names = ["%x", *(f"%x{i}" for i in range(CHAIN))]
    body = [f"  {names[i + 1]} = {'add' if i % 2 else 'xor'} i64 {names[i]}, {'%b' if i % 2 else '%a'}" for i in range(CHAIN)]
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
