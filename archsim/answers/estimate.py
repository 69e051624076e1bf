"""What an estimate says: how long, how much energy, why, and how far to trust it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from archsim.answers.layers import bounds_bar, layer_tables, roofline, tree_chart
from archsim.answers.timeline import power_chart, timeline_chart
from archsim.base.record import by_key
from archsim.base.units import grouped, show, show_capacity
from archsim.cost.bounds import BOUNDS, bound_word
from archsim.cost.energy import COMPONENTS
from archsim.estimation.measured import Reference, own_rows
from archsim.estimation.memory import Footprint
from archsim.estimation.result import HOST, SCHEMA, Estimate
from archsim.estimation.wall import OF_COMPUTER, WallPower
from archsim.evidence.case import RATES
from archsim.explain.summary import FASTER_TEXT, NEAR_FLOOR, SAMPLES, layer_groups, reaches, why
from archsim.render.blocks import Block, Facts, Note, Table, Verdict, columns, number, percent, stacked, words
from archsim.render.palette import order
from archsim.render.text import csv_lines
from archsim.schedule.observer import Recording
from archsim.trace.op import OPTIMISERS

SPREAD = "times are estimates "  # how the note begins that says how far a simulated time may be off
SCALARS = (
    "network", "hardware", "hardware_name", "changes", "stack", "task", "optimiser", "batch", "seq_len", "precision",
    "threads", "devices", "fidelity", "traffic", "graph", "cold", "streams", "host_cpu",
    "clock_hz", "memory_clock_hz", "latency_s", "latency_interval_s", "interval_level", "interval_class", "throughput_per_s",
    "power_w", "power_interval_w", "power_peak_w", "power_sensed_peak_w", "power_window_s",
    "energy_j", "energy_interval_j", "energy_budget_j",
    "throughput_per_w", "power_limit_w", "power_boundary", "memory_bytes", "fits", "max_batch", "flop", "dram_bytes",
    "limited_by", "device_s", "host_wait_s", "host_floor_s",
)  # fmt: skip
OP_COLUMNS = ("name", "kind", "phase", "time_s", "wait_s", "bound", "flop", "dram_bytes", "energy_j")
METRIC_NAMES = {"latency_s": "latency", "throughput_per_s": "throughput", "power_w": "power", "energy_j": "energy",
                "system_power_w": "power at the wall", "system_energy_j": "energy at the wall"}  # fmt: skip
FIRST_MEASURED = 2  # runs of others on the first screen; the others stand behind --all


ESTIMATED = ("held_out", "stack_rows", "memory", "saved_s", "breakdown_s", "energy_breakdown_j", "wall", "power_over_time",
             "ops", "references", "assumptions", "assumed_values", "warnings", "provenance")  # beside the scalars  # fmt: skip


def record(e: Estimate) -> dict[str, Any]:
    """The estimate as plain values, keys in the documented order."""
    return {"schema": SCHEMA, **{name: _plain(getattr(e, name)) for name in (*SCALARS, *ESTIMATED)}}


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value


def csv(*estimates: Estimate) -> str:
    """One row per op, with its energy by component."""
    parts = tuple(COMPONENTS)  # of the device, also where power and energy of the estimate are those at the wall
    of_all = ("network", "hardware", "hardware_name", "batch")
    rows = [[*(getattr(e, name) for name in of_all), *(getattr(op, name) for name in OP_COLUMNS),
             *(op.energy_breakdown_j[part] for part in parts)] for e in estimates for op in e.ops]  # fmt: skip
    return csv_lines([(*of_all, *OP_COLUMNS, *(f"energy_breakdown_j.{part}" for part in parts)), *rows])


def sections(e: Estimate, recording: Recording | None = None) -> list[Block]:
    """The blocks of an estimate; `recording` is the simulated timeline, if there is one."""
    reason = "\n".join(why(e))
    found: list[Block] = [verdict(e), Note(text=reason, tone="verdict", only="page")]
    found += [Note(text="\n".join(e.warnings), tone="warning")] if e.warnings else []
    found += [groups_table(e), Note(text=reason, only="text"), Facts(title="How far to trust it", rows=trust(e)),
              Note(text=more_words(e), tone="quiet", only="text"), *tree_chart(e), *layer_tables(e), roofline(e), power_chart(e)]
    if recording is not None:
        found.append(timeline_chart(recording))
    origin = [(key.replace("_", " "), value) for key, value in e.provenance.items()]
    return [*found, Facts(title="In detail", rows=details(e), level=2), limits_table(e), energy_table(e),
            *([measured_table(e)] if e.references else []), Facts(title="Assumptions", rows=assumptions(e), level=2),
            Facts(title="Provenance", rows=origin, level=2, only="page")]  # fmt: skip


def title(e: Estimate) -> str:
    """What runs on what: the device by its name, with what is changed of it."""
    name = e.spec.identity.name.partition(" (")[0]
    return f"{Path(e.network).name} on {e.hardware_name.replace(e.hardware, name, 1)}"


def more_words(e: Estimate) -> str:
    """How to see more."""
    longest = max(e.ops, key=lambda op: op.time_s)
    return f"--layers: every layer · --all: all else · explain --layer {quote(longest.name)}: why · --html FILE: charts"


def asked(e: Estimate) -> list[str]:
    """What runs, part by part."""
    tokens = [f"{e.seq_len} tokens"] if e.seq_len else []
    threads = [f"{e.threads} {'thread' if e.threads == 1 else 'threads'}"] if e.threads else []
    odd = ((f"{e.streams} streams", e.streams > 1), ("simulated traffic", e.traffic != "closed"), ("replayed graph", e.graph),
           ("cold caches", e.cold), (f"{e.fidelity} model", e.fidelity != "analytical"))  # fmt: skip
    return [task_words(e), f"batch {e.batch}", *tokens, e.precision, e.stack, clock_words(e), *threads,
            *(text for text, holds in odd if holds)]  # fmt: skip


def task_words(e: Estimate) -> str:
    """The task, and what updates the weights where it does."""
    return e.task.replace("_", " ") + (f" with {OPTIMISERS[e.optimiser].title}" if e.optimiser else "")


def clock_words(e: Estimate) -> str:
    """The core clock, and that of the memory where it is not the usual one."""
    memory = "" if e.memory_clock_hz is None or e.memory_clock_share == 1.0 else f", memory {show(e.memory_clock_hz, 'Hz')}"
    return f"{show(e.clock_hz, 'Hz')}{memory}"


def rate_unit(e: Estimate) -> str:
    """The unit of the throughput: images, sequences or other samples per second."""
    return f"{e.sample}/s"


def metric_unit(e: Estimate, metric: str) -> str:
    """The unit of a measured metric."""
    return rate_unit(e) if metric in RATES else {"s": "s", "w": "W", "j": "J"}[metric[-1]]


def interval(ends: tuple[float, float], unit: str, level: float) -> str:
    """`80 %: 17.6 to 26.2 ms`."""
    low, high = (show(end, unit, 3) for end in ends)
    same = low.split(" ")[-1] == high.split(" ")[-1]
    return f"{100 * level:.0f} %: {low.split(' ')[0] if same else low} to {high}"


def verdict(e: Estimate) -> Verdict:
    """Time, power and memory, each with how sure it is and what follows from it."""
    one = SAMPLES[e.sample]
    run = f"per {one}" if e.batch == 1 else f"per batch of {e.batch}"
    each = f"{show(e.energy_j / e.batch, 'J', 3)} per {one}, {grouped(e.throughput_per_w, 3)} {rate_unit(e)} per W"
    beside = f" of {show(e.power_limit_w, 'W', 3)}" if e.wall is None else " at the wall"
    largest = f"{e.max_batch or 0:,}"
    would = f"batch {largest} would fit" if e.max_batch else "no batch fits" if e.max_batch == 0 else ""
    fits = ("fits" if e.max_batch is None else f"fits up to batch {largest}") if e.fits else would
    lines = [
        (f"{show(e.latency_s, 's', 3)} {run}", interval(e.latency_interval_s, "s", e.interval_level),
         f"{grouped(e.throughput_per_s, 3)} {rate_unit(e)}"),
        (f"{show(e.power_w, 'W', 3)}{beside}",
         interval(e.power_interval_w, "W", e.interval_level), each),
        (f"{show(e.memory_bytes, 'B', 3)} of {show_capacity(e.memory_capacity_bytes)}", fits if e.fits else "DOES NOT FIT",
         "" if e.fits else fits),
    ]  # fmt: skip
    return Verdict(title=title(e), asked=asked(e), lines=lines)


def groups_table(e: Estimate) -> Table:
    """Layers by kind: where the time goes, what limits them, and what they reach."""
    groups = layer_groups(e)
    longest = max((group.time for group in groups), default=0.0)
    rows = [
        [words(group.name), number(group.time, "s"), percent(group.time / e.latency_s, ".0f"), bounds_bar(group.time_s, longest),
         words(", ".join(bound_word(name) for name in group.limited_by)), words(reaches(group, e))]
        for group in groups
    ]  # fmt: skip
    head = columns("", "", "", "", "limited by", "reaches", numbers=(1, 2), bars=(3,), spare=(5,))
    return Table(title="Where the time goes", columns=head, rows=rows)


def trust(e: Estimate) -> list[tuple[str, Any]]:
    """What was measured of the same, how far such predictions are off, and what is assumed."""
    said = runs_of_others(e)
    more = len(said) - FIRST_MEASURED
    seen = [*said[:FIRST_MEASURED], *([f"{more} more: --all"] if more > 0 else [])]
    off = (f"{e.held_out.like}: half within {100 * e.held_out.median:.0f} %, nine in ten within "
           f"{100 * e.held_out.p90:.0f} %; ") if e.held_out.rows else ""  # fmt: skip
    expected = [f"{off}{e.stack_rows.short}", *filter(None, [own_rows(e.spec)])]
    near = [] if e.references or e.nearest is None else [("nearest", _run_words(e, [e.nearest], listed=True))]
    return [("measured", seen or "nobody has published a measurement of this case"), *near, ("expected", expected),
            ("assumed", counted(e.assumptions, e.assumed_values))]  # fmt: skip


def runs_of_others(e: Estimate) -> list[str]:
    """Published measurements, those of one run on a line: what was measured, with which software, and how far off we are."""
    runs = by_key(((r.source, r.stack, r.clock_hz, r.conditions), r) for r in e.references)
    return [_run_words(e, run) for run in runs.values()]


def _run_words(e: Estimate, run: Sequence[Reference], listed: bool = False) -> str:
    first = run[0]
    by_metric = {r.metric: [other for other in run if other.metric == r.metric] for r in run}
    values = " and ".join(_range([r.measured for r in of], metric_unit(e, metric)) for metric, of in by_metric.items())
    odd = [condition for condition in first.conditions if not condition.startswith("stack ")]
    said = ", ".join(odd) if listed else f"{len(odd)} other condition{'' if len(odd) == 1 else 's'}: --all"
    other = f"; {said}" if odd else ""
    software = "the same software" if first.stack == e.stack else first.stack
    return f"{values} with {software} ({first.source}): predicted {', '.join(map(off_words, by_metric.values()))}{other}"


def _range(values: Sequence[float], unit: str) -> str:
    low, high = show(min(values), unit, 3), show(max(values), unit, 3)
    return low if low == high else f"{low} to {high}"


def off_words(run: Sequence[Reference]) -> str:
    """How far predictions of one metric are off: `1 % slower`, `34 to 36 % slower`, `2 % less power`."""
    metric, errors = run[0].metric, sorted(r.error for r in run)
    timed = metric in RATES or metric == "latency_s"
    more, less = ("slower", "faster") if timed else (f"more {METRIC_NAMES[metric]}", f"less {METRIC_NAMES[metric]}")
    if errors[0] * errors[-1] < 0:
        return f"{100 * -errors[0]:.0f} % {less} to {100 * errors[-1]:.0f} % {more}"
    near, far = (f"{100 * end:.0f}" for end in sorted(map(abs, (errors[0], errors[-1]))))
    return f"{near if near == far else f'{near} to {far}'} % {more if errors[-1] > 0 else less}"


def measured_table(e: Estimate) -> Table:
    """One row per measurement, and what was otherwise in it than in the estimate."""
    rows = [
        [words(METRIC_NAMES[r.metric]), number(r.measured, metric_unit(e, r.metric), 4),
         number(r.predicted, metric_unit(e, r.metric), 4), percent(r.error, "+.1f"), words(r.stack),
         number(r.clock_hz, "Hz", 4), words(r.source), words("; ".join((*_covers(r), *r.conditions)) or "what is asked here")]
        for r in e.references
    ]  # fmt: skip
    heads = ("metric", "measured", "predicted", "error of the time", "stack", "clock", "source", "measured with")
    note = "Each prediction is for the conditions of its own row; a positive error is a prediction above the measurement."
    head = columns(*heads, numbers=(1, 2, 3, 5), spare=range(4, 8))
    return Table(title="Measured by others", columns=head, rows=rows, notes=[note], level=2)


def _covers(r: Reference) -> list[str]:
    return [f"it covers {r.boundary}"] if r.boundary and r.metric == "power_w" else []


def limits_table(e: Estimate) -> Table:
    """The time by bound, and what each would save."""
    whole = sum(e.breakdown_s.values()) or 1.0
    split = [(name, e.breakdown_s.get(name, 0.0)) for name in order({*e.breakdown_s, *e.saved_s})]
    longest = max((time for _, time in split), default=0.0)
    rows = [
        [words(bound_word(name), tone=name), number(time, "s", 4), percent(time / whole), bounds_bar({name: time}, longest),
         percent(e.saved_s.get(name, 0.0) / whole), words(BOUNDS[name].meaning if name in BOUNDS else "")]
        for name, time in split
    ]  # fmt: skip
    heads = ("", "time", "share", "", "saves", "meaning")
    return Table(title="What limits it", columns=columns(*heads, numbers=(1, 2, 4), bars=(3,), spare=(1, 5)), rows=rows, level=2,
                 notes=[f"saves: if it were {FASTER_TEXT} faster"])  # fmt: skip


def floor_line(e: Estimate) -> str:
    """The floor that the host CPU sets, where the latency is near it; else empty."""
    if e.limited_by != HOST and e.host_floor_s < NEAR_FLOOR * e.latency_s:
        return ""
    way = "; --graph does" if e.graph_helps else ""
    return f"{e.host_cpu} needs {show(e.host_floor_s, 's', 3)} to issue this; no faster chip gets below{way}"


def energy_table(e: Estimate) -> Table:
    """The energy by component."""
    meaning = COMPONENTS | OF_COMPUTER
    parts = {name: part for name, part in e.energy_breakdown_j.items() if part}
    most = max(parts.values(), default=0.0)
    rows = [[words(name.replace("_", " "), tone=f"energy.{name}"), number(part, "J"), percent(part / e.energy_j),
             stacked({f"energy.{name}": part}, most, "J"), words(meaning[name])] for name, part in parts.items()]  # fmt: skip
    heads = columns("component", "energy", "share", "", "covers", numbers=(1, 2), bars=(3,), spare=(4,))
    return Table(title="Where the energy goes", columns=heads, rows=rows, level=2)


def details(e: Estimate) -> list[tuple[str, Any]]:
    """Everything else that is known of a run."""
    reached = "" if e.dram_bytes else ": all data stay in the caches"
    return [
        ("work", f"{show(e.flop, 'FLOP')}, {show(e.dram_bytes, 'B')} of memory traffic{reached}"),
        ("power", power_line(e)),
        ("memory", memory_words(e.memory, e.memory_capacity_bytes, e.fits)),
        ("host", floor_line(e)),
    ]  # fmt: skip


def power_line(e: Estimate) -> str:
    """Power with its boundary and its peaks; at the wall also what the device itself takes."""
    window = show(e.power_window_s, "s", 3)
    peaks = f"peak {show(e.power_peak_w, 'W', 3)}, over {window} {show(e.power_sensed_peak_w, 'W', 3)}"
    of_device = f"of at most {show(e.power_limit_w, 'W', 3)}"
    if e.wall is None:
        return f"{show(e.power_w, 'W', 3)} {of_device} ({e.power_boundary}); {peaks}"
    return (f"{show(e.power_w, 'W', 3)} at the wall, {wall_words(e.wall)}; the device {show(e.wall.device_w, 'W', 3)} "
            f"{of_device} ({e.wall.device_boundary}), {peaks}")  # fmt: skip


def wall_words(w: WallPower) -> str:
    """The computer at its plug."""
    return f"with {w.system}" if w.devices == 1 else f"one of {w.devices} shares of {w.system}, {show(w.computer_w, 'W', 3)}"


def memory_words(m: Footprint, capacity: float, fits: bool) -> str:
    """The memory that is needed, whether that fits, and what it holds."""
    uses = {"context" if name == "reserved" else name: size for name, size in asdict(m).items() if size}
    held = ", ".join(f"{name} {show(size, 'B', 3)}" for name, size in uses.items())
    return f"{show(m.total, 'B', 3)} of {show_capacity(capacity)}: {'fits' if fits else 'DOES NOT FIT'} ({held})"


def assumptions(e: Estimate) -> list[tuple[str, Any]]:
    """What was chosen, what is not published, and how far powers at the wall are off."""
    rows: list[tuple[str, Any]] = [("set", [f"{key} = {value}" for key, value in e.changes.items()]),
                                   ("chosen", list(e.assumptions))]  # fmt: skip
    if e.wall is not None:
        seen, values = e.wall.held_out, e.wall.assumed_values
        rows.append(("at the wall", f"on {seen.rows} rows of {e.wall.interval_class}: median error {100 * seen.median:.0f} %, "
                                    f"p90 {100 * seen.p90:.0f} %"))  # fmt: skip
        rows.append(("", f"not published of system {e.wall.system}: {', '.join(values)}" if values else ""))
    evidence = [f"{e.held_out.rows:,} held-out rows of {e.interval_class}"] if e.held_out.rows else []
    return [*rows, ("not published", ", ".join(e.assumed_values)), ("stack", e.stack_rows.words),
            ("evidence", evidence + [part for part in e.held_out.basis.split("; ") if part])]  # fmt: skip


# ------------------------------------------------------------------------------------------------- what an answer assumes


def counted(chosen: Sequence[str], unpublished: Sequence[str] = (), of: str = "the chip") -> str:
    """How many choices were left open, and how many values nobody published; empty where nothing is assumed.

    >>> counted(["clock 1 GHz"], ["power.idle", "sm.l2"])
    '1 choice that was left open and 2 values of the chip that nobody published (--all)'
    """
    left = "that was left open" if len(chosen) == 1 else "that were left open"
    counts = ((len(chosen), "choice", left), (len(unpublished), "value", f"of {of} that nobody published"))
    said = " and ".join(f"{count} {what}{'s' * (count > 1)} {which}" for count, what, which in counts if count)
    return f"{said} (--all)" if said else ""


def listed(chosen: Sequence[str], unpublished: Sequence[str] = ()) -> Facts:
    """Every one of them."""
    rows = [("chosen", list(chosen)), ("not published", ", ".join(unpublished))]
    return Facts(title="Assumptions", rows=rows, level=2)


def spread_of(notes: Sequence[str]) -> tuple[str, list[str]]:
    """How far a simulated time may be off, and the other notes."""
    found = next((note for note in notes if note.startswith(SPREAD)), "")
    kind, _, said = found.removeprefix(SPREAD).partition(": ")
    return f"{said} {kind}".strip(), [note for note in notes if note != found]
