"""The records of an estimate: its totals, its ops, their kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from archsim.base.record import Answer, LazyField
from archsim.calibration.constants import Spread
from archsim.cost.bounds import INPUT
from archsim.cost.cost import Array
from archsim.cost.evaluate import SPEEDUP
from archsim.device.spec import Spec
from archsim.estimation.clock import memory_clock_of
from archsim.estimation.measured import Reference
from archsim.estimation.memory import Footprint, fits
from archsim.estimation.pipeline import Run
from archsim.estimation.power_curve import SENSOR_S, PowerCurve
from archsim.estimation.wall import WallPower
from archsim.stack.catalog import MeasuredRows

SCHEMA = "archsim-estimate/1"
HOST = "host"
NEGLIGIBLE = 1e-9  # of the latency: less is rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEstimate:
    """One kernel of the algorithm that was chosen for an op. `name` is for people, `role` for programs (`archsim.lower.columns`).

    `power_w` is its mean power alone, launch gaps included.
    """

    name: str
    role: str
    algorithm: str
    time_s: float
    bound: str
    clock_hz: float
    power_w: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OpEstimate:
    """One op. `time_s` is what it adds to the latency; for `wait_s` of it the device waits for the host CPU. `bound` takes most.

    `energy_breakdown_j` has the components of `archsim.cost.energy`; `energy_j` is their sum.
    """

    name: str
    kind: str
    phase: str
    time_s: float
    wait_s: float
    bound: str
    flop: float
    dram_bytes: float
    energy_j: float
    energy_breakdown_j: Mapping[str, float]
    kernels: tuple[KernelEstimate, ...]


@dataclass(frozen=True, kw_only=True)
class Estimate(Answer):
    """The outcome of one request; attributes bear the names of the JSON keys. What takes long is computed on first use.

    hardware, hardware_name, changes: the device's id; what people call it, with what was changed; the changed values by key
    traffic: how the bytes between the levels of caches were found: closed or simulated
    clock_hz: mean over the time of all kernels
    memory_clock_hz: as drivers show it, half the data rate of a pin; None where that is not known
    latency_interval_s, power_interval_w, energy_interval_j: where measured values are expected, at `interval_level`
    interval_class, held_out: the class of cells whose held-out errors give the interval, and these errors
    stack_rows: measured rows behind the stack
    energy_budget_j: the most that a sample may take, for which the clock was chosen; None without one
    power_boundary: what power and energy cover; no op draws more than `power_limit_w`
    wall: the computer at its plug, where that was asked for; power and energy are then the share of one device of it
    power_over_time: power of the device between the starts and ends of kernels; its area is the energy
    max_batch: the largest batch that fits; None where the network fixes its batch
    breakdown_s: where the time goes, by bound; `device_s` and `host_wait_s` are its two parts
    least_bytes: operands and results of each op, each counted once, by its name
    spec: the device as it was estimated
    saved_s: time that each resource would save if it were 20 % faster, largest first; that of the first is `limited_by`
    host_wait_s: time in which the device waits for the host CPU
    host_floor_s: time in which the host CPU issues the work; no device is faster; graph_helps: a replayed graph would be
    references: published measurements of the same cell; nearest: that of its stack at the nearest other batch, if there is one
    assumed_values: spec keys that are not published
    """

    network: str
    hardware: str
    hardware_name: str
    changes: Mapping[str, str]
    stack: str
    task: str
    optimiser: str | None  # what updates the weights, where the task does
    batch: int
    sample: str  # what a batch has so many of: img, seq or samples
    seq_len: int | None  # tokens of a sequence, where the network takes any number
    precision: str
    threads: int | None
    devices: int
    fidelity: str
    traffic: str
    graph: bool
    cold: bool
    streams: int
    host_cpu: str  # the CPU that dispatches ops; a CPU dispatches for itself
    clock_hz: float
    memory_clock_hz: float | None
    latency_s: float
    latency_interval_s: tuple[float, float]
    interval_level: float
    interval_class: str
    held_out: Spread
    stack_rows: MeasuredRows
    throughput_per_s: float
    power_w: float
    power_interval_w: tuple[float, float]
    energy_j: float
    energy_interval_j: tuple[float, float]
    energy_budget_j: float | None
    throughput_per_w: float
    energy_breakdown_j: Mapping[str, float]
    power_limit_w: float
    power_boundary: str
    wall: WallPower | None = None
    power_over_time: LazyField[PowerCurve] = LazyField()
    memory: LazyField[Footprint] = LazyField()
    memory_capacity_bytes: float
    max_batch: LazyField[int | None] = LazyField()
    flop: LazyField[float] = LazyField()
    dram_bytes: float
    saved_s: LazyField[Mapping[str, float]] = LazyField()
    host_wait_s: float
    host_floor_s: LazyField[float] = LazyField()
    graph_helps: bool
    breakdown_s: LazyField[Mapping[str, float]] = LazyField()
    ops: LazyField[tuple[OpEstimate, ...]] = LazyField()
    least_bytes: LazyField[Mapping[str, float]] = LazyField()
    references: LazyField[tuple[Reference, ...]] = LazyField()
    nearest: LazyField[Reference | None] = LazyField()
    warnings: LazyField[tuple[str, ...]] = LazyField()
    assumptions: LazyField[tuple[str, ...]] = LazyField()
    assumed_values: LazyField[tuple[str, ...]] = LazyField()
    provenance: LazyField[Mapping[str, str]] = LazyField()
    spec: Spec

    @property
    def memory_clock_share(self) -> float:
        """Memory clock over the usual one [1]."""
        return 1.0 if self.memory_clock_hz is None else self.memory_clock_hz / float(memory_clock_of(self.spec, 1.0) or 1.0)

    @property
    def limited_by(self) -> str:
        """The resource that would save most if it were faster; `none` where none saves anything."""
        return next(iter(self.saved_s), "none")

    @property
    def device_s(self) -> float:
        """Time in which the device works [s]."""
        return self.latency_s - self.host_wait_s

    @property
    def power_peak_w(self) -> float:
        """The highest power of any kernel, or of several that overlap [W]."""
        return self.power_over_time.peak_w

    @property
    def power_sensed_peak_w(self) -> float:
        """The highest mean power over a window of `power_window_s` while the run is repeated, as a sensor sees it [W]."""
        return self.power_over_time.sensed_peak_w(self.power_window_s)

    @property
    def power_window_s(self) -> float:
        """The window over which a board's own sensor averages a reading [s]."""
        return SENSOR_S

    @property
    def memory_bytes(self) -> float:
        """Device memory that the run takes [B]."""
        return self.memory.total

    @property
    def fits(self) -> bool:
        """Whether that is within the usable part of the device's memory."""
        return fits(self.memory, self.memory_capacity_bytes)

    def __getstate__(self) -> dict[str, object]:
        """All fields computed, for another process; the functions that compute them cannot be sent."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def saved_of(result: Run) -> dict[str, float]:
    """Time saved if a resource were `SPEEDUP` times as fast and all others as they are [s], largest first; none that saves none.

    That need not be the resource that most of the time is spent on: while a device waits for the host CPU, faster kernels only
    make it wait longer.
    """
    cost, host, share = result.cost, result.host, result.share
    now = _latency(result, cost.time_s, host, share=share)
    after = {name: _latency(result, plan_s, host, share=share) for name, plan_s in cost.if_faster_s.items()}
    after[HOST] = _latency(result, cost.time_s, host / SPEEDUP, 1 / SPEEDUP, share)
    if result.late_s is not None:
        after[INPUT] = _latency(result, cost.time_s, host, share=share, input_factor=1 / SPEEDUP)
    saved = {name: now - then for name, then in after.items() if now - then > NEGLIGIBLE * now}
    return dict(sorted(saved.items(), key=lambda one: -one[1]))


def host_floor_of(result: Run) -> float:
    """Latency if the device took no time at all [s]."""
    return _latency(result, np.zeros_like(result.cost.time_s), result.host)


def _latency(result: Run, plan_s: Array, *rest: Any, **words: Any) -> float:
    return float(result.order(plan_s, *rest, **words).latency_s[0])
