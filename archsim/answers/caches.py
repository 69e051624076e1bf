"""What a simulation of caches says: what each level serves, what it asks of the one below, and what a larger one would save."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from archsim.base.units import show, show_capacity
from archsim.explain.caches import SCHEMA, CacheLevel, CacheReport
from archsim.render.blocks import (
    Axis,
    Block,
    Cell,
    Chart,
    Facts,
    Series,
    Table,
    Verdict,
    columns,
    count,
    number,
    percent,
    stacked,
    words,
)
from archsim.render.csv import records_csv

SHOWN = 8  # capacities of a curve in text


def record(a: CacheReport) -> dict[str, Any]:
    """Plain values for JSON."""
    return {"schema": SCHEMA, **asdict(a)}


def csv(a: CacheReport) -> str:
    """One row for each level."""
    every = {"source": a.source, "hardware": a.hardware, "hardware_name": a.hardware_name}
    return records_csv([asdict(level) for level in a.levels], every)


def sections(a: CacheReport) -> list[Block]:
    """The blocks of a simulation."""
    found: list[Block] = [verdict(a), *_timing(a), levels_table(a), traffic_table(a)]
    if a.curve:
        found += [_curve_table(a), curve_chart(a)]
    return [*found, Facts(title="Assumptions", rows=[("assumed", list(a.notes))])]


def verdict(a: CacheReport) -> Verdict:
    """What ran through the caches, how much reached the memory, and how far each level served it."""
    cores = [f"{a.cores} cores"] if a.cores > 1 else []
    part = [] if a.simulated == 1.0 else [f"{100 * a.simulated:.2g} % of the kernel"]
    served = ", ".join(f"{level.name} serves {100 * (1 - level.miss_rate):.1f} %" for level in a.levels)
    said = [f"{show(a.dram_bytes, 'B')} of memory traffic in {show(a.time_s, 's', 3)} ({a.timed_by}).",
            f"Of the requests that reach a level, {served}."]  # fmt: skip
    if a.levels:
        busy = max(a.levels, key=_load)
        below = next((other.name for level, other in zip(a.levels, a.levels[1:], strict=False) if level is busy), "memory")
        said.append(f"Busiest: from {below} to {busy.name}, {100 * _load(busy):.2g} % of the bandwidth.")
    return Verdict(title=f"{a.source} on {a.hardware_name}", asked=[f"{a.accesses:,} accesses", *cores, *part], sentences=said)


def _load(level: CacheLevel) -> float:
    """The share of the bandwidth below that a level asks for."""
    return level.demand_Bps / level.bandwidth_Bps if level.bandwidth_Bps else 0.0


def _timing(a: CacheReport) -> list[Block]:
    """The three times of a program, what it takes at least, and where its accesses hit."""
    t = a.timing
    if t is None:
        return []
    hits = ", ".join(f"{level} {hit:,}" for level, hit in t.hits.items() if hit)
    least = ", ".join(f"{name} {show(seconds, 's', 3)}" for name, seconds in t.bounds_s.items())
    return [Facts(title="How long a core takes", rows=[
        ("time", f"{show(t.time_s, 's')} at {show(t.clock_hz, 'Hz', 3)} if accesses overlap within {t.window} instructions"),
        ("at least", f"{show(t.lower_s, 's')} if all of them overlap: {least}"),
        ("at most", f"{show(t.upper_s, 's')} if each waits for the one before"),
        ("instructions", f"{t.instructions:,}, {t.instructions / (t.time_s * t.clock_hz):.2f} per clock"),
        ("accesses hit", hits),
    ])]  # fmt: skip


def levels_table(a: CacheReport) -> Table:
    """Requests, misses and why they miss."""
    heads = ("level", "size", "ways", "requests", "misses", "missed", "", "cold", "capacity", "conflict")
    known = any(level.cold is not None for level in a.levels)
    rows = [[*_named(level), count(level.ways), count(level.count.requests, 12), count(level.count.misses, 12),
             percent(level.miss_rate, ".2f"), stacked({"0": level.miss_rate}, 1.0), *map(_cause, _causes(level))]
            for level in a.levels]  # fmt: skip
    last = len(heads) if known else len(heads) - 3
    notes = ["Negative conflict misses: a fully associative cache of this size would miss more."] if known else []
    return Table(title="Levels", columns=columns(*heads[:last], numbers=(1, 2, 3, 4, 5, 7, 8, 9), bars=(6,),
                                                      spare=(2, 6, 7, 8, 9)), notes=notes,
                 rows=[row[:last] for row in rows])  # fmt: skip


def _named(level: CacheLevel) -> list[Cell]:
    times = f"{level.instances} x " if level.instances > 1 else ""
    return [words(level.name), Cell(text=times + show_capacity(level.size), value=level.size * level.instances)]


def _causes(level: CacheLevel) -> tuple[int | None, int | None, int | None]:
    return level.cold, level.capacity, level.conflict


def _cause(value: int | None) -> Cell:
    return words("-") if value is None else count(value, 12)


def traffic_table(a: CacheReport) -> Table:
    """What each level reads from the one below and writes to it, beside the bandwidth between them."""
    heads = ("level", "reads", "writes", "demand", "of", "used", "")
    rows = [[words(level.name), number(level.count.bytes_read, "B"), number(level.count.bytes_written, "B"),
             number(level.demand_Bps, "B/s"), number(level.bandwidth_Bps, "B/s"), percent(_load(level), ".2g"),
             stacked({"0": min(_load(level), 1.0)}, 1.0)] for level in a.levels]  # fmt: skip
    return Table(title="From below", columns=columns(*heads, numbers=range(1, 6), bars=(6,), spare=(1, 2, 6)), rows=rows)


def _curve_table(a: CacheReport) -> Table:
    step = max(1, -(-len(a.curve) // SHOWN))
    points = [*a.curve[::step], a.curve[-1]] if (len(a.curve) - 1) % step else list(a.curve[::step])
    uses = max(a.uses, 1)
    rows = [[words(show_capacity(size, 3)), percent(misses / uses, ".2f"), stacked({"0": misses / uses}, 1.0),
             percent(in_sets / uses, ".2f")] for size, misses, in_sets in points]  # fmt: skip
    return Table(title=f"Misses of {a.curve_of} by its size", rows=rows, only="text",
                 columns=columns("", "fully associative", "", f"in sets of {_ways(a)}", numbers=(1, 3), bars=(2,)))  # fmt: skip


def _ways(a: CacheReport) -> int:
    return next(level.ways for level in a.levels if level.name == a.curve_of)


def curve_chart(a: CacheReport) -> Chart:
    """The share of misses over capacity, with the sizes of the levels."""
    end = max([a.curve[-1][0], *(level.size for level in a.levels)])
    x, uses = [*(float(size) for size, _, _ in a.curve), float(end)], max(a.uses, 1)  # constant beyond the last point
    names = ("fully associative", f"in sets of {_ways(a)}")
    series = [Series(name=name, x=x, y=[100 * point[i] / uses for point in (*a.curve, a.curve[-1])], mark="", stepped=True)
              for i, name in enumerate(names, 1)]  # fmt: skip
    first = x[0]
    marks = [first * 4.0**i for i in range(32) if first * 4.0**i <= 1.2 * end]
    note = (f"Requests to {a.curve_of}: misses of a fully associative LRU cache, and expected in sets of as many ways as it has "
            "(Smith 1978). Dashed: the levels.")  # fmt: skip
    return Chart(title="Misses by size", series=series, notes=[note],
                 guides=[("x", float(level.size), level.name) for level in a.levels],
                 x=Axis(title="capacity", unit="KiB", log=True, marks=marks, ends=(first, 1.2 * end)),
                 y=Axis(title="misses", unit="%", log=False))  # fmt: skip
