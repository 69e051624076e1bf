"""Figures that the vendor states, against those that follow from the values of the spec."""

from __future__ import annotations

from archsim.base.units import show
from archsim.device.device import PARTS, Gpu, Tpu
from archsim.device.dot import FORMS, TILE_FORM
from archsim.device.part import declared
from archsim.device.spec import Spec

CPU_PEAKS = ("fp32", "fp64", "fp16", "bf16", "int8")


def stated_keys(kind: str) -> list[str]:
    """The keys of [stated]: the bandwidth of the memory, and a peak for each arithmetic rate of the kind."""
    rates = list(CPU_PEAKS) if kind == "cpu" else [name for name in declared(PARTS[kind]["rate"]) if name != "special"]
    return ["bandwidth", *(f"peak_{name}" for name in rates)]


def contradictions(spec: Spec, tolerance: float) -> list[str]:
    """Stated figures that differ from the derived ones by more than `tolerance` of these, one sentence each.

    A GPU's peak [FLOP/s] is 2 x sm.count x rate.X x clock, a TPU's 2 x array.count x array.rows x array.columns x rate.X x clock,
    a CPU's 2 x core.count x core.simd / element bits x core.fma_ports x clock, or that of its fastest form for narrow operands
    at the clock that the vendor names; the bandwidth [B/s] is that of [memory].
    """
    found = []
    for name, entry in spec.stated.items():
        derived, keys = _derived(spec, name, entry.clock)
        if derived is None:
            found.append(f"stated.{name}: {entry.written} is stated, but the spec has no {' or no '.join(keys)}")
            continue
        off = float(entry.number) / derived - 1.0
        if abs(off) > tolerance:
            follows = show(derived, "B/s" if name == "bandwidth" else "FLOP/s")
            off_by = f"{abs(off):.1%} {'more' if off > 0 else 'less'}"
            found.append(f"stated.{name}: {entry.written} is {off_by} than {follows}, which follows from {', '.join(keys)}; "
                         f"rounding explains {tolerance:.1%} at most, so one of them is wrong")  # fmt: skip
    return found


def _derived(spec: Spec, name: str, clock: str) -> tuple[float | None, list[str]]:
    """The figure that follows from the spec, None where it cannot, and the keys that it follows from, or that are not there."""
    device = spec.device
    if name == "bandwidth":
        return float(device.memory.bandwidth), ["memory.bandwidth"]
    precision = name.removeprefix("peak_")
    if isinstance(device, Gpu):
        keys, rate = ["sm.count", f"rate.{precision}"], getattr(device.rate, precision)
        work = None if rate is None else 2.0 * float(device.sm.count) * float(rate)
    elif isinstance(device, Tpu):
        keys = ["array.count", "array.rows", "array.columns", f"rate.{precision}"]
        work = float(device.peak_flops(precision, 1.0)) if precision in device.precisions else None
    else:
        forms = device.forms(precision)
        keys = ["core.count", "core.simd", *([_key(form) for form in forms] or ["core.fma_ports"])]
        if precision == "int8" and not forms:
            return None, ["dot", "tile"]
        work = 2.0 * float(device.core.count) * float(device.pipe(precision))
    hertz = getattr(device.clock, clock, None)
    lacking = ([keys[-1]] if work is None else []) + ([f"clock.{clock}"] if hertz is None else [])
    if work is None or hertz is None:
        return None, lacking
    return work * float(hertz), [*keys, f"clock.{clock}"]


def _key(form: str) -> str:
    """The key of a spec that says how many products of a form start, or how long one takes."""
    return f"tile.{FORMS[form].precision}" if form.endswith(TILE_FORM) else f"dot.{form}"
