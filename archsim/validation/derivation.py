"""Constants of the closed form that follow from the cycle model: those that bring it nearest to it on random kernels.

    devices of one kind of SM ──► random kernels, simulated ──► what the SM decides, one value for all of them,
                                                                and how long a CTA starts, on each device its own
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from archsim.base.errors import Unsupported
from archsim.base.record import digest_of
from archsim.calibration.constants import Calibration, default
from archsim.calibration.derived import Derived, derived, family_of
from archsim.cost.cost import Array
from archsim.cycle.core.kernels import loop_constants
from archsim.cycle.kernels import Known, trip_clocks
from archsim.cycle.machine import machine_of
from archsim.cycle.product import TiledProduct, on_lanes
from archsim.cycle.program import Source
from archsim.cycle.run import prepared
from archsim.device.catalog import find as find_spec
from archsim.device.catalog import names as devices
from archsim.device.device import Cpu, Gpu
from archsim.device.variant import values_digest
from archsim.estimation.fidelity import FITTED, SIMULATED
from archsim.estimation.memo import memo
from archsim.estimation.request import Request
from archsim.trace.trace import BoundOp
from archsim.validation.fit import robust_least_squares
from archsim.validation.random_kernels import gpu, gpus, precisions, random_op, request_on, times

LACKING = {"gemm.page_clk": 0.0}  # what the cycle model has no mechanism for, and so must not be laid on other constants
SIMULATED_OF_FAMILY = 3
KERNELS_OF_DEVICE = 120  # in each precision
SEED = 11
SOFT = 0.1  # residuals above this count linearly, not squared
TIE = 0.02  # how far, in log, a constant that kernels do not tell leaves where it began, in units of a kernel that is 100 % off
TIE_OF_DEVICE = 0.2  # the same of the starts on one device, which leave those of all
APART = math.log(1000.0)  # how far, in log, a device's starts may lie from those of its family
TOLD = 0.1  # least change of all residuals, as a norm, by twice a constant that is kept
DOUBLE = math.log(2.0)
STEP = 0.03  # step of the differences, in log, relative to it
STEPS = 25  # most steps of a search
# Fitted beside what is derived, and left out: the start of a library's attention kernel is not that of a simulated program.
BESIDE = "attention.prologue_clk"
# A few warps that start late and many that start at once come equally near: the search begins from either side. One warp of a
# scheduler keeps its tensor core busy with products that do not wait for each other: of answers as near, that with fewer warps.
HALVED = "gemm.tensor_saturation"
HALVED_FACTORS = 1.0, 0.5
AS_NEAR = 0.01
START = "gemm.tensor_prologue_clk"
START_FACTORS = 0.02, 0.1, 0.3, 1.0
CLOCKS = "_clk"  # how the names of starts end, which memory and L2 decide as well as the SM


@dataclass(frozen=True, eq=False, slots=True)
class _Sample:
    """Random ops on one device, lowered, and what they take when simulated."""

    request: Request
    ops: Sequence[BoundOp]
    simulated_s: Array

    def errors(self, constants: Calibration) -> Array:
        """log(closed form / simulated) of the ops that take time."""
        logs = np.log(times(self.request, self.ops, constants, FITTED) / self.simulated_s)
        return np.asarray(logs[np.isfinite(logs)])


Samples = Sequence[_Sample]  # of one device


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class _Free:
    """Constants that a search moves, as logs. Those of the SM come first, then the starts; `begin` has all others.

    Of a family x = [what the SM decides, starts, how far those of each device lie from them].
    """

    names: tuple[str, ...]
    shared: int  # how many of them all devices of a family have in common
    begin: Calibration

    @property
    def first(self) -> Array:
        """Where the search begins."""
        return np.log([self.begin.constants[name].value for name in self.names])

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The ranges that physics allows."""
        rows = [self.begin.constants[name] for name in self.names]
        return np.log([row.low for row in rows]), np.log([row.high for row in rows])

    def errors(self, samples: Samples, own: Array) -> Array:
        """log(closed form / simulated) of a device's kernels with its own constants."""
        constants = self.begin.with_values(dict(zip(self.names, np.exp(own).tolist(), strict=True)))
        return np.concatenate([sample.errors(constants) for sample in samples])

    def own(self, x: Array, devices: int) -> list[Array]:
        """The constants of each device of a family."""
        k, n = self.shared, len(self.names)
        return [np.clip(np.concatenate([x[:k], x[k:n] + apart]), *self.bounds) for apart in x[n:].reshape(devices, n - k)]

    def residuals(self, devices: Sequence[Samples], x: Array) -> Array:
        """The errors of all kernels of a family, and what ties constants that no kernel tells to where they began."""
        n = len(self.names)
        logs = [self.errors(samples, own) for samples, own in zip(devices, self.own(x, len(devices)), strict=True)]
        return np.concatenate([*logs, TIE * (x[:n] - self.first), TIE_OF_DEVICE * x[n:]])

    def slopes(self, devices: Sequence[Samples], x: Array) -> Array:
        """Their change by each part of x: starts of one device move its kernels alone."""
        k, n, rows = self.shared, len(self.names), []
        for i, (samples, own) in enumerate(zip(devices, self.own(x, len(devices)), strict=True)):
            there, steps = self.errors(samples, own), STEP * np.maximum(1e-3, np.abs(own))
            steps *= np.where(own + steps <= self.bounds[1], 1.0, -1.0)
            moved = own + np.diag(steps)
            found = [(self.errors(samples, moved[j]) - there) / (moved[j, j] - own[j]) for j in range(n)]
            block = np.zeros((len(there), len(x)))
            block[:, :n] = np.stack(found, axis=1)
            block[:, n + i * (n - k) : n + (i + 1) * (n - k)] = block[:, k:n]
            rows.append(block)
        return np.concatenate([*rows, np.diag(np.where(np.arange(len(x)) < n, TIE, TIE_OF_DEVICE))])


