"""One kernel of the chosen algorithm: its variants, and the equations of the one that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archsim.base.units import COUNT
from archsim.cost.bounds import BOUNDS, OfTpu
from archsim.cost.cost import TURNS, Array, Choice, Cost
from archsim.cost.cpu import CpuTerms
from archsim.cost.energy import energy_terms
from archsim.cost.gpu import GpuTerms
from archsim.cost.moved import MovedCpuTerms, MovedGpuTerms
from archsim.device.device import Cpu
from archsim.estimation.clock import bandwidth_at
from archsim.estimation.hardware import arithmetic
from archsim.estimation.pipeline import Run, replayed_gap
from archsim.estimation.request import Request
from archsim.explain import docs
from archsim.explain.equation import Equation, Step, solve
from archsim.explain.reader import COLUMN, FIXED, SETTING, Leaf, Reader
from archsim.explain.value import Value, literal
from archsim.lower.columns import columns_of
from archsim.lower.kernel import GpuKernels, Kernels

BEST = 5  # tiles that are listed beside the one that runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One tile of the library's menu, with the time of all launches of the kernel."""

    tile: tuple[int, int, int]
    split: int
    ctas: float
    resident: float
    waves: float
    bounds_s: Mapping[str, float]
    time_s: float
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelExplanation:
    """A kernel that runs: what it computes, what else the library could have run, and its equations."""

    name: str
    matrix: bool
    launches: float
    time_s: float
    bound: str
    work: Mapping[str, float]
    variants: tuple[Variant, ...]
    steps: tuple[Step, ...]
    energy_j: float
    energy: tuple[Step, ...]
    stands_for: Mapping[str, Leaf]  # the names in the equations that no equation gives


@dataclass(frozen=True, kw_only=True)
class ExplainedRun:
    """A run whose kernels are explained."""

    request: Request
    result: Run

    @property
    def kernels(self) -> Kernels:
        """The columns of the network."""
        return self.result.lowered.kernels

    @property
    def cost(self) -> Cost:
        """The model's answer for every variant."""
        assert self.result.cost.variants is not None
        return self.result.cost.variants

    @property
    def choice(self) -> Choice:
        """What runs."""
        assert self.result.cost.choice is not None
        return self.result.cost.choice


def explain_kernel(explained: ExplainedRun, position: int) -> KernelExplanation:
    """The explanation of the kernel at `position` in the columns."""
    kernels, cost = explained.kernels, explained.result.cost
    chosen = int(explained.choice.variant[0, position])
    kernel = kernels.kernels[position]
    steps, leaves = steps_of(explained, chosen)
    spent, energy_leaves = energy_steps(explained, chosen)
    named = {step.name for step in steps}
    parts = {step.name: step.value for step in steps if step.name in BOUNDS}
    return KernelExplanation(
        name=kernel.name, matrix=kernel.menu != "", launches=kernel.repeat,
        time_s=float(cost.kernel_time_s[0, position]), bound=max(parts, key=lambda name: parts[name]),
        work={name: getattr(kernel, name) for name in ("m", "n", "k", "count", "a_bytes", "b_bytes", "c_bytes", "flop", "items")},
        variants=_variants(explained, position, chosen), steps=tuple(steps), energy=tuple(spent),
        stands_for={**{name: leaf for name, leaf in energy_leaves.items() if name not in named}, **leaves},
        energy_j=spent[-1].value,
    )  # fmt: skip


def _at(values: Array, variant: int) -> float:
    """One variant's value of a column [V] or [1, V]; a value that all variants share is [1, 1] or a number."""
    last = np.ravel(values)
    return float(last[variant] if last.size > 1 else last[0])


def _variants(explained: ExplainedRun, position: int, chosen: int) -> tuple[Variant, ...]:
    """The fastest variants of a kernel, the fastest first; none for a kernel without a menu."""
    kernels, cost = explained.kernels, explained.cost
    own = np.flatnonzero(kernels.kernel_of == position).tolist()
    if len(own) == 1 or not isinstance(cost.terms, GpuTerms):
        return ()
    time = [kernels.repeat[v] * (_at(cost.busy_s, v) + _at(cost.overhead_s, v)) for v in own]
    best = [own[i] for i in np.argsort(time, kind="stable")[:BEST] if np.isfinite(time[i])]
    return tuple([_variant(explained, v, float(time[v - own[0]]), v == chosen) for v in best])


