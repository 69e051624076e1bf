"""An estimate as plain text, aligned, without colours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from typing import TypeVar

from archsim.base.units import grouped, show, show_capacity
from archsim.cost.bounds import INPUT
from archsim.cost.relief import FASTER
from archsim.estimation.boundary import WallPower
from archsim.estimation.limits import HOST
from archsim.estimation.memory import Footprint
from archsim.estimation.references import Reference
from archsim.estimation.result import Estimate, OpEstimate
from archsim.evidence.columns import RATES
from archsim.trace.op import OPTIMISERS

T = TypeVar("T")
MANY = 60  # ops from which on only the longest are listed
LONGEST = 40
NOTABLE = 0.0005  # of the latency: less is not shown
NEAR_FLOOR = 0.8  # of the latency: from here on the host's floor is worth a line
FASTER_TEXT = f"{100 * (FASTER - 1):.0f} %"
METRIC_NAMES = {"latency_s": "latency", "throughput_per_s": "throughput", "power_w": "power", "energy_j": "energy"}


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int | Collection[int] = 1) -> str:
    """Aligned columns, the first `left` of them, or those at these places, left-aligned, the others right-aligned."""
    to_left = range(left) if isinstance(left, int) else left
    lines = [list(map(clean, row)) for row in (head, *rows)]
    widths = [max(len(row[i]) for row in lines) for i in range(len(head))]

    def line(row: list[str]) -> str:
        cells = [c.ljust(w) if i in to_left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        return "  ".join(cells).rstrip()

    return "\n".join(map(line, [lines[0], ["-" * w for w in widths], *lines[1:]]))


def per_cent(share: float) -> str:
    """A share as per cent."""
    return f"{100 * share:.1f} %"


def streams_note(e: Estimate) -> str:
    """What is not as in most runs: several streams, traffic that is simulated, a replayed graph, cold caches."""
    said = ((f" with {e.streams} streams", e.streams > 1), (", simulated traffic", e.traffic != "closed"),
            (", replayed graph", e.graph), (", cold caches", e.cold))  # fmt: skip
    return "".join(text for text, holds in said if holds)


def clean(text: str) -> str:
    """Text without control characters, so that a name from a file cannot move the cursor."""
    return "".join(c if c.isprintable() else "?" for c in text)


def estimate_text(estimate: Estimate, all_layers: bool = False, layers: bool = True) -> str:
    """The whole result as text."""
    parts = [heading(estimate)]
    if layers:
        parts.append(layer_table(estimate, all_layers))
    parts += [totals(estimate), measured(estimate), assumptions_text(estimate)]
    return "\n\n".join(part for part in parts if part)


def heading(e: Estimate) -> str:
    """The request on one line."""
    return f"{clean(e.network)} on {clean(e.hardware_name)}: {', '.join(asked_words(e))}"


def asked_words(e: Estimate) -> list[str]:
    """What runs, part by part."""
    tokens = [f"{e.seq_len} tokens"] if e.seq_len else []
    threads = [f"{e.threads} {'thread' if e.threads == 1 else 'threads'}"] if e.threads else []
    return [task_words(e), f"batch {e.batch}", *tokens, e.precision, f"stack {e.stack}", clock_words(e), *threads,
            f"{e.fidelity} model{streams_note(e)}"]  # fmt: skip


def task_words(e: Estimate) -> str:
    """The task, and what updates the weights where it does."""
    return e.task.replace("_", " ") + (f" with {OPTIMISERS[e.optimiser].title}" if e.optimiser else "")


def clock_words(e: Estimate) -> str:
    """The core clock, and that of the memory where it is not the usual one."""
    memory = "" if e.memory_clock_hz is None or e.memory_clock_share == 1.0 else f", memory {show(e.memory_clock_hz, 'Hz')}"
    return f"{show(e.clock_hz, 'Hz')}{memory}"


def longest(ops: Sequence[T], most: int, time: Callable[[T], float]) -> list[T]:
    """The `most` longest of the ops, in their own order."""
    places = sorted(range(len(ops)), key=lambda i: -time(ops[i]))[:most]
    return [ops[i] for i in sorted(places)]


def listed_ops(ops: Sequence[T], every: bool, time: Callable[[T], float]) -> tuple[Sequence[T], str]:
    """The ops that a terminal lists, of many the longest ones, unless `every` one is wanted; and what is said of the others."""
    if every or len(ops) <= MANY:
        return ops, ""
    return longest(ops, LONGEST, time), f"\n({len(ops) - LONGEST} shorter ops not listed; --layers lists all)"


def layer_table(e: Estimate, all_layers: bool) -> str:
    """One line per op; of large networks the longest ops only, unless all are wanted."""
    shown, others = listed_ops([op for op in e.ops if op.time_s > 0], all_layers, lambda op: op.time_s)
    rows = [_layer(op, e) for op in shown]
    return table(("layer", "kind", "algorithm", "bound", "time", "share", "FLOP", "DRAM", "energy"), rows, left=4) + others


def bound_name(e: Estimate, name: str) -> str:
    """What limits, in words: a CPU waits for no host, it dispatches its own ops."""
    return "dispatch" if name == HOST and e.threads else name


def _layer(op: OpEstimate, e: Estimate) -> tuple[str, ...]:
    algorithm = op.kernels[0].algorithm if op.kernels else ""
    return (
        op.name, op.kind if op.phase == "forward" else f"{op.kind} ({op.phase})", algorithm, bound_name(e, op.bound),
        show(op.time_s, "s", 3), f"{100 * op.time_s / e.latency_s:.1f} %", show(op.flop, "FLOP", 3),
        show(op.dram_bytes, "B", 3), show(op.energy_j, "J", 3),
    )  # fmt: skip


def rate_unit(e: Estimate) -> str:
    """The unit of the throughput: images, sequences or other samples per second."""
    return f"{e.sample}/s"


def metric_unit(e: Estimate, metric: str) -> str:
    """The unit of a measured metric."""
    return {"latency_s": "s", "throughput_per_s": rate_unit(e), "power_w": "W", "energy_j": "J"}[metric]


def energy_parts(e: Estimate) -> str:
    """The components of the energy, as shares."""
    return ", ".join(f"{name} {100 * part / e.energy_j:.0f} %" for name, part in e.energy_breakdown_j.items() if part)


def peaks(e: Estimate) -> str:
    """The highest power of a kernel, and that over the window of a sensor."""
    window = show(e.power_window_s, "s", 3)
    return f"peak {show(e.power_peak_w, 'W', 3)}, over {window} {show(e.power_sensed_peak_w, 'W', 3)}"


def power_line(e: Estimate) -> str:
    """Power with its interval and boundary, and its peaks; at the wall also what the device itself takes."""
    low, high = (show(end, "W", 3) for end in e.power_interval_w)
    of_device = f"of at most {show(e.power_limit_w, 'W', 3)}"
    if e.wall is None:
        return f"{show(e.power_w, 'W', 3)} ({low} to {high}) {of_device} ({e.power_boundary}); {peaks(e)}"
    return (f"{show(e.power_w, 'W', 3)} ({low} to {high}) at the wall, {wall_words(e.wall)}; the device "
            f"{show(e.wall.device_w, 'W', 3)} {of_device} ({e.wall.device_boundary}), {peaks(e)}")  # fmt: skip


def wall_words(w: WallPower) -> str:
    """The computer at its plug."""
    shared = "with" if w.devices == 1 else f"one of {w.devices} shares of"
    return f"{shared} {w.system}" if w.devices == 1 else f"{shared} {w.system}, {show(w.computer_w, 'W', 3)}"


def totals(e: Estimate) -> str:
    """The totals."""
    low, high = e.latency_interval_s
    lines = [
        ("latency", f"{show(e.latency_s, 's')} ({100 * e.interval_level:.0f} % interval "
                    f"{show(low, 's', 3)} to {show(high, 's', 3)})"),
        ("throughput", f"{grouped(e.throughput_per_s)} {rate_unit(e)}"),
        ("power", power_line(e)),
        ("energy", f"{show(e.energy_j, 'J', 3)} per batch, {e.throughput_per_w:.3g} {rate_unit(e)}/W: {energy_parts(e)}"),
        ("limited by", limit_line(e)),
        ("time", time_line(e)),
        ("work", work(e)),
        ("memory", memory_words(e.memory, e.memory_capacity_bytes, e.fits)
                   + ("" if e.max_batch is None else f"; largest batch {e.max_batch}")),
    ]  # fmt: skip
    floor = floor_line(e)
    lines += [("host", floor)] if floor else []
    return "\n".join(f"{name:<11} {value}" for name, value in lines)


def work(e: Estimate) -> str:
    """Arithmetic and memory traffic."""
    why = "" if e.dram_bytes else ": all data stay in the caches"
    return f"{show(e.flop, 'FLOP')}, {show(e.dram_bytes, 'B')} of memory traffic{why}"


def memory_uses(m: Footprint) -> str:
    """What the memory holds."""
    uses = {"context" if name == "reserved" else name: size for name, size in asdict(m).items() if size}
    return ", ".join(f"{name} {show(size, 'B', 3)}" for name, size in uses.items())


def memory_words(m: Footprint, capacity: float, fits: bool) -> str:
    """The memory that is needed, whether that fits, and what it holds."""
    return f"{show(m.total, 'B', 3)} of {show_capacity(capacity)}: {'fits' if fits else 'DOES NOT FIT'} ({memory_uses(m)})"


def limit_line(e: Estimate) -> str:
    """What limits the run, and what each resource would save."""
    saved = [(bound_name(e, name), 100 * time / e.latency_s) for name, time in e.relief_s.items() if time > NOTABLE * e.latency_s]
    if not saved:
        return f"{bound_name(e, e.limited_by)}: no single resource that is {FASTER_TEXT} faster saves {100 * NOTABLE:g} %"
    first, others = saved[0], saved[1:]
    rest = "; " + ", ".join(f"{name} {share:.1f} %" for name, share in others) if others else ""
    return f"{first[0]}: {FASTER_TEXT} faster saves {first[1]:.1f} %{rest}"


WAITS = {HOST: "the host", INPUT: "decoded input"}  # what a device waits for


def time_line(e: Estimate) -> str:
    """Where the time goes: on the device by bound, and waiting for the host CPU."""
    parts = sorted(((t, bound_name(e, name)) for name, t in e.breakdown_s.items() if t > NOTABLE * e.latency_s), reverse=True)
    on_device = ", ".join(f"{name} {100 * t / e.latency_s:.1f} %" for t, name in parts if name not in WAITS)
    waited = ", for ".join(f"{WAITS[name]} {100 * t / e.latency_s:.1f} %" for t, name in parts if name in WAITS)
    waits = f"waiting for {waited}" if waited else ""
    return "; ".join(filter(None, (on_device, waits)))


def floor_line(e: Estimate) -> str:
    """The floor that the host CPU sets, where the latency is near it; else empty."""
    if e.limited_by != HOST and e.host_floor_s < NEAR_FLOOR * e.latency_s:
        return ""
    way = "; --graph does" if e.limits.graph else ""
    return f"{e.host_cpu} needs {show(e.host_floor_s, 's', 3)} to issue this; no faster chip gets below{way}"


def measured(e: Estimate) -> str:
    """Published measurements of the same case, each beside its prediction."""
    if not e.references:
        near = "" if e.nearest is None else f"\nnearest     {reference_words(e, e.nearest)}"
        return f"measured    the corpus has no published measurement of this case{near}"
    return "\n".join(f"measured    {reference_words(e, r)}" for r in e.references)


def reference_words(e: Estimate, r: Reference) -> str:
    """A published measurement beside its prediction."""
    unit = metric_unit(e, r.metric)
    covers = f"; it covers: {r.boundary}" if r.boundary else ""
    return (
        f"{METRIC_NAMES[r.metric]} {show(r.measured, unit)} ({r.source}; {r.stack}, {show(r.clock_hz, 'Hz', 3)}), "
        f"predicted {show(r.predicted, unit)}, error {of_time(r.metric)}{100 * r.error:+.1f} %{covers}"
        + conditions_line(r.conditions)
    )


def of_time(metric: str) -> str:
    """What is said before the error of a rate, which is that of the time that it stands for."""
    return "of the time " if metric in RATES else ""


def conditions_line(conditions: Sequence[str]) -> str:
    """Conditions of a measurement that differ from the request, as a line below it; empty without any."""
    return f"\n{'':<11} measured with {'; '.join(map(clean, conditions))}" if conditions else ""


def wall_lines(w: WallPower) -> list[str]:
    """How far powers at the wall are off, and what of the computer is assumed."""
    seen, values = w.held_out, w.assumed_values
    found = [f"held out    on {seen.rows} rows of {w.interval_class}: median error {100 * seen.median:.0f} %, "
             f"p90 {100 * seen.p90:.0f} %"]  # fmt: skip
    if values:
        found.append(f"assumed     {len(values)} values of system {w.system} are not published: {', '.join(values)}")
    return found


def assumptions_text(e: Estimate) -> str:
    """Assumptions and warnings."""
    seen = e.held_out
    lines = [f"assumed     {line}" for line in e.assumptions]
    if seen.rows:
        lines.insert(0, f"held out    on {seen.rows} held-out measurements of this class ({e.interval_class}): "
                        f"median error {100 * seen.median:.0f} %, p90 {100 * seen.p90:.0f} %")  # fmt: skip
        lines[1:1] = [f"nearest     evidence: {seen.basis}"] if seen.basis else []
    if e.wall is not None:
        lines += wall_lines(e.wall)
    if e.assumed_values:
        lines.append(f"assumed     {len(e.assumed_values)} values of the spec are not published: {', '.join(e.assumed_values)}")
    lines += [f"warning     {line}" for line in e.warnings]
    return "\n".join(lines)
