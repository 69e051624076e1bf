"""A training simulation as text and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from archsim.base.units import grouped, show
from archsim.report.data import records_csv
from archsim.report.text import clean, memory_words, table
from archsim.schedule.training import CORES, DISK, MEMORY
from archsim.simulate.train import SCHEMA, Input, ScalingPoint, Training, TrainingReference
from archsim.trace.op import OPTIMISERS

HEAD = ("devices", "step", "samples/s", "speed-up", "efficiency", "input", "compute", "exchange", "update", "device idle",
        "busiest link", "J/sample")  # fmt: skip


def training_record(t: Training) -> dict[str, Any]:
    """Plain values for JSON."""
    return {"schema": SCHEMA, **asdict(t)}


def training_csv(t: Training) -> str:
    """One row for each number of devices."""
    every = {"network": t.network, "hardware": t.hardware, "hardware_name": t.hardware_name, "node": t.node, "stack": t.stack,
             "precision": t.precision, "batch": t.batch}  # fmt: skip
    return records_csv([asdict(point) for point in t.points], every)


def training_text(t: Training) -> str:
    """The result as text."""
    parts = [title(t), table(HEAD, [row(point) for point in t.points], left=0)]
    notes = [("warning", text) for text in t.warnings] + explained(t) + [("assumed", note) for note in assumed(t)]
    return "\n\n".join([*parts, "\n".join(clean(f"{name:11} {text}") for name, text in notes)])


def assumed(t: Training) -> list[str]:
    """Assumptions, and values that are not published."""
    unknown = t.assumed_values
    return [*t.assumptions, f"{len(unknown)} values of device and node are not published: {', '.join(unknown)}"]


def measured_words(r: TrainingReference) -> str:
    """A published step beside the simulated one."""
    return (f"{r.devices} devices {show(r.measured_s, 's', 3)} a step ({r.source}), predicted {show(r.predicted_s, 's', 3)}, "
            f"error {100 * r.error:+.1f} %" + "".join(f"; measured with {words}" for words in r.conditions))  # fmt: skip


def title(t: Training) -> str:
    """One line."""
    way = "ring all-reduce" if t.sync == "allreduce" else "parameter server"
    hidden = "overlapped with the backward pass" if t.overlap else "after the backward pass"
    return clean(f"{t.network} on {t.hardware_name} in {t.node}: training with {OPTIMISERS[t.optimiser].title}, batch {t.batch} "
                 f"on each, {t.precision}, stack {t.stack}, {way} {hidden}, input {input_words(t.input)}")  # fmt: skip


def input_words(given: Input) -> str:
    """The input stages as text."""
    workers = "worker" if given.decode == 1 else "workers"
    stages = [("disk", given.disk), (f"{given.decode} decode {workers}", given.decode is not None), ("pcie", given.pcie)]
    return ", ".join(name for name, there in stages if there) or "on the device"


def row(p: ScalingPoint) -> tuple[str, ...]:
    """The columns of one number of devices."""
    link = f"{100 * p.busy[p.busiest_link]:.0f} % {p.busiest_link}" if p.busiest_link else "-"
    return (
        str(p.devices), show(p.step_s, "s"), rate(p), f"{p.speedup:.2f}", f"{100 * p.efficiency:.0f} %",
        *(f"{100 * part / p.step_s:.0f} %" for part in (p.input_s, p.compute_s, p.exchange_s, p.update_s)),
        f"{100 * (1 - p.busy['device']):.0f} %", link, f"{p.energy_per_sample_j:.3g}",
    )  # fmt: skip


def rate(p: ScalingPoint) -> str:
    """Samples per second."""
    return grouped(p.throughput_per_s)


def explained(t: Training) -> list[tuple[str, str]]:
    """The meaning of the columns, use of the rest of the node, and published measurements."""
    last = t.points[-1]
    found = [
        ("shares", "of a step of the first device; exchange: not hidden by computation, waiting for slower devices included"),
        ("gradients", f"{show(t.gradient_bytes, 'B', 3)} in {t.buckets} {'bucket' if t.buckets == 1 else 'buckets'}"),
        ("memory", f"of each device: {memory_words(t.memory, t.memory_capacity_bytes, t.fits)}"),
    ]
    parts = [f"{name} {100 * last.busy[name]:.0f} %" for name in (DISK, CORES, MEMORY) if name in last.busy]
    if parts:
        found.append(("node", f"busy with {last.devices} {'device' if last.devices == 1 else 'devices'}: {', '.join(parts)}"))
    return found + [("measured", measured_words(reference)) for reference in t.references]
