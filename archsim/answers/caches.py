"""What a simulation of caches says: what each level serves, what it asks of the one below, and what a larger one would save."""

from __future__ import annotations

from dataclasses import asdict

from archsim.answers import tagged
from archsim.base.record import by_key
from archsim.base.units import show, show_capacity
from archsim.explain.caches import SCHEMA, CacheLevel, CacheReport, Stay
from archsim.render.blocks import Axis, Block, Cell, Chart, Facts, Series, Table, Verdict, columns, count, number, percent, words
from archsim.render.text import records_csv

SHOWN = 8  # capacities of a curve in text, and places of a cache
FIRST = 4  # lines of a place


record = tagged(SCHEMA)


def csv(a: CacheReport) -> str:
    """One row for each level."""
    every = {"source": a.source, "hardware": a.hardware, "hardware_name": a.hardware_name}
    return records_csv([asdict(level) for level in a.levels], every)


def sections(a: CacheReport) -> list[Block]:
    """The blocks of a simulation."""
    found: list[Block] = [verdict(a), *_timing(a), levels_table(a), traffic_table(a)]
    if a.stays:
        found += [stays_table(a), stays_chart(a)]
    if a.curve:
        found += [curve_table(a), curve_chart(a)]
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
        said.append(f"Busiest: from {below} to {busy.name}, {100 * _load(busy):.3g} % of the bandwidth.")
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
    heads, rows = ("level", "size", "ways", "requests", "misses", "missed", "cold", "capacity", "conflict"), []
    for level in a.levels:
        size = show_capacity(level.size) if level.instances == 1 else f"{level.instances} x {show_capacity(level.size)}"
        causes = [words("-") if cause is None else count(cause, 12) for cause in (level.cold, level.capacity, level.conflict)]
        rows.append([words(level.name), Cell(text=size, value=level.size * level.instances), count(level.ways),
                     count(level.count.requests, 12), count(level.count.misses, 12), percent(level.miss_rate, ".2f"),
                     *causes])  # fmt: skip
    notes = ["Negative conflict misses: a fully associative cache of this size would miss more."] if a.curve else []
    return Table(title="Levels", columns=columns(*heads, numbers=range(1, 9), spare=(2, 6, 7, 8)), notes=notes, rows=rows)


def traffic_table(a: CacheReport) -> Table:
    """What each level reads from the one below and writes to it, beside the bandwidth between them."""
    heads = ("level", "reads", "writes", "demand", "of", "used")
    rows = [[words(level.name), number(level.count.bytes_read, "B"), number(level.count.bytes_written, "B"),
             number(level.demand_Bps, "B/s"), number(level.bandwidth_Bps, "B/s"), percent(_load(level), ".3g")]
            for level in a.levels]  # fmt: skip
    return Table(title="From below", columns=columns(*heads, numbers=range(1, 6), spare=(1, 2)), rows=rows)


def _places(a: CacheReport) -> dict[str, list[Stay]]:
    """The lines of each place of the L1, in order."""
    return by_key((f"set {stay.set} way {stay.way}", stay) for stay in a.stays)


def stays_table(a: CacheReport) -> Table:
    """The lines of each place, with the accesses for which each was there."""
    rows = [[words(place), count(len(lines)), words(", ".join(f"{s.address:x} {s.since}-{s.until}" for s in lines[:FIRST]))]
            for place, lines in _places(a).items()]  # fmt: skip
    return Table(title=f"Lines of {a.levels[0].name}", columns=columns("", "lines", f"the first {FIRST}, from access to access",
                 numbers=(1,)), rows=rows, first=range(min(len(rows), SHOWN)))  # fmt: skip


def stays_chart(a: CacheReport) -> Chart:
    """A row for each place, in which lines follow each other."""
    series = []
    for odd, name in enumerate(("first line of a place, third ...", "second, fourth ...")):
        at = [(row, stay) for row, lines in enumerate(_places(a).values()) for stay in lines[odd::2]]
        series.append(Series(name=name, x=[stay.since for _, stay in at], ends=[stay.until for _, stay in at],
                             y=[row for row, _ in at], tips=[f"line {stay.address:x}" for _, stay in at]))  # fmt: skip
    return Chart(title="Lines over time", series=series, x=Axis(title="access", log=False), y=Axis(title="", names=[*_places(a)]))


def _curves(a: CacheReport) -> tuple[str, str]:
    """The names of both curves."""
    ways = next(level.ways for level in a.levels if level.name == a.curve_of)
    return "fully associative", f"in sets of {ways}"


def curve_table(a: CacheReport) -> Table:
    """The share of misses at some capacities."""
    rows = [[words(show_capacity(size, 3)), *(percent(misses / max(a.uses, 1), ".2f") for misses in both)]
            for size, *both in a.curve[:: -(-len(a.curve) // SHOWN)]]  # fmt: skip
    return Table(title=f"Misses of {a.curve_of} by its size", columns=columns("", *_curves(a), numbers=(1, 2)), rows=rows,
                 only="text", level=2)  # fmt: skip


def curve_chart(a: CacheReport) -> Chart:
    """The share of misses over capacity, with the sizes of the levels."""
    end = float(max([a.curve[-1][0], *(level.size for level in a.levels)]))
    x, uses = [*(float(size) for size, _, _ in a.curve), end], max(a.uses, 1)  # constant beyond the last point
    series = [Series(name=name, x=x, y=[100 * point[i] / uses for point in (*a.curve, a.curve[-1])], mark="", stepped=True)
              for i, name in enumerate(_curves(a), 1)]  # fmt: skip
    marks = [x[0] * 4.0**i for i in range(32) if x[0] * 4.0**i <= 1.2 * end]
    note = (f"Requests to {a.curve_of}: misses of a fully associative LRU cache, and expected in sets of as many ways as it has "
            "(Smith 1978). Dashed: the levels.")  # fmt: skip
    return Chart(title="Misses by size", series=series, notes=[note],
                 guides=[("x", float(level.size), level.name) for level in a.levels],
                 x=Axis(title="capacity", unit="KiB", log=True, marks=marks, ends=(x[0], 1.2 * end)),
                 y=Axis(title="misses", unit="%", log=False))  # fmt: skip