def _variant(explained: ExplainedRun, v: int, time: float, chosen: bool) -> Variant:
    kernels, cost = explained.kernels, explained.cost
    assert isinstance(kernels, GpuKernels)
    ctas, resident = (_at(getattr(cost.terms, name), v) for name in ("ctas", "resident"))
    assert isinstance(cost.terms, GpuTerms)
    sms = _at(np.asarray(cost.terms.device.sm.count), 0)
    return Variant(
        tile=(int(kernels.tile_m[v]), int(kernels.tile_n[v]), int(kernels.tile_k[v])), split=int(kernels.split[v]), ctas=ctas,
        resident=resident, waves=ctas / (sms * resident), time_s=time, chosen=chosen,
        bounds_s={name: _at(bound, v) for name, bound in cost.bounds.items()},
    )  # fmt: skip


def one_of(kernels: Kernels, v: int) -> Kernels:
    """The columns of one variant."""
    columns = {name: getattr(kernels, name)[v : v + 1] for name in columns_of(type(kernels))}
    return replace(kernels, **columns, efficiency=kernels.efficiency[v : v + 1], kernel_of=kernels.kernel_of[v : v + 1])


def of_one(terms: Any, v: int) -> Any:
    """The record from which the bounds of one variant are computed."""
    clock = np.asarray(terms.clock)
    found: dict[str, Any] = {"moved": terms.moved.at(v)} if isinstance(terms, MovedGpuTerms | MovedCpuTerms) else {}
    if isinstance(terms, CpuTerms) and np.size(terms.device.clock.boost) > 1:  # lowered for each variant by a power limit
        boost = np.asarray(terms.device.clock.boost)[..., v : v + 1]
        found["device"] = replace(terms.device, clock=replace(terms.device.clock, boost=boost))
    return replace(terms, kernels=one_of(terms.kernels, v), clock=clock if clock.size == 1 else clock[..., v : v + 1], **found)


def steps_of(explained: ExplainedRun, v: int) -> tuple[list[Step], dict[str, Leaf]]:
    """The equations of one variant, read from the functions of its bounds, and what stands behind the names in them."""
    cost, kind, request = explained.cost, explained.request.spec.kind, explained.request
    terms = of_one(cost.terms, v)

    def model(name: str) -> float | None:
        if name in cost.bounds:
            return _at(cost.bounds[name], v)
        found = getattr(cost.terms, name, None) if hasattr(type(terms), name) else None
        return _at(found, v) if isinstance(found, np.ndarray) else None

    replayed = (replayed_gap, (Value(value=request.device), Value(value=request.calibration)))
    reader = Reader(model=model, instead={"launch.latency": replayed} if request.graph else {}, asked=_asked(terms, request),
                    reserved=BOUNDS)  # fmt: skip
    _at_memory_clock(reader, request)
    bounds: list[str] = []
    overheads: list[str] = []
    for row in BOUNDS.values():
        if kind in row.time and (row.overhead or row.name in cost.bounds):
            equation = row.time[kind]
            own = equation.function if isinstance(equation, OfTpu) else equation
            found = reader.read(own, Value(value=terms), name=row.name)
            if found.text is not None and not found.absent:
                reader.step(found, row.name, "s", row.meaning) if row.name not in reader.steps else found
                (overheads if row.overhead else bounds).append(row.name)
    reader.leaf("launches", explained.kernels.repeat[v], COUNT, COLUMN, "launches, one after the other")
    smooth = reader.leaf("smooth", _at(np.asarray(cost.smooth), v), COUNT, FIXED,
                         "exponent of the smooth maximum: 2; 3 where data move without the warps that compute")  # fmt: skip
    if _at(np.asarray(cost.in_turn), v):
        bounds = [f"({' + '.join(TURNS)})", *[name for name in bounds if name not in TURNS]]
    ending = solve(_ending(bounds, overheads, smooth.value < np.inf), reader.quantities, {"busy": _at(cost.busy_s, v)})
    return needed([*reader.steps.values(), *ending], reader)


