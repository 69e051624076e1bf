"""One core that runs a loop: a kernel given in words, or loops of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from math import ceil

from archsim.base.errors import ArgumentError, UnknownName, Unsupported, near_words
from archsim.cycle.core import loops as vector
from archsim.cycle.core import scalar
from archsim.cycle.core.bounds import bounds, what_binds
from archsim.cycle.core.kernels import loop_constants
from archsim.cycle.core.library import called
from archsim.cycle.core.machine import WIDEST, CoreMachine, core_machine
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.product import BROADCASTS, gemm_block
from archsim.cycle.core.run import CoreRun, run_loop
from archsim.device.catalog import find, names
from archsim.device.cpu_core import FORMS
from archsim.device.device import Cpu
from archsim.device.spec import Spec

SCHEMA = "archsim-core/1"
X86 = ("AMD", "Intel")  # vendors
ELEMENTS = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "int8": 8}
WIDE = ("fp64", "fp32")
SCALAR = 64  # bit: wider values are vectors, which have a clock of their own
PRODUCT = {  # end of a form -> of a block
    "pairs": "pairs", "mlal": "pairs", "dot": "dot", "sdot": "dot", "matrix": "matrix", "tile": "tile", "lanes": "fma",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionSet:
    """Vectors of an instruction set: their width [bit] (0: what the core has), the registers that it names, fused multiply-add,
    how a product meets one value, and the forms in which it multiplies narrow operands, of `archsim.device.cpu_core.FORMS`."""

    width: int
    registers: int
    fused: bool = True
    broadcast: str = "register"
    x86: bool = True
    forms: tuple[str, ...] = ()
    wide: bool = True


ARM_FORMS = ("int8_mlal", "int8_sdot", "int8_matrix", "bf16_dot", "bf16_matrix", "fp16_lanes")
ISAS = {
    "sse": InstructionSet(width=128, registers=16, fused=False), "avx": InstructionSet(width=256, registers=16, fused=False),
    "avx2": InstructionSet(width=256, registers=16, forms=("int8_pairs", "int8_dot")),
    "avx512": InstructionSet(width=512, registers=32, forms=("int8_pairs", "int8_dot", "bf16_dot", "fp16_lanes")),
    "amx": InstructionSet(width=512, registers=8, forms=("int8_tile", "bf16_tile"), wide=False),
    "neon": InstructionSet(width=128, registers=32, broadcast="element", x86=False, forms=ARM_FORMS),
    "sve": InstructionSet(width=0, registers=32, broadcast="element", x86=False, forms=ARM_FORMS[1:]),
}  # fmt: skip
WORDS: dict[str, dict[str, float | str | None]] = {  # of each kernel: what it takes, with what it is if not given
    "gemm": {"unroll": 1, "broadcast": None, "a": 2, "b": 1, "depth": 256, "registers": None, "form": None},
    **{name: {"unroll": 4, "level": 1} for name in vector.STREAMED},
    "read": {"unroll": 8, "level": 1},  # so that no chain of a maximum is longer than the loads
    "dot": {"accumulators": 8, "level": 1}, "exp": {"unroll": 1, "degree": 6, "level": 1}, "max pool": {"level": 1},
    "row sum": {"level": 1}, "chase": {"level": 1, "loads": 2, "chains": 1},
    **{name: {"level": 1} for name in ("sigmoid", "tanh", "softmax", "local normalisation", "moments")},
    **{f"scalar {name}": {"level": 1, "trips": 256} for name in ("step", "im2col")},
    **{f"scalar {name} pool": {"level": 1, "window": 9, "trips": 3} for name in ("max", "average")},
    **{f"scalar {name}": {"level": 1} for name in ("exp", "pow", "gather", "divide")},
}  # fmt: skip
CHOICES: dict[str, tuple[str, ...]] = {"broadcast": BROADCASTS, "form": tuple(FORMS)}
LEVELS = ("level", "a", "b")
MOST = {"unroll": 64, "depth": 1 << 24, "registers": 256, "accumulators": 64, "degree": 32, "loads": 64, "chains": 64,
        "window": 1 << 12, "trips": 1 << 20, **dict.fromkeys(LEVELS, 4)}  # fmt: skip
EXAMPLE = "like 'gemm 6x16 avx2' or 'triad level=3'"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCore:
    """A run of a loop on one core.

    name: of the loop; clock_hz: of the core [Hz]
    bounds: by name, the largest first [clk]; binds: what the loop waits for; explained: share of the clocks of the largest bound
    peak: FLOP per clock that the core could do; None for a loop without any, or of a precision that has no stated peak
    """

    hardware: str
    name: str
    clock_hz: float
    machine: CoreMachine
    loop: CoreLoop
    result: CoreRun
    bounds: Mapping[str, float]
    binds: str
    explained: float
    peak: float | None

    @property
    def flop_per_clock(self) -> float:
        """FLOP of an iteration over its clocks [FLOP/clk]."""
        return self.loop.flop / self.result.cycles

    @property
    def peak_share(self) -> float | None:
        """FLOP over what the core could do in the time."""
        return None if self.peak is None else self.flop_per_clock / self.peak

    @property
    def limit(self) -> str:
        """What the loop waits for, in a sentence."""
        largest = next(iter(self.bounds), "nothing")
        how = ", which takes" if self.binds == largest else f"; the largest bound, {largest}, explains"
        return f"It is bound by {self.binds}{how} {100 * self.explained:.0f} % of the clocks."

    @property
    def error(self) -> float | None:
        """Simulated over measured clocks, less one; None where nobody has measured the loop."""
        return None if self.loop.measured is None else self.result.cycles / self.loop.measured - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCores:
    """Loops that ran on one core, and those that it cannot run, with the reason."""

    hardware: str
    clock_hz: float
    loops: tuple[SimulatedCore, ...]
    skipped: tuple[tuple[str, str], ...] = ()


def simulate_core(spec: Spec, loop: CoreLoop, *, clock: float, trips: int | None = None, trace: int = 0,
                  fast: bool | None = None) -> SimulatedCore:  # fmt: skip
    """Run a loop on one core.

    clock: of the core [Hz]; trips: iterations in all, as many as the steady state takes where not given
    trace: micro-operations to keep, from the first on

    Raises ArgumentError for a GPU, Unsupported for a core without the keys of its pipeline or a port for an operation.
    """
    device = core_of(spec)
    machine = core_machine(device, clock)
    result = run_loop(machine, loop, trips=trips, trace=trace, fast=fast)
    found = bounds(machine, loop, result.rows)
    binds, explained = what_binds(found, result.cycles, result.waits)
    return SimulatedCore(
        hardware=spec.identity.id, name=loop.name, clock_hz=clock, machine=machine, loop=loop, result=result, bounds=found,
        binds=binds, explained=explained,
        peak=2.0 * float(device.pipe(loop.form)) if loop.form else _peak(machine, int(float(device.core.simd)), loop),
    )  # fmt: skip


def clock_of(device: Cpu, loops: Sequence[CoreLoop]) -> float:
    """Clock of all cores at work on the widest of some loops [Hz].

    >>> from archsim.device.catalog import find
    >>> spec = find("i9_10980xe")
    >>> [clock_of(core_of(spec), [kernel_loop(spec, kernel)]) / 1e9 for kernel in ("chase", "triad avx2", "triad")]
    [3.8, 2.9, 2.3]
    """
    width = max((one.width for loop in loops for one in loop.operations if one.vector), default=0)
    clock = device.clock.all_core if width <= SCALAR else device.clock.simd
    return float(clock if width < WIDEST else device.clock.simd512 or clock)


def simulate_all(spec: Spec, loops: Sequence[CoreLoop], *, clock: float | None = None, trips: int | None = None,
                 trace: int = 0, fast: bool | None = None) -> SimulatedCores:  # fmt: skip
    """The loops of a file; one alone keeps the first `trace` micro-operations, and raises Unsupported where it cannot run."""
    clock = clock or clock_of(core_of(spec), loops)
    core_machine(core_of(spec), clock)
    found, skipped = [], []
    for loop in loops:
        try:
            kept = trace if len(loops) == 1 else 0
            found.append(simulate_core(spec, loop, clock=clock, trips=trips, trace=kept, fast=fast))
        except Unsupported as error:
            if len(loops) == 1:
                raise
            skipped.append((loop.name, str(error)))
    return SimulatedCores(hardware=spec.identity.id, clock_hz=clock, loops=tuple(found), skipped=tuple(skipped))


def core_of(spec: Spec) -> Cpu:
    """The device of a spec, which must be a CPU."""
    if not isinstance(spec.device, Cpu):
        kind = spec.kind.upper()
        raise ArgumentError(f"hw {spec.identity.id}: is a {kind}, which has no such core; `archsim simulate sm` runs one SM")
    return spec.device


def _peak(machine: CoreMachine, simd: int, loop: CoreLoop) -> float | None:
    """FLOP per clock of the ports that multiply and add, at the width of registers at which they do most [FLOP/clk]."""
    kinds = {one.kind for one in loop.operations}
    if not loop.flop or kinds & {"dot", "bfdot", "tile"}:
        return None
    wide = [one.element for one in loop.operations if one.vector and one.kind in ("fma", "mul", "add", "max")]
    size, passes = max(wide, default=32), machine.hold.get("fma", 1.0) / float(machine.pipeline.datapath)
    widths = [width for width in (128, 256, 512, 1024, 2048) if width <= max(simd, 128)]
    # ports that take multiply-adds count twice; else those that multiply or add once
    ports = [2 * machine.ports_of("fma", width).bit_count() if "fma" in machine.masks else
             (machine.ports_of("mul", width) | machine.ports_of("add", width)).bit_count() for width in widths]  # fmt: skip
    return max(count * width / max(1, ceil(width * passes)) / size for count, width in zip(ports, widths, strict=True))


def kernel_loop(spec: Spec, kernel: str) -> CoreLoop:
    """The loop of a kernel in words: its name, the block of a product, an instruction set, a precision, and `key=value`.

    Raises ArgumentError for words that make none on this device.
    """
    name, block, isa_name, precision, words = parsed(kernel)
    device = core_of(spec)
    if precision not in WIDE and name != "gemm":
        raise ArgumentError(f"kernel {kernel}: {name} takes {' or '.join(WIDE)}; {precision} is of a gemm")
    isa_name, isa, form = _instruction_set(device, isa_name, kernel, precision, str(words.pop("form", None) or ""))
    width = isa.width or int(float(device.core.simd))
    numbers = {key: int(value) for key, value in words.items() if isinstance(value, (int, float))}
    element = ELEMENTS[precision]
    if name == "gemm":
        product = PRODUCT[form.rpartition("_")[2]] if form else "fma" if isa.fused else "muladd"
        loop = gemm_block(
            *block, width, element, numbers["unroll"], str(words["broadcast"] or isa.broadcast), numbers["a"], numbers["b"],
            registers=numbers.get("registers", isa.registers), depth=numbers["depth"], product=product,
        )  # fmt: skip
    else:
        known = {"width": width, "element": element, "fused": isa.fused, "footprint": FOOTPRINT, **numbers,
                 "area": numbers.get("window")}  # fmt: skip
        loop = GENERATORS[name](**{parameter: known[parameter] for parameter in signature(GENERATORS[name]).parameters})
    return replace(loop, name=kernel, isa=isa_name, form=form)


def parsed(kernel: str) -> tuple[str, tuple[int, int], str, str, dict[str, float | str | None]]:
    """The name, block, instruction set, precision and words of a kernel.

    >>> parsed("gemm 6x16 avx2 unroll=4")[:4]
    ('gemm', (6, 16), 'avx2', 'fp32')
    """
    parts = kernel.split()
    name = next((" ".join(parts[:count]) for count in (3, 2, 1) if " ".join(parts[:count]) in WORDS), "")
    if not name:
        raise UnknownName("kernel", parts[0] if parts else "", list(WORDS), hint=EXAMPLE)
    block, isa, precision = (0, 0), "", "fp32"
    words = dict(WORDS[name])
    for part in parts[len(name.split()):]:
        key, equals, text = part.partition("=")
        if equals:
            if key not in words:
                raise ArgumentError(f"kernel {kernel}: no word {key!r}; nearest: {near_words(key, words)}")
            words[key] = _value(key, text, kernel)
        elif part in ISAS:
            isa = part
        elif part in ELEMENTS:
            precision = part
        elif name == "gemm" and part[:1].isdecimal():
            block = _block(part, kernel)
        else:
            near = near_words(part, [*ISAS, *ELEMENTS])
            raise ArgumentError(f"kernel {kernel}: {part!r} is no instruction set or precision; nearest: {near}")
    if name == "gemm" and block == (0, 0):
        raise ArgumentError(f"kernel {kernel}: gemm has a block of rows x columns, like 6x16")
    return name, block, isa, precision, words


def _block(text: str, kernel: str) -> tuple[int, int]:
    sides = text.split("x")
    if len(sides) != 2 or not all(side.isdecimal() and 0 < int(side) <= 256 for side in sides):
        raise ArgumentError(f"kernel {kernel}: {text!r} is no block of rows and columns up to 256, like 6x16")
    return int(sides[0]), int(sides[1])


def _value(key: str, text: str, kernel: str) -> int | str:
    """One of the words of `CHOICES`, or a whole number."""
    if key in CHOICES:
        if text not in CHOICES[key]:
            raise ArgumentError(f"kernel {kernel}: {key}={text} is not one of {', '.join(CHOICES[key])}")
        return text
    if not text.isdecimal() or not 1 <= int(text) <= MOST[key]:
        raise ArgumentError(f"kernel {kernel}: {key}={text} is no whole number from 1 to {MOST[key]}"
                            + (", which is memory" if key in LEVELS else ""))  # fmt: skip
    return int(text)


def _instruction_set(device: Cpu, name: str, kernel: str, precision: str, form: str) -> tuple[str, InstructionSet, str]:
    """The instruction set that was asked for, or the widest of the core, and the form in which it multiplies narrow operands."""
    x86, simd = device.identity.vendor in X86, int(float(device.core.simd))
    fused = device.port is None or device.port.fma is not None
    fitting = {name: isa for name, isa in ISAS.items() if isa.x86 == x86 and isa.width <= simd and (fused or not isa.fused)}
    if not x86 and simd == 128:
        fitting.pop("sve", None)
    able = device.forms(precision)
    forms = {name: tuple(form for form in isa.forms if form in able) for name, isa in fitting.items()}
    if precision in WIDE:
        fitting = {name: isa for name, isa in fitting.items() if isa.wide}
        if form:
            raise ArgumentError(f"kernel {kernel}: form={form} multiplies {FORMS[form].precision}, not {precision}")
    else:
        fitting = {name: isa for name, isa in fitting.items() if forms[name] and (not form or form in forms[name])}
    if name in fitting or (not name and fitting):
        best = {one: max(forms[one], key=lambda form: float(device.pipe(form)), default="") for one in fitting}
        chosen = name or max(reversed(fitting), key=lambda one: float(device.pipe(best[one])) if best[one] else 0.0)
        return chosen, fitting[chosen], form or best[chosen]
    there = ", ".join(fitting) or "none of those that are modelled"
    of, those = ("", "") if precision in WIDE else (f" of {form or precision}", " with them")
    raise ArgumentError(f"kernel {kernel}: {device.identity.id} has no {name or 'vectors'}{of}; "
                        f"its instruction sets{those}: {there}")  # fmt: skip


FOOTPRINT = 1 << 14  # of tensors [B]
GENERATORS: dict[str, Callable[..., CoreLoop]] = {
    **{name: partial(vector.streamed, name) for name in vector.STREAMED}, "dot": vector.dot_product, "exp": vector.exponential,
    "max pool": vector.max_pool, "row sum": vector.row_sum, "chase": vector.chase, "sigmoid": vector.sigmoid,
    "tanh": vector.hyperbolic, "softmax": vector.softmax, "local normalisation": vector.local_normalisation,
    "moments": vector.moments, "scalar step": scalar.step, "scalar im2col": scalar.unfold, "scalar max pool": scalar.largest,
    "scalar average pool": scalar.mean, "scalar exp": partial(called, "exp"), "scalar pow": partial(called, "pow"),
    "scalar gather": scalar.gathered, "scalar divide": scalar.divided,
}  # fmt: skip


def loops_of_cores() -> dict[str, dict[str, float]]:
    """Clocks of scalar loops on the cores of shipped CPUs, by architecture."""
    found: dict[str, dict[str, float]] = {}
    for name in sorted(names()):
        device = find(name).device
        if isinstance(device, Cpu) and device.pipeline is not None and device.identity.architecture not in found:
            found[device.identity.architecture] = loop_constants(device)
    return found