def derive(family: str, names: Sequence[str], earlier: Derived | None = None) -> Derived:
    """The constants that bring the closed form nearest to the cycle model, on random kernels of GPUs with one kind of SM.

    Up to three devices tell what the SM decides, which is one value for all; how long CTAs start is sought for each device.

    names: of the constants; those that change no kernel are left out. earlier: a row of this family, of which all is kept that
    the same code made from the same values, so that a new device costs its own search alone

    Raises MissingExtra without scipy, Unsupported for a family that no shipped GPU is of.
    """
    members = families().get(family)
    if members is None:
        raise Unsupported(f"family {family}: no shipped GPU has it; one of {', '.join(families())}")
    starts = [name for name in names if name.endswith(CLOCKS)]
    shared = [*[name for name in names if name not in starts], BESIDE]
    free = _Free(names=(*shared, *starts), shared=len(shared), begin=_as_derived(names))
    chosen, known = _representatives(family, members), memo()
    of_family = _source(*chosen, names, KERNELS_OF_DEVICE, free.begin.constants)
    kept = earlier if earlier and earlier.made_from.get(family) == of_family else None
    row = kept or _solved(free, chosen, known)
    shown = {**row.constants, BESIDE: row.beside}
    common = np.log([shown.get(name, free.begin[name]) for name in free.names])
    devices, made_from = {hw: row.devices[hw] for hw in chosen}, {family: of_family}
    for hw in sorted(set(members) - set(chosen)):
        made_from[hw] = _source(hw, of_family)
        if kept and kept.made_from.get(hw) == made_from[hw]:
            devices[hw] = kept.devices[hw]
        else:
            devices[hw] = _values(free.names, _alone(hw, free, common, known), {*row.constants} & {*starts})
    return replace(row, devices=dict(sorted(devices.items())), made_from=made_from)


