"""One kernel of the chosen algorithm: its variants, and the equations of the one that runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from archsim.cost.cost import SMOOTH, Array, Choice, Cost
from archsim.cost.gpu import GpuTerms
from archsim.cost.plan import PlanCost
from archsim.cost.traffic import partial_bytes
from archsim.device.device import PARTS
from archsim.device.part import declared
from archsim.estimation.pipeline import Run, arithmetic
from archsim.estimation.request import Request
from archsim.explain import cpu, energy, gpu
from archsim.explain.equation import Equation, Quantities, Step, solve
from archsim.lower.columns import columns_of
from archsim.lower.kernel import CpuKernels, GpuKernels, Kernels

CUT = 1e-9  # relative difference from which on a power limit has cut the energy, and not a rounding error
BEST = 5  # tiles that are listed beside the one that runs
UNITS = {"stored": "B"}  # of terms that are no plain numbers
LIMITS = {"by_registers": "registers", "by_shared": "shared memory", "by_warps": "warps", "sm.ctas": "what an SM can hold"}
# How often each tensor crosses the memory's pins.
MOVES = {"a_bytes": "a_reads", "b_bytes": "b_reads", "c_bytes": "c_moves"}


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
class KernelStory:
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
    stands_for: Mapping[str, str]  # name in the equations -> spec key or constant


@dataclass(frozen=True, kw_only=True)
class Teller:
    """What the stories of all kernels of one run share."""

    query: Request
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

    @cached_property
    def known(self) -> Quantities:
        """Every numeric spec key and every constant, with the clock."""
        query = self.query
        units = {f"{part}.{name}": unit.unit for part, cls in PARTS[query.spec.kind].items()
                 for name, (unit, _) in declared(cls).items()}  # fmt: skip
        spec = {key: (entry.value, units[key]) for key, entry in query.spec.entries.items() if isinstance(entry.value, float)}
        constants = {name: (constant.value, unit_of(name)) for name, constant in query.calibration.constants.items()}
        clock = float(np.ravel(query.clock)[0])
        return {**constants, **spec, "clock": (clock, "Hz"), "smooth": (SMOOTH, "1")}

    @cached_property
    def alone(self) -> Mapping[str, Array]:
        """Memory traffic of every variant if only one of its tensors were there."""
        nothing = dict.fromkeys(MOVES, np.zeros_like(self.kernels.m))
        found = {}
        for name in MOVES:
            only = replace(self.kernels, **{**nothing, name: getattr(self.kernels, name)})
            variants = self._costed(only).variants
            assert variants is not None
            found[name] = np.broadcast_to(variants.dram_bytes, (1, only.m.size))[0]
        return found

    def _costed(self, kernels: Kernels) -> PlanCost:
        query, device = self.query, self.query.spec.device
        multiplied = arithmetic(query.stack, device, query.precision)
        return query.fidelity.cost(kernels, device, multiplied, query.clock, query.threads or 1, query.calibration, frozenset(),
                                   query.limit)  # fmt: skip


def story(teller: Teller, position: int) -> KernelStory:
    """The story of the kernel at `position` in the columns."""
    kernels, cost = teller.kernels, teller.result.cost
    chosen = int(teller.choice.variant[0, position])
    kernel = kernels.kernels[position]
    steps, stands_for = steps_of(teller, chosen)
    spent = energy_steps(teller, chosen)
    parts = {step.name: step.value for step in steps if step.name in (*teller.cost.bounds, "launch")}
    return KernelStory(
        name=kernel.name, matrix=kernel.menu != "", launches=kernel.repeat,
        time_s=float(cost.kernel_time_s[0, position]), bound=max(parts, key=lambda name: parts[name]),
        work={name: getattr(kernel, name) for name in ("m", "n", "k", "count", "a_bytes", "b_bytes", "c_bytes", "flop", "items")},
        variants=_variants(teller, position, chosen), steps=tuple(steps), stands_for=stands_for, energy=spent,
        energy_j=spent[-1].value,
    )  # fmt: skip


def _terms(cost: Cost) -> dict[str, Array]:
    """The quantities on the way to the bounds."""
    terms = cost.terms
    if isinstance(terms, GpuTerms):
        named = {name: getattr(terms, name) for name in ("resident", "ctas", "depth", "rate", "cta_work", "fill", "smooth")}
        return {**named, "stored": terms.kernels.c_bytes + 2.0 * partial_bytes(terms.kernels)}
    return {name: getattr(terms, name) for name in ("workers", "bandwidth", "speed")}


def _at(values: Array, variant: int) -> float:
    """One variant's value of a column [V] or [1, V]; a value that all variants share is [1, 1] or a number."""
    last = np.ravel(values)
    return float(last[variant] if last.size > 1 else last[0])


def _variants(teller: Teller, position: int, chosen: int) -> tuple[Variant, ...]:
    """The fastest variants of a kernel, the fastest first; none for a kernel without a menu."""
    kernels, cost = teller.kernels, teller.cost
    own = np.flatnonzero(kernels.kernel_of == position).tolist()
    if len(own) == 1 or not isinstance(cost.terms, GpuTerms):
        return ()
    time = [kernels.repeat[v] * (_at(cost.busy_s, v) + _at(cost.overhead_s, v)) for v in own]
    best = [own[i] for i in np.argsort(time, kind="stable")[:BEST] if np.isfinite(time[i])]
    return tuple([_variant(teller, v, float(time[v - own[0]]), v == chosen) for v in best])