def _asked(terms: Any, request: Request) -> dict[str, tuple[str, str]]:
    """Keys of the spec that the settings of a run replace: a power limit lowers the turbo of one core with the clock of all, and
    a clock that was asked for is that of every core, without turbo."""
    device = request.device
    if not isinstance(device, Cpu) or _at(np.asarray(terms.device.clock.boost), 0) == _at(np.asarray(device.clock.boost), 0):
        return {}
    if request.turbo:
        return {"clock.boost": ("turbo", "clock of one active core, as far as the power limit leaves it")}
    return {"clock.boost": ("clock", docs.symbols(CpuTerms)["clock"][1])}


def _at_memory_clock(reader: Reader, request: Request) -> None:
    """The memory clock of a run is a setting, on which the bandwidth depends; the usual one is not written."""
    usual = request.memory == 1.0
    share = literal(1.0) if usual else reader.leaf("memory_clock_share", request.memory, COUNT, SETTING,
                                                   "memory clock over the usual one")  # fmt: skip
    reader.instead["memory.clock_share"] = (_itself, (share,))
    if not usual:
        reader.instead["memory.bandwidth"] = (bandwidth_at, (Value(value=request.spec.device), share))


def _itself(share: float) -> float:
    """What is given."""
    return share


def energy_steps(explained: ExplainedRun, v: int) -> tuple[list[Step], dict[str, Leaf]]:
    """The equations of one variant's energy; where the limit cuts it, its parts are those before the cut."""
    request, cost = explained.request, explained.cost
    device, launches = request.device, float(explained.kernels.repeat[v])
    parts = {name: _at(part, v) for name, part in explained.result.cost.variant_energy_j.items()}
    limit = device.power.tdp if request.limit is None else request.limit
    clock = np.asarray(cost.clock)
    terms = energy_terms(cost.at(np.array([v])), device, arithmetic(request.stack, device, request.precision),
                         clock if clock.size == 1 else clock[..., v : v + 1], limit, request.calibration)  # fmt: skip
    told = parts if terms.kept.item() >= 1.0 else {"idle_board": parts["idle_board"]}
    values = {f"{name}_j": part for name, part in told.items()}
    reader = Reader(model=values.get)
    _at_memory_clock(reader, request)
    total = reader.quantity(Value(value=terms), "total_j")
    assert total.text is not None
    reader.leaf("launches", launches, COUNT, COLUMN, "launches, one after the other")
    ending = Equation(name="energy", unit="J", text="launches * total_j", meaning="all launches of the kernel")
    steps = [*reader.steps.values(), *solve([ending], reader.quantities, {"energy": launches * sum(parts.values())})]
    return needed(steps, reader)


def needed(steps: list[Step], reader: Reader) -> tuple[list[Step], dict[str, Leaf]]:
    """The steps without which the last one would not be known, and the numbers that no equation gives."""
    names = {steps[-1].name}
    for step in reversed(steps):
        if step.name in names:
            names |= set(step.names) | {name for reason in step.because for name in reason.names}
    return [step for step in steps if step.name in names], {name: leaf for name, leaf in reader.leaves.items() if name in names}


def _ending(bounds: list[str], overheads: list[str], smooth: bool) -> tuple[Equation, Equation]:
    """How the bounds of a kernel, and what comes on top of them, make its time; what is prefetched has no `smooth` one."""
    powers = " + ".join(f"{name} ** smooth" for name in bounds)
    busy = f"({powers}) ** (1 / smooth)" if smooth else f"max({', '.join(bounds)})"
    return (
        Equation(name="busy", unit="s", text=busy, meaning="smooth maximum of the bounds" if smooth else "the largest bound"),
        Equation(name="time", unit="s", text=f"launches * ({' + '.join(['busy', *overheads])})",
                 meaning="all launches of the kernel"),
    )  # fmt: skip
