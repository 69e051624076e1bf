"""What a simulated training says: the rate, how it scales, what the exchange costs, what memory holds, how far to trust it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from archsim.answers import tagged
from archsim.answers.estimate import counted, listed, spread_of
from archsim.answers.llm import held_table
from archsim.base.units import grouped, show, show_capacity
from archsim.render.blocks import (
    Axis,
    Block,
    Chart,
    Facts,
    Note,
    Series,
    Table,
    Verdict,
    columns,
    number,
    percent,
    stacked,
    words,
)
from archsim.render.text import records_csv
from archsim.simulate.train import SCHEMA, Input, ScalingPoint, Training, TrainingReference, why_training
from archsim.trace.op import OPTIMISERS

PARTS = {"input": "7", "compute": "0", "exchange": "1", "update": "6"}  # of a step -> its tone


record = tagged(SCHEMA)


def csv(t: Training) -> str:
    """One row for each number of devices."""
    every = ("network", "hardware", "hardware_name", "node", "stack", "precision", "batch")
    return records_csv([asdict(point) for point in t.points], {name: getattr(t, name) for name in every})


def sections(t: Training) -> list[Block]:
    """The blocks of an answer."""
    expected, chosen = spread_of(t.assumptions)
    trust = [
        ("measured", [measured_words(one) for one in t.references] or "nobody has published a step of this case"),
        ("expected", expected), ("assumed", counted(chosen, t.assumed_values, "device and node")),
    ]  # fmt: skip
    return [verdict(t), *(Note(text=line, tone="warning") for line in t.warnings), scaling_table(t),
            Facts(title="How far to trust it", rows=trust), scaling_chart(t), memory_table(t), listed(chosen, t.assumed_values)]


def many(devices: int) -> str:
    """A number of devices."""
    return f"{devices} device{'' if devices == 1 else 's'}"


def verdict(t: Training) -> Verdict:
    """The largest number of devices: rate, step, energy and memory."""
    p = max(t.points, key=lambda point: point.devices)
    way = "ring all-reduce" if t.sync == "allreduce" else "parameter server"
    hidden = "overlapped with the backward pass" if t.overlap else "after the backward pass"
    asked = ["training", OPTIMISERS[t.optimiser].title, f"batch {t.batch} on each", t.precision, t.stack, f"{way} {hidden}",
             f"input {input_words(t.input)}"]  # fmt: skip
    optimiser = f", {show(t.memory.optimiser, 'B', 3)} the optimiser's" if t.memory.optimiser else ""
    scaled = f"{p.speedup:.2f} times one device, efficiency {100 * p.efficiency:.0f} %" if p.devices > 1 else ""
    lines = [
        (f"{grouped(p.throughput_per_s)} samples/s", f"on {many(p.devices)}", scaled),
        (f"{show(p.step_s, 's', 3)} a step", f"{100 * p.exchange_s / p.step_s:.1f} % for the exchange",
         f"of {grouped(p.devices * t.batch)} samples"),
        (f"{show(p.energy_per_sample_j, 'J', 3)} per sample", f"devices idle {100 * (1 - p.busy['device']):.0f} % of the time",
         f"{show(p.energy_per_sample_j * p.throughput_per_s, 'W', 3)} in all"),
        (f"{show(t.memory.total, 'B', 3)} of {show_capacity(t.memory_capacity_bytes)}", "fits" if t.fits else "DOES NOT FIT",
         f"{show(t.memory.activations, 'B', 3)} are activations{optimiser}"),
    ]  # fmt: skip
    return Verdict(title=f"{t.network} on {t.hardware_name} in {t.node}", asked=asked, lines=lines, sentences=why_training(t))


def input_words(given: Input) -> str:
    """The input stages as text."""
    workers = "worker" if given.decode == 1 else "workers"
    stages = [("disk", given.disk), (f"{given.decode} decode {workers}", given.decode is not None), ("pcie", given.pcie)]
    return ", ".join(name for name, there in stages if there) or "on the device"


def scaling_table(t: Training) -> Table:
    """A row for each number of devices: rate, speed-up, and the parts of a step."""
    longest = max(point.step_s for point in t.points)
    heads = ("", "samples/s", "speed-up", "efficiency", "step", "", *PARTS)
    spare = {2, 5, *(i for i in range(6, len(heads)) if heads[i] != "exchange")}
    return Table(
        title="Scaling", rows=[_row(point, longest) for point in t.points],
        columns=columns(*heads, numbers={*range(1, len(heads))} - {5}, bars=(5,), spare=spare),
        notes=["Parts are shares of a step of the first device; exchange: what no computation hides, waits for others included."],
    )  # fmt: skip


def parts_of(p: ScalingPoint) -> dict[str, float]:
    """The parts of a step [s]."""
    return {name: getattr(p, f"{name}_s") for name in PARTS}


def _row(p: ScalingPoint, longest: float) -> list[Any]:
    return [
        words(many(p.devices)), words(grouped(p.throughput_per_s)), words(f"{p.speedup:.2f}"), percent(p.efficiency, ".0f"),
        number(p.step_s, "s", 4), stacked(parts_of(p), longest, "s", PARTS),
        *(percent(part / p.step_s, ".0f", tone=PARTS[name]) for name, part in parts_of(p).items()),
    ]  # fmt: skip


def memory_table(t: Training) -> Table:
    """What each device holds."""
    held = {"context" if name == "reserved" else name: size for name, size in asdict(t.memory).items() if size}
    note = f"{show(t.gradient_bytes, 'B', 3)} of gradients are exchanged, in {t.buckets} bucket{'' if t.buckets == 1 else 's'}."
    return held_table(held, t.memory_capacity_bytes, note)


def scaling_chart(t: Training) -> Chart:
    """Speed-up against devices, beside the ideal."""
    points = sorted(t.points, key=lambda point: point.devices)
    most = points[-1].devices
    tips = [f"{many(p.devices)}: {p.speedup:.2f} times, {grouped(p.throughput_per_s)} samples/s" for p in points]
    lines = [Series(name="ideal", tone="quiet", mark="", dashed=True, x=(0, most), y=(0, most)),
             Series(name="simulated", tone="0", x=[p.devices for p in points], y=[p.speedup for p in points], tips=tips,
                    labels=[f"{100 * p.efficiency:.0f} %" for p in points])]  # fmt: skip
    note = "Beside each point its efficiency; every device has the same batch (weak scaling)."
    return Chart(title="Speed-up", series=lines if most > 1 else (), notes=[note] if most > 1 else [],
                 x=Axis(title="devices", log=False, ends=(0, 1.06 * most), marks=[p.devices for p in points]),
                 y=Axis(title="times one device", log=False, ends=(0, 1.06 * most)))  # fmt: skip


def measured_words(r: TrainingReference) -> str:
    """A published step beside the simulated one."""
    return (f"{many(r.devices)} {show(r.measured_s, 's', 3)} a step ({r.source}), predicted {show(r.predicted_s, 's', 3)}, "
            f"error {100 * r.error:+.1f} %" + "".join(f"; measured with {said}" for said in r.conditions))  # fmt: skip