def _solved(free: _Free, chosen: Sequence[str], known: Known) -> Derived:
    """What the representatives of a family tell: the constants of all, and their own starts.

    Of the answers of the searches from either side the nearest; of two as near the one with fewer warps.
    """
    n, devices = len(free.names), [_samples(hw, free.begin, known) for hw in chosen]
    at, far = free.names.index(HALVED), np.full(len(devices) * (n - free.shared), APART)
    low, high = (np.concatenate([end, sign * far]) for end, sign in zip(free.bounds, (-1.0, 1.0), strict=True))
    best = None
    for factor in HALVED_FACTORS:
        first = np.concatenate([free.first + math.log(factor) * (np.arange(n) == at), 0.0 * far])
        found = robust_least_squares(partial(free.residuals, devices), first, partial(free.slopes, devices), (low, high), SOFT,
                                     max_nfev=STEPS)  # fmt: skip
        fewer = best is not None and found.x[at] < best.x[at]
        if best is None or found.cost < best.cost * (1.0 + AS_NEAR if fewer else 1.0 - AS_NEAR):
            best = found
    assert best is not None
    own, told = free.own(best.x, len(devices)), _told(free, devices)
    errors = np.abs(np.expm1(np.concatenate([free.errors(samples, at) for samples, at in zip(devices, own, strict=True)])))
    starts = told & {*free.names[free.shared :]}
    return Derived(
        simulated=tuple(chosen), kernels=len(errors), median=float(np.median(errors)), p90=float(np.quantile(errors, 0.9)),
        constants=_values(free.names, best.x[:n], told), beside=_values(free.names, best.x[:n], {BESIDE})[BESIDE],
        devices={hw: _values(free.names, at, starts) for hw, at in zip(chosen, own, strict=True)}, made_from={},
    )  # fmt: skip


def _alone(hw: str, free: _Free, common: Array, known: Known) -> Array:
    """The constants of one more device: its own starts beside what the SM decides."""
    k, (low, high) = free.shared, free.bounds
    samples = _samples(hw, free.begin, known)

    def residuals(x: Array) -> Array:
        return np.concatenate([free.errors(samples, np.concatenate([common[:k], x])), TIE_OF_DEVICE * (x - common[k:])])

    first = np.clip(common[k:], low[k:] + 1e-6, high[k:] - 1e-6)
    found = robust_least_squares(residuals, first, "2-point", (low[k:], high[k:]), SOFT, diff_step=STEP, max_nfev=STEPS)
    return np.concatenate([common[:k], found.x])


def _told(free: _Free, devices: Sequence[Samples]) -> set[str]:
    """The constants that move kernels."""
    first, at = free.first, [free.errors(samples, free.first) for samples in devices]
    found = set()
    for i, name in enumerate(free.names):
        moved = first + DOUBLE * (np.arange(len(first)) == i)
        change = [free.errors(samples, moved) - there for samples, there in zip(devices, at, strict=True)]
        if name != BESIDE and np.linalg.norm(np.concatenate(change)) >= TOLD:
            found.add(name)
    return found


def _values(names: Sequence[str], logs: Array, kept: set[str]) -> Mapping[str, float]:
    return {name: float(f"{math.exp(x):.4g}") for name, x in zip(names, logs.tolist(), strict=True) if name in kept}


def _samples(hw: str, constants: Calibration, known: Known) -> Samples:
    """Random ops in each precision of a device.

    A library has the fastest of its tiles, as timing them or its rules tell. The closed form alone would name the one that its
    constants favour, so each op has the least time of what it names with starts of several lengths.
    """
    found, row = [], constants.constants[START]
    for precision in precisions(hw):
        request, rng = request_on(hw, precision, share=issue_share(hw, known)), random.Random(SEED)
        ops = [random_op(rng, precision, _rings(request)) for _ in range(KERNELS_OF_DEVICE)]
        starts = [{START: max(row.low, row.value * factor)} for factor in START_FACTORS] if _rings(request) else [{}]
        simulated = [times(request, ops, constants.with_values(start), SIMULATED) for start in starts]
        found.append(_Sample(request, ops, np.asarray(np.minimum.reduce(simulated))))
    return found