def _variant(teller: Teller, v: int, time: float, chosen: bool) -> Variant:
    kernels, cost = teller.kernels, teller.cost
    assert isinstance(kernels, GpuKernels)
    ctas, resident = (_at(getattr(cost.terms, name), v) for name in ("ctas", "resident"))
    sms = teller.known["sm.count"][0]
    return Variant(
        tile=(int(kernels.tile_m[v]), int(kernels.tile_n[v]), int(kernels.tile_k[v])), split=int(kernels.split[v]), ctas=ctas,
        resident=resident, waves=ctas / (sms * resident), time_s=time, chosen=chosen,
        bounds_s={name: _at(bound, v) for name, bound in cost.bounds.items()},
    )  # fmt: skip


def steps_of(teller: Teller, v: int) -> tuple[list[Step], dict[str, str]]:
    """The equations of one variant, and what stands behind the names in them."""
    query, kernels, cost = teller.query, teller.kernels, teller.cost
    family = kernels.constants[kernels.efficiency[v]]
    own = {name: (float(getattr(kernels, name)[v]), column.unit) for name, column in columns_of(type(kernels)).items()}
    own |= {name: (_at(values, v), UNITS.get(name, "1")) for name, values in _terms(cost).items()}
    own |= {"family": (query.calibration[family], "1"), "launches": (float(kernels.repeat[v]), "1")}
    own |= {"clock": (_at(np.asarray(cost.clock), v), "Hz")} if query.spec.kind == "gpu" else {}
    if isinstance(kernels, GpuKernels):
        traffic, moves = _traffic(teller, v)
        traits = gpu.traits(query, kernels, v)
        table = gpu.equations(traits, traffic)
        named, stands_for = gpu.quantities(query, traits)
        own |= moves
    else:
        assert isinstance(kernels, CpuKernels)
        table = cpu.equations(cpu.traits(query, kernels, v))
        named, stands_for = cpu.quantities(query, kernels, v)
    model = {**_terms(cost), **cost.bounds, "dram_bytes": cost.dram_bytes, "l2_bytes": cost.cache_bytes, "busy": cost.busy_s,
             "launch": cost.overhead_s}  # fmt: skip
    values = {name: _at(value, v) for name, value in model.items()}
    known = {**teller.known, **own, **named}  # the pipe of a GPU is not the column of that name
    steps = solve([*table, *_ending(cost, table)], known, values)
    return [_limited(step) for step in steps], {**stands_for, "family": family}


def energy_steps(teller: Teller, v: int) -> tuple[Step, ...]:
    """The equations of one variant's energy; where the limit cuts it, its parts are those before the cut."""
    query, cost = teller.query, teller.cost
    launches = float(teller.kernels.repeat[v])
    spent = teller.result.cost.variant_energy_j
    parts = {name: _at(part, v) for name, part in spent.items()}
    work = {name: _at(value, v) for name, value in cost.work.items()}
    named = energy.quantities(query, _at(np.asarray(cost.clock), v), _at(cost.busy_s, v), _at(cost.overhead_s, v), work)
    traffic = {"dram_bytes": (_at(cost.dram_bytes, v), "B"), "l2_bytes": (_at(cost.cache_bytes, v), "B")}
    known = {**teller.known, **named, **traffic, "launches": (launches, "1")}
    table = energy.equations(query, capped=False)
    free = {step.name: step.value for step in solve(table, known, {})}
    total = launches * sum(parts.values())
    if free["energy"] > total * (1 + CUT):
        return tuple(solve(energy.equations(query, capped=True), known, {"e_base": parts["base"], "energy": total}))
    return tuple(solve(table, known, {**{f"e_{name}": part for name, part in parts.items()}, "energy": total}))


def _limited(step: Step) -> Step:
    """The occupancy with the name of what limits it."""
    if step.name != "resident":
        return step
    least = min((name for name in step.names if name in LIMITS), key=lambda name: step.names[name][0])
    return replace(step, meaning=f"CTAs that share an SM, limited by {LIMITS[least]}")


def _traffic(teller: Teller, v: int) -> tuple[Equation, dict[str, tuple[float, str]]]:
    """Memory traffic as a sum over the tensors."""
    kernels = teller.kernels
    sizes = {name: float(getattr(kernels, name)[v]) for name in MOVES}
    moved = {name: float(teller.alone[name][v]) for name, size in sizes.items() if size > 0}
    text = " + ".join(f"{name} * {MOVES[name]}" for name in moved)
    equation = Equation(name="dram_bytes", unit="B", text=text or "0",
                        meaning="memory traffic: how often each tensor moves; 0 times if still in the L2")  # fmt: skip
    return equation, {MOVES[name]: (moved[name] / sizes[name], "1") for name in moved}


def _ending(cost: Cost, table: Iterable[Equation]) -> tuple[Equation, Equation]:
    """The sum of the bounds that have an equation; one without does not apply, and is 0."""
    written = {equation.name for equation in table}
    powers = " + ".join(f"{name} ** smooth" for name in cost.bounds if name in written)
    return (
        Equation(name="busy", unit="s", text=f"({powers}) ** (1 / smooth)", meaning="smooth maximum of the bounds"),
        Equation(name="time", unit="s", text="launches * (busy + launch)", meaning="all launches of the kernel"),
    )


def unit_of(constant: str) -> str:
    """The unit of a constant, which its name tells."""
    if constant.endswith("_Bps"):
        return "B/s"
    if constant.startswith(("energy.node.", "energy.byte.")):
        return "J"
    if constant.startswith("host.") or constant.endswith("_s"):
        return "s"
    return "clk" if constant.endswith("_clk") else "1"