def _source(*made_from: object) -> str:
    """A digest of what a derivation reads: devices by name, whatever else decides it, and the code of both models."""
    read = [values_digest(find_spec(one)) if isinstance(one, str) and one in gpus() else one for one in made_from]
    return digest_of((*read, _code()))


@cache
def _code() -> str:
    """A digest of the modules of the cycle model of a GPU, of the closed form, and of the derivation."""
    own = Path(__file__).parent
    files = [*sorted((own.parent / "cycle").glob("*.py")), *sorted((own.parent / "cost").glob("*.py")),
             own / "derivation.py", own / "random_kernels.py"]  # fmt: skip
    return digest_of([file.read_bytes() for file in files])


def families() -> dict[str, list[str]]:
    """The shipped GPUs by family, as `family_of` names it."""
    found: dict[str, list[str]] = {}
    for name in sorted(gpus()):
        device = gpu(name)
        found.setdefault(family_of(device.identity.architecture, float(np.ravel(device.sm.warps)[0])), []).append(name)
    return dict(sorted(found.items()))


def cores() -> dict[str, dict[str, float]]:
    """The constants of the cores of shipped CPUs, by architecture."""
    found: dict[str, dict[str, float]] = {}
    for name in sorted(devices()):
        device = find_spec(name).device
        if isinstance(device, Cpu) and device.pipeline is not None and device.identity.architecture not in found:
            found[device.identity.architecture] = loop_constants(device)
    return found


def issue_share(hw: str, known: Known) -> float | None:
    """The share of its lanes that an SM feeds in the loop of a large tile, simulated; None for a device that states none.

    Other constants must not make up for a published share that differs from it.
    """
    device = gpu(hw)
    if device.sm.issue_share is None:
        return None
    machine = machine_of(device, float(np.ravel(device.clock.sustained)[0]))
    near = Source(past_l2=0.0)
    tile = TiledProduct(m=128, n=128, k=8, threads=256, registers=120, shared=16384, depth=4096, a=near, b=near)
    on = prepared(machine, on_lanes(machine, tile))
    ctas = max(1, on.held)
    return min(1.0, ctas * tile.m * tile.n * tile.k / trip_clocks(on, ctas, known) / float(np.ravel(device.rate.fp32)[0]))


def _representatives(family: str, members: Sequence[str]) -> Sequence[str]:
    """The devices that tell what the SM decides: those of the shipped table while they are there, so that a card that joins
    moves no other; else the smallest, the largest, and those in even steps between them."""
    shipped = derived().get(family)
    if shipped is not None and shipped.simulated and set(shipped.simulated) <= set(members):
        return shipped.simulated
    by_size = sorted(members, key=lambda name: (float(gpu(name).pipe("fp32")) * float(np.ravel(gpu(name).sm.count)[0]), name))
    count = min(SIMULATED_OF_FAMILY, len(by_size))
    return [by_size[round(i * (len(by_size) - 1) / max(1, count - 1))] for i in range(count)]


def _as_derived(names: Sequence[str]) -> Calibration:
    """All constants as they are before a fit, so that none of what is derived hangs on measurements: not by powers either, which
    decide the clocks of cards that nobody has watched.

    Without what the cycle model lacks; those of `names` as they are on no device in particular.
    """
    shipped = default().before_fit().before_energy_fit()
    return shipped.with_values({**LACKING, **{name: shipped.constants[name].value for name in names}})


def _rings(request: Request) -> bool:
    """Whether products on tensor cores fill rings of stages, so large that their CTA often has its SM alone, start and all."""
    device = request.device
    return isinstance(device, Gpu) and request.precision == "fp16" and device.sm.copies in ("async", "bulk")
